//! Latencies by class.

use model::runs::Run;
use records::histogram::quantile_is_thin;
use records::metrics::{
    HttpCounter, HttpLatency, LatencyClass, LoadCounter, LoadLatency, Metric, Percentile, ProxyCounter,
    ProxyLatency, TimeResolution, percentile_interval_ns,
};

use super::span::{Samples, Span, SpanData, SpanWindows};

/// A class of latencies as the table shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ClassRow<L, C> {
    latency: L,
    /// Gives the rate of the class.
    counter: C,
    /// Rows with a higher rank come later, and are left out first where there is no room.
    rank: u8,
}

const fn row<L, C>(latency: L, counter: C, rank: u8) -> ClassRow<L, C> {
    ClassRow { latency, counter, rank }
}

impl<L: Metric + Into<LatencyClass>, C: Metric> ClassRow<L, C> {
    fn over(&self, run: &Run, taken: &SpanData<'_, C, L>) -> LatencyRow {
        let Self { latency, counter, rank } = *self;
        let class = latency.into();
        let known = (run.resolution(class), run.absent_class(class));
        LatencyRow::of((class, rank), known, taken.samples(latency), taken.rate(counter))
    }
}

const PROXY: &[ClassRow<ProxyLatency, ProxyCounter>] = &[
    row(ProxyLatency::HandshakeFull, ProxyCounter::HandshakesFull, 0),
    row(ProxyLatency::HandshakeResumed, ProxyCounter::HandshakesResumed, 0),
    row(ProxyLatency::ComputeFull, ProxyCounter::HandshakesFull, 2),
    row(ProxyLatency::ComputeResumed, ProxyCounter::HandshakesResumed, 2),
    row(ProxyLatency::Connect, ProxyCounter::UpstreamConnects, 3),
    row(ProxyLatency::Exchange, ProxyCounter::Exchanges, 0),
    row(ProxyLatency::Lifetime, ProxyCounter::Closed, 4),
];

const HTTP: &[ClassRow<HttpLatency, HttpCounter>] = &[
    row(HttpLatency::FirstByte, HttpCounter::Requests, 0),
    row(HttpLatency::Upstream, HttpCounter::Requests, 1),
    row(HttpLatency::Request, HttpCounter::Requests, 1),
    row(HttpLatency::Queue, HttpCounter::Queued, 1),
];

const LOAD: &[ClassRow<LoadLatency, LoadCounter>] = &[
    row(LoadLatency::Response, LoadCounter::Ok, 0),
    row(LoadLatency::Service, LoadCounter::Ok, 0),
    row(LoadLatency::Lag, LoadCounter::Sent, 1),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantile {
    pub(crate) ns: u64,
    /// True if it rests on fewer than ten samples above it.
    pub(crate) thin: bool,
    pub(crate) resolution: TimeResolution,
}

impl Quantile {
    /// The percentile `q` of `n` samples, in nanoseconds; `None` without samples.
    pub(crate) fn of(n: u64, q: f64, ns: Option<u64>, resolution: TimeResolution) -> Option<Self> {
        Some(Self { ns: ns?, thin: quantile_is_thin(n, q), resolution })
    }
}

/// Between which latencies a percentile lies with 95 % confidence, in nanoseconds; an end is `None` where too few samples
/// lie beyond it to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) low_ns: Option<u64>,
    pub(crate) high_ns: Option<u64>,
}

impl Bounds {
    fn of(samples: Samples<'_>, q: f64) -> Self {
        let (low_ns, high_ns) = percentile_interval_ns(samples.count(), q, |q| samples.quantile_ns(q));
        Self { low_ns, high_ns }
    }

    /// True if all of it lies on one side of the other.
    fn is_apart(self, other: Self) -> bool {
        let below = |a: Self, b: Self| a.high_ns.zip(b.low_ns).is_some_and(|(high, low)| high < low);
        below(self, other) || below(other, self)
    }
}

/// How a 99th percentile differs from that of an earlier window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct P99Change {
    /// In percent of the earlier one.
    pub(crate) percent: f64,
    pub(crate) before_ns: u64,
    /// True if the two intervals of 95 % do not meet.
    pub(crate) is_told: bool,
}

