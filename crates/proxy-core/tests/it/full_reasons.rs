//! Why handshakes are full: each reason is produced on purpose, and counted exactly.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use proxy_core::{ClientAuth, Resumption, TicketKeyFile};
use records::delta::ProxyDelta;
use records::metrics::{ClientCounter, Dimension, FullReason, ProxyCounter, TlsCounter, UsageCounter};
use records::setting::Value;
use rustls::client::Resumption as ClientResumption;
use rustls::{ClientConfig, HandshakeKind, SupportedProtocolVersion};

use crate::counting::connect_from;
use crate::dice::SeededRandom;
use crate::outside::{has_echo, s_client};
use crate::pki::{P256, Pki, replace};
use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, echo, end, read_all, serve_echo, tls_over};

const VERSIONS: [(&SupportedProtocolVersion, &str); 2] = [(&TLS12, "-tls1_2"), (&TLS13, "-tls1_3")];

pub(crate) fn start(served: &TestUpstream, resumption: Resumption) -> TestProxy {
    TestProxy::start_with(&served.upstream, |config| {
        config.workers = 1.try_into().unwrap();
        config.tls.settings.resumption = resumption;
    })
}

/// Connects from 127.0.0.`n`, to the end, and says whether the session was resumed.
pub(crate) fn visit(proxy: &TestProxy, config: &Arc<ClientConfig>, n: u8) -> Option<HandshakeKind> {
    let mut tls = tls_over(connect_from(n, proxy.addr()), config);
    echo(&mut tls, b"hello");
    end(&mut tls);
    read_all(&mut tls);
    tls.conn.handshake_kind()
}

/// Without an offer to resume, whatever happened before.
fn forgetful(config: &Arc<ClientConfig>) -> Arc<ClientConfig> {
    let mut config = ClientConfig::clone(config);
    config.resumption = ClientResumption::disabled();
    Arc::new(config)
}

fn set(proxy: &mut TestProxy, name: &str, value: &str) {
    proxy.proxy.set(name, &Value::Text(value.into())).unwrap();
    // Workers take it up when they are woken, which is before they answer the collector.
    proxy.collect();
}

/// Drains, and checks that handshakes were full for exactly these reasons.
pub(crate) fn expect(proxy: TestProxy, reasons: &[(FullReason, u64)]) -> ProxyDelta {
    let total = finish(proxy);
    for (reason, counter, _) in FullReason::ALL {
        let wanted = reasons.iter().find(|(one, _)| *one == reason).map_or(0, |(_, n)| *n);
        assert_eq!(total.tls.counters[counter], wanted, "{reason:?}: {:?}", total.tls.counters);
    }
    total
}

/// Drains, and checks that the rows of usage add up too.
pub(crate) fn finish(proxy: TestProxy) -> ProxyDelta {
    let total = proxy.finish();
    let count = |counter| total.counters[counter];
    let usage = |dimension, counter| -> u64 {
        let rows = total.tls.usage.iter().filter(|row| row.dimension == dimension);
        rows.map(|row| row.counters[counter]).sum()
    };
    for dimension in [Dimension::Version, Dimension::Cipher, Dimension::Alpn, Dimension::Name] {
        for (of_usage, of_proxy) in [
            (UsageCounter::HandshakesFull, ProxyCounter::HandshakesFull),
            (UsageCounter::HandshakesResumed, ProxyCounter::HandshakesResumed),
            (UsageCounter::BytesIn, ProxyCounter::BytesIn),
            (UsageCounter::BytesOut, ProxyCounter::BytesOut),
        ] {
            assert_eq!(usage(dimension, of_usage), count(of_proxy), "{dimension:?} {of_usage:?}");
        }
    }
    for dimension in [Dimension::Signature, Dimension::Certificate] {
        assert_eq!(usage(dimension, UsageCounter::HandshakesFull), count(ProxyCounter::HandshakesFull));
        assert_eq!(usage(dimension, UsageCounter::HandshakesResumed), 0);
    }
    total
}

