//! Where clients come in: addresses, listening sockets, the PROXY header, limits on connections.

pub(crate) mod descriptors;
pub(crate) mod limiter;
pub(crate) mod listen;
pub(crate) mod listeners;
pub(crate) mod per_client;
pub mod proxy_protocol;
