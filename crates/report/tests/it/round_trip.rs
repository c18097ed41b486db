//! What was counted and timed stands in every form of a report, whatever it was.

use crate::common::{at, read};
use model::runs::Model;
use proptest::prelude::*;
use recorder::publish::Publisher;
use records::delta::{LoadDelta, LoadState, ProxyDelta};
use records::histogram::Histogram;
use records::ids::RunId;
use records::kinds::{Record, RunRecord};
use records::metrics::{LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use report::Report;
use serde_json::Value;

/// What happened in a second.
#[derive(Clone, Debug)]
struct Second {
    /// What each request took, in nanoseconds; the exchange at the proxy takes half of it.
    requests_ns: Vec<u64>,
    failed: u64,
    /// Its records are lost.
    is_lost: bool,
}

fn second() -> impl Strategy<Value = Second> {
    let latency = prop_oneof![200..2_000_000_u64, 200..60_000_000_000_u64];
    let requests = prop::collection::vec(latency, 0..40);
    (requests, 0..3_u64, prop::bool::weighted(0.15)).prop_map(|(requests_ns, failed, is_lost)| Second {
        requests_ns,
        failed,
        is_lost,
    })
}

/// The run as its records have it, but for those that are lost.
fn recorded(seconds: &[Second]) -> (Model, RunId) {
    let run = RunId::from_bits(7);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    for (second, number) in seconds.iter().zip(1..) {
        let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
        for &ns in &second.requests_ns {
            load.latencies[LoadLatency::Response].record_ns(ns);
            load.latencies[LoadLatency::Service].record_ns(ns);
            proxy.latencies[ProxyLatency::Exchange].record_ns(ns / 2);
        }
        let ok = second.requests_ns.len() as u64;
        proxy.counters[ProxyCounter::Exchanges] = ok;
        load.counters[LoadCounter::Ok] = ok;
        load.counters[LoadCounter::Failed] = second.failed;
        load.counters[LoadCounter::Scheduled] = ok + second.failed;
        load.counters[LoadCounter::Sent] = ok + second.failed;
        let state = LoadState { rate: 10.0, measured_us: number * 1_000_000, ..LoadState::default() };
        publisher.interval(Some(&proxy), Some((&load, state)), None, at(number));
    }
    let end = at(seconds.len() as u64 + 1);
    publisher.stop(RunRecord::default(), None, None, None, end);
    let is_lost = |record: &Record| {
        let number = (record.stamp.mono_us - at(0).monotonic_us) / 1_000_000;
        number.checked_sub(1).and_then(|at| seconds.get(at as usize)).is_some_and(|second| second.is_lost)
    };
    (read(publisher.into_sink(), 1_000, is_lost), run)
}

fn histogram(samples: impl Iterator<Item = u64>) -> Histogram {
    let mut histogram = Histogram::new();
    samples.for_each(|ns| histogram.record_ns(ns));
    histogram
}

/// The cells of the tables behind the plot of this name, row by row.
fn table_of(html: &str, title: &str) -> Vec<Vec<String>> {
    let (_, figure) = html.split_once(&format!("<figcaption>{title}</figcaption>")).unwrap();
    let body = figure.split("<tbody>").nth(1).unwrap().split("</tbody>").next().unwrap();
    let text = |cell: &str| cell.split('>').nth(1).unwrap_or_default().split('<').next().unwrap().to_owned();
    body.split("<tr>").skip(1).map(|row| row.split("<td").skip(1).map(text).collect()).collect()
}

/// What a page rounds to some three digits.
const PAGE_SLACK: f64 = 0.000_06;
/// What tables of latencies round to a thousandth.
const LATENCY_SLACK: f64 = 0.000_51;

fn assert_shows(cell: &str, value: f64, slack: f64) {
    let shown: f64 = cell
        .trim_end_matches(" s")
        .replace(',', "")
        .parse()
        .unwrap_or_else(|_| panic!("{cell:?} is to be {value}"));
    assert!((shown - value).abs() <= 0.006 * value.abs() + slack, "{cell} is to be {value}");
}

/// The cells of the CSV's lines of one side and of one counter or class, after the side: start and end of the interval,
/// whether something was lost, kind, name, count, percentiles and maximum.
fn csv_rows<'a>(csv: &'a str, side: &str, kind: &str, name: &str) -> Vec<Vec<&'a str>> {
    let lines = csv.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    lines.filter(|row| [row[0], row[4], row[5]] == [side, kind, name]).collect()
}

/// JSON and CSV have the same intervals with the same figures.
fn assert_same_intervals(json: &[Value], csv: &str, side: &str, counters: &[&str], class: &str) {
    let count = |interval: &Value, name: &str| interval["counters"][name].as_u64().unwrap_or(0);
    let samples = |interval: &Value| interval["latency_us"][class]["n"].as_u64().unwrap_or(0);
    for name in counters {
        let rows = csv_rows(csv, side, "counter", name);
        if json.iter().all(|interval| count(interval, name) == 0) {
            assert!(rows.is_empty(), "{rows:?}");
            continue;
        }
        assert_eq!(rows.len(), json.len());
        for (interval, row) in json.iter().zip(rows) {
            assert_same_time(interval, &row);
            assert_eq!(row[6].parse::<u64>().unwrap(), count(interval, name));
            assert_eq!(row[7..], [""; 4]);
        }
    }
    let rows = csv_rows(csv, side, "latency", class);
    assert!(
        rows.len() == json.len() || rows.is_empty() && json.iter().all(|interval| samples(interval) == 0)
    );
    for (interval, row) in json.iter().zip(rows) {
        assert_same_time(interval, &row);
        assert_eq!(row[6].parse::<u64>().unwrap(), samples(interval));
        for (text, name) in row[7..].iter().zip(["p50", "p90", "p99", "max"]) {
            assert_eq!(text.parse::<f64>().ok(), interval["latency_us"][class][name].as_f64(), "{row:?}");
        }
    }
}

