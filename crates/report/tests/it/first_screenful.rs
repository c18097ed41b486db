//! What a reader of a report sees first, in every form, and how much there is to load.

use std::time::Duration;

use crate::common::{SyntheticRun, at, model};
use model::runs::{Model, RunMember};
use recorder::publish::Publisher;
use records::delta::{LoadDelta, LoadState, ProxyDelta};
use records::ids::RunId;
use records::kinds::{HostRecord, RunRecord};
use records::metrics::{CpuGroup, LoadCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency};
use report::{Assertion, AssertionResult, Figures, Report, RunPart};

/// The part of a page before its first plot.
fn above_the_plots(html: &str) -> &str {
    html.split_once("<figure>").map_or(html, |(before, _)| before)
}

fn json(report: &Report<'_>) -> serde_json::Value {
    serde_json::from_str(&report.json().unwrap()).unwrap()
}

#[test]
fn every_form_opens_with_the_verdict() {
    let (model, run) = model(&SyntheticRun::default());
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    let (html, markdown, json) = (report.html(), report.markdown(), json(&report));
    for (title, value) in [
        ("response p50", "0.900 ms"),
        ("response p99", "0.900 ms"),
        ("Achieved rate", "100 of 100 /s"),
        ("Failed requests", "0"),
        ("Resumed handshakes", "0.0 %"),
        ("CPU per request", "1,200 µs"),
        ("Apdex, T = 500 ms", "1.000"),
    ] {
        let tile = format!("<span class=\"title\">{title}</span><strong>{value}</strong>");
        assert!(above_the_plots(&html).contains(&tile), "{tile}: {html}");
        assert!(markdown.contains(&format!("| {title} | {value} |")), "{title}: {markdown}");
        let tiles = json["headline"].as_array().unwrap();
        assert!(tiles.iter().any(|tile| tile["title"] == title && tile["value"] == value), "{json}");
    }
    assert!(html.contains("2023-11-14T22:13:20.000Z to 2023-11-14T22:13:31.000Z (UTC), 11.0 s"), "{html}");
}

#[test]
fn markdown_has_every_table_of_the_page() {
    let (model, run) = model(&SyntheticRun { with_loss: true, ..SyntheticRun::default() });
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    let (html, markdown) = (report.html(), report.markdown());
    let captions = html.split("<caption>").skip(1).map(|rest| rest.split('<').next().unwrap());
    // What stands behind a plot is in CSV and JSON; a word is explained on the page.
    let is_told = |caption: &&str| !caption.starts_with("The figures of ") && *caption != "Words";
    let captions: Vec<&str> = captions.filter(is_told).collect();
    assert!(captions.len() > 8, "{captions:?}");
    for caption in captions {
        let heading = caption.trim_end_matches(" in milliseconds");
        assert!(markdown.contains(&format!("## {heading}\n")), "{caption}: {markdown}");
    }
}

#[test]
fn conditions_pass_or_fail_in_every_form() {
    let (model, run) = model(&SyntheticRun::default());
    let run = model.run(run).unwrap();
    let figures = Figures::of(&model, run, Some("file:x"));
    let results = ["load.response.p50 < 5ms", "exchange.p99 < 1us", "errors == 0"].map(|text| {
        let assertion: Assertion = text.parse().unwrap();
        let verdict = assertion.check(&figures);
        AssertionResult { assertion, verdict }
    });
    let report = Report::new(&model, run, "file:x", String::new()).with_conditions(results.to_vec());
    let html = report.html();
    assert!(html.contains("✓ pass: load.response.p50 &lt; 5ms"), "on its tile: {html}");
    assert!(above_the_plots(&html).contains("<td>FAIL</td><td>exchange.p99 &lt; 1us</td><td>it is 0.400 ms"));
    assert!(report.markdown().contains("| FAIL | exchange.p99 &lt; 1us | it is 0.400 ms"));
    let json = json(&report);
    let holds: Vec<_> =
        json["conditions"].as_array().unwrap().iter().map(|one| one["holds"].as_bool().unwrap()).collect();
    assert_eq!(holds, [true, false, true]);
}

