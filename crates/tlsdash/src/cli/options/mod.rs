//! The groups of the proxy's options.

pub(crate) mod acme;
pub(crate) mod balancing;
pub(crate) mod http;
pub(crate) mod load;
pub(crate) mod mode;
pub(crate) mod route;
pub(crate) mod tls;
pub(crate) mod upstream_tls;
