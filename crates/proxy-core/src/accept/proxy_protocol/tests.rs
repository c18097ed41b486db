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

fn field(kind: u8, value: &[u8]) -> Vec<u8> {
    let len = value.len() as u16;
    [&[kind], &len.to_be_bytes()[..], value].concat()
}

/// Whether it was shown on the connection, and its common name.
type Certificate = (bool, Option<String>);

/// None, or one whose common name matches `names`, or is absent.
fn certificate(names: &'static str) -> impl Strategy<Value = Option<Certificate>> {
    prop::option::of((any::<bool>(), prop::option::of(names)))
}

fn of_certificate((is_of_connection, name): &Certificate) -> ClientCertificate<'_> {
    ClientCertificate { is_of_connection: *is_of_connection, common_name: name.as_deref() }
}

proptest! {
    #[test]
    fn a_header_reads_back_as_it_was_written(
        source in addr(), destination in addr(), v2 in any::<bool>(), name in "[a-z.]{0,253}",
        alpn in prop::collection::vec(any::<u8>(), 0..255), certificate in certificate("\\PC{0,100}"),
        payload in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let version = if v2 { ProxyProtocol::V2 } else { ProxyProtocol::V1 };
        let endpoints = Endpoints::new(source, destination);
        let negotiated = NegotiatedInfo {
            version: "TLSv1.3", cipher: "TLS_CHACHA20_POLY1305_SHA256", alpn: &alpn, server_name: &name,
            client_certificate: certificate.as_ref().map(of_certificate),
        };
        let mut bytes = encode(version, endpoints, &negotiated);
        let len = bytes.len();
        prop_assert!(len <= HEADER_BYTES_MAX);
        for end in 0..len {
            prop_assert_eq!(parse(&bytes[..end]), Ok(ParsedHeader::Partial), "the first {} bytes", end);
        }
        bytes.extend(payload);
        prop_assert_eq!(parse(&bytes), Ok(ParsedHeader::Header(Some(endpoints), len)));
    }

    #[test]
    fn the_certificates_name_fits_into_the_header_or_is_left_out(
        source in addr(), destination in addr(), certificate in certificate(".{0,200}"), times in 1..1000_usize,
    ) {
        let certificate = certificate.map(|(conn, name)| (conn, name.map(|name| name.repeat(times))));
        let negotiated = NegotiatedInfo {
            version: "TLSv1.2", cipher: "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", alpn: &[b'x'; 255],
            server_name: &"x".repeat(255), client_certificate: certificate.as_ref().map(of_certificate),
        };
        let bytes = encode(ProxyProtocol::V2, Endpoints::new(source, destination), &negotiated);
        let (header, len) = ProxyHeader::parse(&bytes, ParseConfig::default()).unwrap();
        prop_assert_eq!(len, bytes.len());
        let tls = header.ssl().unwrap();
        let told = (tls.client_cert_conn(), tls.client_cert_sess(), tls.verify() == 0);
        let conn = certificate.as_ref().is_some_and(|(conn, _)| *conn);
        prop_assert_eq!(told, (conn, certificate.is_some(), certificate.is_some()));
        let name = certificate.and_then(|(_, name)| name).filter(|name| name.len() <= COMMON_NAME_BYTES_MAX);
        prop_assert_eq!(tls.cn(), name.as_deref());
    }

    #[test]
    fn a_header_that_is_not_what_its_checksum_says_is_refused(
        fields in prop::collection::vec((4..=5_u8, prop::collection::vec(any::<u8>(), 0..40)), 0..4),
        place in any::<prop::sample::Index>(), flipped in any::<prop::sample::Index>(), bit in 0..8,
        command in 0x20..=0x21_u8, v6 in any::<bool>(), payload in prop::collection::vec(any::<u8>(), 0..50),
    ) {
        let mut fields: Vec<_> = fields.iter().map(|(kind, value)| field(*kind, value)).collect();
        fields.insert(place.index(fields.len() + 1), field(3, &[0; 4]));
        let (family, addresses) = if v6 { (0x21, 36) } else { (0x11, 12) };
        let mut header = version_2(command, family, &[vec![1; addresses], fields.concat()].concat());
        let at = 16 + addresses + fields[..place.index(fields.len())].concat().len() + 3;
        let sum = checksum::crc32c(header.iter().copied());
        header[at..at + 4].copy_from_slice(&sum.to_be_bytes());
        let mut bytes = [&header[..], &payload].concat();
        prop_assert!(matches!(parse(&bytes), Ok(ParsedHeader::Header(_, len)) if len == header.len()));
        // Of the addresses, the values, or the sum itself; elsewhere it may be no header any more.
        let values = (16..16 + addresses).chain(at..at + 4).collect::<Vec<_>>();
        bytes[values[flipped.index(values.len())]] ^= 1_u8 << bit;
        prop_assert_eq!(parse(&bytes), Err(HeaderError::Checksum));
    }

    #[test]
    fn hostile_bytes_are_refused_or_bounded(
        start in 0..3_usize, bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        let start: &[u8] = [b"" as &[u8], b"PROXY ", V2_SIGNATURE][start];
        let bytes = [start, &bytes].concat();
        match parse(&bytes) {
            Ok(ParsedHeader::Header(_, len)) => prop_assert!(len <= bytes.len().min(HEADER_BYTES_MAX)),
            Ok(ParsedHeader::Partial) => prop_assert!(bytes.len() < HEADER_BYTES_MAX),
            Err(_) => {}
        }
    }
}

