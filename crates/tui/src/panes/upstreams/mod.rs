//! Upstreams of the proxy.

mod columns;
mod model;
pub(crate) mod state;
pub(crate) mod view;
