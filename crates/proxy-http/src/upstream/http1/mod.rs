//! HTTP/1.1 with upstreams: one exchange at a time on a connection that is kept alive.

pub(crate) mod connection;
pub(crate) mod exchange;
pub(crate) mod framing;
pub(crate) mod head;
pub(crate) mod read_buffer;