/// Seconds of a proxy without a load, with or without a final record.
fn proxy_only(with_end: bool) -> (Model, RunId) {
    let run = RunId::from_bits(3);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    let mut proxy = ProxyDelta::default();
    proxy.counters[ProxyCounter::Accepted] = 20;
    proxy.counters[ProxyCounter::HandshakesFull] = 10;
    proxy.counters[ProxyCounter::HandshakesFailed] = 10;
    proxy.counters[ProxyCounter::FailedAlert] = 10;
    proxy.counters[ProxyCounter::Exchanges] = 10;
    proxy.latencies[ProxyLatency::Exchange].record_ns(700_000);
    for second in 1..=5 {
        publisher.interval(Some(&proxy), None, None, at(second));
    }
    if with_end {
        publisher.stop(RunRecord::default(), None, None, None, at(6));
    }
    (crate::common::read(publisher.into_sink(), 100, |_| false), run)
}

#[test]
fn a_run_without_load_tells_of_the_proxy() {
    let (model, run) = proxy_only(true);
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    let (html, markdown) = (report.html(), report.markdown());
    for part in ["100 connections carried 50 exchanges in 6.0 s.", "50 of 100 handshakes failed (50.0 %)."] {
        assert!(html.contains(part) && markdown.contains(part), "{part}: {html}");
    }
    assert!(html.contains("<td>handshake</td><td>alert</td><td class=\"n\">50</td>"), "{html}");
    assert!(markdown.contains("| handshake | alert | 50 |"), "{markdown}");
    assert!(!html.contains("<h2>Load</h2>") && !html.contains("Failed requests"), "{html}");
    assert!(!html.contains("Unfinished."), "{html}");
}

#[test]
fn a_killed_run_is_flagged_above_everything_else() {
    let (model, run) = proxy_only(false);
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    let html = report.html();
    let (before, _) = html.split_once("class=\"tiles\"").unwrap();
    assert!(before.contains("role=\"alert\"><strong>Unfinished. </strong>"), "{before}");
    let markdown = report.markdown();
    let (before, _) = markdown.split_once("## In short").unwrap();
    assert!(before.contains("still ran, or was killed"), "{before}");
}

#[test]
fn apdex_counts_what_failed_and_halves_what_was_tolerated() {
    let run = RunId::from_bits(4);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    let mut load = LoadDelta::default();
    for ms in [1, 1, 30, 500] {
        load.latencies[LoadLatency::Response].record_ns(ms * 1_000_000);
    }
    load.counters[LoadCounter::Ok] = 4;
    load.counters[LoadCounter::Failed] = 1;
    publisher.interval(None, Some((&load, LoadState::default())), None, at(1));
    publisher.stop(RunRecord::default(), None, None, None, at(2));
    let model = crate::common::read(publisher.into_sink(), 100, |_| false);
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    let report = report.with_apdex_threshold(Duration::from_millis(10));
    let apdex = &json(&report)["apdex"];
    let score = apdex["score"].as_f64().unwrap();
    assert!((score - (2.0 + 0.5) / 5.0).abs() < 1e-9, "two satisfied, one tolerating of five: {apdex}");
    assert!(report.html().contains("Apdex, T = 10 ms"));
}

/// The report, in Markdown, of a run with these figures.
fn markdown_of(proxy: Option<&ProxyDelta>, load: &LoadDelta, host: Option<HostRecord>) -> String {
    let run = RunId::from_bits(6);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    publisher.interval(proxy, Some((load, LoadState::default())), host, at(1));
    publisher.stop(RunRecord::default(), None, None, None, at(2));
    let model = crate::common::read(publisher.into_sink(), 100, |_| false);
    Report::new(&model, model.run(run).unwrap(), "file:x", String::new()).markdown()
}

#[test]
fn a_tile_says_what_tls_costs_as_far_as_the_records_say() {
    let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
    for _ in 0..1_000 {
        proxy.latencies[ProxyLatency::ComputeFull].record_ns(160_000);
        load.latencies[LoadLatency::HandshakeFull].record_ns(1_200_000);
        load.latencies[LoadLatency::TotalFull].record_ns(3_100_000);
    }
    (0..500).for_each(|_| proxy.latencies[ProxyLatency::ComputeResumed].record_ns(110_000));
    for (counter, n) in [
        (ProxyCounter::Tls13Full, 750),
        (ProxyCounter::Tls12Full, 250),
        (ProxyCounter::Tls13Resumed, 500),
        (ProxyCounter::WireIn, 400_000),
        (ProxyCounter::WireOut, 600_000),
        (ProxyCounter::BytesIn, 20_000),
        (ProxyCounter::BytesOut, 600_000),
    ] {
        proxy.counters[counter] = n;
    }
    let mut host = HostRecord::default();
    host.cpu[CpuGroup::Proxy] = 1_000_000;
    let markdown = markdown_of(Some(&proxy), &load, Some(host));
    let expected = "| TLS costs | 21.5 % of CPU | CPU: full handshake 0.16 ms, resumed 0.11 ms; handshakes take 21.5 % of the \
                    proxy's CPU. Bytes: 38 % of those on the wire. Round trips: 1.17 for each new connection. First requests: \
                    p99 3.1 ms, of their full handshakes 1.2 ms. |";
    assert!(markdown.contains(expected), "{markdown}");
    (0..20).for_each(|_| load.latencies[LoadLatency::HandshakeResumed].record_ns(700_000));
    let markdown = markdown_of(None, &load, None);
    let expected = "| TLS costs | 1.2 ms | Clients waited: full handshake 1.2 ms, resumed 0.7 ms (p50). First requests: p99 \
                    3.1 ms, of their full handshakes 1.2 ms. |";
    assert!(markdown.contains(expected), "{markdown}");
}

