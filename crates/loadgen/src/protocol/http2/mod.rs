//! HTTP/2 (RFC 9113), whose connections carry many requests at a time.
//!
//! - `hpack` and `frame` are what goes over a connection, taken apart and put together;
//! - `session` is one connection's protocol without its socket;
//! - `prepared` is a request, written out once.

mod frame;
mod harness;
mod hpack;
mod prepared;
mod session;

pub use harness::{Http2Harness, Http2HarnessResult};
pub(crate) use hpack::Numbers;
pub(crate) use prepared::Http2Request;
pub(crate) use session::Session;
