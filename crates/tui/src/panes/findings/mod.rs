//! Findings: what is about to break, and why.

pub(crate) mod alert;
pub(crate) mod details;
pub(crate) mod model;
pub(crate) mod view;
