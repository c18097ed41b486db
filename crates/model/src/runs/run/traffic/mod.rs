//! What came through in a run: the series of its parts, and what is kept of clients, upstreams, routes, requests and failures.

pub(in crate::runs) mod certificates;
pub(in crate::runs) mod client;
pub(in crate::runs) mod clients;
pub(in crate::runs) mod failures;
pub(in crate::runs) mod http_gauges;
pub(in crate::runs) mod measured;
pub(in crate::runs) mod named;
pub(in crate::runs) mod proxy;
pub(in crate::runs) mod recent;
pub(in crate::runs) mod requests;
pub(in crate::runs) mod usage;
