//! Requests of HTTP mode.

pub(crate) mod model;
pub(crate) mod view;
