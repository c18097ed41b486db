//! Sessions that are resumed, and how.

use std::path::Path;
use std::sync::Arc;

use proxy_core::{Certificate, Resumption, TicketKeyError, TicketKeyFile, TicketSend, TlsFileWarning};
use records::metrics::ProxyCounter;
use rustls::{ClientConfig, HandshakeKind};

use crate::outside::{has_echo, s_client};
use crate::pki::replace;
use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, echo, eventually, serve_echo};

/// Connects and says whether the session was resumed.
fn kind(proxy: &TestProxy, config: &Arc<ClientConfig>) -> Option<HandshakeKind> {
    let mut tls = proxy.connect(config);
    echo(&mut tls, b"hello");
    tls.conn.handshake_kind()
}

/// Different bytes for each seed, as a key for tickets has them.
fn key(seed: u8) -> Vec<u8> {
    (0..80_u8).map(|i| i.wrapping_mul(37).wrapping_add(seed) | 0x80).collect()
}

#[test]
fn sessions_in_a_cache_are_resumed() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.tls.settings.resumption = Resumption::Cache;
        config.tls.settings.session_cache = 100;
    });
    for version in [&TLS12, &TLS13] {
        let config = proxy.client(version);
        assert_eq!(kind(&proxy, &config), Some(HandshakeKind::Full));
        assert_eq!(kind(&proxy, &config), Some(HandshakeKind::Resumed));
        assert_eq!(kind(&proxy, &config), Some(HandshakeKind::Resumed));
    }
}

#[test]
fn sessions_that_were_forgotten_are_not_resumed_and_new_ones_are() {
    let served = TestUpstream::unix(serve_echo);
    for resumption in [Resumption::Tickets, Resumption::Cache] {
        let proxy =
            TestProxy::start_with(&served.upstream, |config| config.tls.settings.resumption = resumption);
        for version in [&TLS12, &TLS13] {
            let config = proxy.client(version);
            assert_eq!(kind(&proxy, &config), Some(HandshakeKind::Full));
            assert_eq!(kind(&proxy, &config), Some(HandshakeKind::Resumed));
            proxy.proxy.forget_sessions().unwrap();
            // A worker may still serve with what it had a moment ago.
            eventually("nothing resumes", || kind(&proxy, &config) == Some(HandshakeKind::Full));
            assert_eq!(kind(&proxy, &config), Some(HandshakeKind::Resumed), "{resumption:?}");
        }
    }
}

#[test]
fn tickets_of_a_rotated_key_are_accepted_and_replaced() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |_| {});
    for version in [&TLS12, &TLS13] {
        let config = proxy.client(version);
        assert_eq!(kind(&proxy, &config), Some(HandshakeKind::Full));
        for _ in 0..3 {
            proxy.proxy.rotate_tickets().unwrap();
            assert_eq!(kind(&proxy, &config), Some(HandshakeKind::Resumed));
        }
    }
}

#[test]
fn there_is_no_key_to_rotate_without_tickets() {
    let served = TestUpstream::unix(serve_echo);
    for resumption in [Resumption::Cache, Resumption::Off] {
        let proxy =
            TestProxy::start_with(&served.upstream, |config| config.tls.settings.resumption = resumption);
        assert!(matches!(proxy.proxy.rotate_tickets(), Err(TicketKeyError::RefusingTicketer)));
    }
}

#[test]
fn without_resumption_every_handshake_is_full() {
    let served = TestUpstream::unix(serve_echo);
    let proxy =
        TestProxy::start_with(&served.upstream, |config| config.tls.settings.resumption = Resumption::Off);
    for version in [&TLS12, &TLS13] {
        let config = proxy.client(version);
        for _ in 0..2 {
            assert_eq!(kind(&proxy, &config), Some(HandshakeKind::Full));
        }
    }
    let output = s_client(proxy.addr(), &["-tls1_2"]);
    assert!(has_echo(&output) && !output.contains("TLS session ticket:"), "{output}");
}

#[test]
fn as_many_tickets_as_asked_for_are_sent() {
    let served = TestUpstream::unix(serve_echo);
    for tickets in [0, 1, 4] {
        let proxy = TestProxy::start_with(&served.upstream, |config| config.tls.settings.tickets = tickets);
        let mut tls = proxy.connect(&proxy.client(&TLS13));
        echo(&mut tls, b"hello");
        assert_eq!(tls.conn.tls13_tickets_received() as usize, tickets);
    }
}

#[test]
fn a_ticket_that_is_sent_at_once_does_not_wait_for_an_answer() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.tls.settings.ticket_send = TicketSend::AtOnce;
    });
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    while tls.conn.is_handshaking() {
        tls.conn.complete_io(&mut tls.sock).unwrap();
    }
    // It comes well before the patience that a ticket is held for otherwise, but only its coming is looked at here.
    eventually("a ticket comes without anything being asked", || {
        let _ = tls.conn.read_tls(&mut tls.sock).unwrap();
        tls.conn.process_new_packets().unwrap();
        tls.conn.tls13_tickets_received() == 1
    });
}