/// The latencies of one class over the span.
#[derive(Clone, Debug)]
pub(crate) struct LatencyRow {
    pub(crate) class: LatencyClass,
    /// Rows with a higher rank come later.
    pub(crate) rank: u8,
    /// At each of [`Percentile::TABLE`]; `None` without samples.
    pub(crate) quantiles: [Option<Quantile>; 5],
    pub(crate) p99: Bounds,
    /// The 99th percentile compared with the window before a mark; `None` if there is no such window.
    pub(crate) change: Option<P99Change>,
    /// Exact maximum in nanoseconds; `None` without samples.
    pub(crate) max_ns: Option<u64>,
    /// Events a second; `None` while no time has passed.
    pub(crate) per_second: Option<f64>,
    /// Samples.
    pub(crate) n: u64,
    pub(crate) resolution: TimeResolution,
    /// Why there are no samples, and what would provide them; `None` if there can be samples.
    pub(crate) absent: Option<String>,
}

/// The rank of rows without figures: the last.
const ABSENT_RANK: u8 = 9;
/// The place of the 99th percentile among those of the table.
const P99_AT: usize = 2;

impl LatencyRow {
    fn of(
        (class, rank): (LatencyClass, u8),
        (resolution, absent): (TimeResolution, Option<&str>),
        samples: Samples<'_>,
        per_second: Option<f64>,
    ) -> Self {
        let n = samples.count();
        let at = |Percentile { q, .. }| Quantile::of(n, q, samples.quantile_ns(q), resolution);
        Self {
            class,
            rank: if absent.is_some() { ABSENT_RANK } else { rank },
            quantiles: Percentile::TABLE.map(at),
            p99: Bounds::of(samples, Percentile::P99.q),
            change: None,
            max_ns: (n > 0).then(|| samples.max_ns()),
            // A request need not have had each part that is timed: one that nginx answers itself has no upstream.
            per_second: per_second.map(|rate| if n == 0 { 0.0 } else { rate }),
            n,
            resolution,
            absent: absent.map(str::to_owned),
        }
    }
}

/// Compares each class with what it was in an earlier window.
pub(crate) fn compare(now: &mut [LatencyRow], before: &[LatencyRow]) {
    for row in now {
        let Some(earlier) = before.iter().find(|earlier| earlier.class == row.class) else { continue };
        let p99 = |latency: &LatencyRow| latency.quantiles[P99_AT].map(|quantile| quantile.ns);
        row.change = p99(row).zip(p99(earlier)).filter(|&(_, before)| before > 0).map(|(now, before_ns)| {
            let percent = (now as f64 / before_ns as f64 - 1.0) * 100.0;
            P99Change { percent, before_ns, is_told: row.p99.is_apart(earlier.p99) }
        });
    }
}

/// Every class that the run has, in the order of the table: what the load waits for, then the parts of it.
pub(crate) fn all(run: &Run, windows: &SpanWindows, span: Span) -> Vec<LatencyRow> {
    let mut rows = Vec::new();
    if let Some((taken, series)) = windows.load(run, span).zip(run.load()) {
        let is_closed = run.load_record().is_some_and(|record| record.rate <= 0.0);
        // A closed loop has no schedule, and so neither an intended send nor a lag behind it.
        let applies = |row: &&ClassRow<LoadLatency, LoadCounter>| {
            !is_closed || row.latency == LoadLatency::Service || series.samples_total(row.latency) > 0
        };
        rows.extend(LOAD.iter().filter(applies).map(|row| row.over(run, &taken)));
    }
    if let Some(taken) = windows.http(run, span) {
        rows.extend(HTTP.iter().map(|row| row.over(run, &taken)));
    }
    if let Some(taken) = windows.proxy(run, span) {
        // An exchange of HTTP mode is what `upstream` times.
        let applies = |row: &&ClassRow<ProxyLatency, ProxyCounter>| {
            run.http().is_none() || row.latency != ProxyLatency::Exchange
        };
        rows.extend(PROXY.iter().filter(applies).map(|row| row.over(run, &taken)));
    }
    rows.sort_by_key(|row: &LatencyRow| row.rank);
    rows
}
