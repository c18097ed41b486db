use super::*;
use proptest::prelude::*;

const V2_SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

fn addr() -> impl Strategy<Value = SocketAddr> {
    (any::<IpAddr>(), any::<u16>()).prop_map(SocketAddr::from)
}

fn version_2(command: u8, family: u8, body: &[u8]) -> Vec<u8> {
    let mut header = V2_SIGNATURE.to_vec();
    header.extend([command, family]);
    header.extend((body.len() as u16).to_be_bytes());
    header.extend(body);
    header
}

proptest! {
    #[test]
    fn a_header_reads_back_as_it_was_written(
        source in addr(), destination in addr(), v2 in any::<bool>(), name in "[a-z.]{0,253}", alpn in "[a-z0-9/.]{0,255}",
        client in prop::option::of("\\PC{0,100}"), payload in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let version = if v2 { ProxyProtocol::V2 } else { ProxyProtocol::V1 };
        let endpoints = Endpoints::new(source, destination);
        let negotiated = Negotiated {
            version: "TLSv1.3", cipher: "TLS_CHACHA20_POLY1305_SHA256", alpn: &alpn, server_name: &name,
            client_name: client.as_deref(),
        };
        let mut bytes = encode(version, endpoints, &negotiated);
        let len = bytes.len();
        prop_assert!(len <= HEADER_BYTES_MAX);
        for end in 0..len {
            prop_assert_eq!(parse(&bytes[..end]), Ok(Parsed::Partial), "the first {} bytes", end);
        }
        bytes.extend(payload);
        prop_assert_eq!(parse(&bytes), Ok(Parsed::Header(Some(endpoints), len)));
    }

    #[test]
    fn hostile_bytes_are_refused_or_bounded(
        start in 0..3_usize, bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let start: &[u8] = [b"" as &[u8], b"PROXY ", V2_SIGNATURE][start];
        let bytes = [start, &bytes].concat();
        match parse(&bytes) {
            Ok(Parsed::Header(_, len)) => prop_assert!(len <= bytes.len().min(HEADER_BYTES_MAX)),
            Ok(Parsed::Partial) => prop_assert!(bytes.len() < HEADER_BYTES_MAX),
            Err(_) => {}
        }
    }
}

#[test]
fn what_a_header_of_version_2_tells_is_what_was_negotiated() {
    let endpoints = Endpoints::new("192.0.2.1:50000".parse().unwrap(), "192.0.2.9:443".parse().unwrap());
    let negotiated = Negotiated {
        version: "TLSv1.2",
        cipher: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        alpn: "h2",
        server_name: "example.org",
        client_name: Some("Ada"),
    };
    let bytes = encode(ProxyProtocol::V2, endpoints, &negotiated);
    let (header, _) = ProxyHeader::parse(&bytes, ParseConfig::default()).unwrap();
    assert_eq!((header.alpn(), header.authority()), (Some(b"h2" as &[u8]), Some("example.org")));
    let tls = header.ssl().unwrap();
    assert_eq!((tls.version(), tls.cipher()), (Some("TLSv1.2"), Some(negotiated.cipher)));
    assert_eq!(
        (tls.cn(), tls.verify(), tls.client_ssl(), tls.client_cert_conn()),
        (Some("Ada"), 0, true, true)
    );

    let nobody = Negotiated { client_name: None, alpn: "", server_name: "", ..negotiated };
    let bytes = encode(ProxyProtocol::V2, endpoints, &nobody);
    let (header, _) = ProxyHeader::parse(&bytes, ParseConfig::default()).unwrap();
    assert_eq!((header.alpn(), header.authority()), (None, None));
    let tls = header.ssl().unwrap();
    assert_eq!((tls.cn(), tls.verify(), tls.client_ssl(), tls.client_cert_conn()), (None, 1, true, false));
}

