//! Certificates that are replaced while the proxy serves.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use proxy_core::{Certificate, TlsFileWarning, TlsRefresh};
use records::metrics::ProxyCounter;
use rustls::HandshakeKind;

use crate::pki::{P256, Pki, replace};
use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, echo, serve_echo};
use rcgen::PKCS_RSA_SHA256 as RSA;

fn start(served: &TestUpstream, certificates: Vec<Certificate>) -> TestProxy {
    TestProxy::start_with(&served.upstream, |config| config.tls.certificates = certificates)
}

/// The certificate that a new client gets.
fn presented(proxy: &TestProxy, pki: &Pki) -> Vec<u8> {
    let mut tls = proxy.connect(&pki.client(&TLS13, None).into());
    echo(&mut tls, b"hello");
    tls.conn.peer_certificates().unwrap()[0].to_vec()
}

/// Looks at the files as the program does each second, once to see a change and once more to see it settled; then
/// waits until every worker has taken it up.
fn refresh(proxy: &mut TestProxy) -> TlsRefresh {
    let first = proxy.proxy.refresh();
    assert!(first.changes.is_empty() && first.refusals.is_empty());
    let second = proxy.proxy.refresh();
    proxy.collect();
    second
}

/// The records of certificates in use: the beginnings of fingerprints, and full handshakes.
fn in_use(proxy: &TestProxy) -> Vec<(String, u64)> {
    // As a reader does: of a certificate with several records the last counts.
    let mut last = std::collections::BTreeMap::new();
    for record in proxy.proxy.certificates() {
        let (file, fingerprint) = record.key();
        last.insert((file.to_owned(), fingerprint.to_owned()), record.clone());
    }
    let in_use = last.into_values().filter(|record| !record.is_replaced);
    in_use.map(|record| (record.fingerprint, record.handshakes)).collect()
}

#[test]
fn a_certificate_whose_chain_is_completed_is_still_recorded_as_served() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let (cert, _) = pki.issue("one", &P256, &["localhost"]);
    let mut proxy = start(&served, vec![pki.load("one")]);
    presented(&proxy, &pki);
    proxy.collect();
    let before = in_use(&proxy);
    assert_eq!(before.len(), 1);
    let whole = [fs::read(&cert).unwrap(), fs::read(pki.path("ca.pem")).unwrap()].concat();
    replace(&cert, &whole);
    refresh(&mut proxy);
    assert_eq!(in_use(&proxy), before);
    proxy.finish();
}

#[test]
fn a_certificate_that_is_restored_is_recorded_as_served_again() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let files = pki.issue("one", &P256, &["localhost"]);
    let former = [&files.0, &files.1].map(|file| fs::read(file).unwrap());
    let mut proxy = start(&served, vec![pki.load("one")]);
    presented(&proxy, &pki);
    proxy.collect();
    let before = in_use(&proxy);
    pki.issue("one", &P256, &["localhost"]);
    refresh(&mut proxy);
    assert_ne!(in_use(&proxy), before);
    replace(&files.0, &former[0]);
    replace(&files.1, &former[1]);
    refresh(&mut proxy);
    assert_eq!(in_use(&proxy), before);
    proxy.finish();
}

