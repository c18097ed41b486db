//! The latencies of a run by class, with percentiles and their intervals.

use records::histogram::{Histogram, quantile_is_thin};
use records::metrics::{
    HttpLatency, KnownValue, LatencyClass, LoadLatency, Percentile, ProxyLatency, TimeResolution,
    percentile_interval_ns,
};

use crate::numbers::{bound_ms, known_ms, short, three_digits};

pub(crate) const PERCENTILES: [Percentile; 6] = [
    Percentile::P50,
    Percentile::P90,
    Percentile::P95,
    Percentile::P99,
    Percentile::P999,
    Percentile { label: "p99.99", q: 0.9999 },
];

/// The classes by importance: the times that users wait for, then their parts.
const BY_WEIGHT: [LatencyClass; 11] = [
    LatencyClass::Load(LoadLatency::Response),
    LatencyClass::Load(LoadLatency::Service),
    LatencyClass::Http(HttpLatency::FirstByte),
    LatencyClass::Http(HttpLatency::Upstream),
    LatencyClass::Proxy(ProxyLatency::Exchange),
    LatencyClass::Proxy(ProxyLatency::HandshakeFull),
    LatencyClass::Proxy(ProxyLatency::HandshakeResumed),
    LatencyClass::Load(LoadLatency::HandshakeFull),
    LatencyClass::Load(LoadLatency::HandshakeResumed),
    LatencyClass::Load(LoadLatency::FirstByte),
    LatencyClass::Proxy(ProxyLatency::Connect),
];

/// Classes that are shown without being asked for.
const SHOWN: usize = 5;

/// The main classes of a run, by their weight, and the others in order.
pub(crate) fn by_weight(all: Vec<ClassLatency<'_>>) -> (Vec<ClassLatency<'_>>, Vec<ClassLatency<'_>>) {
    let found = |class: &LatencyClass| all.iter().find(|latency| latency.class == *class).copied();
    let first: Vec<_> = BY_WEIGHT.iter().filter_map(found).take(SHOWN).collect();
    let is_first = |latency: &ClassLatency<'_>| first.iter().any(|known| known.class == latency.class);
    let rest = all.into_iter().filter(|latency| !is_first(latency)).collect();
    (first, rest)
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ClassLatency<'a> {
    pub(crate) class: LatencyClass,
    pub(crate) histogram: &'a Histogram,
    pub(crate) resolution: TimeResolution,
}

impl ClassLatency<'_> {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.class.side(), self.class.key().replace(['_', '.'], " "))
    }

    /// A time in milliseconds.
    pub(crate) fn shown(&self, ms: f64) -> String {
        known_ms(ms, self.resolution)
    }

    /// A time in milliseconds with as many digits as a histogram keeps, or as it is known with.
    pub(crate) fn rounded(&self, ms: f64) -> String {
        if self.resolution == TimeResolution::FINE { three_digits(ms) } else { self.shown(ms) }
    }

    /// The mean, in milliseconds; empty without samples.
    pub(crate) fn mean(&self) -> String {
        let mean_us = self.histogram.mean_ns().map(|ns| ns / 1e3);
        match mean_us.map(|us| self.resolution.known_mean_us(us)) {
            None => String::new(),
            Some(KnownValue::AtMost { at_most }) => bound_ms(at_most / 1e3),
            Some(KnownValue::Exact(us)) => self.shown(us / 1e3),
        }
    }

    /// The interval of a percentile, in milliseconds.
    pub(crate) fn interval(&self, (low, high): (f64, f64)) -> String {
        if self.resolution == TimeResolution::FINE {
            return format!("{}–{}", short(low), short(high));
        }
        let (low, high) = (self.shown(low), self.shown(high));
        if low == high { low } else { format!("{low}–{high}") }
    }

    pub(crate) fn quantile(&self, q: f64) -> Option<PercentileEstimate> {
        let n = self.histogram.count();
        let ms = |ns: u64| ns as f64 / 1e6;
        let (low_ns, high_ns) = percentile_interval_ns(n, q, |q| self.histogram.quantile_ns(q));
        Some(PercentileEstimate {
            ms: self.histogram.quantile_ns(q).map(ms)?,
            interval_ms: low_ns.map(ms).zip(high_ns.map(ms)),
            is_thin: quantile_is_thin(n, q),
        })
    }
}

/// A percentile, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PercentileEstimate {
    pub(crate) ms: f64,
    /// Its 95 % confidence interval, for independent samples; `None` with too few samples.
    pub(crate) interval_ms: Option<(f64, f64)>,
    /// Fewer than ten samples lie above it.
    pub(crate) is_thin: bool,
}
