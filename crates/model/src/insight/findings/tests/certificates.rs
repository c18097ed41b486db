//! Findings about certificates and lists of revoked ones.

use super::*;

#[test]
fn a_certificate_is_found_by_its_days_until_it_is_renewed() {
    let at = |days: &str| {
        let certificate = format!("RSA-2048 for www.example.org and 3 more until {days} sha256:5b1e");
        let mut recorder = begun(&[("proxy.certificate", text(&certificate))]);
        recorder.seconds(2, calm);
        recorder
    };
    assert_eq!(open(&at("2026-03-23")), []);
    assert_eq!(open(&at("2026-03-22")), [("certificate-expires", Severity::Warning)]);
    assert_eq!(open(&at("2026-02-27")), [("certificate-expires", Severity::Critical)]);
    let mut recorder = at("2026-03-08");
    assert_eq!(open(&recorder), [("certificate-expires", Severity::Critical)]);
    let finding = finding_text(&recorder, "certificate-expires");
    assert_eq!(finding.title, "A certificate expires in 7 days");
    assert_eq!(finding.whom, ["www.example.org and 3 more until 2026-03-08"]);
    recorder.set("proxy.certificate", text(CERTIFICATE));
    recorder.seconds(2, calm);
    assert_eq!(open(&recorder), []);
}

#[test]
fn a_revocation_list_is_found_a_week_before_its_end() {
    let at = |day: &str, policy: &str| {
        let list =
            format!("3 certificates revoked by 1 list until {day} (an authority), together sha256:5b1e");
        let settings = [("proxy.client-crl", text(&list)), ("proxy.client-crl-expired", text(policy))];
        let mut recorder = begun(&settings);
        recorder.seconds(2, calm);
        recorder
    };
    assert_eq!(open(&at("2026-03-09", "refuse")), []);
    let soon = at("2026-03-08", "refuse");
    assert_eq!(open(&soon), [("revocation-list-expires", Severity::Warning)]);
    let finding = finding_text(&soon, "revocation-list-expires");
    assert_eq!(finding.title, "A revocation list expires in 7 days");
    assert_eq!(finding.whom, ["2026-03-08 (an authority)"]);
    assert_eq!(open(&at("2026-02-27", "refuse")), [("revocation-list-expires", Severity::Critical)]);
    assert_eq!(open(&at("2026-02-27", "accept")), [("revocation-list-expires", Severity::Warning)]);
}

/// A second with full and resumed handshakes that take a server so long, in microseconds.
fn timed(recorder: &mut RunBuilder, [full_us, resumed_us]: [u64; 2]) {
    let mut times = Histograms::default();
    for _ in 0..100 {
        times[TlsLatency::ServerFull].record(Duration::from_micros(full_us));
        times[TlsLatency::ServerResumed].record(Duration::from_micros(resumed_us));
    }
    recorder.tls.latencies = Latencies::new(&times, &Counters::default());
}

#[test]
fn an_rsa_key_is_found_where_full_handshakes_take_longer() {
    let rsa = text("RSA-2048 for www.example.org until 2026-06-01 sha256:5b1e");
    let of = |certificate: Value, suite: &str, times_us: [u64; 2]| {
        let mut recorder = begun(&[("proxy.certificate", certificate)]);
        usage(&mut recorder, Dimension::Cipher, suite, &[(UsageCounter::HandshakesFull, 7)]);
        recorder.seconds(1, |recorder| timed(recorder, times_us));
        recorder.seconds(1, |recorder| recorder.tls.latencies = TlsRecord::default().latencies);
        recorder
    };
    let found = [("rsa-key", Severity::Info)];
    let by_setting = of(rsa.clone(), "TLS_AES_128_GCM_SHA256", [900, 300]);
    assert_eq!(open(&by_setting), found);
    let by_suite = of(text(CERTIFICATE), "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", [900, 300]);
    assert_eq!(open(&by_suite), found);
    let text_of = finding_text(&by_suite, "rsa-key");
    assert!(text_of.title.contains("take the server 0.60 ms longer"), "{}", text_of.title);
    assert!(text_of.evidence.iter().any(|figure| figure.value == "7 of 7"), "{:?}", text_of.evidence);
    for (certificate, suite, times_us) in [
        (text(CERTIFICATE), "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", [900, 300]),
        (rsa, "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", [500, 300]),
    ] {
        assert_eq!(open(&of(certificate, suite, times_us)), [], "{suite}");
    }
}