#[test]
fn a_renewed_certificate_is_taken_up_without_touching_what_is_open() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    pki.issue("one", &P256, &["localhost"]);
    let mut proxy = start(&served, vec![pki.load("one")]);
    let mut open = proxy.connect(&pki.client(&TLS13, None).into());
    echo(&mut open, b"before");
    let sessions = [&TLS12, &TLS13].map(|version| Arc::new(pki.client(version, None)));
    let resume = |proxy: &TestProxy| {
        sessions.each_ref().map(|config| {
            let mut tls = proxy.connect(config);
            echo(&mut tls, b"hello");
            tls.conn.handshake_kind() == Some(HandshakeKind::Resumed)
        })
    };
    assert_eq!(resume(&proxy), [false, false]);
    pki.issue("one", &P256, &["localhost"]);
    assert_eq!(refresh(&mut proxy).changes.len(), 1);
    let old = pki.load("one");
    assert_eq!(presented(&proxy, &pki), old.leaf_der());
    assert_eq!(resume(&proxy), [true, true], "a ticket does not name a certificate, and stays good");
    pki.issue("one", &RSA, &["localhost"]);
    let refreshed = refresh(&mut proxy);
    let new = pki.load("one");
    assert_eq!(presented(&proxy, &pki), new.leaf_der());
    assert_eq!(resume(&proxy), [false, true], "a suite of TLS 1.2 names the kind of key");
    echo(&mut open, b"after");
    let change = &refreshed.changes[0];
    let after = change.after.as_ref().unwrap().value.to_string();
    assert_eq!(
        (change.name.as_str(), &change.before, &after),
        ("proxy.certificate", &old.summary(), &new.summary())
    );
    let [before, now] = [&change.before, &after].map(|text| text.split(" sha256:").next().unwrap());
    assert_eq!(before, "ECDSA P-256 for localhost until 2100-01-01");
    assert_eq!(now, "RSA-2048 for localhost until 2100-01-01");
    let settings = proxy.proxy.settings();
    assert_eq!(settings.iter().find(|one| one.name == "proxy.certificate").unwrap().value.to_string(), after);
    drop(open);
    assert_eq!(proxy.finish().counters[ProxyCounter::HandshakesFailed], 0);
}

#[test]
fn a_bad_file_is_refused_once_and_holds_up_no_other() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    for name in ["one", "two"] {
        pki.issue(name, &P256, &[if name == "one" { "localhost" } else { "two.test" }]);
    }
    let mut proxy = start(&served, vec![pki.load("one"), pki.load("two")]);
    let old = presented(&proxy, &pki);
    // The key is still the former one's.
    let key = fs::read(pki.path("one.key")).unwrap();
    pki.issue("one", &P256, &["localhost"]);
    replace(&pki.path("one.key"), &key);
    pki.issue("two", &RSA, &["two.test"]);
    let refreshed = refresh(&mut proxy);
    let refusals: Vec<_> = refreshed.refusals.iter().map(ToString::to_string).collect();
    assert!(refusals.len() == 1 && refusals[0].contains("does not belong to"), "{refusals:?}");
    assert!(refusals[0].contains("stays in use") && !refusals[0].contains('\n'), "{refusals:?}");
    assert_eq!(refreshed.changes.len(), 1);
    assert_eq!(refreshed.changes[0].name, "proxy.certificate.2");
    assert_eq!(presented(&proxy, &pki), old);
    assert_eq!(proxy.proxy.refresh().refusals.len(), 0, "it has been said");
    assert_eq!(proxy.proxy.reload().refusals.len(), 1, "who asks for it hears it again");
    pki.issue("one", &P256, &["localhost"]);
    assert_eq!(refresh(&mut proxy).changes.len(), 1);
    assert_eq!(presented(&proxy, &pki), pki.load("one").leaf_der());
}

#[test]
fn what_a_person_should_know_of_a_new_certificate_is_said() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let (cert, _) = pki.issue("one", &P256, &["localhost"]);
    let mut proxy = start(&served, vec![pki.load("one")]);
    pki.issue_until("one", &P256, &["localhost"], 2021);
    let warned = [TlsFileWarning::Expired { path: cert, date: "2021-01-01".into() }];
    assert_eq!(pki.load("one").warnings(), warned);
    assert_eq!(refresh(&mut proxy).warnings, warned);
}

#[test]
fn authorities_for_clients_are_followed() {
    let (pki, other, served) = (Pki::new(), Pki::new(), TestUpstream::unix(serve_echo));
    let files = pki.issue("client", &P256, &["worker-7"]);
    fs::copy(other.path("ca.pem"), pki.path("clients.pem")).unwrap();
    let mut proxy = TestProxy::start_with(&served.upstream, |config| {
        config.tls.certificates = vec![pki.certificate(&P256, &["localhost"])];
        config.tls.client_ca = Some(proxy_core::Authorities::load(&pki.path("clients.pem")).unwrap());
    });
    let config = Arc::new(pki.client(&TLS13, Some(&files)));
    let mut refused = proxy.connect(&config);
    assert!(std::io::Read::read_exact(&mut refused, &mut [0]).is_err());
    replace(&pki.path("clients.pem"), &fs::read(pki.path("ca.pem")).unwrap());
    assert_eq!(refresh(&mut proxy).changes[0].name, "proxy.client-ca");
    echo(&mut proxy.connect(&config), b"hello");
}