#[test]
fn first_visits_and_later_ones_without_a_ticket_are_told_apart() {
    let served = TestUpstream::unix(serve_echo);
    for (version, _) in VERSIONS {
        let proxy = start(&served, Resumption::Tickets);
        let client = forgetful(&proxy.client(version));
        for n in [1, 1, 2, 1] {
            assert_eq!(visit(&proxy, &client, n), Some(HandshakeKind::Full));
        }
        let total = expect(proxy, &[(FullReason::FirstVisit, 2), (FullReason::NoTicket, 2)]);
        assert_eq!(total.tls.counters[TlsCounter::OffersToResume], 0);
        let of_client: u64 = total.clients.iter().map(|one| one.counters[ClientCounter::FullNoTicket]).sum();
        assert_eq!(of_client, 2);
        let is_tls12 = u64::from(version.version == rustls::ProtocolVersion::TLSv1_2);
        assert_eq!(total.tls.counters[TlsCounter::Tls12Only], 4 * is_tls12);
    }
}

#[test]
fn clients_that_offer_ech_are_counted() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = start(&served, Resumption::Tickets);
    let clients = [proxy.client_with_grease_ech(), proxy.client(&TLS13), proxy.client(&TLS12)];
    for client in clients {
        assert_eq!(visit(&proxy, &client, 1), Some(HandshakeKind::Full));
    }
    let total = finish(proxy);
    let counted = [TlsCounter::EchOffered, TlsCounter::EarlyDataOffered].map(|at| total.tls.counters[at]);
    assert_eq!(counted, [1, 0]);
}

#[test]
fn connections_without_a_ticket_are_counted_beside_those_that_are_open() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = start(&served, Resumption::Tickets);
    let client = forgetful(&proxy.client(&TLS13));
    let mut open = Vec::new();
    for _ in 0..11 {
        let mut tls = tls_over(connect_from(1, proxy.addr()), &client);
        echo(&mut tls, b"hello");
        open.push(tls);
    }
    for mut tls in open {
        end(&mut tls);
        read_all(&mut tls);
    }
    // The first was new; then there were 1 to 10 others.
    let total = expect(proxy, &[(FullReason::FirstVisit, 1), (FullReason::NoTicket, 10)]);
    let classes = [
        TlsCounter::NoTicketAlone,
        TlsCounter::NoTicketBeside1,
        TlsCounter::NoTicketBeside3,
        TlsCounter::NoTicketBeside7,
        TlsCounter::NoTicketBesideMore,
    ];
    assert_eq!(classes.map(|counter| total.tls.counters[counter]), [0, 1, 2, 4, 3]);
}

#[test]
fn a_ticket_of_a_key_that_was_forgotten_has_an_unknown_key() {
    let served = TestUpstream::unix(serve_echo);
    for (version, _) in VERSIONS {
        let mut proxy = start(&served, Resumption::Tickets);
        let client = proxy.client(version);
        visit(&proxy, &client, 1);
        assert_eq!(visit(&proxy, &client, 1), Some(HandshakeKind::Resumed));
        proxy.proxy.forget_sessions().unwrap();
        proxy.collect();
        assert_eq!(visit(&proxy, &client, 1), Some(HandshakeKind::Full));
        let total = expect(proxy, &[(FullReason::FirstVisit, 1), (FullReason::UnknownKey, 1)]);
        assert_eq!(total.tls.counters[TlsCounter::OffersToResume], 2);
        assert_eq!((total.tls.ages_accepted.total(), total.tls.ages_expired.total()), (1, 0));
    }
}

#[test]
fn a_ticket_whose_key_has_changed_under_its_name_is_damaged() {
    let (served, folder) = (TestUpstream::unix(serve_echo), tempfile::tempdir().unwrap());
    let path = folder.path().join("keys");
    let key = |seed: u8| -> Vec<u8> {
        (0..80_u8).map(|i| if i < 16 { i } else { i.wrapping_mul(37).wrapping_add(seed) } | 0x80).collect()
    };
    for (version, _) in VERSIONS {
        replace(&path, &key(1));
        let mut proxy = TestProxy::start_with(&served.upstream, |config| {
            config.workers = 1.try_into().unwrap();
            config.tls.ticket_keys = Some(TicketKeyFile::load(&path).unwrap());
        });
        let client = proxy.client(version);
        visit(&proxy, &client, 1);
        replace(&path, &key(2));
        assert_eq!(proxy.proxy.reload().refusals.len(), 0);
        proxy.collect();
        assert_eq!(visit(&proxy, &client, 1), Some(HandshakeKind::Full));
        expect(proxy, &[(FullReason::FirstVisit, 1), (FullReason::Damaged, 1)]);
    }
}

