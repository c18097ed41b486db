//! The PROXY protocol: a header before the first byte that names the client.
//!
//! Source: "The PROXY protocol, versions 1 & 2", the `HAProxy` project's `proxy-protocol.txt`. The `proxy-header`
//! crate reads and writes headers. This module limits the length, and adds the TLS fields.

mod checksum;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use proxy_header::{Error, ParseConfig, Protocol, ProxiedAddress, ProxyHeader, SslInfo, Tlv};

/// Longest header that is accepted, in bytes. A header of version 2 with the addresses and every field of the
/// specification at its usual size fits; up to 65,551 bytes could be announced.
pub const HEADER_BYTES_MAX: usize = 1024;
/// Longest header of version 1, in bytes.
const V1_BYTES_MAX: usize = 107;
/// Longest common name that is forwarded, in bytes: the room that a header of version 2 has beside everything
/// else.
pub(crate) const COMMON_NAME_BYTES_MAX: usize = 60_000;

/// Which header goes to the upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyProtocol {
    /// A line of text with the addresses.
    V1,
    /// Binary, with the negotiated TLS parameters beside the addresses.
    V2,
}

/// The text is not a version of the PROXY protocol.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a version of the PROXY protocol; expected v1 or v2")]
pub struct ParseProxyProtocolError {
    text: String,
}

impl fmt::Display for ProxyProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V1 => "v1",
            Self::V2 => "v2",
        })
    }
}

impl FromStr for ProxyProtocol {
    type Err = ParseProxyProtocolError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "v1" => Ok(Self::V1),
            "v2" => Ok(Self::V2),
            _ => Err(ParseProxyProtocolError { text: text.to_owned() }),
        }
    }
}

/// Where a connection comes from, and where it went to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// The client.
    pub source: SocketAddr,
    /// The address that it connected to.
    pub destination: SocketAddr,
}

impl Endpoints {
    /// Both in one family, IPv4 wherever it is: a header has room for one family only.
    pub fn new(source: SocketAddr, destination: SocketAddr) -> Self {
        let (source, destination) = (canonical(source), canonical(destination));
        if source.is_ipv4() == destination.is_ipv4() {
            Self { source, destination }
        } else {
            Self { source: mapped(source), destination: mapped(destination) }
        }
    }
}

fn canonical(addr: SocketAddr) -> SocketAddr {
    SocketAddr::new(addr.ip().to_canonical(), addr.port())
}

fn mapped(addr: SocketAddr) -> SocketAddr {
    match addr.ip() {
        IpAddr::V4(v4) => SocketAddr::new(v4.to_ipv6_mapped().into(), addr.port()),
        IpAddr::V6(_) => addr,
    }
}

/// The negotiated TLS parameters for a header of version 2; empty for unknown parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegotiatedInfo<'a> {
    /// Such as `TLSv1.3`; if it is empty, TLS was not terminated.
    pub version: &'a str,
    /// The suite's IANA name.
    pub cipher: &'a str,
    pub alpn: &'a [u8],
    /// The server name that the client asked for.
    pub server_name: &'a str,
    pub client_certificate: Option<ClientCertificate<'a>>,
}

/// A verified client certificate, for a header of version 2.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientCertificate<'a> {
    /// Whether it was shown on this connection, or else when the resumed session began.
    pub is_of_connection: bool,
    /// The common name of its subject, unchanged.
    pub common_name: Option<&'a str>,
}

/// The kind of a trusted peer's first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedHeader {
    /// A whole header and its length in bytes. Without endpoints the connection is the peer's own, such as a health
    /// check (`LOCAL`), or the client's address family is not IP.
    Header(Option<Endpoints>, usize),
    Partial,
}

/// The first bytes of a trusted peer are not a valid header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    #[error("what a trusted peer sent does not begin with a PROXY header")]
    Malformed,
    /// The header is longer than its version allows, or than [`HEADER_BYTES_MAX`].
    #[error("the PROXY header of a trusted peer is too long")]
    TooLong,
    /// The header does not match its own checksum.
    #[error("the PROXY header of a trusted peer does not match its checksum")]
    Checksum,
}

