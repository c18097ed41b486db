//! HTTP/2 (RFC 9113), with many requests at a time on a connection.
//!
//! - `fields` encodes header fields before the load starts; the rest of the bytes are `http_codec`'s;
//! - `session` is one connection without its socket;
//! - `request` is a request, encoded before the load starts.

mod fields;
mod harness;
mod request;
mod session;

pub(crate) use fields::FieldNumbers;
pub use harness::{Http2Harness, Http2HarnessResult};
pub(crate) use request::Http2Request;
pub(crate) use session::Http2Session;