fn sharing(served: &TestUpstream, certificate: &Certificate, keys: &Path) -> TestProxy {
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.tls.certificates = vec![certificate.clone()];
        config.tls.ticket_keys = Some(TicketKeyFile::load(keys).unwrap());
    });
    proxy.certificate = certificate.leaf_der().to_vec();
    proxy
}

#[test]
fn proxies_that_share_keys_resume_each_others_sessions() {
    let (served, folder) = (TestUpstream::unix(serve_echo), tempfile::tempdir().unwrap());
    let certificate = Certificate::generate(&[]).unwrap();
    let path = folder.path().join("keys");
    replace(&path, &key(1));
    let (first, mut second) = (sharing(&served, &certificate, &path), sharing(&served, &certificate, &path));
    for version in [&TLS12, &TLS13] {
        let config = first.client(version);
        assert_eq!(kind(&first, &config), Some(HandshakeKind::Full));
        assert_eq!(kind(&second, &config), Some(HandshakeKind::Resumed));
        // A new key in front, as rotation adds it: what the old one sealed still opens.
        replace(&path, &[key(2), key(1)].concat());
        assert_eq!(second.proxy.reload().refusals.len(), 0);
        second.collect();
        assert_eq!(kind(&second, &config), Some(HandshakeKind::Resumed));
        // The first proxy does not know the new key yet.
        assert_eq!(kind(&first, &config), Some(HandshakeKind::Full));
        // The old key is gone: what it sealed is worth nothing.
        replace(&path, &key(2));
        let refreshed = second.proxy.reload();
        second.collect();
        let change = &refreshed.changes[0];
        assert_eq!(change.name, "proxy.ticket-keys");
        let after = change.after.as_ref().unwrap().value.to_string();
        assert_eq!(change.before, format!("82a7ccf1 81a6cbf0 of {}", path.display()));
        assert_eq!(after, format!("82a7ccf1 of {}", path.display()));
        assert_eq!(kind(&second, &config), Some(HandshakeKind::Full));
        replace(&path, &key(1));
        second.proxy.reload();
        second.collect();
    }
}

#[test]
fn a_key_file_that_others_may_read_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    replace(&path, &key(1));
    assert_eq!(TicketKeyFile::load(&path).unwrap().warnings(), []);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let warned = [TlsFileWarning::Exposed { path: path.clone(), mode: 0o640 }];
    assert_eq!(TicketKeyFile::load(&path).unwrap().warnings(), warned);
}

#[test]
fn openssl_resumes_at_another_proxy_that_shares_the_keys() {
    let (served, folder) = (TestUpstream::unix(serve_echo), tempfile::tempdir().unwrap());
    let certificate = Certificate::generate(&[]).unwrap();
    let path = folder.path().join("keys");
    replace(&path, &key(3));
    let (first, mut second) = (sharing(&served, &certificate, &path), sharing(&served, &certificate, &path));
    for version in ["-tls1_2", "-tls1_3"] {
        let session = folder.path().join(version);
        let session = session.to_str().unwrap();
        let output = s_client(first.addr(), &[version, "-sess_out", session]);
        assert!(output.contains("New, TLS"), "{output}");
        let output = s_client(second.addr(), &[version, "-sess_in", session]);
        assert!(has_echo(&output) && output.contains("Reused, TLS"), "{output}");
    }
    second.expect(ProxyCounter::HandshakesResumed, 2);
}

#[test]
fn a_session_is_not_resumed_under_another_name() {
    let (served, folder) = (TestUpstream::unix(serve_echo), tempfile::tempdir().unwrap());
    for resumption in [Resumption::Tickets, Resumption::Cache] {
        let proxy =
            TestProxy::start_with(&served.upstream, |config| config.tls.settings.resumption = resumption);
        for version in ["-tls1_2", "-tls1_3"] {
            let session = folder.path().join(version);
            let session = session.to_str().unwrap();
            // OpenSSL does not mind that the name is another; with TLS 1.3 the cache gives a session once.
            for (name, has_session, kind) in
                [("a.test", false, "New, TLS"), ("b.test", true, "New, TLS"), ("a.test", true, "Reused, TLS")]
            {
                let with = if has_session { "-sess_in" } else { "-sess_out" };
                let output = s_client(proxy.addr(), &[version, "-servername", name, with, session]);
                let is_used_up = resumption == Resumption::Cache && version == "-tls1_3" && name == "a.test";
                let is_as_expected = output.contains(kind) || (is_used_up && has_session);
                assert!(has_echo(&output) && is_as_expected, "{resumption:?} {name} {output}");
            }
        }
    }
}
