//! What a frame holds of TCP.

use std::net::SocketAddr;

use etherparse::{LaxIpSlice, ether_type, ip_number};

use crate::capture::{Frame, LinkLayer};

/// The port of HTTP/3, and of nearly all QUIC.
pub(crate) const QUIC_PORT: u16 = 443;
/// Headers without options, in bytes.
const TCP_HEADER_BYTES: usize = 20;
const UDP_HEADER_BYTES: usize = 8;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    Tcp(Segment<'a>),
    /// UDP from or to port 443.
    Quic {
        source: SocketAddr,
        destination: SocketAddr,
        /// The length of the payload on the wire, in bytes.
        len: u32,
    },
    /// Other protocols, fragments, and what is cut within its headers.
    Other,
}

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

impl<'a> Packet<'a> {
    /// Reads a frame down to its TCP or UDP header. Checksums are not looked at: with offload they are not there yet.
    pub fn parse(frame: &Frame<'a>) -> Self {
        ip_packet(frame).and_then(parse_ip).unwrap_or(Self::Other)
    }
}

/// The frame without its link layer, if that says to be before IP.
fn ip_packet<'a>(frame: &Frame<'a>) -> Option<&'a [u8]> {
    let (protocol_at, start) = match frame.link {
        LinkLayer::Ip => return Some(frame.data),
        // The numbers of families differ between systems; IP has its version.
        LinkLayer::Loopback => return frame.data.get(4..),
        LinkLayer::Ethernet => (12, 14),
        LinkLayer::LinuxCooked => (14, 16),
        LinkLayer::LinuxCooked2 => (0, 20),
    };
    let mut protocol = u16_at(frame.data, protocol_at)?;
    let mut rest = frame.data.get(start..)?;
    while is_vlan(protocol) {
        (protocol, rest) = (u16_at(rest, 2)?, rest.get(4..)?);
    }
    [ether_type::IPV4.0, ether_type::IPV6.0].contains(&protocol).then_some(rest)
}

/// Whether a VLAN tag follows (IEEE 802.1Q, 802.1ad, and a number from before it).
fn is_vlan(protocol: u16) -> bool {
    [ether_type::VLAN_TAGGED_FRAME, ether_type::PROVIDER_BRIDGING, ether_type::VLAN_DOUBLE_TAGGED_FRAME]
        .contains(&protocol.into())
}

/// Reads IPv4 (RFC 791) and IPv6 with extension headers (RFC 8200).
fn parse_ip(bytes: &[u8]) -> Option<Packet<'_>> {
    let (ip, _) = LaxIpSlice::from_slice(bytes).ok()?;
    let payload = ip.payload();
    if payload.fragmented {
        return None;
    }
    let wire_len = match &ip {
        LaxIpSlice::Ipv4(ip) => usize::from(ip.header().total_len()),
        LaxIpSlice::Ipv6(ip) => ip.header().slice().len() + usize::from(ip.header().payload_length()),
    };
    // A length of 0, which offload leaves to hardware, and padding after the packet mean that nothing is missing.
    let len = payload.payload.len() + wire_len.saturating_sub(bytes.len());
    let source = SocketAddr::new(ip.source_addr(), u16_at(payload.payload, 0)?);
    let destination = SocketAddr::new(ip.destination_addr(), u16_at(payload.payload, 2)?);
    match payload.ip_number {
        ip_number::TCP => parse_tcp(source, destination, payload.payload, len).map(Packet::Tcp),
        ip_number::UDP if [source.port(), destination.port()].contains(&QUIC_PORT) => {
            let len = len.checked_sub(UDP_HEADER_BYTES)? as u32;
            Some(Packet::Quic { source, destination, len })
        }
        _ => None,
    }
}

/// Reads a segment (RFC 9293, 3.1) of which the first bytes were captured. `len` is its length on the wire.
fn parse_tcp(source: SocketAddr, destination: SocketAddr, bytes: &[u8], len: usize) -> Option<Segment<'_>> {
    let header: &[u8; TCP_HEADER_BYTES] = bytes.first_chunk()?;
    let header_len = usize::from(header[12] >> 4) * 4;
    if header_len < TCP_HEADER_BYTES {
        return None;
    }
    let has = |flag: u8| header[13] & flag != 0;
    Some(Segment {
        source,
        destination,
        sequence: u32::from_be_bytes(*header[4..].first_chunk()?),
        acknowledged: has(0x10).then_some(u32::from_be_bytes(*header[8..].first_chunk()?)),
        is_syn: has(0x02),
        is_fin: has(0x01),
        is_reset: has(0x04),
        window: u16_at(header, 14)?,
        // A snap length may end within the options.
        payload: bytes.get(header_len..).unwrap_or_default(),
        len: len.checked_sub(header_len)? as u32,
    })
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
