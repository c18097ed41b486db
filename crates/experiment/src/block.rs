//! One block: the counters and latencies while one value was in force.

use model::figures::Totals;
use model::runs::Interval;
use records::histogram::{Histogram, Histograms, SparseHistogram};
use records::metrics::{
    Counters, CpuGroup, HttpCounter, HttpLatency, LatencyClass, LoadCounter, LoadLatency, ProxyCounter,
    ProxyLatency, TlsCounter, TlsLatency,
};

use crate::comparable_figure::{ComparableFigure, FigureKind};

/// The latencies of an interval: a worker's histograms, or an interval read from a journal.
pub trait LatencySource<L> {
    /// Adds the samples of a class.
    fn add_to(&self, class: L, into: &mut Histogram);
}

impl<L: records::metrics::Metric> LatencySource<L> for Histograms<L> {
    fn add_to(&self, class: L, into: &mut Histogram) {
        into.add(&self[class]);
    }
}

impl<C: records::metrics::Metric, L: records::metrics::Metric> LatencySource<L> for Interval<C, L> {
    fn add_to(&self, class: L, into: &mut Histogram) {
        into.add_sparse(self.latency(class));
    }
}

/// The counters and latencies of one side over an interval.
#[derive(Clone, Copy)]
pub struct SideInterval<'a, C: records::metrics::Metric, L> {
    pub counters: &'a Counters<C>,
    pub latencies: &'a dyn LatencySource<L>,
}

impl<C: records::metrics::Metric, L> std::fmt::Debug for SideInterval<'_, C, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SideInterval").field("counters", self.counters).finish_non_exhaustive()
    }
}

/// One interval of a run, with both sides. Times are `CLOCK_MONOTONIC` in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    pub start_us: u64,
    pub end_us: u64,
    /// False if records of it, or right before it, are missing.
    pub is_whole: bool,
    /// The proxy's side; `None` in a run without one.
    pub proxy: Option<SideInterval<'a, ProxyCounter, ProxyLatency>>,
    /// TLS counters of the proxy; `None` in a run without such records.
    pub tls: Option<SideInterval<'a, TlsCounter, TlsLatency>>,
    /// HTTP counters of the proxy; `None` in TCP mode.
    pub http: Option<SideInterval<'a, HttpCounter, HttpLatency>>,
    /// The load's side; `None` in a run without one.
    pub load: Option<SideInterval<'a, LoadCounter, LoadLatency>>,
    /// CPU time that was used in it, in microseconds.
    pub cpu: Counters<CpuGroup>,
}

impl Observation<'_> {
    pub fn span_us(&self) -> u64 {
        self.end_us.saturating_sub(self.start_us)
    }
}

/// A block's contribution to one figure.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockValue {
    /// All samples of a class of latencies.
    Latencies(SparseHistogram),
    /// The two amounts of a quotient or mean.
    Quotient {
        /// The dividend.
        of: f64,
        /// The divisor.
        per: f64,
    },
}

#[derive(Debug)]
pub(crate) struct Block {
    totals: Totals,
    /// One for each figure, in order; `None` for quotients. Reused from block to block.
    latencies: Vec<Option<Histogram>>,
    intervals: u32,
    is_whole: bool,
}

impl Block {
    pub(crate) fn new(metrics: &[ComparableFigure]) -> Self {
        let histogram = |metric: &ComparableFigure| match metric.kind {
            // The exact sum needs no buckets, but comes with them.
            FigureKind::Quantile(..) | FigureKind::Mean(_) => Some(Histogram::new()),
            FigureKind::Quotient(_) => None,
        };
        Self {
            totals: Totals::default(),
            latencies: metrics.iter().map(histogram).collect(),
            intervals: 0,
            is_whole: true,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.totals = Totals::default();
        self.latencies.iter_mut().flatten().for_each(Histogram::clear);
        (self.intervals, self.is_whole) = (0, true);
    }

    pub(crate) fn add(&mut self, observation: &Observation<'_>, metrics: &[ComparableFigure]) {
        self.intervals += 1;
        self.is_whole &= observation.is_whole;
        self.totals.span_us += observation.span_us();
        self.totals.cpu.add(&observation.cpu);
        if let Some(proxy) = &observation.proxy {
            self.totals.proxy.add(proxy.counters);
        }
        if let Some(tls) = &observation.tls {
            self.totals.tls.add(tls.counters);
        }
        if let Some(http) = &observation.http {
            self.totals.http.add(http.counters);
        }
        if let Some(load) = &observation.load {
            self.totals.load.add(load.counters);
        }
        for (metric, histogram) in metrics.iter().zip(&mut self.latencies) {
            let Some(histogram) = histogram else { continue };
            match metric.class() {
                Some(LatencyClass::Proxy(class)) => {
                    observation.proxy.iter().for_each(|proxy| proxy.latencies.add_to(class, histogram));
                }
                Some(LatencyClass::Tls(class)) => {
                    observation.tls.iter().for_each(|tls| tls.latencies.add_to(class, histogram));
                }
                Some(LatencyClass::Http(class)) => {
                    observation.http.iter().for_each(|http| http.latencies.add_to(class, histogram));
                }
                Some(LatencyClass::Load(class)) => {
                    observation.load.iter().for_each(|load| load.latencies.add_to(class, histogram));
                }
                None => {}
            }
        }
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// Its contribution to each figure; `None` if it is empty or incomplete.
    pub(crate) fn values(&self, metrics: &[ComparableFigure]) -> Option<Vec<BlockValue>> {
        if self.intervals == 0 || !self.is_whole {
            return None;
        }
        let value = |(metric, histogram): (&ComparableFigure, &Option<Histogram>)| match metric.kind {
            FigureKind::Quantile(..) => {
                BlockValue::Latencies(histogram.as_ref().map(Histogram::to_sparse).unwrap_or_default())
            }
            FigureKind::Mean(_) => BlockValue::Quotient {
                of: histogram.as_ref().map_or(0.0, |histogram| histogram.sum_ns() as f64 / 1e3),
                per: histogram.as_ref().map_or(0.0, |histogram| histogram.count() as f64),
            },
            FigureKind::Quotient(quotient) => {
                BlockValue::Quotient { of: (quotient.of)(&self.totals), per: (quotient.per)(&self.totals) }
            }
        };
        Some(metrics.iter().zip(&self.latencies).map(value).collect())
    }
}
