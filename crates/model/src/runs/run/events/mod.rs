//! What happened in a run, and when: alerts, experiments, changed settings, marks and lines of the log.

pub(in crate::runs) mod alerts;
pub(in crate::runs) mod experiment;
pub(in crate::runs) mod log;
pub(crate) mod settings;
pub(in crate::runs) mod timeline;