#[test]
fn sessions_that_end_with_a_setting_are_told_apart() {
    let served = TestUpstream::unix(serve_echo);
    for resumption in [Resumption::Tickets, Resumption::Cache] {
        for (version, _) in VERSIONS {
            let mut proxy = start(&served, resumption);
            let (mut cipher, mut off) = (proxy.client(version), proxy.client(version));
            visit(&proxy, &cipher, 1);
            visit(&proxy, &off, 2);
            let suites = "TLS_AES_256_GCM_SHA384,TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
            set(&mut proxy, "proxy.ciphers", suites);
            assert_eq!(visit(&proxy, &cipher, 1), Some(HandshakeKind::Full));
            assert_eq!(visit(&proxy, &cipher, 1), Some(HandshakeKind::Resumed));
            set(&mut proxy, "proxy.resumption", "off");
            for client in [&mut cipher, &mut off] {
                assert_eq!(visit(&proxy, client, 1), Some(HandshakeKind::Full));
            }
            // The proxy gives out nothing that a client could offer.
            let without_session = proxy.client(version);
            assert_eq!(visit(&proxy, &without_session, 1), Some(HandshakeKind::Full));
            let total = expect(
                proxy,
                &[(FullReason::FirstVisit, 2), (FullReason::OtherVersion, 1), (FullReason::ResumptionOff, 3)],
            );
            assert_eq!(total.tls.counters[TlsCounter::OffersToResume], 4, "{resumption:?} {version:?}");
        }
    }
}

#[test]
fn a_session_of_another_version_is_told_from_an_unknown_one() {
    let served = TestUpstream::unix(serve_echo);
    let (mut proxy, folder) = (start(&served, Resumption::Tickets), tempfile::tempdir().unwrap());
    let session = folder.path().join("session");
    let session = session.to_str().unwrap();
    s_client(proxy.addr(), &["-sess_out", session]);
    set(&mut proxy, "proxy.tls-max", "1.2");
    let output = s_client(proxy.addr(), &["-sess_in", session]);
    assert!(has_echo(&output) && output.contains("New, TLSv1.2"), "{output}");
    expect(proxy, &[(FullReason::FirstVisit, 1), (FullReason::OtherVersion, 1)]);
}

#[test]
fn a_session_of_another_name_is_told_with_openssl() {
    let (served, folder) = (TestUpstream::unix(serve_echo), tempfile::tempdir().unwrap());
    for resumption in [Resumption::Tickets, Resumption::Cache] {
        for (_, version) in VERSIONS {
            let proxy = start(&served, resumption);
            let session = folder.path().join(version);
            let session = session.to_str().unwrap();
            s_client(proxy.addr(), &[version, "-servername", "A.test", "-sess_out", session]);
            for name in ["b.test", "a.test"] {
                let output = s_client(proxy.addr(), &[version, "-servername", name, "-sess_in", session]);
                assert!(has_echo(&output), "{output}");
            }
            s_client(proxy.addr(), &[version, "-noservername", "-no_ticket"]);
            // With TLS 1.3 the cache gives a session once.
            let is_used_up = resumption == Resumption::Cache && version == "-tls1_3";
            let total = expect(
                proxy,
                &[
                    (FullReason::FirstVisit, 1),
                    (FullReason::OtherName, 1),
                    (FullReason::Evicted, u64::from(is_used_up)),
                    (FullReason::NoTicket, 1),
                ],
            );
            let names = total.tls.usage.iter().filter(|row| row.dimension == Dimension::Name);
            let mut names: Vec<_> = names.map(|row| &*row.value).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names, ["a.test", "b.test", "none"]);
        }
    }
}

#[test]
fn a_session_of_other_rules_for_clients_is_told_from_others() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let own = pki.issue("own", &P256, &["worker-7"]);
    for resumption in [Resumption::Tickets, Resumption::Cache] {
        for (version, _) in VERSIONS {
            let mut proxy = TestProxy::start_with(&served.upstream, |config| {
                config.workers = 1.try_into().unwrap();
                config.tls.certificates = vec![pki.certificate(&P256, &["localhost"])];
                config.tls.client_ca = Some(pki.client_ca());
                config.tls.settings.client_auth = ClientAuth::Optional.into();
                config.tls.settings.resumption = resumption;
            });
            let client = Arc::new(pki.client(version, Some(&own)));
            visit(&proxy, &client, 1);
            set(&mut proxy, "proxy.client-auth", "required");
            assert_eq!(visit(&proxy, &client, 1), Some(HandshakeKind::Full));
            expect(proxy, &[(FullReason::FirstVisit, 1), (FullReason::ClientAuth, 1)]);
        }
    }
}

