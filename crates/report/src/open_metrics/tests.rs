use std::collections::BTreeSet;
use std::fmt::Debug;

use std::net::Ipv4Addr;

use model::runs::Model;
use records::histogram::{Histogram, Sketch};
use records::ids::{ClientId, RunId};
use records::kinds::{
    Body, ClientRecord, Record, RouteRecord, Stamp, UpstreamRecord, UpstreamState, UsageRecord,
};
use records::metrics::{
    ClientCounter, Counters, CpuGroup, Dimension, HostCounter, HttpCounter, HttpLatency, LoadCounter,
    LoadLatency, Metric, ProxyCounter, ProxyLatency, RouteCounter, RouteLatency, TimeResolution, TlsCounter,
    TlsLatency, UpstreamCounter, UpstreamLatency,
};

use super::histograms::{BOUNDS_S, classic};
use super::{MetricsFormat, open_metrics};

/// The members of a family that have no metric.
fn missing<M: Metric + Debug>() -> Vec<M> {
    M::ALL.iter().copied().filter(|member| member.names().metric.is_empty()).collect()
}

#[test]
fn every_counter_has_a_metric() {
    // These totals are sums of metrics with labels.
    let sums =
        [ProxyCounter::HandshakesFull, ProxyCounter::HandshakesResumed, ProxyCounter::HandshakesFailed];
    assert_eq!(missing::<ProxyCounter>(), sums);
    assert_eq!(missing::<HttpCounter>(), [HttpCounter::Requests]);
    assert_eq!(missing::<LoadCounter>(), [LoadCounter::Failed]);
    assert_eq!(missing::<TlsCounter>(), []);
    assert_eq!(missing::<ClientCounter>(), []);
    assert_eq!(missing::<RouteCounter>(), []);
    assert_eq!(missing::<CpuGroup>(), []);
    assert_eq!(missing::<HostCounter>(), []);
}

/// The metric of each member, and what tells it from others.
fn names<M: Metric>() -> impl Iterator<Item = [&'static str; 3]> {
    let names = M::ALL.iter().map(|member| member.names());
    names.filter(|names| !names.metric.is_empty()).map(|names| [names.metric, names.label, names.kind])
}