#[test]
fn reloading_under_load_fails_no_connection() {
    const CLIENTS: usize = 3;
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    pki.issue("one", &P256, &["localhost"]);
    let mut proxy = start(&served, vec![pki.load("one")]);
    let (addr, stop, connections) = (proxy.addr(), AtomicBool::new(false), AtomicU64::new(0));
    let configs = [&TLS12, &TLS13].map(|version| {
        let resuming = Arc::new(pki.client(version, None));
        let mut full = pki.client(version, None);
        full.resumption = rustls::client::Resumption::disabled();
        [resuming, Arc::new(full)]
    });
    let mut reloads = 0;
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                for config in configs.iter().flatten().cycle() {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let mut tls = crate::support::tls_over(crate::support::tcp_to(addr), config);
                    echo(&mut tls, b"hello");
                    connections.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until || connections.load(Ordering::Relaxed) < 200 {
            pki.issue("one", if reloads % 8 == 7 { &RSA } else { &P256 }, &["localhost"]);
            let refreshed = proxy.proxy.reload();
            assert!(refreshed.refusals.is_empty(), "{:?}", refreshed.refusals);
            assert_eq!(refreshed.changes.len(), 1);
            reloads += 1;
        }
        stop.store(true, Ordering::Relaxed);
    });
    proxy.collect();
    let total = proxy.finish();
    assert_eq!(total.counters[ProxyCounter::HandshakesFailed], 0, "over {reloads} reloads");
    assert_eq!(total.counters[ProxyCounter::Accepted], connections.into_inner());
    assert!(total.counters[ProxyCounter::HandshakesResumed] > 0 && reloads > 4);
}

#[test]
fn certificates_are_listed_with_their_handshakes_replacements_and_refusals() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    pki.issue("one", &P256, &["localhost", "*.example.test"]);
    pki.issue("two", &P256, &["two.test"]);
    let mut proxy = start(&served, vec![pki.load("one"), pki.load("two")]);
    presented(&proxy, &pki);
    presented(&proxy, &pki);
    proxy.expect(ProxyCounter::HandshakesFull, 2);
    let before = proxy.proxy.certificates();
    let [first, second] = &before[..] else { panic!("{before:?}") };
    assert_eq!((&*first.names, first.handshakes, first.is_default), ("localhost *.example.test", 2, true));
    assert_eq!((&*second.names, second.handshakes, second.is_default), ("two.test", 0, false));
    assert_eq!((&*first.issuer, first.chain, &*first.faults), ("CN=an authority", 1, ""));
    assert_eq!((first.file.clone(), first.not_after), (pki.text("one.pem"), 4_102_444_800));
    assert!(first.since > 0 && first.chain_bytes > 200 && !first.serial.is_empty());
    // Read again and unchanged, it goes on counting.
    proxy.proxy.reload();
    assert_eq!(proxy.proxy.certificates(), before);
    pki.issue("one", &P256, &["localhost"]);
    fs::write(pki.path("two.key"), "no key").unwrap();
    refresh(&mut proxy);
    presented(&proxy, &pki);
    proxy.expect(ProxyCounter::HandshakesFull, 3);
    let after = proxy.proxy.certificates();
    let [renewed, kept, replaced] = &after[..] else { panic!("{after:?}") };
    assert_eq!((renewed.handshakes, renewed.is_replaced), (1, false));
    assert!(kept.refusal.contains("there is no private key"), "{}", kept.refusal);
    assert_eq!((replaced.handshakes, replaced.is_replaced), (2, true));
    assert_eq!(replaced.fingerprint, first.fingerprint);
    // Many renewals keep a bounded number.
    for _ in 0..20 {
        pki.issue("one", &P256, &["localhost"]);
        proxy.proxy.reload();
    }
    assert_eq!(proxy.proxy.certificates().len(), 2 + 16);
}
