//! Who uses what: handshakes by version, group, signature, certificate, server name and fingerprint.

use std::collections::BTreeMap;

use proxy_core::Resumption;
use rcgen::PKCS_RSA_SHA256 as RSA;
use records::delta::ProxyDelta;
use records::metrics::{Dimension, FullReason, ProxyCounter, UsageCounter};

use crate::full_reasons::{expect, finish, start, visit};
use crate::outside::{has_echo, s_client};
use crate::pki::{P256, Pki};
use crate::support::{TLS13, TestProxy, TestUpstream, serve_echo};

/// Full handshakes by the values of a dimension.
fn full(total: &ProxyDelta, dimension: Dimension) -> BTreeMap<&str, u64> {
    let mut by_value = BTreeMap::new();
    for row in total.tls.usage.iter().filter(|row| row.dimension == dimension) {
        *by_value.entry(&*row.value).or_default() += row.counters[UsageCounter::HandshakesFull];
    }
    by_value
}

#[test]
fn signature_and_certificate_are_those_that_the_client_sees() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.tls.certificates =
            vec![pki.certificate(&RSA, &["rsa.test"]), pki.certificate(&P256, &["*.ecdsa.test"])];
    });
    for (name, version, schemes, kind, digest) in [
        ("rsa.test", "-tls1_2", "RSA+SHA384", "RSA", "SHA384"),
        ("rsa.test", "-tls1_2", "RSA+SHA256:RSA-PSS+SHA256", "RSA-PSS", "SHA256"),
        ("rsa.test", "-tls1_3", "RSA-PSS+SHA256:RSA-PSS+SHA512", "RSA-PSS", "SHA512"),
        ("www.ecdsa.test", "-tls1_2", "ECDSA+SHA256", "ECDSA", "SHA256"),
        ("www.ecdsa.test", "-tls1_3", "ECDSA+SHA256:RSA-PSS+SHA256", "ECDSA", "SHA256"),
    ] {
        let output = s_client(proxy.addr(), &[version, "-servername", name, "-sigalgs", schemes]);
        assert!(has_echo(&output), "{output}");
        assert!(output.contains(&format!("Peer signature type: {kind}\n")), "{output}");
        assert!(output.contains(&format!("Peer signing digest: {digest}\n")), "{output}");
    }
    let total = finish(proxy);
    let signatures = [
        ("ecdsa_secp256r1_sha256", 2),
        ("rsa_pkcs1_sha384", 1),
        ("rsa_pss_rsae_sha256", 1),
        ("rsa_pss_rsae_sha512", 1),
    ];
    assert_eq!(full(&total, Dimension::Signature), BTreeMap::from(signatures));
    assert_eq!(full(&total, Dimension::Certificate), BTreeMap::from([("*.ecdsa.test", 2), ("rsa.test", 3)]));
    assert_eq!(full(&total, Dimension::Version), BTreeMap::from([("TLSv1.2", 3), ("TLSv1.3", 2)]));
}

#[test]
fn a_hello_in_two_packets_is_read_and_a_retry_counts_once() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = start(&served, Resumption::Tickets);
    for groups in ["P-384:X25519", "P-521:P-256"] {
        let output = s_client(proxy.addr(), &["-tls1_3", "-groups", groups]);
        assert!(has_echo(&output), "{output}");
    }
    let total = expect(proxy, &[(FullReason::FirstVisit, 1), (FullReason::NoTicket, 1)]);
    assert_eq!(total.counters[ProxyCounter::HandshakesRetried], 1);
    let only = |dimension| -> u64 {
        let rows = total.tls.usage.iter().filter(|row| row.dimension == dimension);
        rows.map(|row| row.counters[UsageCounter::OnlyChoice]).sum()
    };
    assert_eq!((only(Dimension::Version), only(Dimension::Group), only(Dimension::Cipher)), (2, 1, 0));
}

#[test]
fn a_failed_handshake_is_counted_for_its_name_and_fingerprint() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = start(&served, Resumption::Tickets);
    let output = s_client(proxy.addr(), &["-tls1_3", "-servername", "Old.test", "-groups", "P-521"]);
    assert!(!has_echo(&output), "{output}");
    drop(proxy.tcp());
    let total = finish(proxy);
    assert_eq!(total.counters[ProxyCounter::HandshakesFailed], 2);
    let failed = |row: &&records::delta::UsageDelta| row.counters[UsageCounter::HandshakesFailed] == 1;
    let mut rows = total.tls.usage.iter().filter(failed);
    let names: Vec<_> = rows.by_ref().map(|row| (row.dimension, &*row.value)).collect();
    assert_eq!(names[0], (Dimension::Name, "old.test"));
    assert!(
        names.len() == 2 && names[1].0 == Dimension::Fingerprint && names[1].1.starts_with("t13d"),
        "{names:?}"
    );
}

#[test]
fn a_client_that_comes_back_has_one_fingerprint() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = start(&served, Resumption::Tickets);
    let (client, folder) = (proxy.client(&TLS13), tempfile::tempdir().unwrap());
    for _ in 0..2 {
        visit(&proxy, &client, 1);
    }
    let session = folder.path().join("session");
    let session = session.to_str().unwrap();
    for resumption in ["-sess_out", "-sess_in"] {
        assert!(has_echo(&s_client(proxy.addr(), &["-tls1_3", resumption, session])));
    }
    let total = finish(proxy);
    let mut rows: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for row in total.tls.usage.iter().filter(|row| row.dimension == Dimension::Fingerprint) {
        let counted = rows.entry(&*row.value).or_default();
        counted[0] += row.counters[UsageCounter::HandshakesFull];
        counted[1] += row.counters[UsageCounter::HandshakesResumed];
    }
    let counted: Vec<_> = rows.values().collect();
    assert_eq!(counted, [&[1, 1], &[1, 1]], "{rows:?}");
    let clients = &total.clients;
    assert!(clients.iter().all(|client| (1..1_000_000).contains(&client.rtt_us)), "{clients:?}");
}

#[test]
fn names_and_fingerprints_can_be_left_out() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = TestProxy::start_with(&served.upstream, |config| config.records_names = false);
    visit(&proxy, &proxy.client(&TLS13), 1);
    drop(s_client(proxy.addr(), &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]));
    let total = proxy.finish();
    assert_eq!(total.connections.len(), 2);
    assert!(total.connections.iter().all(|record| record.sni.is_empty()), "{:?}", total.connections);
    let is_private = |row: &&records::delta::UsageDelta| {
        [Dimension::Name, Dimension::Fingerprint].contains(&row.dimension)
    };
    assert_eq!(total.tls.usage.iter().find(is_private), None);
    assert!(!total.tls.usage.is_empty());
}
