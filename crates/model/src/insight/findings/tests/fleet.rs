//! Findings about several hosts.

use super::*;
use crate::insight::findings::fleet::findings;

const DAY: u64 = 86_400;
/// 2026-03-01T00:00:00Z, when runs begin.
const BEGAN: u64 = 1_772_323_200;

/// A run of a host, of packets if `log` says so.
fn host(name: &str, log: &str) -> RunBuilder {
    RunBuilder::of(RunRecord { host: name.to_owned(), log: log.to_owned(), ..RunRecord::default() })
}

/// A certificate of 90 days that ends so many days after the beginning.
fn certificate(names: &str, days: u64) -> CertificateRecord {
    let not_after = BEGAN + days * DAY;
    CertificateRecord {
        fingerprint: format!("{names} {days}"),
        file: "/etc/tls/www.pem".to_owned(),
        names: names.to_owned(),
        key: "ECDSA P-256".to_owned(),
        not_before: not_after.saturating_sub(90 * DAY),
        not_after,
        since: BEGAN,
        ..CertificateRecord::default()
    }
}

/// A host that serves a name, and has refused and resumed sessions of each of these clients so many times.
fn serving(
    name: &str,
    served: &str,
    clients: std::ops::Range<u8>,
    [refused, resumed]: [u64; 2],
) -> RunBuilder {
    let mut recorder = host(name, "");
    recorder.write(Body::Certificate(Box::new(certificate(served, 80))));
    let whole = clients.len() as u64;
    recorder.seconds(1, |recorder| {
        let tls = [
            (TlsCounter::FullUnknownKey, whole * refused),
            (TlsCounter::OffersToResume, whole * (refused + resumed)),
        ];
        add(&mut recorder.tls.counters, &tls);
        for n in clients.clone() {
            let counted = [
                (ClientCounter::HandshakesFull, refused),
                (ClientCounter::FullUnknownKey, refused),
                (ClientCounter::HandshakesResumed, resumed),
            ];
            count_client(recorder, n, &counted);
        }
    });
    recorder.seconds(2, calm);
    recorder
}

fn found(hosts: &[&RunBuilder]) -> Vec<Finding> {
    let runs: Vec<_> = hosts.iter().map(|host| (host.run().hostname(), host.run())).collect();
    findings(&runs).into_iter().map(|together| together.finding).collect()
}

fn ids(hosts: &[&RunBuilder]) -> Vec<&'static str> {
    found(hosts).iter().map(|finding| finding.id).collect()
}

#[test]
fn hosts_that_refuse_the_tickets_of_the_same_clients_share_no_keys() {
    let [a, b] = ["edge-1", "edge-2"].map(|name| serving(name, "www.example.org", 0..40, [2, 2]));
    let found = found(&[&a, &b]);
    let [Finding { id, severity, text, run: None, closed_us: None, .. }] = &*found else {
        panic!("{found:?}")
    };
    assert_eq!((*id, *severity), ("ticket-keys-not-shared", Severity::Warning));
    let title = "2 hosts refuse each other's session tickets: 25 % of those offered";
    assert_eq!(text.title, title);
    let of = |host: &str| format!("www.example.org: {host} refused 80 of 320 tickets");
    assert_eq!(text.whom, ["edge-1", "edge-2"].map(of));
    assert_eq!(text.advice, ["share keys among them: the same --ticket-keys FILE on each"]);
    let figures: Vec<_> = text.evidence.iter().map(|one| &*one.value).collect();
    assert_eq!(figures, ["160 of 640", "40"]);
}

#[test]
fn hosts_are_not_blamed_for_tickets_that_they_do_not_refuse_each_other() {
    let usual = |name| serving(name, "www.example.org", 0..40, [2, 2]);
    let a = usual("edge-1");
    assert!(ids(&[&a]).is_empty(), "one host");
    assert!(ids(&[&a, &usual("edge-1")]).is_empty(), "two processes of one host");
    let other = serving("edge-2", "api.example.org", 0..40, [2, 2]);
    assert!(ids(&[&a, &other]).is_empty(), "other names");
    let shared = serving("edge-2", "www.example.org", 0..40, [0, 4]);
    assert!(ids(&[&a, &shared]).is_empty(), "only one host refuses tickets");
    let few = |name| serving(name, "www.example.org", 0..4, [3, 3]);
    assert!(ids(&[&few("edge-1"), &few("edge-2")]).is_empty(), "too few to say");
}

#[test]
fn a_restart_of_all_hosts_costs_each_client_a_ticket_and_is_no_finding() {
    let restarted = |name, clients| serving(name, "www.example.org", clients, [1, 1]);
    let stuck = [restarted("edge-1", 0..40), restarted("edge-2", 40..80)];
    assert!(ids(&[&stuck[0], &stuck[1]]).is_empty(), "clients stay at their host");
    let moved = ["edge-1", "edge-2"].map(|name| restarted(name, 0..40));
    assert!(ids(&[&moved[0], &moved[1]]).is_empty(), "clients move to the other host and back");
}

#[test]
fn one_address_may_hide_many_clients_until_their_tickets_are_too_old() {
    let hidden = ["edge-1", "edge-2"].map(|name| serving(name, "www.example.org", 0..1, [60, 60]));
    assert!(ids(&[&hidden[0], &hidden[1]]).is_empty());
    let [a, b] = hidden.map(|mut host| {
        host.set("proxy.ticket-lifetime", Value::Number(60.0));
        host.seconds(61, calm);
        host
    });
    assert_eq!(ids(&[&a, &b]), ["ticket-keys-not-shared"]);
}

