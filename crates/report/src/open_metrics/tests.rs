use std::collections::BTreeSet;
use std::fmt::{Debug, Write};
use std::net::Ipv4Addr;

use model::runs::{Model, Run};
use prost::Message;
use records::histogram::{Histogram, Histograms, Sketch};
use records::ids::{ClientId, RunId};
use records::kinds::{
    Body, ClientRecord, Record, RouteRecord, Stamp, UpstreamRecord, UpstreamState, UsageRecord,
};
use records::metrics::{
    ClientCounter, Counters, CpuGroup, Dimension, HostCounter, HttpCounter, HttpLatency, LoadCounter,
    LoadLatency, Metric, ProxyCounter, ProxyLatency, RouteCounter, RouteLatency, TimeResolution, TlsCounter,
    TlsLatency, UpstreamCounter, UpstreamLatency,
};
use records::values::Latencies;

use super::family::{Escaped, MetricsFormat};
use super::histograms::{BOUNDS_S, sample};
use super::protobuf::{HistogramMessage, LabelPair, MetricFamily, MetricType};

fn text(run: &Run, clients_max: usize, format: MetricsFormat) -> String {
    String::from_utf8(super::open_metrics(run, "1", clients_max, format)).unwrap()
}

/// The model of a run with these records.
fn model(bodies: impl IntoIterator<Item = Body>) -> Model {
    let mut model = Model::new(1);
    for (seq, body) in (1..).zip([Body::Run(Box::default())].into_iter().chain(bodies)) {
        let stamp = Stamp { run: RunId::from_bits(1), seq, mono_us: seq, realtime_us: seq, interval_us: 1 };
        model.apply(Record { stamp, body }, None);
    }
    model
}

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
    let found = sample(&histogram, TimeResolution::FINE);
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
    let mut bodies = Vec::new();
    for value in 0..VALUES {
        let mut counters = Counters::default();
        counters[RouteCounter::Requests] = u64::from(value);
        let route = format!("/route-{value}");
        bodies.push(Body::Route(Box::new(RouteRecord { route, counters, ..RouteRecord::default() })));
        if value < 2 {
            let upstream = format!("10.0.0.{value}:80");
            bodies.push(Body::Upstream(Box::new(UpstreamRecord { upstream, ..UpstreamRecord::default() })));
        }
        let mut counters = Counters::default();
        counters[ClientCounter::BytesOut] = u64::from(value);
        let client = ClientId::Addr(Ipv4Addr::from_bits(value).into());
        let exchange = Sketch::default();
        bodies.push(Body::Client(ClientRecord {
            client,
            epoch: 1,
            last: false,
            open: 1,
            counters,
            rtt_us: 0,
            exchange,
        }));
        let (dimension, value) = (Dimension::Name, format!("host-{value}.example"));
        bodies.push(Body::Usage(Box::new(UsageRecord { dimension, value, counters: Counters::default() })));
    }
    let model = model(bodies);
    for clients_max in [0, 1_000] {
        let text = text(model.current().unwrap(), clients_max, MetricsFormat::OpenMetrics);
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
    let of = |upstream: &str, state| {
        let upstream = upstream.to_owned();
        Body::Upstream(Box::new(UpstreamRecord { upstream, state, open: 1, ..UpstreamRecord::default() }))
    };
    let down = of("10.0.0.1:80", UpstreamState::Down);
    let gone = of("10.0.0.2:80", UpstreamState::Gone);
    let model = model([down, gone]);
    let text = text(model.current().unwrap(), 0, MetricsFormat::OpenMetrics);
    let samples = |name: &str| text.lines().filter(|line| line.starts_with(name)).collect::<Vec<_>>();
    let [down] = samples("tlsdash_upstream_up{")[..] else { panic!("{text}") };
    assert!(down.contains("10.0.0.1:80") && down.ends_with(" 0"), "{down}");
    assert_eq!(samples("tlsdash_upstream_connections_open{").len(), 2, "its connections are there still");
}

