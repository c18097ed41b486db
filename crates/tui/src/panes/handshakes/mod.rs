//! Handshakes: full against resumed, their reasons and their parts.

pub(crate) mod model;
pub(crate) mod view;
