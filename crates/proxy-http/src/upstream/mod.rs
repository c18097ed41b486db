//! The HTTP/1.1 client: connections to the upstreams, kept alive and pooled per worker.

pub(crate) mod exchange;
mod framing;
pub(crate) mod pool;
