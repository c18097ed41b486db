//! A run that is made up, whose names are hostile.

#![allow(dead_code, reason = "each test uses its part")]

use model::runs::Model;
use recorder::publish::Publisher;
use records::delta::{ClientDelta, LoadDelta, LoadState, ProxyDelta};
use records::ids::RunId;
use records::kinds::{HostRecord, Record, RunRecord, Timestamps};
use records::metrics::{ClientCounter, CpuGroup, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use records::setting::{Applies, Setting, Value};
use records::values::LoadEvent;

pub(crate) const HOSTILE: &str = "\"><script>alert(1)</script><img src=x onerror='x'>|*[a](b)\\`&lt;";
pub(crate) const HOST: &str = "secret-host";
pub(crate) const CLIENT: &str = "198.51.100.7";

pub(crate) fn at(second: u64) -> Timestamps {
    Timestamps {
        realtime_us: 1_700_000_000_000_000 + second * 1_000_000,
        monotonic_us: 5_000_000 + second * 1_000_000,
    }
}

fn setting(name: &str, value: &str) -> Setting {
    let (name, value) = (name.to_owned(), Value::Text(value.to_owned()));
    Setting { name, value, unit: String::new(), applies: Applies::Restart, range: None }
}

/// Ten seconds of a proxy under load.
pub(crate) struct SyntheticRun {
    /// The run's id begins with it.
    pub(crate) id: u16,
    /// How long each exchange takes.
    pub(crate) exchange_ns: u64,
    /// The records of the fifth second are lost.
    pub(crate) with_loss: bool,
    /// The run's first record is lost.
    pub(crate) without_header: bool,
    /// Resolution of the log that was counted, in microseconds; 0 for a proxy of our own.
    pub(crate) log_resolution_us: u64,
}

impl Default for SyntheticRun {
    fn default() -> Self {
        Self {
            id: 0xabcd,
            exchange_ns: 400_000,
            with_loss: false,
            without_header: false,
            log_resolution_us: 0,
        }
    }
}

pub(crate) fn model(synthetic: &SyntheticRun) -> (Model, RunId) {
    let run = RunId::from_bits(u128::from(synthetic.id) << 112);
    let mut publisher = Publisher::new(run, Vec::new(), 60, at(0));
    let settings = vec![setting("proxy.alpn", HOSTILE), setting("load.target", &format!("https://{HOST}/"))];
    let began = RunRecord {
        host: format!("{HOST}{HOSTILE}"),
        upstream: format!("{HOST}:80"),
        settings,
        log: if synthetic.log_resolution_us > 0 { "haproxy".to_owned() } else { String::new() },
        log_resolution_us: synthetic.log_resolution_us,
        ..RunRecord::default()
    };
    publisher.start(began, at(0));
    publisher.mark(&format!("{HOST} {HOSTILE}"), at(3));
    let state = LoadState {
        rate: 100.0,
        threads: 1,
        measured_us: 10_000_000,
        due_us: 10_000_000,
        ..LoadState::default()
    };
    let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
    for _ in 0..100 {
        proxy.latencies[ProxyLatency::Exchange].record_ns(synthetic.exchange_ns);
        proxy.latencies[ProxyLatency::HandshakeFull].record_ns(2_000_000);
        load.latencies[LoadLatency::Response].record_ns(900_000);
        load.events.count(LoadEvent::Status(200), || format!("GET https://{HOST}/{HOSTILE}"));
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
        counters: records::metrics::Counters::default(),
        rtt_us: 0,
        exchange: records::histogram::Sketch::default(),
    };
    client.counters[ClientCounter::BytesIn] = 500;
    proxy.clients.push(client);
    let mut host = HostRecord::default();
    for second in 1..=10 {
        host.cpu[CpuGroup::Proxy] += 120_000;
        publisher.interval(Some(&proxy), Some((&load, state)), Some(host.clone()), at(second));
    }
    publisher.stop(RunRecord::default(), None, None, None, at(11));
    let is_lost = |record: &Record| {
        let is_first = record.stamp.seq <= 1;
        let is_of_the_fifth = record.stamp.mono_us == at(5).monotonic_us;
        synthetic.with_loss && is_of_the_fifth || synthetic.without_header && is_first
    };
    (read(publisher.into_sink(), 100, is_lost), run)
}

/// A model of the records that are not lost, with this many intervals kept.
pub(crate) fn read(records: Vec<Record>, history: usize, is_lost: impl Fn(&Record) -> bool) -> Model {
    let mut model = Model::new(history);
    records.into_iter().filter(|record| !is_lost(record)).for_each(|record| model.apply(record, None));
    model
}

/// Fails if the page has an element that no page of ours has, or asks for something from elsewhere.
pub(crate) fn assert_harmless(html: &str) {
    // The page's own script is the last of it, and holds no name.
    let (html, script) = html.rsplit_once("<script>").unwrap();
    assert!(script.starts_with("\"use strict\";") && !script.contains("alert(1)"));
    assert!(html.contains("content=\"default-src 'none';"), "a browser asks for nothing");
    let tags = html
        .split('<')
        .skip(1)
        .map(|rest| rest.split([' ', '>', '/']).find(|name| !name.is_empty()).unwrap());
    let known = "!DOCTYPE html head meta title style body main h1 h2 h3 p section figure figcaption svg g line text path rect \
                 circle ul li dl dt dd details summary div table caption thead tbody tr th td br span code strong";
    for tag in tags {
        assert!(known.split_whitespace().any(|name| name == tag), "<{tag}");
    }
    assert!(html.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    assert!(!html.contains("url(") && !html.contains("<link"), "it asks for nothing from anywhere");
}