#[test]
fn a_name_that_no_certificate_has_is_found_until_one_has_it() {
    let mut recorder = begun(&[]);
    let names = [("www.example.org", 900, 0), ("api.example.org", 90, 90), ("none", 50, 0), ("scan", 3, 3)];
    for (name, n, not_covered) in names {
        let counted = [(UsageCounter::HandshakesFull, n), (UsageCounter::NotCovered, not_covered)];
        usage(&mut recorder, Dimension::Name, name, &counted);
    }
    recorder.seconds(2, calm);
    assert_eq!(open(&recorder), [("name-not-covered", Severity::Warning)]);
    let finding = finding_text(&recorder, "name-not-covered");
    assert_eq!(finding.title, "1 server name that clients ask for is in no certificate: 8.6 % of handshakes");
    assert_eq!(finding.whom, ["api.example.org: 90 handshakes"]);
    // Nobody asks for it any more, or a certificate has it now.
    recorder.seconds(700, calm);
    assert_eq!(open(&recorder), []);
    let counted = [(UsageCounter::HandshakesFailed, 5), (UsageCounter::NotCovered, 95)];
    usage(&mut recorder, Dimension::Name, "api.example.org", &counted);
    recorder.seconds(2, calm);
    assert_eq!(open(&recorder), [("name-not-covered", Severity::Warning)], "it is asked for again");
}

#[test]
fn defects_of_served_certificates_are_found_until_one_without_them_replaces_it() {
    let mut recorder = begun(&[]);
    let bad = CertificateRecord {
        fingerprint: "1".into(),
        names: "www.example.org".into(),
        not_after: u64::MAX,
        chain_bytes: 20_000,
        must_staple: true,
        faults: "CN=a is signed with SHA-1".into(),
        refusal: "cannot read b".into(),
        renewal_error: "the authority is down".into(),
        ..CertificateRecord::default()
    };
    recorder.write(Body::Certificate(Box::new(bad.clone())));
    recorder.seconds(2, calm);
    let found = [
        ("certificate-chain", Severity::Warning),
        ("certificate-chain-size", Severity::Info),
        ("certificate-not-loaded", Severity::Warning),
        ("certificate-renewal-fails", Severity::Critical),
        ("staple-missing", Severity::Warning),
    ];
    let mut all = open(&recorder);
    all.sort_by_key(|(id, _)| *id);
    assert_eq!(all, found);
    let text = finding_text(&recorder, "certificate-chain");
    assert_eq!(text.title, "1 certificate with a chain that some clients refuse");
    assert_eq!(text.whom, ["www.example.org: CN=a is signed with SHA-1"]);
    let good = CertificateRecord {
        fingerprint: "2".into(),
        names: bad.names.clone(),
        not_after: u64::MAX,
        ..CertificateRecord::default()
    };
    recorder.write(Body::Certificate(Box::new(CertificateRecord { is_replaced: true, ..bad })));
    recorder.write(Body::Certificate(Box::new(good)));
    recorder.seconds(2, calm);
    assert_eq!(open(&recorder), []);
}

#[test]
fn a_short_lived_certificate_is_found_once_its_renewal_is_late() {
    const DAY: u64 = 86_400;
    let left = |days: u64| {
        let mut recorder = begun(&[]);
        let now = recorder.run().last_realtime_us() / 1_000_000;
        let not_after = now + days * DAY;
        let record =
            CertificateRecord { not_before: not_after - 6 * DAY, not_after, ..CertificateRecord::default() };
        recorder.write(Body::Certificate(Box::new(record)));
        recorder.seconds(2, calm);
        open(&recorder)
    };
    // It is renewed with two days left.
    assert_eq!((left(6), left(2)), (vec![], vec![]));
    assert_eq!(left(1), [("certificate-expires", Severity::Warning)]);
    assert_eq!(left(0), [("certificate-expires", Severity::Critical)]);
}

#[test]
fn an_order_that_fails_or_is_late_by_an_hour_is_found() {
    let judged = |error: &str, late_s: u64| {
        let mut recorder = begun(&[]);
        let now = recorder.run().last_realtime_us() / 1_000_000;
        let (renewal_at, renewal_error) = (now - late_s, error.to_owned());
        let record = CertificateRecord {
            not_after: u64::MAX,
            renewal_at,
            renewal_error,
            ..CertificateRecord::default()
        };
        recorder.write(Body::Certificate(Box::new(record)));
        recorder.seconds(2, calm);
        open(&recorder)
    };
    assert_eq!(judged("", 3_590), []);
    let found = [("certificate-renewal-fails", Severity::Warning)];
    assert_eq!((judged("", 3_610), judged("it is down", 0)), (found.to_vec(), found.to_vec()));
}
