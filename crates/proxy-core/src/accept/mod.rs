//! Accepting clients: addresses, listening sockets, the PROXY header, address lists, limits on connections, rates of
//! clients.

pub(crate) mod access;
pub(crate) mod client_conn_counts;
pub(crate) mod client_rates;
pub(crate) mod descriptors;
pub(crate) mod limiter;
pub(crate) mod listen;
pub(crate) mod listeners;
pub(crate) mod networks;
pub mod proxy_protocol;
