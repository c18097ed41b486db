//! Certificates of clients that their authority has revoked, by lists that are replaced while the proxy runs.

use std::fs;
use std::slice::from_ref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use proxy_core::{Resumption, RevocationLists, TlsFileWarning};
use rcgen::CrlScope;
use records::metrics::{CertificateRefusal, FullReason, ProxyCounter};
use records::setting::Value;
use rustls::{ClientConfig, HandshakeKind};

use crate::client_certificates::{VERSIONS, is_served};
use crate::full_reasons::{expect, visit};
use crate::pki::{P256, Pki, replace};
use crate::support::{TLS13, TestProxy, TestUpstream, serve_echo, tcp_to, tls_over};

fn start(pki: &Pki, served: &TestUpstream, resumption: Resumption) -> TestProxy {
    let crl = RevocationLists::load(&[pki.path("crl.pem")]).unwrap();
    TestProxy::start_with(&served.upstream, |config| {
        config.tls.certificates = vec![pki.certificate(&P256, &["localhost"])];
        config.tls.client_ca = Some(pki.client_ca());
        config.tls.client_crl = Some(crl);
        config.tls.settings.resumption = resumption;
    })
}

const DAY: Duration = Duration::from_secs(86_400);

fn far_end() -> SystemTime {
    SystemTime::now() + DAY * 1_000
}

/// Revokes the certificates with these serial numbers, and no other.
fn revoke(pki: &Pki, serials: &[u64]) {
    replace(&pki.path("crl.pem"), pki.crl(serials, far_end()).as_bytes());
}

fn reload(proxy: &mut TestProxy) {
    let refreshed = proxy.proxy.reload();
    assert!(refreshed.refusals.is_empty(), "{:?}", refreshed.refusals);
    // Workers take it up when they are woken, which is before they answer the collector.
    proxy.collect();
}

#[test]
fn a_revoked_client_is_refused_after_the_reload_resumed_or_not() {
    let served = TestUpstream::unix(serve_echo);
    for (version, resumption) in VERSIONS
        .into_iter()
        .flat_map(|version| [(version, Resumption::Tickets), (version, Resumption::Cache)])
    {
        let pki = Pki::new();
        let client = |n| Arc::new(pki.client(version, Some(&pki.issue_serial(n))));
        let (good, bad) = (client(1), client(2));
        revoke(&pki, &[]);
        let mut proxy = start(&pki, &served, resumption);
        for client in [&good, &bad] {
            assert_eq!(visit(&proxy, client, 1), Some(HandshakeKind::Full));
            assert_eq!(visit(&proxy, client, 1), Some(HandshakeKind::Resumed));
        }
        // A list that is issued anew ends no session but those of the revoked.
        revoke(&pki, &[2, 3]);
        reload(&mut proxy);
        assert!(!is_served(&proxy, &bad) && !is_served(&proxy, &bad));
        assert_eq!(visit(&proxy, &good, 1), Some(HandshakeKind::Resumed));
        let total = expect(proxy, &[(FullReason::FirstVisit, 1), (FullReason::NoTicket, 1)]);
        assert_eq!(total.counters[CertificateRefusal::Revoked.counter()], 2);
        assert_eq!(total.counters[ProxyCounter::HandshakesFailed], 2);
    }
}

#[test]
fn a_list_that_has_expired_refuses_or_is_accepted() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let client = |n| Arc::new(pki.client(&TLS13, Some(&pki.issue_serial(n))));
    replace(&pki.path("crl.pem"), pki.crl(&[2], SystemTime::now() - DAY).as_bytes());
    let mut proxy = start(&pki, &served, Resumption::Tickets);
    let (good, bad) = (client(1), client(2));
    assert!(!is_served(&proxy, &good) && !is_served(&proxy, &bad));
    let set = |proxy: &mut TestProxy, what: &str| {
        proxy.proxy.set("proxy.client-crl-expired", &Value::Text(what.into())).unwrap();
        proxy.collect();
    };
    set(&mut proxy, "accept");
    assert_eq!(visit(&proxy, &good, 1), Some(HandshakeKind::Full));
    assert_eq!(visit(&proxy, &good, 1), Some(HandshakeKind::Resumed));
    assert!(!is_served(&proxy, &bad));
    set(&mut proxy, "refuse");
    assert!(!is_served(&proxy, &good));
    let total = proxy.finish();
    assert_eq!(total.counters[CertificateRefusal::RevocationUnknown.counter()], 3);
    assert_eq!(total.counters[CertificateRefusal::Revoked.counter()], 1);
}

