use std::io::Write as _;
use std::time::Instant;

use rustls::client::{ClientSessionMemoryCache, Resumption as ClientResumption};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

use super::*;
use crate::io::buffer::Buffer;
use crate::tls::client_auth::binding;
use crate::tls::config::{TlsConfig, TlsConfigInputs};
use crate::tls::settings::{ClientAuth, TlsSettings};
use crate::tls::tickets::{RotatingTicketKeys, Ticketer, unix_now};
use crate::tls::{Certificate, Engine};

const LIFETIME: Duration = Duration::from_secs(3600);

fn an_hour_ago() -> u64 {
    unix_now() - 3_601
}

fn half_an_hour_ago() -> u64 {
    unix_now() - 1_800
}

/// A server whose tickets are sealed by another clock.
fn server(certificate: &Certificate, keys: &RotatingTicketKeys, clock: fn() -> u64) -> TlsConfig {
    let mut ticketer = Ticketer::new(keys.keys(), LIFETIME, binding(None, ClientAuth::Optional));
    ticketer.clock = clock;
    let inputs = TlsConfigInputs {
        certificates: vec![certificate],
        client_ca: None,
        ticketer: Arc::new(ticketer),
        sessions: Arc::new(rustls::server::NoServerSessionStorage {}),
    };
    TlsConfig::new(&TlsSettings::default(), inputs).unwrap()
}

fn client(certificate: &Certificate, version: &'static SupportedProtocolVersion) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.leaf_der().to_vec())).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.resumption = ClientResumption::store(Arc::new(ClientSessionMemoryCache::new(8)));
    Arc::new(config)
}

/// Shakes hands, and lets the client have its ticket.
fn drive_handshake(server: &TlsConfig, client: &Arc<ClientConfig>) -> Engine {
    let name = ServerName::try_from("localhost").unwrap();
    let mut client = ClientConnection::new(Arc::clone(client), name).unwrap();
    let mut engine = Engine::new(server).unwrap();
    client.writer().write_all(b"hello").unwrap();
    for _ in 0..6 {
        let (mut plaintext, mut output, mut wire) = (Buffer::default(), Buffer::default(), Vec::new());
        while client.wants_write() {
            client.write_tls(&mut wire).unwrap();
        }
        // In pieces, as they come in several packets.
        for piece in wire.chunks(100) {
            let mut buffer = vec![0; engine.partial_len()];
            buffer.extend_from_slice(piece);
            engine.receive(&mut buffer, &mut plaintext, &mut output).unwrap();
        }
        let mut answer = output.as_slice();
        while !answer.is_empty() {
            client.read_tls(&mut answer).unwrap();
            client.process_new_packets().unwrap();
        }
    }
    assert!(!engine.is_handshaking());
    engine
}

#[test]
fn a_session_has_expired_after_its_lifetime_and_its_age_is_known() {
    let certificate = Certificate::generate(&[]).unwrap();
    let keys = RotatingTicketKeys::new(Instant::now()).unwrap();
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        for (clock, is_expired) in [(an_hour_ago as fn() -> u64, true), (half_an_hour_ago, false)] {
            let client = client(&certificate, version);
            let first = drive_handshake(&server(&certificate, &keys, clock), &client);
            assert_eq!(first.session().full_reason(true), Some(FullReason::NoTicket));
            assert_eq!(first.session().full_reason(false), Some(FullReason::FirstVisit));
            assert_eq!(first.session().signature_name(), Some("ecdsa_secp256r1_sha256"));
            let second = drive_handshake(&server(&certificate, &keys, unix_now), &client);
            let session = second.session();
            assert_eq!(session.full_reason(true), is_expired.then_some(FullReason::Expired));
            let age = if is_expired { session.expired_age() } else { session.resumed_age() };
            assert!(age.unwrap().as_secs().abs_diff((unix_now() - clock()).max(1)) < 30, "{age:?}");
            assert_eq!(session.resumed_age().is_some(), !is_expired);
            assert_eq!(session.certificate().is_some(), is_expired);
            assert!(session.has_offer());
        }
    }
}

#[test]
fn the_session_that_says_most_counts() {
    let opened = |is_same_name| OfferedSession::Opened {
        age: Duration::ZERO,
        state: SessionState { is_same_name, version: 0x0304, cipher: 0x1301 },
    };
    let expired = |seconds| OfferedSession::Expired { age: Duration::from_secs(seconds) };
    let best = |all: &[OfferedSession]| all.iter().fold(None, |best, &one| better(best, Some(one)));
    assert_eq!(best(&[OfferedSession::UnknownKey, expired(9), OfferedSession::Damaged]), Some(expired(9)));
    assert_eq!(best(&[opened(true), opened(false)]), Some(opened(true)));
    assert_eq!(best(&[opened(false), expired(9)]), Some(opened(false)));
    assert_eq!(best(&[expired(9), expired(8)]), Some(expired(8)), "rustls tries them in turn");
    assert_eq!(better(Some(expired(9)), None), Some(expired(9)));
}

#[test]
fn what_is_no_session_says_nothing() {
    for session in [&[][..], &[0], &[0, 3, 4, 0x13], &[1], &[1, 5, b'a'], &[1, 1, b'a', 3, 4, 0x13]] {
        assert_eq!(OfferedSession::opened(session, Duration::ZERO, Some("a")), None, "{session:?}");
    }
    let session = [1, 1, b'a', 3, 4, 0x13, 1];
    for (name, is_same_name) in [(Some("a"), true), (Some("b"), false), (None, false)] {
        let state = SessionState { is_same_name, version: 0x0304, cipher: 0x1301 };
        let opened = OfferedSession::Opened { age: Duration::ZERO, state };
        assert_eq!(OfferedSession::opened(&session, Duration::ZERO, name), Some(opened));
    }
}
