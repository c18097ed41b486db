//! Challenges of ACME that are answered in handshakes (TLS-ALPN-01).

use std::sync::{Arc, Mutex};

use proxy_core::AcmeChallenges;
use records::metrics::ProxyCounter;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme, StreamOwned,
    SupportedProtocolVersion,
};

use crate::pki::{P256, Pki};
use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, Tls, echo, end, read_all, serve_echo};

/// The extension's identifier in DER (RFC 8737, 6.1).
const IDENTIFIER: &[u8] = b"\x06\x08\x2b\x06\x01\x05\x05\x07\x01\x1f";
const DIGEST: [u8; 32] = [0xa7; 32];

/// An authority accepts any certificate, and looks at it afterwards.
#[derive(Debug, Default)]
struct Authority(Mutex<Vec<u8>>);

impl ServerCertVerifier for Authority {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        *self.0.lock().unwrap() = leaf.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}

fn start(pki: &Pki, upstream: &TestUpstream, needs_certificate: bool) -> TestProxy {
    TestProxy::start_with(&upstream.upstream, |config| {
        config.tls.certificates = vec![pki.certificate(&P256, &["a.test"])];
        config.tls.client_ca = needs_certificate.then(|| pki.client_ca());
        config.tls.challenges =
            Some(AcmeChallenges::new(|domain| (domain == "a.test").then(|| DIGEST.to_vec())));
    })
}

/// A client of this name and these protocols, which sees a certificate.
fn connect(
    proxy: &TestProxy,
    name: &str,
    alpn: &[&str],
    version: &'static SupportedProtocolVersion,
) -> (Tls, Arc<Authority>) {
    let seen = Arc::new(Authority::default());
    let builder = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let builder = builder.with_protocol_versions(&[version]).unwrap().dangerous();
    let verifier = Arc::clone(&seen);
    let mut config = builder.with_custom_certificate_verifier(verifier).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|protocol| protocol.as_bytes().to_vec()).collect();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    (StreamOwned::new(connection, proxy.tcp()), seen)
}

fn has(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn a_challenge_is_answered_without_a_client_certificate_and_ends() {
    let (pki, upstream) = (Pki::new(), TestUpstream::unix(serve_echo));
    let proxy = start(&pki, &upstream, true);
    for version in [&TLS13, &TLS12] {
        let (mut tls, seen) = connect(&proxy, "a.test", &["acme-tls/1"], version);
        assert_eq!(read_all(&mut tls), (Vec::new(), true));
        assert_eq!(tls.conn.alpn_protocol(), Some(&b"acme-tls/1"[..]));
        let leaf = seen.0.lock().unwrap();
        assert!(has(&leaf, IDENTIFIER) && has(&leaf, &DIGEST) && has(&leaf, b"a.test"), "{version:?}");
    }
    let total = proxy.finish();
    assert_eq!(total.counters[ProxyCounter::HandshakesFull], 2);
    assert_eq!(total.counters[ProxyCounter::UpstreamConnects], 0);
}

#[test]
fn other_clients_get_the_usual_certificate_while_a_challenge_is_out() {
    let (pki, upstream) = (Pki::new(), TestUpstream::unix(serve_echo));
    let proxy = start(&pki, &upstream, false);
    for (name, alpn) in [
        ("a.test", &[][..]),
        ("a.test", &["h2", "http/1.1"]),
        // An authority offers one protocol (RFC 8737, 3).
        ("a.test", &["acme-tls/1", "h2"]),
        ("b.test", &["acme-tls/1"]),
    ] {
        let (mut tls, seen) = connect(&proxy, name, alpn, &TLS13);
        echo(&mut tls, b"hello");
        end(&mut tls);
        assert_eq!(read_all(&mut tls), (Vec::new(), true));
        assert!(!has(&seen.0.lock().unwrap(), IDENTIFIER), "{name} {alpn:?}");
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::UpstreamConnects], 4);
}