fn assert_same_time(interval: &Value, row: &[&str]) {
    for (text, name) in row[1..].iter().zip(["start_s", "end_s"]) {
        assert_eq!(text.parse::<f64>().ok(), interval[name].as_f64());
    }
    assert_eq!(row[3] == "1", interval["after_loss"].as_bool().unwrap());
}

/// The page's tables over time have the intervals of the JSON; a gap where something was lost.
fn assert_same_tables(html: &str, json: &[Value]) {
    let is_known = |interval: &&Value| interval["after_loss"] == false;
    if !json.iter().filter(is_known).any(|interval| interval["latency_us"]["response"]["n"].is_u64()) {
        return assert!(!html.contains("<figcaption>Load: response (CO-corrected)</figcaption>"), "{html}");
    }
    let latencies = table_of(html, "Load: response (CO-corrected)");
    let rates = table_of(html, "Load: requests offered and achieved");
    assert_eq!((latencies.len(), rates.len()), (json.len(), json.len()));
    for (interval, (latency_row, rate_row)) in json.iter().zip(latencies.iter().zip(&rates)) {
        let end_s = interval["end_s"].as_f64().unwrap();
        assert_shows(&latency_row[0], end_s, PAGE_SLACK);
        let is_gap = interval["after_loss"] == true;
        for (cell, name) in latency_row[1..].iter().zip(["p50", "p99", "max"]) {
            match interval["latency_us"]["response"][name].as_f64().filter(|_| !is_gap) {
                Some(us) => assert_shows(cell, us / 1e3, PAGE_SLACK),
                None => assert_eq!(cell, "–"),
            }
        }
        let seconds = end_s - interval["start_s"].as_f64().unwrap();
        for (cell, name) in rate_row[1..].iter().zip(["scheduled", "sent", "ok", "failed"]) {
            let count = interval["counters"][name].as_u64().unwrap_or(0);
            if is_gap || seconds <= 0.0 {
                assert_eq!(cell, "–");
            } else {
                assert_shows(cell, count as f64 / seconds, PAGE_SLACK);
            }
        }
    }
}

/// The whole run's figures are those of all that happened, whatever was lost.
fn assert_whole(report: &Value, markdown: &str, html: &str, seconds: &[Second]) {
    let all = || seconds.iter().flat_map(|second| second.requests_ns.iter().copied());
    let (n, failed) = (all().count() as u64, seconds.iter().map(|second| second.failed).sum::<u64>());
    let summary = &report["summary"];
    assert_eq!(summary["load"]["requests"]["ok"].as_u64(), Some(n));
    assert_eq!(summary["load"]["requests"]["failed"].as_u64(), Some(failed));
    for (side, class, whole) in
        [("load", "response", histogram(all())), ("proxy", "exchange", histogram(all().map(|ns| ns / 2)))]
    {
        let latency = &summary[side]["latency_us"][class];
        assert_eq!(latency["n"].as_u64(), Some(n), "{side} {class}");
        let us = |q: f64| whole.quantile_ns(q).map(|ns| ns as f64 / 1e3);
        for (name, q) in [("p50", 0.5), ("p99", 0.99)] {
            assert_eq!(latency[name].as_f64(), us(q), "{side} {class} {name}");
        }
        let Some(p50) = us(0.5) else { continue };
        let row = markdown.lines().find(|line| line.starts_with(&format!("| {side} {class} |"))).unwrap();
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        assert_eq!(cells.last(), Some(&&*n.to_string()));
        let (_, row) = html.split_once(&format!("<td>{side} {class}</td>")).unwrap();
        let cell = |at: usize| row.split("<td class=\"n\">").nth(at).unwrap().split('<').next().unwrap();
        assert_eq!(cell(9), n.to_string());
        for shown in [cells[1], cell(1)] {
            assert_shows(shown.trim_matches(['(', ')']), p50 / 1e3, LATENCY_SLACK);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_form_has_what_was_recorded(seconds in prop::collection::vec(second(), 1..9)) {
        let (model, run) = recorded(&seconds);
        let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
        let (html, markdown, csv) = (report.html(), report.markdown(), report.csv());
        let json: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
        assert_whole(&json, &markdown, &html, &seconds);
        let intervals = |side: &str| json[format!("{side}_intervals")].as_array().unwrap().clone();
        let (proxy, load) = (intervals("proxy"), intervals("load"));
        assert_same_intervals(&proxy, &csv, "proxy", &["exchanges"], "exchange");
        assert_same_intervals(&load, &csv, "load", &["scheduled", "sent", "ok", "failed"], "response");
        assert_same_tables(&html, &load);
        // What each interval has is what happened then, and nothing is counted twice or left out.
        let ok: u64 = load.iter().map(|interval| interval["counters"]["ok"].as_u64().unwrap_or(0)).sum();
        prop_assert_eq!(ok, seconds.iter().map(|second| second.requests_ns.len() as u64).sum::<u64>());
        for interval in load.iter().filter(|interval| interval["after_loss"] == false) {
            let number = interval["end_s"].as_f64().unwrap() as usize;
            let Some(second) = seconds.get(number - 1) else { continue };
            let whole = histogram(second.requests_ns.iter().copied());
            let latency = &interval["latency_us"]["response"];
            prop_assert_eq!(latency["n"].as_u64().unwrap_or(0), second.requests_ns.len() as u64);
            prop_assert_eq!(latency["p99"].as_f64(), whole.quantile_ns(0.99).map(|ns| ns as f64 / 1e3));
        }
    }
}
