//! Reads any bytes as a PROXY header: nothing panics, what is read is within its bounds, comes the same in pieces, and
//! can be written and read again.

#![no_main]

use std::path::Path;

use fuzz::seeds_if_asked;
use libfuzzer_sys::fuzz_target;
use proxy_core::proxy_protocol::{
    ClientCertificate, Endpoints, HEADER_BYTES_MAX, NegotiatedInfo, ParsedHeader, ProxyProtocol, encode,
    parse,
};

fuzz_target!(init: seeds_if_asked(write_seeds), |input: &[u8]| {
    match parse(input) {
        Ok(ParsedHeader::Partial) => assert!(input.len() < HEADER_BYTES_MAX),
        Ok(ParsedHeader::Header(endpoints, len)) => {
            assert!(len <= input.len() && len <= HEADER_BYTES_MAX);
            for end in 0..len {
                assert_eq!(parse(&input[..end]), Ok(ParsedHeader::Partial), "the first {end} of {len} bytes");
            }
            for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
                let Some(endpoints) = endpoints else { continue };
                let written = encode(version, endpoints, &NegotiatedInfo::default());
                assert_eq!(parse(&written), Ok(ParsedHeader::Header(Some(endpoints), written.len())));
            }
        }
        Err(_) => {}
    }
});

fn write_seeds(folder: &Path) -> std::io::Result<()> {
    let negotiated = NegotiatedInfo {
        version: "TLSv1.3",
        cipher: "TLS_AES_128_GCM_SHA256",
        alpn: b"h2",
        server_name: "example.org",
        client_certificate: Some(ClientCertificate { is_of_connection: true, common_name: Some("Ada") }),
    };
    let mut seeds = vec![b"PROXY UNKNOWN\r\n".to_vec(), b"\r\n\r\n\0\r\nQUIT\n\x20\x00\x00\x00".to_vec()];
    for (source, destination) in [("192.0.2.1:1", "192.0.2.2:443"), ("[2001:db8::1]:1", "[2001:db8::2]:443")]
    {
        let addr = |text: &str| text.parse().expect("an address");
        let endpoints = Endpoints::new(addr(source), addr(destination));
        seeds.extend(
            [ProxyProtocol::V1, ProxyProtocol::V2].map(|version| encode(version, endpoints, &negotiated)),
        );
    }
    // With a checksum.
    let fields = b"\x7f\0\0\x01\x7f\0\0\x01\xc0\xf8\x5a\x47\x03\0\x04\xa8\x49\x88\x9b\x05\0\0";
    seeds.push([&b"\r\n\r\n\0\r\nQUIT\n\x21\x11\0\x16"[..], fields].concat());
    for (i, seed) in seeds.into_iter().enumerate() {
        std::fs::write(folder.join(i.to_string()), seed)?;
    }
    Ok(())
}
