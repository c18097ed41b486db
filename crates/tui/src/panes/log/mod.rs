//! The log: warnings, events, and the counts of an earlier moment.

pub(crate) mod past;
pub(crate) mod view;