#[test]
fn a_version_2_header_carries_the_negotiated_parameters() {
    let endpoints = Endpoints::new("192.0.2.1:50000".parse().unwrap(), "192.0.2.9:443".parse().unwrap());
    let negotiated = NegotiatedInfo {
        version: "TLSv1.2",
        cipher: "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256",
        alpn: b"h2",
        server_name: "example.org",
        client_certificate: Some(ClientCertificate { is_of_connection: true, common_name: Some("Ada") }),
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

    let nobody = NegotiatedInfo { client_certificate: None, alpn: b"", server_name: "", ..negotiated };
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
    let line = encode(ProxyProtocol::V1, endpoints, &NegotiatedInfo::default());
    assert_eq!(line, b"PROXY TCP4 192.0.2.1 192.0.2.9 50000 443\r\n");
    let mixed = Endpoints::new("[2001:db8::1]:50000".parse().unwrap(), "192.0.2.9:443".parse().unwrap());
    let line = encode(ProxyProtocol::V1, mixed, &NegotiatedInfo::default());
    assert_eq!(line, b"PROXY TCP6 2001:db8::1 ::ffff:192.0.2.9 50000 443\r\n");
}

#[test]
fn a_local_header_keeps_the_peers_address() {
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
        assert_eq!(parse(&header), Ok(ParsedHeader::Header(None, header.len())), "{header:?}");
    }
}

#[test]
fn bytes_that_cannot_start_a_header_are_refused_at_once() {
    for bytes in [
        b"\x16\x03\x01\x02\x00\x01\x00" as &[u8],
        b"GET / HTTP/1.1\r\n\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 99999\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 +1 2\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 02\r\n",
        b"PROXY TCP6 ::1 ::2 00 2\r\n",
        b"PROXY TCP4 1.2.3.4 ::1 1 2\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\rX",
        b"PROXY TCP9 1.2.3.4 5.6.7.8 1 2\r\n",
        &version_2(0x31, 0x11, &[1; 12]),
        &version_2(0x22, 0x11, &[1; 12]),
        // A field that is longer than the header, a checksum of three bytes, and two of them.
        &version_2(0x21, 0x11, &[&[1; 12][..], &[4, 0, 1]].concat()),
        &version_2(0x21, 0x11, &[&[1; 12][..], &field(3, &[0; 3])].concat()),
        &version_2(0x21, 0x11, &[&[1; 12][..], &field(3, &[0; 4]), &field(3, &[0; 4])].concat()),
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
fn the_checksum_is_the_one_of_the_specification() {
    assert_eq!(checksum::crc32c(b"123456789".iter().copied()), 0xe306_9283);
    // As HAProxy 2.6 sends it, asked for `crc32c,unique-id`.
    let fields = [&b"\x7f\0\0\x01\x7f\0\0\x01\xc0\xf8\x5a\x47"[..], b"\x03\0\x04\xa8\x49\x88\x9b\x05\0\0"];
    let mut header = version_2(0x21, 0x11, &fields.concat());
    let endpoints = Endpoints::new("127.0.0.1:49400".parse().unwrap(), "127.0.0.1:23111".parse().unwrap());
    assert_eq!(parse(&header), Ok(ParsedHeader::Header(Some(endpoints), header.len())));
    header[19] = 2;
    assert_eq!(parse(&header), Err(HeaderError::Checksum));
}

#[test]
fn an_endless_header_is_refused_at_the_limit() {
    let line = |len: usize| [b"PROXY UNKNOWN ".to_vec(), vec![b'x'; len - 16], b"\r\n".to_vec()].concat();
    assert_eq!(parse(&line(107)), Ok(ParsedHeader::Header(None, 107)));
    assert_eq!(parse(&line(108)), Err(HeaderError::TooLong), "also if it comes at once");
    let huge = version_2(0x21, 0x11, &vec![1; 60_000]);
    assert_eq!(parse(&huge[..HEADER_BYTES_MAX - 1]), Ok(ParsedHeader::Partial));
    assert_eq!(parse(&huge[..HEADER_BYTES_MAX]), Err(HeaderError::TooLong));
    assert_eq!(parse(&huge), Err(HeaderError::TooLong));
}
