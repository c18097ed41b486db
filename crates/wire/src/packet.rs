//! What a frame holds of TCP.

use std::net::SocketAddr;

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    pub source: SocketAddr,
    pub destination: SocketAddr,
    pub sequence: u32,
    /// The acknowledgment number, if the segment has one.
    pub acknowledged: Option<u32>,
    pub is_syn: bool,
    pub is_fin: bool,
    pub is_reset: bool,
    /// The receive window, before it is scaled.
    pub window: u16,
    /// The payload, as far as it was captured.
    pub payload: &'a [u8],
    /// The length of the payload on the wire, in bytes.
    pub len: u32,
}
