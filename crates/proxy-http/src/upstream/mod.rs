//! The HTTP/1.1 client: connections to the upstreams, kept alive and pooled per worker.

pub(crate) mod acquire;
pub(crate) mod connection;
pub(crate) mod content;
pub(crate) mod exchange;
pub(crate) mod framing;
pub(crate) mod head;
pub(crate) mod pool;
mod queue;
pub(crate) mod read_buffer;
pub(crate) mod response_body;
pub(crate) mod tunnel;
