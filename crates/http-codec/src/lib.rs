//! HTTP as bytes, without I/O: what both the proxy and the load generator read and write.
//!
//! - [`frame`]: frames of HTTP/2 (RFC 9113);
//! - [`hpack`]: their header blocks (RFC 7541);
//! - [`chunked`]: the chunked coding of HTTP/1.1 (RFC 9112).

#![forbid(unsafe_code)]

pub mod chunked;
pub mod frame;
pub mod hpack;
