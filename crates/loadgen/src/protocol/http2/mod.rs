//! HTTP/2 (RFC 9113), with many requests at a time on a connection.
//!
//! - `hpack` and `frame` encode and decode the bytes of a connection;
//! - `session` is one connection without its socket;
//! - `request` is a request, encoded before the load starts.

mod frame;
mod harness;
mod hpack;
mod request;
mod session;

pub use harness::{Http2Harness, Http2HarnessResult};
pub(crate) use hpack::FieldNumbers;
pub(crate) use request::Http2Request;
pub(crate) use session::Http2Session;