#[test]
fn a_version_1_header_is_the_line_of_the_specification() {
    let endpoints =
        Endpoints::new("[::ffff:192.0.2.1]:50000".parse().unwrap(), "192.0.2.9:443".parse().unwrap());
    let line = encode(ProxyProtocol::V1, endpoints, &Negotiated::default());
    assert_eq!(line, b"PROXY TCP4 192.0.2.1 192.0.2.9 50000 443\r\n");
    let mixed = Endpoints::new("[2001:db8::1]:50000".parse().unwrap(), "192.0.2.9:443".parse().unwrap());
    let line = encode(ProxyProtocol::V1, mixed, &Negotiated::default());
    assert_eq!(line, b"PROXY TCP6 2001:db8::1 ::ffff:192.0.2.9 50000 443\r\n");
}

#[test]
fn a_peer_that_speaks_for_itself_keeps_its_address() {
    let cases = [
        b"PROXY UNKNOWN\r\n".to_vec(),
        b"PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n".to_vec(),
        version_2(0x20, 0x00, &[]),
        version_2(0x20, 0x11, &[1; 12]),
        version_2(0x21, 0x00, &[]),
        // Datagrams, and Unix sockets.
        version_2(0x21, 0x12, &[1; 12]),
        version_2(0x21, 0x31, &[1; 216]),
    ];
    for header in cases {
        assert_eq!(parse(&header), Ok(Parsed::Header(None, header.len())), "{header:?}");
    }
}

#[test]
fn what_cannot_become_a_header_is_refused_at_once() {
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00" as &[u8],
        b"GET / HTTP/1.1\r\n\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 99999\r\n",
        b"PROXY TCP4 1.2.3.4 ::1 1 2\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\rX",
        b"PROXY TCP9 1.2.3.4 5.6.7.8 1 2\r\n",
        &version_2(0x31, 0x11, &[1; 12]),
        &version_2(0x22, 0x11, &[1; 12]),
        // Too short for its addresses, which shows when the ClientHello follows.
        &[version_2(0x21, 0x11, &[1; 11]), b"\x16\x03\x01".to_vec()].concat(),
        &version_2(0x21, 0x77, &[1; 40]),
    ] {
        assert_eq!(parse(bytes), Err(HeaderError::Malformed), "{bytes:?}");
    }
    let long_line = [b"PROXY TCP6 ".to_vec(), vec![b'f'; 100]].concat();
    assert_eq!(parse(&long_line), Err(HeaderError::Malformed));
}

#[test]
fn a_header_without_end_is_given_up_at_the_bound() {
    let line = |len: usize| [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; len - 16], b"\r\n".to_vec()].concat();
    assert_eq!(parse(&line(107)), Ok(Parsed::Header(None, 107)));
    assert_eq!(parse(&line(108)), Err(HeaderError::TooLong), "also if it comes at once");
    let huge = version_2(0x21, 0x11, &vec![1; 60_000]);
    assert_eq!(parse(&huge[..HEADER_BYTES_MAX - 1]), Ok(Parsed::Partial));
    assert_eq!(parse(&huge[..HEADER_BYTES_MAX]), Err(HeaderError::TooLong));
    assert_eq!(parse(&huge), Err(HeaderError::TooLong));
}

#[test]
fn only_listed_peers_are_trusted() {
    let trusted: TrustedPeers = "10.0.0.0/8, 192.0.2.7,2001:db8::/32".parse().unwrap();
    for (peer, expected) in [
        ("10.1.2.3", true),
        ("::ffff:10.1.2.3", true),
        ("192.0.2.7", true),
        ("192.0.2.8", false),
        ("2001:db8:1::1", true),
        ("2001:db9::1", false),
        ("::1", false),
    ] {
        assert_eq!(trusted.contains(peer.parse().unwrap()), expected, "{peer}");
    }
    assert_eq!(trusted.to_string().parse::<TrustedPeers>().unwrap(), trusted);
    for text in ["", "10.0.0.0/33", "10.0.0.0/8,,", "localhost"] {
        text.parse::<TrustedPeers>().unwrap_err();
    }
}
