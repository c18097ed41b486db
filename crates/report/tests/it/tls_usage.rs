//! Reports on reasons of full handshakes, parts of their time, and usage.

use std::time::Duration;

use crate::common::{HOST, HOSTILE, at};
use model::runs::Model;
use recorder::publish::Publisher;
use records::delta::{ProxyDelta, UsageDelta};
use records::ids::RunId;
use records::kinds::RunRecord;
use records::metrics::{
    Counters, Dimension, ProxyCounter, ProxyLatency, TlsCounter, TlsLatency, UsageCounter,
};
use report::{CompareOptions, Report, comparison};

/// Thirty seconds; of ten full handshakes so many had an expired ticket.
fn model(id: u128, expired: u64) -> Model {
    let mut publisher = Publisher::new(RunId::from_bits(id), Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    for second in 1..=30 {
        publisher.interval(Some(&delta(second, expired)), None, None, at(second));
    }
    publisher.stop(RunRecord::default(), None, None, None, at(31));
    crate::common::read(publisher.into_sink(), 100, |_| false)
}

fn delta(second: u64, expired: u64) -> ProxyDelta {
    let mut delta = ProxyDelta::default();
    delta.counters[ProxyCounter::HandshakesFull] = 10;
    delta.counters[ProxyCounter::HandshakesResumed] = 90;
    let tls = &mut delta.tls;
    tls.counters[TlsCounter::FullExpired] = expired;
    tls.counters[TlsCounter::FullNoTicket] = 10 - expired;
    for _ in 0..10 {
        tls.latencies[TlsLatency::NetworkFull].record(Duration::from_micros(2_000 + second));
        tls.latencies[TlsLatency::ClientFull].record(Duration::from_micros(700));
        tls.latencies[TlsLatency::WorkerFull].record(Duration::from_micros(150));
        delta.latencies[ProxyLatency::ComputeFull].record(Duration::from_micros(400));
        tls.latencies[TlsLatency::Signature].record(Duration::from_micros(60));
    }
    let usage = |dimension, value: &str, full, resumed, compute_us: u64| {
        let mut counters = Counters::default();
        counters[UsageCounter::HandshakesFull] = full;
        counters[UsageCounter::HandshakesResumed] = resumed;
        counters[UsageCounter::ComputeFullNs] = compute_us * 1_000;
        UsageDelta { dimension, value: value.into(), counters }
    };
    tls.usage = vec![
        usage(Dimension::Version, "TLSv1.3", 7, 90, 3_160),
        usage(Dimension::Version, "TLSv1.2", 3, 0, 840),
        usage(Dimension::Name, HOSTILE, 10, 90, 4_000),
    ];
    let name = format!("{}.{HOST}", second % 15);
    tls.usage.push(usage(Dimension::Name, &name, 1, 0, 10));
    delta
}

fn report(model: &Model) -> Report<'_> {
    Report::new(model, model.current().unwrap(), "file:x.journal", "tlsdash report".to_owned())
}

#[test]
fn a_report_says_why_where_and_who() {
    let model = model(1, 4);
    let report = report(&model);
    let (html, markdown, csv) = (report.html(), report.markdown(), report.csv());
    crate::common::assert_harmless(&html);
    for (part, what) in [
        ("## Why handshakes were full", "heading"),
        ("| no ticket | 180 | 60.0 % |", "reason"),
        ("| expired | 120 | 40.0 % |", "second reason"),
        ("| full | loop delay | 300 | 0.150 | 4.6 % | 0.150 | (0.150) |", "part of the time"),
        ("| CPU | signature | 300 | 0.060 |", "part of the CPU time"),
        ("| TLSv1.2 | 90 | 3.0 % | 0.0 % | – | 25.2 | 21.0 % |", "version"),
        ("and 6 more", "bound of a table"),
    ] {
        assert!(markdown.contains(part), "{what}: {markdown}");
    }
    for part in
        ["Full handshakes by reason", "The mean handshake of each type", "Who uses what", "<summary>6 more"]
    {
        assert!(html.contains(part), "{part}");
    }
    assert!(csv.contains("tls,") && csv.contains(",counter,full_expired,4,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    assert_eq!(json["tls_intervals"].as_array().unwrap().len(), 31);
    assert_eq!(json["summary"]["proxy"]["handshakes"]["full_by_reason"]["expired"], 120);
}

#[test]
fn an_anonymous_report_names_no_server() {
    let model = model(1, 4);
    let anonymous = report(&model).anonymised();
    for text in [anonymous.html(), anonymous.markdown(), anonymous.json().unwrap()] {
        assert!(!text.contains(HOST) && text.contains("TLSv1.2"), "{text}");
    }
    assert!(anonymous.markdown().contains("| name 1 |"));
}

#[test]
fn a_comparison_has_the_shares_of_reasons_in_both_runs() {
    let (a, b) = (model(1, 10), model(2, 4));
    let (a, b) = (report(&a), report(&b));
    let metrics = vec!["handshakes.full.expired.ratio".parse().unwrap()];
    let options = CompareOptions { metrics, block: None, discard: None, force: true };
    let compared = comparison(&a, &b, &options, "tlsdash compare").unwrap();
    let expected = "full because expired: 300 (100.0 %) and 120 (40.0 %)";
    assert!(compared.text().contains(expected), "{}", compared.text());
    assert!(compared.html().contains("Why handshakes were full"));
    let json: serde_json::Value = serde_json::from_str(&compared.json().unwrap()).unwrap();
    assert_eq!(json["full_by_reason"][1]["reason"], "no_ticket");
    assert_eq!(json["full_by_reason"][1]["a"], serde_json::json!({"full": 0, "percent": 0.0}));
    assert!((json["metrics"][0]["b"].as_f64().unwrap() - 0.4).abs() < 1e-9, "{}", json["metrics"][0]);
}
