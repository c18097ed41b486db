//! What a server chose: its `ServerHello` (RFC 8446, 4.1.3), and the group of its `ServerKeyExchange` (RFC 8422, 5.4).

use super::{HelloBytes, TLS12, TLS13, extension};

/// The random value of a `HelloRetryRequest` (RFC 8446, 4.1.3), its first half.
const RETRY: [u8; 16] = *b"\xcf\x21\xad\x74\xe5\x9a\x61\x11\xbe\x1d\x8c\x02\x1e\x65\xb8\x91";
/// The curve type of curves with a name.
const NAMED_CURVE: u8 = 3;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerHello {
    /// The protocol version, such as `0x0304`.
    pub version: u16,
    /// The cipher suite, by its number.
    pub suite: u16,
    /// The group of the key share; `None` in TLS 1.2.
    pub group: Option<u16>,
    /// Whether it asks for another `ClientHello`.
    pub is_retry: bool,
    /// Whether it accepts a pre-shared key: the handshake resumes a session of TLS 1.3.
    pub has_psk: bool,
    /// The application protocol, if it stands in the clear: in TLS 1.2.
    pub alpn: Option<Box<str>>,
}

impl ServerHello {
    pub fn is_tls13(&self) -> bool {
        self.version == TLS13
    }

    /// Reads the body of a `ServerHello`. `None` if it is malformed.
    pub fn parse(body: &[u8]) -> Option<Self> {
        let mut body = HelloBytes(body);
        let mut hello = Self { version: body.u16()?, ..Self::default() };
        hello.is_retry = body.take(32)?.starts_with(&RETRY);
        body.vec8()?;
        hello.suite = body.u16()?;
        body.u8()?;
        let mut extensions = if body.0.is_empty() { HelloBytes(&[]) } else { body.vec16()? };
        while !extensions.0.is_empty() {
            let (kind, mut content) = (extensions.u16()?, extensions.vec16()?);
            match kind {
                extension::SUPPORTED_VERSIONS => hello.version = content.u16()?,
                extension::PRE_SHARED_KEY => hello.has_psk = true,
                extension::KEY_SHARE => hello.group = Some(content.u16()?),
                extension::ALPN => {
                    let name = String::from_utf8_lossy(content.vec16()?.vec8()?.0);
                    hello.alpn = Some(name.into());
                }
                _ => {}
            }
        }
        (body.0.is_empty() && hello.version <= TLS13).then_some(hello)
    }
}

/// The group of a `ServerKeyExchange` over an elliptic curve.
pub fn key_exchange_group(body: &[u8]) -> Option<u16> {
    match body {
        [NAMED_CURVE, high, low, ..] => Some(u16::from_be_bytes([*high, *low])),
        _ => None,
    }
}

/// The name of a protocol version, as OpenSSL writes it; empty if there is none of this number.
pub fn version_name(version: u16) -> &'static str {
    match version {
        0x0300 => "SSLv3",
        0x0301 => "TLSv1",
        0x0302 => "TLSv1.1",
        TLS12 => "TLSv1.2",
        TLS13 => "TLSv1.3",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A `ServerHello` of TLS 1.2 in its outer version, with these extensions.
    fn body(random: &[u8], extensions: &[(u16, &[u8])]) -> Vec<u8> {
        let mut random = random.to_vec();
        random.resize(32, 9);
        let list = extensions.iter().flat_map(|(kind, content)| {
            [&kind.to_be_bytes(), &(content.len() as u16).to_be_bytes(), *content].concat()
        });
        let list: Vec<u8> = list.collect();
        [&[3, 3], &random[..], &[0, 0x13, 2, 0], &(list.len() as u16).to_be_bytes(), &list].concat()
    }

    #[test]
    fn a_hello_of_tls13_says_its_group_and_whether_it_resumes() {
        let extensions: [(u16, &[u8]); 3] = [(43, &[3, 4]), (51, &[0, 0x1d, 0, 1, 7]), (41, &[0, 0])];
        let hello = ServerHello::parse(&body(&[], &extensions)).unwrap();
        let expected = ServerHello {
            version: TLS13,
            suite: 0x1302,
            group: Some(0x1d),
            has_psk: true,
            ..ServerHello::default()
        };
        assert_eq!(hello, expected);
        let retry = ServerHello::parse(&body(&RETRY, &[(43, &[3, 4]), (51, &[0, 0x17])])).unwrap();
        assert!(retry.is_retry && retry.is_tls13() && retry.group == Some(0x17), "{retry:?}");
    }

    #[test]
    fn a_hello_of_tls12_says_its_protocol_and_the_key_exchange_the_group() {
        let hello = ServerHello::parse(&body(&[], &[(16, b"\0\x03\x02h2")])).unwrap();
        assert_eq!((hello.version, hello.alpn.as_deref(), hello.is_tls13()), (TLS12, Some("h2"), false));
        assert_eq!(key_exchange_group(&[3, 0, 0x17, 65]), Some(0x17));
        assert_eq!(key_exchange_group(&[1, 0, 0x17]), None);
        assert_eq!((version_name(TLS13), version_name(0x7f1c)), ("TLSv1.3", ""));
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let whole = body(&bytes, &[(43, &[3, 4])]);
            for end in 0..whole.len() {
                prop_assert_eq!(ServerHello::parse(&whole[..end]).filter(ServerHello::is_tls13), None);
            }
            let _ = (ServerHello::parse(&bytes), key_exchange_group(&bytes));
        }
    }
}
