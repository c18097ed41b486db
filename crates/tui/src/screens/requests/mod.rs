//! Single requests of HTTP mode.

pub(crate) mod model;
pub(crate) mod state;
pub(crate) mod view;
