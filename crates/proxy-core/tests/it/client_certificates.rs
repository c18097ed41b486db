//! Clients that are refused for their certificates: each cause is counted, and named in the record.

use std::io::{Read, Write};
use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CustomExtension, DnType, ExtendedKeyUsagePurpose, IsCa,
    date_time_ymd,
};
use records::kinds::ConnectionOutcome;
use records::metrics::{CertificateRefusal, Dimension, UsageCounter};
use rustls::{ClientConfig, SupportedProtocolVersion};

use crate::pki::{CertAndKey, P256, Pki};
use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, serve_echo};

fn start(pki: &Pki, served: &TestUpstream, records_names: bool) -> TestProxy {
    TestProxy::start_with(&served.upstream, |config| {
        config.workers = 1.try_into().unwrap();
        config.records_names = records_names;
        config.tls.certificates = vec![pki.certificate(&P256, &["localhost"])];
        config.tls.client_ca = Some(pki.client_ca());
    })
}

fn named(name: &str) -> CertificateParams {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params
}

fn changed(pki: &Pki, name: &str, change: impl FnOnce(&mut CertificateParams)) -> CertAndKey {
    let mut params = named(name);
    change(&mut params);
    pki.sign(name, &P256, &params)
}

/// A certificate behind more intermediates than are followed.
fn deep(pki: &Pki) -> CertAndKey {
    let authority = |n: usize| {
        let mut params = named(&format!("ca-{n}"));
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
    };
    let mut above = authority(1);
    let mut files = pki.sign("ca-1", &P256, &above);
    for n in 2..9 {
        let params = authority(n);
        files = pki.sign_below((&above, &files), &format!("ca-{n}"), &params);
        above = params;
    }
    pki.sign_below((&above, &files), "deep", &named("deep"))
}

/// A certificate for each cause of a refusal, or none where that is the cause. `stranger` is another authority, and
/// `namesake` one that has the name of the trusted one.
fn refused_certificates(
    pki: &Pki,
    stranger: &Pki,
    namesake: &Pki,
) -> Vec<(CertificateRefusal, Option<CertAndKey>)> {
    let unknown = CustomExtension::from_oid_content(&[1, 3, 6, 1, 4, 1, 99999, 1], vec![5, 0]);
    let critical = |mut extension: CustomExtension| {
        extension.set_criticality(true);
        extension
    };
    vec![
        (CertificateRefusal::NotSent, None),
        (CertificateRefusal::UnknownCa, Some(stranger.issue_named("stranger", "stranger"))),
        (CertificateRefusal::Expired, Some(pki.issue_until("old", &P256, &["old"], 2021))),
        (
            CertificateRefusal::NotYetValid,
            Some(changed(pki, "early", |params| params.not_before = date_time_ymd(2090, 1, 1))),
        ),
        (
            CertificateRefusal::WrongUsage,
            Some(changed(pki, "server", |params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            })),
        ),
        (CertificateRefusal::BadSignature, Some(namesake.issue_named("forged", "forged"))),
        (CertificateRefusal::ChainTooDeep, Some(deep(pki))),
        (
            CertificateRefusal::Other,
            Some(changed(pki, "odd", |params| params.custom_extensions.push(critical(unknown)))),
        ),
    ]
}

/// Whether a client is served.
pub(crate) fn is_served(proxy: &TestProxy, config: &Arc<ClientConfig>) -> bool {
    let mut tls = proxy.connect(config);
    tls.write_all(b"hello").is_ok() && tls.read_exact(&mut [0; 5]).is_ok()
}

pub(crate) const VERSIONS: [&SupportedProtocolVersion; 2] = [&TLS12, &TLS13];

#[test]
fn each_cause_of_a_refusal_is_counted_and_recorded() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let (stranger, namesake) = (Pki::named("another authority"), Pki::new());
    let refused = refused_certificates(&pki, &stranger, &namesake);
    let proxy = start(&pki, &served, true);
    for (refusal, own) in &refused {
        for (n, version) in (1..).zip(VERSIONS) {
            let client = Arc::new(pki.client(version, own.as_ref()));
            assert!((0..n).all(|_| !is_served(&proxy, &client)), "{refusal:?}");
        }
    }
    let own = pki.issue_named("good", "good");
    assert!(is_served(&proxy, &Arc::new(pki.client(&TLS13, Some(&own)))));
    let total = proxy.finish();
    for (refusal, own) in &refused {
        assert_eq!(total.counters[refusal.counter()], 3, "{refusal:?}: {:?}", total.connections);
        let outcome = ConnectionOutcome::Certificate(*refusal);
        let records: Vec<_> = total.connections.iter().filter(|record| record.outcome == outcome).collect();
        assert_eq!(records.len(), 3, "{refusal:?}");
        for record in records {
            assert_eq!((&*record.reason(), &*record.client_name), (refusal.words(), ""));
            let Some((cert, _)) = own else { continue };
            let subject = cert.file_stem().unwrap().to_str().unwrap();
            assert!(record.detail.contains(&format!("(of {subject:?}, by ")), "{}", record.detail);
        }
    }
    let issuers = total.tls.usage.iter().filter(|row| row.dimension == Dimension::Issuer);
    let mut issuers: Vec<_> = issuers
        .map(|row| {
            let counted = |counter| row.counters[counter];
            (&*row.value, counted(UsageCounter::HandshakesFull), counted(UsageCounter::HandshakesFailed))
        })
        .collect();
    issuers.sort_unstable();
    let expected = [("an authority", 1, 15), ("another authority", 0, 3), ("ca-8", 0, 3)];
    assert_eq!(issuers, expected);
}

#[test]
fn a_certificate_without_its_key_is_a_bad_signature() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let ((cert, _), (_, key)) = (pki.issue_named("victim", "victim"), pki.issue_named("thief", "thief"));
    let proxy = start(&pki, &served, true);
    for version in VERSIONS {
        assert!(!is_served(&proxy, &Arc::new(pki.client(version, Some(&(cert.clone(), key.clone()))))));
    }
    let total = proxy.finish();
    assert_eq!(total.counters[CertificateRefusal::BadSignature.counter()], 2);
    assert!(total.connections.iter().all(|record| record.detail.contains("(of \"victim\", by ")));
}

#[test]
fn nobody_is_named_where_names_are_left_out() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let old = pki.issue_until("old", &P256, &["old"], 2021);
    let proxy = start(&pki, &served, false);
    assert!(!is_served(&proxy, &Arc::new(pki.client(&TLS13, Some(&old)))));
    let total = proxy.finish();
    assert_eq!(total.counters[CertificateRefusal::Expired.counter()], 1);
    assert_eq!(total.connections[0].detail, "the certificate has expired");
    assert!(total.tls.usage.iter().all(|row| row.dimension != Dimension::Issuer));
}

#[test]
fn a_client_that_vanishes_or_refuses_counts_under_no_certificate() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    let own = pki.issue_named("good", "good");
    let proxy = start(&pki, &served, true);
    // It does not trust the proxy, and says so in place of its certificate.
    let distrusting = Arc::new(Pki::new().client(&TLS13, Some(&own)));
    assert!(!is_served(&proxy, &distrusting));
    let mut gone = proxy.connect(&Arc::new(pki.client(&TLS13, Some(&own))));
    gone.conn.write_tls(&mut gone.sock).unwrap();
    drop(gone);
    let total = proxy.finish();
    let certificates = CertificateRefusal::ALL.map(|(_, counter, _)| counter);
    assert_eq!(total.counters.sum(&certificates), 0);
    assert_eq!(total.counters[records::metrics::ProxyCounter::HandshakesFailed], 2);
}
