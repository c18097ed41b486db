//! The list of runs.

pub(crate) mod model;
pub(crate) mod state;
pub(crate) mod view;
