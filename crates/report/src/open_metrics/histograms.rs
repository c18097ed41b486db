//! Latencies, as histograms with classic buckets.

use model::runs::{MetricSeries, RouteStats, Run};
use records::histogram::{Histogram, Histograms, SparseHistogram};
use records::metrics::{
    HttpLatency, LoadLatency, Metric, ProxyLatency, RouteLatency, TimeResolution, TlsLatency, labels,
};

use super::counters::label;
use super::family::{ClassicHistogram, Family, Label};

/// The upper bounds of the buckets in seconds: 25 µs to 60 s, three to a decade.
pub(super) const BOUNDS_S: [f64; 20] = [
    0.000_025, 0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
    0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
];

/// A metric: its name, its help, and its classes by the value of their label.
type LabelledMetric<C> = (&'static str, &'static str, &'static [(&'static str, C)]);

/// Latencies of the proxy, each class with the labels that distinguish it from others of its metric.
pub(super) const PROXY: &[LabelledMetric<ProxyLatency>] = &[
    (
        "handshake_seconds",
        "From the moment at which the worker learns of the ClientHello to the handshake's end, round trips included",
        &[("full", ProxyLatency::HandshakeFull), ("resumed", ProxyLatency::HandshakeResumed)],
    ),
    (
        "handshake_compute_seconds",
        "Time spent inside the TLS library during a handshake",
        &[("full", ProxyLatency::ComputeFull), ("resumed", ProxyLatency::ComputeResumed)],
    ),
    ("upstream_connect_seconds", "Connecting to the upstream", &[("", ProxyLatency::Connect)]),
    (
        "exchange_seconds",
        "From the last byte of a client before the upstream answered to the first byte of the answer; exact without pipelining",
        &[("", ProxyLatency::Exchange)],
    ),
    ("connection_seconds", "From accept to close", &[("", ProxyLatency::Lifetime)]),
];
/// The most expensive parts of handshakes.
pub(super) const TLS: &[(&str, &str, TlsLatency)] = &[
    ("key_exchange_seconds", "CPU-bound time of a handshake's key exchange", TlsLatency::KeyExchange),
    ("signature_seconds", "CPU-bound time of a handshake's signature", TlsLatency::Signature),
];
/// Latencies of requests of HTTP mode over all routes.
pub(super) const HTTP: &[(&str, &str, HttpLatency)] = &[
    (
        "http_queue_seconds",
        "Waiting for an upstream connection, of requests that waited, also in vain",
        HttpLatency::Queue,
    ),
    (
        "http_upstream_seconds",
        "From the request head sent to the upstream to its response head",
        HttpLatency::Upstream,
    ),
];
/// Latencies of requests of HTTP mode by protocol.
pub(super) const HTTP_BY_PROTOCOL: &[LabelledMetric<HttpLatency>] = &[
    (
        "http_first_byte_seconds",
        "From the request head to the first byte of the response handed to the client",
        &[("HTTP/1", HttpLatency::FirstByte1), ("HTTP/2", HttpLatency::FirstByte2)],
    ),
    (
        "http_request_seconds",
        "From the first byte of the request (HTTP/2: its complete header) to the last byte of the response taken by the kernel",
        &[("HTTP/1", HttpLatency::Request1), ("HTTP/2", HttpLatency::Request2)],
    ),
];
/// Latencies of each route.
const ROUTES: &[(&str, RouteLatency)] = &[
    ("route_upstream_seconds", RouteLatency::Upstream),
    ("route_first_byte_seconds", RouteLatency::FirstByte),
    ("route_request_seconds", RouteLatency::Request),
];
/// Latencies of the load.
pub(super) const LOAD: &[(&str, LoadLatency)] = &[
    ("load_response_seconds", LoadLatency::Response),
    ("load_service_seconds", LoadLatency::Service),
    ("load_lag_seconds", LoadLatency::Lag),
    ("load_connect_seconds", LoadLatency::Connect),
    ("load_handshake_full_seconds", LoadLatency::HandshakeFull),
    ("load_handshake_resumed_seconds", LoadLatency::HandshakeResumed),
    ("load_handshake_early_seconds", LoadLatency::HandshakeEarly),
    ("load_first_byte_seconds", LoadLatency::FirstByte),
    ("load_total_seconds", LoadLatency::Total),
];

