//! Where the requests of a route go.

use crate::route::RouteTable;
use crate::route::timeouts::RouteTimeouts;

/// Routes, and where the requests of each go.
#[derive(Clone, Debug)]
pub(crate) struct Routing {
    pub(crate) table: RouteTable,
    /// By the route's index.
    pub(crate) destinations: Vec<Destination>,
}

/// How the upstreams of a route are spoken to. Which they are, [`Upstreams::upstreams_of`] has by the route's index.
///
/// [`Upstreams::upstreams_of`]: proxy_core::Upstreams::upstreams_of
#[derive(Clone, Copy, Debug)]
pub(crate) struct Destination {
    /// The route's index.
    pub(crate) index: usize,
    /// Whether all of them speak HTTP/2; otherwise none does.
    pub(crate) is_http2: bool,
    pub(crate) timeouts: RouteTimeouts,
}
