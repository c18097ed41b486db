//! What came through in a run: the series of its parts, and what is kept of clients, upstreams, routes, requests and failures.

pub(in crate::runs) mod certificates;
pub(in crate::runs) mod client;
pub(in crate::runs) mod clients;
pub(in crate::runs) mod failures;
pub(in crate::runs::run) mod http;
pub(in crate::runs::run) mod http_gauges;
pub(in crate::runs::run) mod load;
pub(in crate::runs::run) mod measured;
pub(in crate::runs) mod named;
pub(in crate::runs::run) mod proxy;
pub(in crate::runs) mod requests;
pub(in crate::runs::run) mod tls;
pub(in crate::runs) mod usage;
