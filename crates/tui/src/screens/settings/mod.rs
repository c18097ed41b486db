//! Settings that are changed while the run goes on.

pub(crate) mod changes;
pub(crate) mod model;
pub(crate) mod quick_control;
pub(crate) mod state;
pub(crate) mod view;