#[test]
fn an_expired_list_stops_resumption_too() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    revoke(&pki, &[]);
    let mut proxy = start(&pki, &served, Resumption::Tickets);
    let client = Arc::new(pki.client(&TLS13, Some(&pki.issue_serial(1))));
    assert_eq!(visit(&proxy, &client, 1), Some(HandshakeKind::Full));
    assert_eq!(visit(&proxy, &client, 1), Some(HandshakeKind::Resumed));
    replace(&pki.path("crl.pem"), pki.crl(&[], SystemTime::now() - DAY).as_bytes());
    assert!(proxy.proxy.reload().warnings[0].to_string().contains("has expired on"));
    proxy.collect();
    assert!(!is_served(&proxy, &client));
    assert_eq!(proxy.finish().counters[CertificateRefusal::RevocationUnknown.counter()], 1);
}

/// Whether a client whose session resumes is refused after this list has replaced the former one.
fn is_refused_after(list: impl Fn(&Pki) -> String, resumption: Resumption) -> bool {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    revoke(&pki, &[]);
    let mut proxy = start(&pki, &served, resumption);
    let client = Arc::new(pki.client(&TLS13, Some(&pki.issue_serial(1))));
    assert_eq!(visit(&proxy, &client, 1), Some(HandshakeKind::Full));
    assert_eq!(visit(&proxy, &client, 1), Some(HandshakeKind::Resumed));
    replace(&pki.path("crl.pem"), list(&pki).as_bytes());
    reload(&mut proxy);
    let newcomer = Arc::new(pki.client(&TLS13, Some(&pki.issue_serial(1))));
    assert!(!is_served(&proxy, &newcomer), "a full handshake is refused");
    let is_refused = !is_served(&proxy, &client);
    proxy.finish();
    is_refused
}

#[test]
fn a_list_with_a_wrong_signature_stops_resumption_too() {
    for resumption in [Resumption::Tickets, Resumption::Cache] {
        // Another key, and the same name.
        assert!(is_refused_after(|_| Pki::new().crl(&[], far_end()), resumption), "{resumption:?}");
    }
}

#[test]
fn a_list_for_other_certificates_stops_resumption_too() {
    for resumption in [Resumption::Tickets, Resumption::Cache] {
        let list = |pki: &Pki| pki.crl_of(&[], far_end(), Some(CrlScope::CaCertsOnly));
        assert!(is_refused_after(list, resumption), "{resumption:?}");
    }
}

#[test]
fn an_authority_without_a_list_vouches_for_nobody() {
    let (pki, other, served) = (Pki::new(), Pki::named("another authority"), TestUpstream::unix(serve_echo));
    let crl = other.crl(&[], far_end());
    replace(&pki.path("crl.pem"), crl.as_bytes());
    let lists = RevocationLists::load(&[pki.path("crl.pem")]).unwrap();
    let warnings: Vec<_> = lists.warnings(&pki.client_ca()).collect();
    let issuer = "another authority".to_owned();
    assert_eq!(warnings, [TlsFileWarning::CrlOfOther { path: pki.path("crl.pem"), issuer }]);
    let proxy = start(&pki, &served, Resumption::Tickets);
    assert!(!is_served(&proxy, &Arc::new(pki.client(&TLS13, Some(&pki.issue_serial(1))))));
    assert_eq!(proxy.finish().counters[CertificateRefusal::RevocationUnknown.counter()], 1);
}

#[test]
fn a_list_is_warned_of_a_week_before_its_end() {
    let pki = Pki::new();
    for (days, is_warned) in [(0, true), (1, true), (6, true), (8, false)] {
        let end = SystemTime::now() + DAY * days;
        replace(&pki.path("crl.pem"), pki.crl(&[], end).as_bytes());
        let lists = RevocationLists::load(&[pki.path("crl.pem")]).unwrap();
        let warnings: Vec<_> = lists.warnings(&pki.client_ca()).map(|warning| warning.to_string()).collect();
        assert_eq!(warnings.len(), usize::from(is_warned), "{days}: {warnings:?}");
        let verb = if days == 0 { "has expired on" } else { "expires on" };
        assert!(warnings.iter().all(|text| text.contains(verb)), "{warnings:?}");
    }
}