#[test]
fn sessions_beyond_the_cache_are_evicted() {
    let served = TestUpstream::unix(serve_echo);
    for (version, _) in VERSIONS {
        let mut proxy = start(&served, Resumption::Cache);
        proxy.proxy.set("proxy.session-cache", &Value::Number(2.0)).unwrap();
        proxy.collect();
        let clients = [0; 3].map(|_| proxy.client(version));
        for client in &clients {
            visit(&proxy, client, 1);
        }
        assert_eq!(visit(&proxy, &clients[0], 1), Some(HandshakeKind::Full));
        expect(proxy, &[(FullReason::FirstVisit, 1), (FullReason::NoTicket, 2), (FullReason::Evicted, 1)]);
    }
}

#[test]
fn what_a_cache_never_had_has_no_known_reason() {
    let (served, folder) = (TestUpstream::unix(serve_echo), tempfile::tempdir().unwrap());
    for (_, version) in VERSIONS {
        let (first, second) = (start(&served, Resumption::Cache), start(&served, Resumption::Cache));
        let session = folder.path().join(version);
        let session = session.to_str().unwrap();
        s_client(first.addr(), &[version, "-sess_out", session]);
        let output = s_client(second.addr(), &[version, "-sess_in", session]);
        assert!(has_echo(&output) && output.contains("New, TLS"), "{output}");
        expect(first, &[(FullReason::FirstVisit, 1)]);
        expect(second, &[(FullReason::Unknown, 1)]);
    }
}

#[test]
fn a_ticket_is_judged_although_sessions_are_in_a_cache() {
    let (served, folder) = (TestUpstream::unix(serve_echo), tempfile::tempdir().unwrap());
    for (config, version) in VERSIONS {
        let (mut first, second) = (start(&served, Resumption::Tickets), start(&served, Resumption::Cache));
        let session = folder.path().join(version);
        let session = session.to_str().unwrap();
        s_client(first.addr(), &[version, "-sess_out", session]);
        let output = s_client(second.addr(), &[version, "-sess_in", session]);
        assert!(has_echo(&output) && output.contains("New, TLS"), "{output}");
        expect(second, &[(FullReason::UnknownKey, 1)]);
        let client = first.client(config);
        visit(&first, &client, 2);
        set(&mut first, "proxy.resumption", "cache");
        assert_eq!(visit(&first, &client, 2), Some(HandshakeKind::Full));
        expect(first, &[(FullReason::FirstVisit, 2), (FullReason::ResumptionOff, 1)]);
    }
}

#[test]
fn reasons_add_up_whatever_clients_do() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = TestProxy::start(&served.upstream);
    let clients: Vec<_> = (0..6).map(|n| proxy.client(VERSIONS[n % 2].0)).collect();
    let mut dice = SeededRandom(17);
    for _ in 0..200 {
        let client = &clients[dice.roll(clients.len())];
        match dice.roll(40) {
            0 => proxy.proxy.forget_sessions().unwrap(),
            1 => set(&mut proxy, "proxy.resumption", ["tickets", "cache", "off"][dice.roll(3)]),
            2 | 5 => set(&mut proxy, "proxy.tls-max", ["1.2", "1.3"][dice.roll(2)]),
            3 => set(&mut proxy, "proxy.cipher-order", ["proxy", "client"][dice.roll(2)]),
            6..10 => _ = visit_if_served(&proxy, &forgetful(client)),
            _ => _ = visit_if_served(&proxy, client),
        }
    }
    let total = finish(proxy);
    assert!(total.counters[ProxyCounter::HandshakesFull] > 20, "{:?}", total.counters);
    assert!(total.counters[ProxyCounter::HandshakesResumed] > 10, "{:?}", total.counters);
}

/// Connects, whether that leads to a handshake or not.
fn visit_if_served(proxy: &TestProxy, config: &Arc<ClientConfig>) -> Option<()> {
    let mut tls = proxy.connect(config);
    std::io::Write::write_all(&mut tls, b"hello").ok()?;
    tls.read_exact(&mut [0; 5]).ok()?;
    end(&mut tls);
    tls.sock.set_read_timeout(Some(Duration::from_secs(20))).ok()
}
