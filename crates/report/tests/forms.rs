//! Every form of a report, of a run whose names are hostile.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use report::Report;
use telemetry::{
    Applies, ClientCounter, ClientDelta, HostSampler, LoadCounter, LoadDelta, LoadEvent, LoadLatency,
    LoadState, Model, ProxyCounter, ProxyDelta, ProxyLatency, Publisher, Record, RunId, RunRecord, Setting,
    Timestamps, Value,
};

const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror='x'>|*[a](b)\\`&lt;";
const HOST: &str = "secret-host";
const CLIENT: &str = "198.51.100.7";

fn at(second: u64) -> Timestamps {
    Timestamps {
        realtime_us: 1_700_000_000_000_000 + second * 1_000_000,
        monotonic_us: 5_000_000 + second * 1_000_000,
    }
}

fn setting(name: &str, value: &str) -> Setting {
    let (name, value) = (name.to_owned(), Value::Text(value.to_owned()));
    Setting { name, value, unit: String::new(), applies: Applies::Restart, range: None }
}

/// Ten seconds of a proxy under load, of which the records of the fifth are lost if `with_loss`.
fn model(with_loss: bool) -> (Model, RunId) {
    let run = RunId::from_bits(0xabcd << 112);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    let settings = vec![setting("proxy.alpn", HOSTILE), setting("load.target", &format!("https://{HOST}/"))];
    let began = RunRecord {
        host: format!("{HOST}{HOSTILE}"),
        upstream: format!("{HOST}:80"),
        settings,
        ..RunRecord::default()
    };
    publisher.start(began, at(0));
    publisher.mark(&format!("{HOST} {HOSTILE}"), at(3));
    let state = LoadState {
        rate: 100.0,
        threads: 1,
        measured_us: 10_000_000,
        due_us: 9_990_000,
        ..LoadState::default()
    };
    let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
    for _ in 0..100 {
        proxy.latencies[ProxyLatency::Exchange].record_ns(400_000);
        proxy.latencies[ProxyLatency::HandshakeFull].record_ns(2_000_000);
        load.latencies[LoadLatency::Response].record_ns(900_000);
        load.tally.count(LoadEvent::Status(200), || format!("GET https://{HOST}/{HOSTILE}"));
    }
    proxy.counters[ProxyCounter::Exchanges] = 100;
    proxy.counters[ProxyCounter::HandshakesFull] = 100;
    proxy.counters[ProxyCounter::Tls13Full] = 100;
    for counter in [LoadCounter::Scheduled, LoadCounter::Sent, LoadCounter::Ok] {
        load.counters[counter] = 100;
    }
    let mut client = ClientDelta {
        client: CLIENT.parse::<std::net::IpAddr>().unwrap().into(),
        open_change: 0,
        counters: telemetry::Counters::default(),
        exchange: telemetry::Sketch::default(),
    };
    client.counters[ClientCounter::BytesIn] = 500;
    proxy.clients.push(client);
    for second in 1..=10 {
        publisher.interval(
            Some(&proxy),
            Some((&load, state)),
            Some(HostSampler::default().sample()),
            at(second),
        );
    }
    publisher.stop(RunRecord::default(), None, None, None, at(11));
    let mut model = Model::new(100);
    let is_lost = |record: &Record| with_loss && record.stamp.mono_us == at(5).monotonic_us;
    publisher
        .into_sink()
        .into_iter()
        .filter(|record| !is_lost(record))
        .for_each(|record| model.apply(record, None));
    (model, run)
}

fn forms(is_anonymous: bool) -> [String; 4] {
    let (model, run) = model(false);
    let source = format!("file:/home/{HOST}/x.journal");
    let report = Report::new(&model, model.run(run).unwrap(), &source, HOSTILE.to_owned());
    let report = if is_anonymous { report.anonymised() } else { report };
    [report.html(), report.markdown(), report.json().unwrap(), report.csv()]
}

#[test]
fn hostile_names_stay_text_in_the_page() {
    let [html, markdown, ..] = forms(false);
    let tags = html
        .split('<')
        .skip(1)
        .map(|rest| rest.split([' ', '>', '/']).find(|name| !name.is_empty()).unwrap());
    let known = "!DOCTYPE html head meta title style body h1 h2 p section figure figcaption svg line text path rect ul li \
                 details summary table thead tbody tr th td br span code strong";
    for tag in tags {
        assert!(known.split_whitespace().any(|name| name == tag), "<{tag}");
    }
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!html.contains("url(") && !html.contains("<link"), "it asks for nothing from anywhere");
    assert!(!markdown.contains('<') && markdown.contains("\\|\\*\\[a\\]"), "{markdown}");
    for row in markdown.lines().filter(|line| line.starts_with("| ")) {
        assert!(row.ends_with('|'), "{row}");
    }
}

#[test]
fn the_figures_stand_in_every_form() {
    let [html, markdown, json, csv] = forms(false);
    assert!(html.contains("1000 full and 0 resumed handshakes") && html.contains(CLIENT), "{html}");
    for part in
        ["<figcaption>Load: response (corrected)", "Proxy: handshakes", "class=\"line s1\"", "<details>"]
    {
        assert!(html.contains(part), "{part}");
    }
    assert!(markdown.contains("| proxy exchange | 1000 | 0.400 |"), "{markdown}");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(
        (json["schema"].as_u64(), json["proxy_intervals"].as_array().map(Vec::len)),
        (Some(1), Some(11))
    );
    let second = &json["proxy_intervals"][1];
    assert_eq!(second["counters"]["exchanges"], 100);
    assert_eq!(second["latency_us"]["exchange"]["n"], 100);
    assert_eq!(json["summary"]["proxy"]["handshakes"]["full"], 1_000);
    let blocks: Vec<Vec<Vec<&str>>> = csv
        .split("\n\n")
        .map(|block| block.lines().map(|line| line.split(',').collect()).collect())
        .collect();
    assert_eq!(blocks.len(), 2, "the proxy's and the load's");
    for block in &blocks {
        assert_eq!(block.len(), 12, "names, ten seconds, and the end");
        assert!(block.iter().all(|line| line.len() == block[0].len()));
    }
    let column = blocks[0][0].iter().position(|name| *name == "exchange.p50").unwrap();
    assert!(blocks[0][2][column].starts_with("400"), "{:?}", blocks[0][2]);
}

#[test]
fn an_anonymous_report_names_nobody() {
    for form in forms(true) {
        assert!(!form.contains(HOST) && !form.contains(CLIENT), "{form}");
    }
    let [html, ..] = forms(true);
    assert!(html.contains("client 1"));
}

#[test]
fn a_loss_is_told_and_drawn_as_a_gap() {
    let (model, run) = model(true);
    let html = Report::new(&model, model.run(run).unwrap(), "file:x", String::new()).html();
    assert!(html.contains("records were lost: what happened in their intervals is missing"), "{html}");
    let whole = forms(false)[0].matches("h0").count();
    assert!(html.matches("h0").count() > whole, "lines that are broken begin anew");
}

#[test]
fn a_run_without_anything_has_a_report() {
    let run = RunId::from_bits(1);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    let mut model = Model::new(1);
    publisher.into_sink().into_iter().for_each(|record| model.apply(record, None));
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    assert!(report.html().contains("still ran, or was killed"));
    assert!(report.markdown().contains("# tlsdash: run") && report.csv().is_empty());
    assert!(report.json().unwrap().contains("\"schema\": 1"));
}
