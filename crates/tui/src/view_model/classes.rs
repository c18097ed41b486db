//! Latencies by class.

use telemetry::model::Run;
use telemetry::{
    LoadCounter, LoadLatency, ProxyCounter, ProxyLatency, percentile_interval_ns, quantile_is_thin,
};

use super::span::{LoadSpanData, ProxySpanData, Samples};

/// A class of latencies as the table shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Class {
    /// Its name.
    pub(crate) name: &'static str,
    /// What must be known to read it; may be empty.
    pub(crate) note: &'static str,
    /// Rows with a higher rank are left out first where there is no room.
    pub(crate) rank: u8,
}

const fn class(name: &'static str, note: &'static str, rank: u8) -> Class {
    Class { name, note, rank }
}

/// The proxy's classes in the order of the table, with the counter that gives each one's rate.
const PROXY: &[(Class, ProxyLatency, ProxyCounter)] = &[
    (class("full handshake", "", 0), ProxyLatency::HandshakeFull, ProxyCounter::HandshakesFull),
    (class("resumed handshake", "", 0), ProxyLatency::HandshakeResumed, ProxyCounter::HandshakesResumed),
    (class("compute full", "", 2), ProxyLatency::ComputeFull, ProxyCounter::HandshakesFull),
    (class("compute resumed", "", 2), ProxyLatency::ComputeResumed, ProxyCounter::HandshakesResumed),
    (class("connect", "", 3), ProxyLatency::Connect, ProxyCounter::UpstreamConnects),
    (class("exchange", "", 0), ProxyLatency::Exchange, ProxyCounter::Exchanges),
    (class("lifetime", "", 4), ProxyLatency::Lifetime, ProxyCounter::Closed),
];

/// The load's classes.
const LOAD: &[(Class, LoadLatency, LoadCounter)] = &[
    (class("response", "CO-corrected", 0), LoadLatency::Response, LoadCounter::Ok),
    (class("service", "uncorrected", 1), LoadLatency::Service, LoadCounter::Ok),
    (class("send lag", "", 1), LoadLatency::Lag, LoadCounter::Sent),
];

/// A percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quantile {
    /// In nanoseconds.
    pub(crate) ns: u64,
    /// True if it rests on fewer than ten samples above it.
    pub(crate) thin: bool,
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
pub(crate) struct Change {
    /// In percent of the earlier one.
    pub(crate) percent: f64,
    /// True if the two intervals of 95 % do not meet.
    pub(crate) is_told: bool,
}

/// The latencies of one class over the span.
#[derive(Clone, Debug)]
pub(crate) struct Latency {
    pub(crate) class: Class,
    /// At each of [`Latency::QUANTILES`]; `None` without samples.
    pub(crate) quantiles: [Option<Quantile>; 5],
    /// Of the 99th percentile.
    pub(crate) p99: Bounds,
    /// The 99th percentile against that of the window before a mark; `None` where there is none to compare.
    pub(crate) change: Option<Change>,
    /// Exact maximum in nanoseconds; `None` without samples.
    pub(crate) max_ns: Option<u64>,
    /// Events a second; `None` while no time has passed.
    pub(crate) per_second: Option<f64>,
    /// Samples.
    pub(crate) n: u64,
}

/// The percentile that is compared and has an interval.
const P99: f64 = 0.99;
/// Its place among those of the table.
const P99_AT: usize = 2;

impl Latency {
    /// The percentiles that are taken, with their names.
    pub(crate) const QUANTILES: [(f64, &'static str); 5] =
        [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9"), (0.9999, "p99.99")];

    fn of(class: Class, samples: Samples<'_>, per_second: Option<f64>) -> Self {
        let n = samples.count();
        let at = |(q, _)| Some(Quantile { ns: samples.quantile_ns(q)?, thin: quantile_is_thin(n, q) });
        Self {
            class,
            quantiles: Self::QUANTILES.map(at),
            p99: Bounds::of(samples, P99),
            change: None,
            max_ns: (n > 0).then(|| samples.max_ns()),
            per_second,
            n,
        }
    }
}

/// Compares each class with what it was in an earlier window.
pub(super) fn compare(now: &mut [Latency], before: &[Latency]) {
    for row in now {
        let Some(earlier) = before.iter().find(|earlier| earlier.class == row.class) else { continue };
        let p99 = |latency: &Latency| latency.quantiles[P99_AT].map(|quantile| quantile.ns as f64);
        row.change = p99(row).zip(p99(earlier)).filter(|&(_, before)| before > 0.0).map(|(now, before)| {
            Change { percent: (now / before - 1.0) * 100.0, is_told: row.p99.is_apart(earlier.p99) }
        });
    }
}

/// Every class that the run has, in the order of the table.
pub(super) fn all(
    run: &Run,
    proxy: Option<&ProxySpanData<'_>>,
    load: Option<&LoadSpanData<'_>>,
) -> Vec<Latency> {
    let mut rows = Vec::new();
    if let Some(taken) = proxy {
        let row =
            |&(class, latency, counter): &_| Latency::of(class, taken.samples(latency), taken.rate(counter));
        rows.extend(PROXY.iter().map(row));
    }
    if let Some((taken, track)) = load.zip(run.load()) {
        let is_closed = run.load_record().is_some_and(|record| record.rate <= 0.0);
        // A closed loop has no schedule, and so neither an intended send nor a lag behind it.
        let applies = |(_, latency, _): &&(_, LoadLatency, _)| {
            !is_closed || *latency == LoadLatency::Service || track.samples_total(*latency) > 0
        };
        let row =
            |&(class, latency, counter): &_| Latency::of(class, taken.samples(latency), taken.rate(counter));
        rows.extend(LOAD.iter().filter(applies).map(row));
    }
    rows
}