#[test]
fn failures_of_other_clients_than_the_load_are_in_the_headline() {
    let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
    proxy.counters[ProxyCounter::HandshakesFull] = 120;
    proxy.counters[ProxyCounter::HandshakesFailed] = 30;
    load.counters[LoadCounter::Ok] = 100;
    let markdown = markdown_of(Some(&proxy), &load, None);
    let expected = "| Failed requests | 0; at the proxy 30 | Of the load: none of 100 requests failed. At the proxy: \
                    30 of 150 handshakes failed (20.0 %). |";
    assert!(markdown.contains(expected), "{markdown}");
}

#[test]
fn marks_of_merged_runs_keep_their_labels_apart() {
    let record = |id: u16| {
        let run = RunId::from_bits(u128::from(id));
        let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
        publisher.start(RunRecord::default(), at(0));
        publisher.mark("here", at(2));
        publisher.stop(RunRecord::default(), None, None, None, at(6));
        (crate::common::read(publisher.into_sink(), 100, |_| false), run)
    };
    let runs = [record(1), record(2)];
    let named = ["north", "south"].into_iter().zip(&runs);
    let parts: Vec<_> = named
        .clone()
        .map(|(name, (model, run))| RunMember { name, run: model.run(*run).unwrap(), model })
        .collect();
    let model = Model::merged(&parts);
    let described = named.map(|(name, (_, run))| RunPart {
        name: name.to_owned(),
        run: *run,
        account: String::new(),
        from_s: 0.0,
        to_s: 6.0,
        clock_steps: None,
    });
    let report = Report::new(&model, model.current().unwrap(), "file:x", String::new());
    let report = report.with_parts(described.collect());
    let (html, markdown, json) = (report.html(), report.markdown(), json(&report));
    for part in
        ["| 1a | 2.0 | north: mark 1", "| 1b | 2.0 | south: mark 1", "- a: north: run 0000", "- b: south"]
    {
        assert!(markdown.contains(part), "{part}: {markdown}");
    }
    assert!(html.contains("<td class=\"n\">1b</td>") && html.contains("tlsdash: 2 runs merged"), "{html}");
    let happened = json["happened"].as_array().unwrap();
    assert!(happened.iter().any(|event| event["label"] == "1b" && event["mark"] == 1), "{json}");
}

#[test]
fn an_hour_loads_quickly() {
    let run = RunId::from_bits(5);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    let mut host = HostRecord::default();
    for second in 1..=3_600_u64 {
        let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
        for n in 0..30 {
            let ns = 80_000 + (second * 7_919 + n * n * 104_729) % (200_000 * (1 + n * n));
            proxy.latencies[ProxyLatency::Exchange].record_ns(ns);
            load.latencies[LoadLatency::Response].record_ns(ns * 2);
        }
        for counter in ProxyCounter::ALL {
            proxy.counters[*counter] = 100 + second % 17;
        }
        for counter in LoadCounter::ALL {
            load.counters[*counter] = 100 + second % 13;
        }
        host.cpu[CpuGroup::Proxy] += 120_000 + second % 1_000;
        host.cpu[CpuGroup::Load] += 90_000;
        if second % 40 == 0 {
            publisher.mark("a mark", at(second));
        }
        let state = LoadState { rate: 100.0, measured_us: second * 1_000_000, ..LoadState::default() };
        publisher.interval(Some(&proxy), Some((&load, state)), Some(host.clone()), at(second));
    }
    publisher.stop(RunRecord::default(), None, None, None, at(3_601));
    let model = crate::common::read(publisher.into_sink(), 100_000, |_| false);
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    let bytes = report.html().len();
    assert!(bytes <= 600_000, "{bytes}");
}