/// A message in the text format of Prometheus.
fn as_text(text: &mut String, family: &MetricFamily) {
    let MetricFamily { name, help, metric, .. } = family;
    let kind = match family.r#type() {
        MetricType::Counter => "counter",
        MetricType::Gauge => "gauge",
        MetricType::Histogram => "histogram",
    };
    writeln!(text, "# HELP {name} {}\n# TYPE {name} {kind}", Escaped(help)).unwrap();
    for metric in metric {
        let labels = |le: Option<f64>| {
            let label = |LabelPair { name, value }: &LabelPair| format!("{name}=\"{}\"", Escaped(value));
            let le =
                le.map(|le| if le.is_finite() { format!("le=\"{le}\"") } else { "le=\"+Inf\"".to_owned() });
            let all: Vec<String> = metric.label.iter().map(label).chain(le).collect();
            if all.is_empty() { String::new() } else { format!("{{{}}}", all.join(",")) }
        };
        let number = if kind == "counter" { metric.counter } else { metric.gauge };
        if let Some(number) = number {
            writeln!(text, "{name}{} {}", labels(None), number.value).unwrap();
        }
        if let Some(HistogramMessage { sample_count, sample_sum, bucket, .. }) = &metric.histogram {
            for bucket in bucket {
                let labels = labels(Some(bucket.upper_bound));
                writeln!(text, "{name}_bucket{labels} {}", bucket.cumulative_count).unwrap();
            }
            let labels = labels(None);
            writeln!(text, "{name}_sum{labels} {sample_sum}\n{name}_count{labels} {sample_count}").unwrap();
        }
    }
}

/// Index and count of each native bucket.
fn native_buckets(histogram: &HistogramMessage) -> Vec<(i32, u64)> {
    let (mut index, mut count) = (0, 0);
    let mut deltas = histogram.positive_delta.iter();
    let mut found = Vec::new();
    for span in &histogram.positive_span {
        index += span.offset;
        for delta in deltas.by_ref().take(span.length as usize) {
            count += delta;
            found.push((index, u64::try_from(count).unwrap()));
            index += 1;
        }
    }
    assert_eq!(deltas.len(), 0);
    found
}

#[test]
fn protobuf_says_the_same_as_text_and_has_native_buckets() {
    let mut interval = Histograms::<RouteLatency>::default();
    for ns in [20, 100, 700_000, 740_000, 750_000, 5_000_000, 90_000_000_000] {
        interval[RouteLatency::FirstByte].record_ns(ns);
    }
    let latencies = Latencies::new(&interval, &Counters::default());
    let route = RouteRecord { route: "/\"\\\n".to_owned(), latencies, ..RouteRecord::default() };
    let model = model([Body::Route(Box::new(route))]);
    let run = model.current().unwrap();
    let bytes = super::open_metrics(run, "1", 0, MetricsFormat::Protobuf);
    let mut rest = &bytes[..];
    let mut found = Vec::new();
    while !rest.is_empty() {
        found.push(MetricFamily::decode_length_delimited(&mut rest).unwrap());
    }
    let mut same = String::new();
    for family in &found {
        as_text(&mut same, family);
    }
    assert_eq!(same, text(run, 0, MetricsFormat::Prometheus));

    let histograms =
        found.iter().flat_map(|family| &family.metric).filter_map(|metric| metric.histogram.as_ref());
    let [histogram] = histograms.filter(|histogram| histogram.sample_count > 0).collect::<Vec<_>>()[..]
    else {
        panic!("{same}")
    };
    let buckets = native_buckets(histogram);
    let counts: Vec<u64> = buckets.iter().map(|(_, count)| *count).collect();
    assert_eq!((histogram.zero_count, counts), (1, vec![1, 1, 2, 1, 1]));
    assert_eq!(histogram.positive_span.len(), 4, "700 and 740 µs have buckets in a row");
    assert_eq!(buckets, sample(&interval[RouteLatency::FirstByte], TimeResolution::FINE).native.positive);
}
