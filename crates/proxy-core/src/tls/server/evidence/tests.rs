use std::cell::Cell;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use rustls::client::{ClientSessionMemoryCache, Resumption as ClientResumption};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

use super::*;
use crate::io::buffer::Buffer;
use crate::tls::certificates::client_auth::binding;
use crate::tls::clock::unix_now;
use crate::tls::resumption::session::SessionState;
use crate::tls::resumption::session_cache::SessionCache;
use crate::tls::resumption::tickets::{RotatingTicketKeys, Ticketer};
use crate::tls::server::config::{TlsConfig, TlsConfigInputs};
use crate::tls::settings::{ClientAuth, TlsSettings};
use crate::tls::{Authorities, Certificate, Engine};

const LIFETIME: Duration = Duration::from_secs(3600);
static VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

thread_local! {
    /// Seconds that the servers' clock is ahead of ours.
    static AHEAD: Cell<i64> = const { Cell::new(0) };
}

/// A server with a clock of its own.
fn server(certificate: &Certificate, resumption: Resumption, client_ca: Option<&Authorities>) -> TlsConfig {
    let (keys, binding) = (
        RotatingTicketKeys::new(Instant::now()).unwrap(),
        binding(client_ca, &ClientAuth::Required.into(), None),
    );
    let mut ticketer = Ticketer::new(keys.keys(), LIFETIME, binding);
    ticketer.clock = || unix_now().saturating_add_signed(AHEAD.get());
    let ticketer = Arc::new(ticketer);
    let sessions = SessionCache::new(100).store(LIFETIME, binding, Arc::clone(&ticketer));
    let inputs = TlsConfigInputs {
        certificates: vec![certificate],
        client_ca,
        revocation: None,
        ticketer,
        sessions,
        upstream: None,
        routes: None,
        challenges: None,
    };
    TlsConfig::new(&TlsSettings { resumption, ..TlsSettings::default() }, inputs).unwrap()
}

type ChainAndKey = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A client with a certificate of its own, or none.
fn client(
    certificate: &Certificate,
    version: &'static SupportedProtocolVersion,
    own: Option<ChainAndKey>,
) -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(certificate.leaf_der().to_vec())).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        Some((chain, key)) => builder.with_client_auth_cert(chain, key).unwrap(),
        None => builder.with_no_client_auth(),
    };
    config.resumption = ClientResumption::store(Arc::new(ClientSessionMemoryCache::new(8)));
    Arc::new(config)
}

/// Shakes hands when the server's clock is so many seconds ahead, and lets the client have its ticket.
fn drive_handshake(server: &TlsConfig, client: &Arc<ClientConfig>, ahead: i64) -> Engine {
    AHEAD.set(ahead);
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
    let server = server(&certificate, Resumption::Tickets, None);
    for version in VERSIONS {
        for (age_seconds, is_expired) in [(3_601, true), (1_800, false)] {
            let client = client(&certificate, version, None);
            let first = drive_handshake(&server, &client, -age_seconds);
            assert_eq!(first.session().full_reason(true), Some(FullReason::NoTicket));
            assert_eq!(first.session().full_reason(false), Some(FullReason::FirstVisit));
            assert_eq!(first.session().signature_name(), Some("ecdsa_secp256r1_sha256"));
            let second = drive_handshake(&server, &client, 0);
            let session = second.session();
            assert_eq!(session.full_reason(true), is_expired.then_some(FullReason::Expired));
            let age = if is_expired { session.expired_age() } else { session.resumed_age() };
            assert!(age.unwrap().as_secs().abs_diff(age_seconds.unsigned_abs()) < 30, "{age:?}");
            assert_eq!(session.resumed_age().is_some(), !is_expired);
            assert_eq!(session.certificate().is_some(), is_expired);
            assert!(session.has_offer());
        }
    }
}

/// Visits a server after so many seconds, again and again: whether each visit resumed the session.
fn resumed(server: &TlsConfig, client: &Arc<ClientConfig>, visits: &[i64]) -> Vec<bool> {
    let resumed = |&ahead: &i64| drive_handshake(server, client, ahead).session().is_resumed();
    visits.iter().map(resumed).collect()
}

