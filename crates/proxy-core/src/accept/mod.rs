//! Accepting clients: addresses, listening sockets, the PROXY header, limits on connections.

pub(crate) mod client_conn_counts;
pub(crate) mod descriptors;
pub(crate) mod limiter;
pub(crate) mod listen;
pub(crate) mod listeners;
pub mod proxy_protocol;