#[test]
fn names_are_unique_and_well_formed() {
    let counters = names::<ProxyCounter>().chain(names::<TlsCounter>()).chain(names::<HttpCounter>());
    let counters = counters.chain(names::<LoadCounter>()).chain(names::<ClientCounter>());
    let counters = counters
        .chain(names::<RouteCounter>())
        .chain(names::<UpstreamCounter>())
        .chain(names::<CpuGroup>())
        .chain(names::<HostCounter>());
    let latencies = names::<ProxyLatency>().chain(names::<TlsLatency>()).chain(names::<HttpLatency>());
    let latencies = latencies
        .chain(names::<LoadLatency>())
        .chain(names::<RouteLatency>())
        .chain(names::<UpstreamLatency>());
    let names: Vec<[&str; 3]> = counters.chain(latencies).collect();
    for [name, ..] in &names {
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{name}"
        );
        assert!(!name.ends_with("_total"), "{name}: the suffix is added");
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

#[test]
fn a_percentile_lies_in_the_bucket_that_holds_its_rank() {
    let mut histogram = Histogram::new();
    let mut ns = 900_u64;
    while ns < 70_000_000_000 {
        histogram.record_ns(ns);
        ns += ns / 3 + 17;
    }
    let found = classic(&histogram, TimeResolution::FINE);
    assert_eq!(found.buckets.iter().map(|(_, count)| count).sum::<u64>(), found.count);
    assert_eq!(found.buckets.len(), BOUNDS_S.len() + 1);
    for q in [0.1, 0.5, 0.9, 0.99] {
        let rank = (q * found.count as f64).ceil() as u64;
        let mut below = 0;
        let at = found.buckets.iter().position(|(_, count)| {
            below += count;
            below >= rank
        });
        let at = at.unwrap();
        let low = if at == 0 { 0.0 } else { found.buckets[at - 1].0 };
        let seconds = histogram.quantile_ns(q).unwrap() as f64 / 1e9;
        assert!(
            low < seconds && seconds <= found.buckets[at].0,
            "p{q}: {seconds} is not in {low}..{}",
            found.buckets[at].0
        );
    }
}

#[test]
fn ten_thousand_values_make_a_bounded_number_of_labels() {
    const VALUES: u32 = 10_000;
    let mut model = Model::new(1);
    let mut seq = 0;
    let mut apply = |body| {
        seq += 1;
        let stamp = Stamp { run: RunId::from_bits(1), seq, mono_us: seq, realtime_us: seq, interval_us: 0 };
        model.apply(Record { stamp, body }, None);
    };
    apply(Body::Run(Box::default()));
    for value in 0..VALUES {
        let mut counters = Counters::default();
        counters[RouteCounter::Requests] = u64::from(value);
        let route = format!("/route-{value}");
        apply(Body::Route(Box::new(RouteRecord { route, counters, ..RouteRecord::default() })));
        if value < 2 {
            let upstream = format!("10.0.0.{value}:80");
            apply(Body::Upstream(Box::new(UpstreamRecord { upstream, ..UpstreamRecord::default() })));
        }
        let mut counters = Counters::default();
        counters[ClientCounter::BytesOut] = u64::from(value);
        let client = ClientId::Addr(Ipv4Addr::from_bits(value).into());
        let exchange = Sketch::default();
        apply(Body::Client(ClientRecord {
            client,
            epoch: 1,
            last: false,
            open: 1,
            counters,
            rtt_us: 0,
            exchange,
        }));
        let (dimension, value) = (Dimension::Name, format!("host-{value}.example"));
        apply(Body::Usage(Box::new(UsageRecord { dimension, value, counters: Counters::default() })));
    }
    for clients_max in [0, 1_000] {
        let text = open_metrics(model.current().unwrap(), "1", clients_max, MetricsFormat::OpenMetrics);
        let values = |label: &str| -> BTreeSet<&str> {
            let start = format!("{label}=\"");
            text.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
        };
        assert_eq!((values("route").len(), values("client").len()), (256, clients_max));
        assert_eq!(values("upstream").len(), 2);
        let series: Vec<&str> = text.lines().filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
        let unique: BTreeSet<&str> = series.iter().copied().collect();
        assert_eq!(series.len(), unique.len(), "each series is told once");
        assert!(!text.contains("example"), "names are no labels");
        assert!(text.len() < 3 << 20, "{} bytes", text.len());
    }
}

#[test]
fn an_upstream_that_a_reload_has_removed_is_not_down() {
    let mut model = Model::new(1);
    let of = |upstream: &str, state| {
        let upstream = upstream.to_owned();
        Body::Upstream(Box::new(UpstreamRecord { upstream, state, open: 1, ..UpstreamRecord::default() }))
    };
    let down = of("10.0.0.1:80", UpstreamState::Down);
    let gone = of("10.0.0.2:80", UpstreamState::Gone);
    for (seq, body) in (1..).zip([Body::Run(Box::default()), down, gone]) {
        let stamp = Stamp { run: RunId::from_bits(1), seq, mono_us: seq, realtime_us: seq, interval_us: 0 };
        model.apply(Record { stamp, body }, None);
    }
    let text = open_metrics(model.current().unwrap(), "1", 0, MetricsFormat::OpenMetrics);
    let samples = |name: &str| text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    let [down] = samples("tlsdash_upstream_up{")[..] else { panic!("{text}") };
    assert!(down.contains("10.0.0.1:80") && down.ends_with(" 0"), "{down}");
    assert_eq!(samples("tlsdash_upstream_connections_open{").len(), 2, "its connections are there still");
}