#[test]
fn resuming_a_session_does_not_prolong_it() {
    let certificate = Certificate::generate(&[]).unwrap();
    for resumption in [Resumption::Tickets, Resumption::Cache] {
        let server = server(&certificate, resumption, None);
        for version in VERSIONS {
            let client = client(&certificate, version, None);
            let visits = resumed(&server, &client, &[0, 2_000, 3_500, 3_700, 5_700, 7_200, 7_400]);
            assert_eq!(visits, [false, true, true, false, true, true, false], "{resumption:?} {version:?}");
        }
    }
}

#[test]
fn a_ticket_states_what_is_left_to_its_session() {
    let key = RotatingTicketKeys::new(Instant::now()).unwrap().keys();
    let mut ticketer = Ticketer::new(key, LIFETIME, [0; 32]);
    ticketer.clock = || 10_000;
    assert_eq!(rustls::server::ProducesTickets::lifetime(&ticketer), 3_600);
    let state = SessionState { is_same_name: true, version: 0x0304, cipher: 0x1301 };
    let age = Duration::from_secs(1_000);
    HandshakeNotes::begin(None, Some(OfferedSession::Opened { began_at: 9_000, age, state }));
    assert_eq!(rustls::server::ProducesTickets::lifetime(&ticketer), 2_600);
    HandshakeNotes::take();
}

/// A chain of a client's certificate and an intermediate, which end after so many seconds, and its root as a file.
fn client_chain(root_file: &Path, leaf_seconds: i64, intermediate_seconds: i64) -> ChainAndKey {
    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    let params = |seconds: i64| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        let end = Duration::from_secs(unix_now().saturating_add_signed(seconds));
        params.not_after = rcgen::date_time_ymd(1970, 1, 1) + end;
        params
    };
    let authority = |seconds| {
        let mut params = params(seconds);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let pair = || KeyPair::generate().unwrap();
    let root = CertifiedIssuer::self_signed(authority(9_000), pair()).unwrap();
    std::fs::write(root_file, root.pem()).unwrap();
    let intermediate = CertifiedIssuer::signed_by(authority(intermediate_seconds), pair(), &root).unwrap();
    let ended = authority(-600).signed_by(&pair(), &root).unwrap();
    let key = pair();
    let leaf = params(leaf_seconds).signed_by(&key, &intermediate).unwrap();
    // Clients send what their files hold, and an ended certificate may be left there.
    let chain = [leaf.der(), intermediate.der(), ended.der()].map(Clone::clone).to_vec();
    (chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
}

#[test]
fn a_session_ends_with_the_certificates_of_the_client() {
    let (certificate, folder) = (Certificate::generate(&[]).unwrap(), tempfile::tempdir().unwrap());
    let root = folder.path().join("ca.pem");
    for resumption in [Resumption::Tickets, Resumption::Cache] {
        for version in VERSIONS {
            for (leaf_seconds, intermediate_seconds) in [(1_000, 9_000), (9_000, 1_000)] {
                let own = client_chain(&root, leaf_seconds, intermediate_seconds);
                let ca = Authorities::load(&root).unwrap();
                let server = server(&certificate, resumption, Some(&ca));
                let client = client(&certificate, version, Some(own));
                // rustls checks the certificate by the real clock.
                let visits = resumed(&server, &client, &[0, 500, 900, 1_100]);
                assert_eq!(visits, [false, true, true, false], "{resumption:?} {version:?}");
            }
        }
    }
}

#[test]
fn the_session_that_says_most_counts() {
    let opened = |is_same_name| OfferedSession::Opened {
        began_at: 0,
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
        assert_eq!(OfferedSession::opened(session, 0, Duration::ZERO, Some("a")), None, "{session:?}");
    }
    let session = [1, 1, b'a', 3, 4, 0x13, 1];
    for (name, is_same_name) in [(Some("a"), true), (Some("b"), false), (None, false)] {
        let state = SessionState { is_same_name, version: 0x0304, cipher: 0x1301 };
        let opened = OfferedSession::Opened { began_at: 0, age: Duration::ZERO, state };
        assert_eq!(OfferedSession::opened(&session, 0, Duration::ZERO, name), Some(opened));
    }
}
