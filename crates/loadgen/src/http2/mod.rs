//! HTTP/2: a loop as that of HTTP/1.1, whose connections carry many requests at a time.
//!
//! - `hpack` and `frame` are what goes over a connection, taken apart and put together;
//! - `session` is one connection's protocol without its socket;
//! - `prepared` is a request, written out once;
//! - `worker` is the thread: lanes, each a place for so many requests at a time, and the connections that carry them.

mod frame;
mod hpack;
mod prepared;
mod session;
mod trial;
mod worker;

pub(crate) use hpack::Numbers;
pub(crate) use prepared::Http2Request;
pub use trial::{Http2Trial, Http2Tried};
pub(crate) use worker::Worker;
