//! Certificates of clients.

use std::io::Read;
use std::sync::Arc;

use proxy_core::{ClientAuth, TicketKeyFile};
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;
use records::setting::Value;
use rustls::{ClientConfig, SupportedProtocolVersion};

use crate::pki::{CertAndKey, P256, Pki, replace};
use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, end, serve_echo};

fn start(pki: &Pki, served: &TestUpstream, auth: ClientAuth) -> TestProxy {
    start_with(pki, served, auth, false)
}

/// `shares`: session tickets are sealed with the keys in the folder.
fn start_with(pki: &Pki, served: &TestUpstream, auth: ClientAuth, shares: bool) -> TestProxy {
    TestProxy::start_with(&served.upstream, |config| {
        config.workers = 1.try_into().unwrap();
        config.tls.certificates = vec![pki.certificate(&P256, &["localhost"])];
        config.tls.client_ca = Some(pki.client_ca());
        config.tls.settings.client_auth = auth.into();
        config.tls.ticket_keys = shares.then(|| TicketKeyFile::load(&pki.path("keys")).unwrap());
    })
}

/// A client with a certificate of its own, or none.
fn client(
    pki: &Pki,
    version: &'static SupportedProtocolVersion,
    own: Option<&CertAndKey>,
) -> Arc<ClientConfig> {
    Arc::new(pki.client(version, own))
}

/// Whether a connection with `config` is served.
fn is_served(proxy: &TestProxy, config: &Arc<ClientConfig>) -> bool {
    let mut tls = proxy.connect(config);
    let is_served =
        std::io::Write::write_all(&mut tls, b"hello").is_ok() && tls.read_exact(&mut [0; 5]).is_ok();
    if is_served {
        end(&mut tls);
    }
    is_served
}

/// The name that a proxy records of a connection, and whether that was resumed. Of those that end well it only keeps
/// one at a time.
fn recorded(proxy: TestProxy, config: &Arc<ClientConfig>) -> (String, bool) {
    assert!(is_served(&proxy, config));
    let total = proxy.finish();
    let record = &total.connections[0];
    assert_eq!(record.outcome, ConnectionOutcome::Ended);
    (record.client_name.clone(), record.resumed)
}

#[test]
fn a_required_certificate_is_verified_and_its_name_recorded() {
    let (pki, stranger, served) = (Pki::new(), Pki::new(), TestUpstream::unix(serve_echo));
    let own = pki.issue("own", &P256, &["worker-7", "other.name"]);
    let foreign = stranger.issue("foreign", &P256, &["worker-7"]);
    let expired = pki.issue_until("expired", &P256, &["worker-7"], 2021);
    let proxy = start(&pki, &served, ClientAuth::Required);
    for version in [&TLS12, &TLS13] {
        assert!(is_served(&proxy, &client(&pki, version, Some(&own))));
        for other in [None, Some(&foreign), Some(&expired)] {
            assert!(!is_served(&proxy, &client(&pki, version, other)), "{version:?} {other:?}");
        }
    }
    let total = proxy.finish();
    assert!(
        total
            .connections
            .iter()
            .all(|one| one.client_name.is_empty() || one.outcome == ConnectionOutcome::Ended)
    );
    assert_eq!(total.counters[ProxyCounter::HandshakesFailed], 6);
    let details: Vec<_> = total.connections.iter().map(|one| one.detail.as_str()).collect();
    assert!(details.iter().any(|detail| detail.contains("the client sent no certificate")), "{details:?}");
    assert!(details.iter().any(|detail| detail.contains("not signed by the authority")), "{details:?}");
    assert!(details.iter().any(|detail| detail.contains("xpired")), "{details:?}");
}

#[test]
fn an_optional_certificate_may_be_missing_but_not_bad() {
    let (pki, stranger, served) = (Pki::new(), Pki::new(), TestUpstream::unix(serve_echo));
    let own = pki.issue("own", &P256, &["worker-7"]);
    let foreign = stranger.issue("foreign", &P256, &["worker-7"]);
    let proxy = start(&pki, &served, ClientAuth::Optional);
    for version in [&TLS12, &TLS13] {
        assert!(is_served(&proxy, &client(&pki, version, None)));
        assert!(is_served(&proxy, &client(&pki, version, Some(&own))));
        assert!(!is_served(&proxy, &client(&pki, version, Some(&foreign))));
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::HandshakesFailed], 2);
    for (own, name) in [(None, ""), (Some(&own), "worker-7")] {
        let proxy = start(&pki, &served, ClientAuth::Optional);
        assert_eq!(recorded(proxy, &client(&pki, &TLS13, own)), (name.to_owned(), false));
    }
}

#[test]
fn a_name_that_would_play_with_a_terminal_is_made_printable() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let nasty = pki.issue_named("nasty", "a\u{1b}[2J\nTLSDASH_KIND=run\u{202e}");
    let proxy = start(&pki, &served, ClientAuth::Required);
    let (name, _) = recorded(proxy, &client(&pki, &TLS13, Some(&nasty)));
    assert_eq!(name, "a\\u{1b}[2J\\u{a}TLSDASH_KIND=run\\u{202e}");
}

#[test]
fn a_session_resumes_at_another_proxy_of_the_same_rules_with_its_name() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let own = pki.issue("own", &P256, &["worker-7"]);
    replace(&pki.path("keys"), &(0..80).map(|i: u8| i.wrapping_mul(37) | 0x80).collect::<Vec<u8>>());
    let start = |auth| start_with(&pki, &served, auth, true);
    for version in [&TLS12, &TLS13] {
        let config = client(&pki, version, Some(&own));
        for (auth, is_resumed) in
            [(ClientAuth::Required, false), (ClientAuth::Required, true), (ClientAuth::Optional, false)]
        {
            assert_eq!(recorded(start(auth), &config), ("worker-7".to_owned(), is_resumed));
        }
    }
}

#[test]
fn a_session_that_began_without_a_certificate_does_not_replace_one() {
    for resumption in ["tickets", "cache"] {
        let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
        let mut proxy = start(&pki, &served, ClientAuth::Optional);
        proxy.proxy.set("proxy.resumption", &Value::Text(resumption.into())).unwrap();
        let configs = [&TLS12, &TLS13].map(|version| client(&pki, version, None));
        for config in &configs {
            assert!(is_served(&proxy, config) && is_served(&proxy, config));
        }
        proxy.expect(ProxyCounter::HandshakesResumed, 2);
        proxy.proxy.set("proxy.client-auth", &Value::Text("required".into())).unwrap();
        // Workers take it up when they are woken, which is before they answer the collector.
        proxy.collect();
        for config in &configs {
            assert!(!is_served(&proxy, config), "{resumption}");
        }
        proxy.expect(ProxyCounter::HandshakesResumed, 2);
    }
}