/// Latencies of handshakes and connections.
pub(super) fn of_proxy(run: &Run) -> Vec<Family> {
    let Some(proxy) = run.proxy().map(MetricSeries::whole) else { return Vec::new() };
    let families = PROXY.iter().map(|(name, help, classes)| {
        let of_class = |(kind, class): &(&str, ProxyLatency)| {
            let labels = if kind.is_empty() { Vec::new() } else { vec![label("kind", kind)] };
            (labels, classic(&proxy[*class], run.log_resolution()))
        };
        Family::histogram(name, help, classes.iter().map(of_class))
    });
    let mut all: Vec<Family> = families.collect();
    if let Some(tls) = run.tls().map(MetricSeries::whole) {
        let waits = labels::WAITS.iter().flat_map(|(part, classes)| {
            let of_kind = move |(kind, class): (&str, &TlsLatency)| {
                (vec![label("part", part), label("kind", kind)], classic(&tls[*class], TimeResolution::FINE))
            };
            ["full", "resumed"].into_iter().zip(classes).map(of_kind)
        });
        all.push(Family::histogram(
            "handshake_wait_seconds",
            "Where the wall time of handshakes goes besides computing",
            waits,
        ));
        all.extend(each(
            TLS.iter().map(|(name, help, class)| (*name, *help, *class)),
            tls,
            TimeResolution::FINE,
        ));
    }
    all
}

/// Latencies of requests over all routes.
pub(super) fn of_http(run: &Run) -> Vec<Family> {
    let Some(http) = run.http().map(MetricSeries::whole) else { return Vec::new() };
    let by_protocol = HTTP_BY_PROTOCOL.iter().map(|(name, help, classes)| {
        let of_protocol = |(protocol, class): &(&str, HttpLatency)| {
            (vec![label("protocol", protocol)], classic(&http[*class], run.log_resolution()))
        };
        Family::histogram(name, help, classes.iter().map(of_protocol))
    });
    each(HTTP.iter().map(|(name, help, class)| (*name, *help, *class)), http, run.log_resolution())
        .chain(by_protocol)
        .collect()
}

/// Latencies of each route.
pub(super) fn of_routes(run: &Run) -> Vec<Family> {
    let family = |(name, class): &(&'static str, RouteLatency)| {
        let of_route = |route: &RouteStats| {
            (
                vec![label("route", route.name())],
                classic(&route.series().whole()[*class], run.log_resolution()),
            )
        };
        Family::histogram(name, &class.field().meaning, run.routes().iter().map(of_route))
    };
    ROUTES.iter().map(family).collect()
}

/// Latencies of the load.
pub(super) fn of_load(run: &Run) -> Vec<Family> {
    let Some(load) = run.load().map(MetricSeries::whole) else { return Vec::new() };
    each(
        LOAD.iter().map(|(name, class)| (*name, &*class.field().meaning, *class)),
        load,
        TimeResolution::FINE,
    )
    .collect()
}

fn each<'a, M: Metric>(
    classes: impl Iterator<Item = (&'static str, &'a str, M)>,
    latencies: &Histograms<M>,
    resolution: TimeResolution,
) -> impl Iterator<Item = Family> {
    classes.map(move |(name, help, class)| {
        Family::histogram(name, help, [(Vec::<Label>::new(), classic(&latencies[class], resolution))])
    })
}

/// A histogram by [`BOUNDS_S`]. A sample counts in the first bucket whose bound is not below it, to the three digits to
/// which it was recorded, or to the resolution of its log. No bucket is finer than that.
pub(super) fn classic(histogram: &Histogram, resolution: TimeResolution) -> ClassicHistogram {
    let sparse: SparseHistogram = histogram.to_sparse();
    let mut counts = [0_u64; BOUNDS_S.len() + 1];
    for (highest_ns, count) in sparse.buckets() {
        let seconds = resolution.known_us(highest_ns as f64 / 1e3).number() / 1e6;
        counts[BOUNDS_S.partition_point(|bound| *bound < seconds)] += count;
    }
    let bounds = BOUNDS_S.into_iter().chain([f64::INFINITY]);
    ClassicHistogram {
        sum: histogram.sum_ns() as f64 / 1e9,
        count: histogram.count(),
        buckets: bounds.zip(counts).filter(|(bound, _)| *bound * 1e6 >= resolution.us() as f64).collect(),
    }
}
