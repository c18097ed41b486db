//! Server names with rules of their own about certificates of clients.

use std::io::{Read, Write};
use std::sync::Arc;

use records::metrics::{CertificateRefusal, ProxyCounter};
use records::setting::Value;
use rustls::ClientConfig;
use rustls::client::Resumption;
use tls_client::{SessionReset, SessionStore};

use crate::pki::{P256, Pki};
use crate::support::{TLS13, TestProxy, TestUpstream, end, serve_echo, tls_named};

const OPEN: &str = "open.test";
const CLOSED: &str = "closed.test";

fn start(pki: &Pki, served: &TestUpstream) -> TestProxy {
    TestProxy::start_with(&served.upstream, |config| {
        config.workers = 1.try_into().unwrap();
        config.tls.certificates = vec![pki.certificate(&P256, &[OPEN, CLOSED])];
        config.tls.client_ca = Some(pki.client_ca());
        let rules = Value::Text(format!("off,{CLOSED}=required"));
        config.tls.settings.set("client-auth", &rules).unwrap();
    })
}

fn is_served(proxy: &TestProxy, config: &Arc<ClientConfig>, name: &str) -> bool {
    let mut tls = tls_named(proxy.tcp(), config, name);
    let is_served = tls.write_all(b"hello").is_ok() && tls.read_exact(&mut [0; 5]).is_ok();
    if is_served {
        end(&mut tls);
    }
    is_served
}

#[test]
fn a_name_asks_for_certificates_by_its_own_rule() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let own = pki.issue_named("own", "worker-7");
    let proxy = start(&pki, &served);
    for version in crate::client_certificates::VERSIONS {
        let anonymous = Arc::new(pki.client(version, None));
        let known = Arc::new(pki.client(version, Some(&own)));
        assert!(is_served(&proxy, &anonymous, OPEN) && is_served(&proxy, &known, OPEN));
        assert!(!is_served(&proxy, &anonymous, CLOSED) && is_served(&proxy, &known, CLOSED));
        // Who does not say what it wants may want anything.
        let [anonymous, known] = [anonymous, known].map(|config| {
            let mut config = ClientConfig::clone(&config);
            config.enable_sni = false;
            Arc::new(config)
        });
        assert!(!is_served(&proxy, &anonymous, OPEN) && is_served(&proxy, &known, OPEN));
    }
    let total = proxy.finish();
    assert_eq!(total.counters[CertificateRefusal::NotSent.counter()], 4);
    assert_eq!(total.counters[ProxyCounter::HandshakesFailed], 4);
}

#[test]
fn a_session_without_a_certificate_does_not_resume_at_a_name_that_requires_one() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    for version in crate::client_certificates::VERSIONS {
        let proxy = start(&pki, &served);
        // It offers the sessions of one name at any other.
        let sessions = Arc::new(SessionStore::new(1, SessionReset::default()));
        let mut config = pki.client(version, None);
        config.resumption = Resumption::store(Arc::clone(&sessions) as _);
        let config = Arc::new(config);
        sessions.allow(true);
        assert!(is_served(&proxy, &config, OPEN) && is_served(&proxy, &config, OPEN));
        assert!(sessions.was_offered());
        sessions.allow(true);
        assert!(!is_served(&proxy, &config, CLOSED));
        assert!(sessions.was_offered(), "this is no attack");
        let total = proxy.finish();
        let counted = |counter| total.counters[counter];
        assert_eq!((counted(ProxyCounter::HandshakesFull), counted(ProxyCounter::HandshakesResumed)), (1, 1));
        assert_eq!(counted(CertificateRefusal::NotSent.counter()), 1);
    }
}

#[test]
fn a_changed_rule_holds_for_sessions_that_began_before() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let proxy = start(&pki, &served);
    let anonymous = Arc::new(pki.client(&TLS13, None));
    assert!(is_served(&proxy, &anonymous, OPEN));
    proxy.proxy.set("proxy.client-auth", &Value::Text("required".to_owned())).unwrap();
    assert!(!is_served(&proxy, &anonymous, OPEN));
    let total = proxy.finish();
    assert_eq!(total.counters[CertificateRefusal::NotSent.counter()], 1);
    assert_eq!(total.counters[ProxyCounter::HandshakesResumed], 0);
}
