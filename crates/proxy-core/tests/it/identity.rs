//! Whom a client's certificate names, as the upstream is told by a PROXY header of version 2.

use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::sync::Arc;

use proxy_core::proxy_protocol::ProxyProtocol;
use proxy_core::{ClientAuth, Upstream};
use proxy_header::{ParseConfig, ProxyHeader};
use rcgen::string::{BmpString, Ia5String, TeletexString};
use rcgen::{DnType, DnValue, SanType};
use rustls::ClientConfig;

use crate::pki::{CertAndKey, P256, Pki};
use crate::proxy_header::{received, watched};
use crate::support::{TLS12, TLS13, TestProxy, end, read_all};

/// What a header tells of the client's certificate.
#[derive(Debug, PartialEq)]
struct HeaderIdentity {
    name: Option<String>,
    is_verified: bool,
    is_of_connection: bool,
    is_of_session: bool,
}

impl HeaderIdentity {
    fn of_connection(name: Option<&str>) -> Self {
        Self { name: name.map(str::to_owned), is_verified: true, is_of_connection: true, is_of_session: true }
    }

    const NOTHING: Self =
        Self { name: None, is_verified: false, is_of_connection: false, is_of_session: false };
}

fn start(pki: &Pki, upstream: &Upstream) -> TestProxy {
    TestProxy::start_with(upstream, |config| {
        config.workers = 1.try_into().unwrap();
        config.proxy_protocol = Some(ProxyProtocol::V2);
        config.tls.certificates = vec![pki.certificate(&P256, &["localhost"])];
        config.tls.client_ca = Some(pki.client_ca());
        config.tls.settings.client_auth = ClientAuth::Optional.into();
    })
}

fn told(proxy: &TestProxy, listener: &UnixListener, config: &Arc<ClientConfig>) -> HeaderIdentity {
    let mut tls = proxy.connect(config);
    tls.write_all(b"hello").unwrap();
    let (mut app, bytes) = received(listener);
    // The ticket comes with the answer.
    app.write_all(b"hello").unwrap();
    tls.read_exact(&mut [0; 5]).unwrap();
    end(&mut tls);
    drop(app);
    read_all(&mut tls);
    let (header, len) = ProxyHeader::parse(&bytes, ParseConfig::default()).unwrap();
    assert_eq!(len, bytes.len() - 5);
    let ssl = header.ssl().unwrap();
    assert!(ssl.client_ssl());
    HeaderIdentity {
        name: ssl.cn().map(str::to_owned),
        is_verified: ssl.verify() == 0,
        is_of_connection: ssl.client_cert_conn(),
        is_of_session: ssl.client_cert_sess(),
    }
}

/// A certificate with this common name, and others.
fn named(pki: &Pki, name: impl Into<DnValue>) -> CertAndKey {
    let subject = [(DnType::OrganizationName, "an organisation".into()), (DnType::CommonName, name.into())];
    pki.issue_subject("own", &subject, other_names())
}

fn other_names() -> Vec<SanType> {
    let text = |text: &str| Ia5String::try_from(text).unwrap();
    vec![
        SanType::URI(text("spiffe://example.org/adm")),
        SanType::Rfc822Name(text("adm@example.org")),
        SanType::DnsName(text("adm.example.org")),
    ]
}

#[test]
fn the_common_name_is_sent_whole_and_unchanged() {
    let (pki, (_dir, listener, upstream)) = (Pki::new(), watched());
    let proxy = start(&pki, &upstream);
    let longest = "x".repeat(131);
    // The third is what one with a line break would be if it were made printable.
    for name in ["worker-7", &*longest, "adm\\u{a}in", "Zoë 工 \u{202e}", "CN=a,O=b\"'<>"] {
        let config = pki.client(&TLS13, Some(&named(&pki, name))).into();
        assert_eq!(told(&proxy, &listener, &config), HeaderIdentity::of_connection(Some(name)));
    }
    for (name, expected) in [
        (DnValue::BmpString(BmpString::try_from("Zoë").unwrap()), "Zoë"),
        (DnValue::TeletexString(TeletexString::try_from("old").unwrap()), "old"),
    ] {
        let config = pki.client(&TLS13, Some(&named(&pki, name))).into();
        assert_eq!(told(&proxy, &listener, &config), HeaderIdentity::of_connection(Some(expected)));
    }
    assert_eq!(proxy.proxy.take_notices(), []);
}

#[test]
fn a_certificate_without_a_usable_common_name_is_still_reported() {
    let (pki, (_dir, listener, upstream)) = (Pki::new(), watched());
    let proxy = start(&pki, &upstream);
    let none = pki.issue_subject("none", &[(DnType::OrganizationName, "adm".into())], other_names());
    let config = pki.client(&TLS13, Some(&none)).into();
    assert_eq!(told(&proxy, &listener, &config), HeaderIdentity::of_connection(None), "another name is none");
    assert_eq!(proxy.proxy.take_notices(), []);
    for name in ["adm\nin", "adm\0in", "\u{1b}[2J", "adm\u{85}"] {
        let config = pki.client(&TLS13, Some(&named(&pki, name))).into();
        assert_eq!(told(&proxy, &listener, &config), HeaderIdentity::of_connection(None), "{name:?}");
        let notices = proxy.proxy.take_notices();
        assert!(notices.len() == 1 && notices[0].text.contains("control characters"), "{notices:?}");
        assert!(!notices[0].text.contains(char::is_control), "{notices:?}");
    }
    let config = pki.client(&TLS13, None).into();
    assert_eq!(told(&proxy, &listener, &config), HeaderIdentity::NOTHING);
}

#[test]
fn a_resumed_session_reports_the_certificate_of_the_session() {
    let (pki, (_dir, listener, upstream)) = (Pki::new(), watched());
    let proxy = start(&pki, &upstream);
    for version in [&TLS12, &TLS13] {
        for (files, name) in [
            (Some(named(&pki, "worker-7")), Some("worker-7")),
            (Some(pki.issue_subject("none", &[], other_names())), None),
            (None, None),
        ] {
            let config = pki.client(version, files.as_ref()).into();
            let first =
                if files.is_some() { HeaderIdentity::of_connection(name) } else { HeaderIdentity::NOTHING };
            let resumed = HeaderIdentity { is_of_connection: false, ..HeaderIdentity::of_connection(name) };
            let resumed = if files.is_some() { resumed } else { HeaderIdentity::NOTHING };
            assert_eq!(told(&proxy, &listener, &config), first);
            assert_eq!(told(&proxy, &listener, &config), resumed);
        }
    }
    let total = proxy.finish();
    assert_eq!(total.counters[records::metrics::ProxyCounter::HandshakesResumed], 6);
}
