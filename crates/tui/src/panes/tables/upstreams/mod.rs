//! Upstreams of the proxy.

mod columns;
pub(crate) mod model;
pub(crate) mod state;
pub(crate) mod view;