/// Reads the header that `bytes` begins with, of either version.
///
/// # Errors
/// When no further bytes can make it a header.
pub fn parse(bytes: &[u8]) -> Result<ParsedHeader, HeaderError> {
    let config = ParseConfig { include_tlvs: false, allow_v1: true, allow_v2: true };
    // The library has this limit too, but does not apply it to a line that arrives at once.
    let bytes_max = if bytes.starts_with(b"P") { V1_BYTES_MAX } else { HEADER_BYTES_MAX };
    match ProxyHeader::parse(bytes, config) {
        Ok((_, len)) if len > bytes_max => Err(HeaderError::TooLong),
        Ok((header, len)) => {
            if !bytes.starts_with(b"P") {
                checksum::check(&bytes[..len])?;
            }
            let address = header.proxied_address();
            if bytes.starts_with(b"P") && address.is_some() && !has_plain_ports(&bytes[..len]) {
                return Err(HeaderError::Malformed);
            }
            let stream = address.filter(|addr| addr.protocol == Protocol::Stream);
            Ok(ParsedHeader::Header(stream.map(|addr| Endpoints::new(addr.source, addr.destination)), len))
        }
        Err(Error::BufferTooShort) if bytes.len() < HEADER_BYTES_MAX => Ok(ParsedHeader::Partial),
        Err(Error::BufferTooShort) => Err(HeaderError::TooLong),
        Err(_) => Err(HeaderError::Malformed),
    }
}

/// Whether a line with addresses has ports as version 1 demands: the library also reads a sign and leading zeros.
fn has_plain_ports(line: &[u8]) -> bool {
    let mut ports = line.trim_ascii_end().split(|&byte| byte == b' ').skip(4);
    ports.all(|port| matches!(port, b"0" | [b'1'..=b'9', ..]))
}

/// Writes the header for a client's connection.
pub fn encode(version: ProxyProtocol, endpoints: Endpoints, negotiated: &NegotiatedInfo<'_>) -> Vec<u8> {
    let addr = ProxiedAddress::stream(endpoints.source, endpoints.destination);
    let mut header = Vec::with_capacity(256);
    let encoded = match version {
        ProxyProtocol::V1 => ProxyHeader::with_address(addr).encode_v1(&mut header),
        ProxyProtocol::V2 => ProxyHeader::with_tlvs(Some(addr), fields(negotiated)).encode_v2(&mut header),
    };
    debug_assert!(encoded.is_ok(), "endpoints are of one family, and all fields are bounded: {encoded:?}");
    header
}

/// Writes the header for a connection of the proxy itself, such as a health check: `LOCAL` in version 2, `UNKNOWN` in
/// version 1.
pub fn encode_local(version: ProxyProtocol) -> Vec<u8> {
    let mut header = Vec::new();
    let encoded = match version {
        ProxyProtocol::V1 => ProxyHeader::with_local().encode_v1(&mut header),
        ProxyProtocol::V2 => ProxyHeader::with_local().encode_v2(&mut header),
    };
    debug_assert!(encoded.is_ok(), "it has no addresses and no fields: {encoded:?}");
    header
}

fn fields<'a>(negotiated: &NegotiatedInfo<'a>) -> impl Iterator<Item = Tlv<'a>> {
    let NegotiatedInfo { version, cipher, alpn, server_name, client_certificate } = *negotiated;
    let is_of_connection = client_certificate.is_some_and(|certificate| certificate.is_of_connection);
    let is_of_session = client_certificate.is_some();
    // Verify is zero only for a verified certificate, so it is 1 without one.
    let mut tls = SslInfo::new(true, is_of_connection, is_of_session, u32::from(!is_of_session));
    tls.append_tlv(Tlv::SslVersion(version.into()));
    tls.append_tlv(Tlv::SslCipher(cipher.into()));
    let common_name = client_certificate.and_then(|certificate| certificate.common_name);
    if let Some(name) = common_name.filter(|name| name.len() <= COMMON_NAME_BYTES_MAX) {
        tls.append_tlv(Tlv::SslCn(name.into()));
    }
    let alpn = (!alpn.is_empty()).then(|| Tlv::Alpn(alpn.into()));
    let authority = (!server_name.is_empty()).then(|| Tlv::Authority(server_name.into()));
    let tls = (!version.is_empty()).then_some(Tlv::Ssl(tls));
    [alpn, authority, tls].into_iter().flatten()
}

#[cfg(test)]
mod tests;
