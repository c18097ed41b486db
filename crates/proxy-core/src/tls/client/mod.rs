//! The client's side of a connection to an upstream: its configuration and its engine.

pub(in crate::tls) mod config;
pub(in crate::tls) mod engine;
pub(in crate::tls) mod error;
pub(in crate::tls) mod live;