#[test]
fn lists_are_read_in_pem_and_der_and_bad_ones_are_named() {
    let pki = Pki::new();
    let (one, path) = (pki.crl(&[1], far_end()), pki.path("crl.pem"));
    let other = Pki::named("another authority").crl(&[2, 3], far_end());
    fs::write(&path, format!("{one}{other}")).unwrap();
    let der = pki.path("crl.der");
    fs::write(&der, pem_body(&one)).unwrap();
    assert!(RevocationLists::load(from_ref(&path)).is_ok());
    assert!(RevocationLists::load(from_ref(&der)).is_ok());
    let mut cut = pem_body(&one);
    cut.pop();
    let certificate = fs::read(pki.path("ca.pem")).unwrap();
    for (content, problem) in [
        (format!("{one}{one}").into_bytes(), "keep the later one"),
        (certificate, "there is no revocation list"),
        (b"nothing".to_vec(), "there is no revocation list"),
        (cut, "cannot parse"),
        (Vec::new(), "is empty"),
    ] {
        fs::write(&path, content).unwrap();
        let error = RevocationLists::load(from_ref(&path)).unwrap_err().to_string();
        assert!(error.contains(problem) && error.contains("crl.pem"), "{error}");
    }
    let error = RevocationLists::load(&[der.clone(), der]).unwrap_err().to_string();
    assert!(error.contains("keep the later one"), "{error}");
}

fn pem_body(text: &str) -> Vec<u8> {
    use rustls::pki_types::CertificateRevocationListDer;
    use rustls::pki_types::pem::PemObject as _;
    CertificateRevocationListDer::from_pem_slice(text.as_bytes()).unwrap().to_vec()
}

#[test]
fn a_list_swapped_under_load_refuses_the_revoked_and_nobody_else() {
    const SERIALS: u64 = 8;
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    revoke(&pki, &[]);
    let mut proxy = start(&pki, &served, Resumption::Tickets);
    let clients: Vec<Arc<ClientConfig>> = (0..SERIALS)
        .map(|n| Arc::new(pki.client(VERSIONS[n as usize % 2], Some(&pki.issue_serial(n + 1)))))
        .collect();
    let (addr, stop) = (proxy.addr(), AtomicBool::new(false));
    // Certificates with an even serial number up to this one are revoked.
    let revoked = AtomicU64::new(0);
    let (served_n, refused_n) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        for (serial, client) in (1..).zip(&clients) {
            let (stop, revoked, served_n, refused_n) = (&stop, &revoked, &served_n, &refused_n);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let may_be_revoked = serial % 2 == 0;
                    let was_revoked = may_be_revoked && serial <= revoked.load(Ordering::SeqCst);
                    let mut tls = tls_over(tcp_to(addr), client);
                    let is_served = std::io::Write::write_all(&mut tls, b"hello").is_ok()
                        && std::io::Read::read_exact(&mut tls, &mut [0; 5]).is_ok();
                    assert!(!(was_revoked && is_served), "{serial} was served");
                    assert!(is_served || may_be_revoked, "{serial} was refused");
                    if is_served { served_n } else { refused_n }.fetch_add(1, Ordering::Relaxed);
                    if !is_served {
                        return;
                    }
                }
            });
        }
        for serials in [&[2][..], &[2, 4], &[2, 4, 6], &[2, 4, 6, 8]] {
            thread::sleep(Duration::from_millis(200));
            revoke(&pki, serials);
            reload(&mut proxy);
            revoked.store(serials.len() as u64 * 2, Ordering::SeqCst);
        }
        thread::sleep(Duration::from_millis(200));
        stop.store(true, Ordering::Relaxed);
    });
    proxy.collect();
    let total = proxy.finish();
    assert_eq!(total.counters[CertificateRefusal::Revoked.counter()], 4);
    assert_eq!((refused_n.into_inner(), total.counters[ProxyCounter::HandshakesFailed]), (4, 4));
    let handshakes =
        total.counters[ProxyCounter::HandshakesFull] + total.counters[ProxyCounter::HandshakesResumed];
    assert_eq!(handshakes, served_n.into_inner());
    assert!(total.counters[ProxyCounter::HandshakesResumed] > 0);
}