#[test]
fn expired_tickets_are_no_finding_about_keys() {
    let [a, b] = ["edge-1", "edge-2"].map(|name| {
        let mut recorder = host(name, "");
        recorder.write(Body::Certificate(Box::new(certificate("www.example.org", 80))));
        recorder.seconds(1, |recorder| {
            let tls = [(TlsCounter::FullExpired, 200), (TlsCounter::OffersToResume, 200)];
            add(&mut recorder.tls.counters, &tls);
            (0..40).for_each(|n| count_client(recorder, n, &[(ClientCounter::FullExpired, 5)]));
        });
        recorder.seconds(2, calm);
        recorder
    });
    assert!(ids(&[&a, &b]).is_empty());
}

#[test]
fn hosts_whose_trouble_was_at_other_times_are_no_finding() {
    let [mut a, mut b] = ["edge-1", "edge-2"].map(|name| serving(name, "www.example.org", 0..40, [2, 2]));
    a.seconds(700, calm);
    b.seconds(700, calm);
    let closed = found(&[&a, &b]);
    assert!(matches!(*closed, [Finding { closed_us: Some(_), .. }]), "{closed:?}");
    let mut late = host("edge-2", "");
    late.write(Body::Certificate(Box::new(certificate("www.example.org", 80))));
    late.seconds(900, calm);
    late.seconds(1, |recorder| {
        let tls = [(TlsCounter::FullUnknownKey, 80_000), (TlsCounter::OffersToResume, 160_000)];
        add(&mut recorder.tls.counters, &tls);
        (0..40).for_each(|n| count_client(recorder, n, &[(ClientCounter::FullUnknownKey, 2_000)]));
    });
    late.seconds(2, calm);
    assert_eq!(open(&late), [("ticket-keys-unknown", Severity::Warning)]);
    assert!(ids(&[&a, &late]).is_empty());
}

#[test]
fn packets_of_hosts_that_refuse_the_same_clients_advise_the_terminators_options() {
    let [a, b] = ["edge-1", "edge-2"].map(|name| {
        let mut recorder = host(name, "wire");
        let asked = [(UsageCounter::HandshakesFull, 150), (UsageCounter::FullNoTicket, 40)];
        usage(&mut recorder, Dimension::Name, "www.example.org", &asked);
        recorder.seconds(1, |recorder| {
            let tls = [(TlsCounter::FullRefused, 120), (TlsCounter::OffersToResume, 200)];
            add(&mut recorder.tls.counters, &tls);
            (0..40).for_each(|n| count_client(recorder, n, &[(ClientCounter::HandshakesFull, 4)]));
        });
        recorder.seconds(2, calm);
        recorder
    });
    assert_eq!(finding_text(&a, "ticket-keys-unknown").title, "43 % of the tickets offered are refused");
    let found = found(&[&a, &b]);
    let text = &found[0].text;
    assert!(text.advice[0].contains("ssl_session_ticket_key"), "{text:?}");
    assert_eq!(text.whom[0], "www.example.org: edge-1 refused 120 of 360 tickets");
}

/// A host that serves these certificates.
fn with(name: &str, certificates: &[CertificateRecord]) -> RunBuilder {
    let mut recorder = host(name, "");
    for record in certificates {
        recorder.write(Body::Certificate(Box::new(record.clone())));
    }
    recorder.seconds(1, calm);
    recorder
}

#[test]
fn a_renewal_that_has_not_reached_all_hosts_is_found_once_it_is_due() {
    let old = |days| with("edge-2", &[certificate("www.example.org", days)]);
    let new = with("edge-1", &[certificate("www.example.org", 80)]);
    let judged = |old: &RunBuilder| {
        let all = found(&[&new, old]);
        all.into_iter().map(|finding| (finding.id, finding.severity, finding.text)).next()
    };
    let (id, severity, text) = judged(&old(5)).unwrap();
    assert_eq!((id, severity), ("certificate-outdated", Severity::Critical));
    assert_eq!(text.title, "A renewed certificate has not reached all hosts: the old one expires in 5 days");
    assert_eq!(text.whom, ["www.example.org: until 2026-03-06 at edge-2, until 2026-05-20 at edge-1"]);
    assert_eq!(judged(&old(29)).unwrap().1, Severity::Info);
    assert!(judged(&old(50)).is_none(), "hosts may have a certificate each");
    assert!(judged(&old(80)).is_none(), "the same one");
    let own = CertificateRecord { renewal_at: BEGAN + DAY, ..certificate("www.example.org", 20) };
    assert!(judged(&with("edge-2", &[own])).is_none(), "it renews by itself, later");
    let made = CertificateRecord { file: String::new(), ..certificate("www.example.org", 5) };
    assert!(judged(&with("edge-2", &[made])).is_none(), "made in memory");
    let rsa = CertificateRecord { key: "RSA-2048".to_owned(), ..certificate("www.example.org", 5) };
    assert!(judged(&with("edge-2", &[rsa])).is_none(), "another kind of key");
    assert!(judged(&with("edge-2", &[certificate("api.example.org", 5)])).is_none(), "another name");
    let replaced = CertificateRecord { is_replaced: true, ..certificate("www.example.org", 50) };
    let renewed = with("edge-1", &[replaced, certificate("www.example.org", 80)]);
    assert_eq!(ids(&[&renewed, &old(50)]), ["certificate-outdated"], "the other host had this very one");
}
