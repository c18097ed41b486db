//! Servers that answer challenges, as the proxy does.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::Arc;

use acme::ChallengeAnswers;
use rcgen::{CertificateParams, CustomExtension, KeyPair};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::Acceptor;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ServerConfig, ServerConnection};

/// Answers HTTP-01 until the process ends.
pub(crate) fn serve_http(port: u16, answers: ChallengeAnswers) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).unwrap();
            let token =
                line.split(' ').nth(1).and_then(|path| path.strip_prefix("/.well-known/acme-challenge/"));
            let answer = token.and_then(|token| answers.find(token)).unwrap_or_default();
            let status = if answer.is_empty() { "404 Not Found" } else { "200 OK" };
            let head =
                format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", answer.len());
            let _ = stream.write_all(&[head.as_bytes(), &answer].concat());
        }
    });
}

/// Answers TLS-ALPN-01 until the process ends.
pub(crate) fn serve_tls_alpn(port: u16, answers: ChallengeAnswers) {
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut acceptor = Acceptor::default();
            let accepted = loop {
                acceptor.read_tls(&mut stream).unwrap();
                if let Ok(Some(accepted)) = acceptor.accept() {
                    break accepted;
                }
            };
            let domain = accepted.client_hello().server_name().unwrap().to_owned();
            let config = Arc::new(challenge_config(&domain, &answers.find(&domain).unwrap()));
            let mut connection: ServerConnection =
                accepted.into_connection(config).map_err(|(e, _)| e).unwrap();
            let _ = connection.complete_io(&mut stream);
        }
    });
}

/// RFC 8737, section 3.
fn challenge_config(domain: &str, digest: &[u8]) -> ServerConfig {
    let mut params = CertificateParams::new(vec![domain.to_owned()]).unwrap();
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let pair = KeyPair::generate().unwrap();
    let chain = vec![params.self_signed(&pair).unwrap().der().clone()];
    let key = PrivateKeyDer::try_from(pair.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    // rustls compares names and keys of no certificate with a critical extension that it does not know.
    let certified = CertifiedKey::new(chain, any_supported_type(&key).unwrap());
    let resolver = Arc::new(SingleCertAndKey::from(certified));
    let mut config = builder.with_no_client_auth().with_cert_resolver(resolver);
    config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
    config
}
