//! One block: what was counted while one value was in force.

use telemetry::model::Interval;
use telemetry::{
    Counters, CpuGroup, Histogram, Histograms, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency,
    SparseHistogram,
};

use crate::metric::{Class, Kind, Metric, Totals};

/// Where the latencies of an interval come from: a worker's histograms, or a series read from a journal.
pub trait Latencies<L> {
    /// Adds the samples of a class.
    fn add_to(&self, class: L, into: &mut Histogram);
}

impl<L: telemetry::Metric> Latencies<L> for Histograms<L> {
    fn add_to(&self, class: L, into: &mut Histogram) {
        into.add(&self[class]);
    }
}

impl<C: telemetry::Metric, L: telemetry::Metric> Latencies<L> for Interval<C, L> {
    fn add_to(&self, class: L, into: &mut Histogram) {
        into.add_sparse(self.latency(class));
    }
}

/// What one side did in an interval.
#[derive(Clone, Copy)]
pub struct Side<'a, C: telemetry::Metric, L> {
    /// What was counted.
    pub counters: &'a Counters<C>,
    /// What was timed.
    pub latencies: &'a dyn Latencies<L>,
}

impl<C: telemetry::Metric, L> std::fmt::Debug for Side<'_, C, L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Side").field("counters", self.counters).finish_non_exhaustive()
    }
}

/// One interval, as an experiment looks at it. Times are `CLOCK_MONOTONIC` in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// When it began.
    pub start_us: u64,
    /// When it ended.
    pub end_us: u64,
    /// False if something of it, or right before it, is missing.
    pub is_whole: bool,
    /// The proxy's side; `None` in a run without one.
    pub proxy: Option<Side<'a, ProxyCounter, ProxyLatency>>,
    /// The load's side; `None` in a run without one.
    pub load: Option<Side<'a, LoadCounter, LoadLatency>>,
    /// CPU time that was used in it, in microseconds.
    pub cpu: Counters<CpuGroup>,
}

impl Observation<'_> {
    /// Its length, in microseconds.
    pub fn span_us(&self) -> u64 {
        self.end_us.saturating_sub(self.start_us)
    }
}

/// What a block came to for one figure.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// All samples of a class of latencies.
    Latencies(SparseHistogram),
    /// The two amounts of a quotient.
    Quotient {
        /// What is divided.
        of: f64,
        /// By what.
        per: f64,
    },
}

/// A block while it is under way.
#[derive(Debug)]
pub(crate) struct Block {
    totals: Totals,
    /// Of the metrics that are made of latencies, in their order; the memory serves all blocks.
    latencies: Vec<Option<Histogram>>,
    intervals: u32,
    is_whole: bool,
}

impl Block {
    pub(crate) fn new(metrics: &[Metric]) -> Self {
        let histogram = |metric: &Metric| match metric.kind {
            // The exact sum needs no buckets, but comes with them.
            Kind::Quantile(..) | Kind::Mean(_) => Some(Histogram::new()),
            Kind::Quotient(_) => None,
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

    pub(crate) fn add(&mut self, observation: &Observation<'_>, metrics: &[Metric]) {
        self.intervals += 1;
        self.is_whole &= observation.is_whole;
        self.totals.span_us += observation.span_us();
        self.totals.cpu.add(&observation.cpu);
        if let Some(proxy) = &observation.proxy {
            self.totals.proxy.add(proxy.counters);
        }
        if let Some(load) = &observation.load {
            self.totals.load.add(load.counters);
        }
        for (metric, histogram) in metrics.iter().zip(&mut self.latencies) {
            let Some(histogram) = histogram else { continue };
            match (metric.class(), &observation.proxy, &observation.load) {
                (Some(Class::Proxy(class)), Some(proxy), _) => proxy.latencies.add_to(class, histogram),
                (Some(Class::Load(class)), _, Some(load)) => load.latencies.add_to(class, histogram),
                _ => {}
            }
        }
    }

    pub(crate) fn totals(&self) -> &Totals {
        &self.totals
    }

    /// What it came to for each metric; `None` if it holds nothing that can be compared, or lacks something.
    pub(crate) fn readings(&self, metrics: &[Metric]) -> Option<Vec<Reading>> {
        if self.intervals == 0 || !self.is_whole {
            return None;
        }
        let reading = |(metric, histogram): (&Metric, &Option<Histogram>)| match (metric.kind, histogram) {
            (Kind::Quotient(quotient), _) => {
                Reading::Quotient { of: (quotient.of)(&self.totals), per: (quotient.per)(&self.totals) }
            }
            (Kind::Mean(_), Some(histogram)) => {
                Reading::Quotient { of: histogram.sum_ns() as f64 / 1e3, per: histogram.count() as f64 }
            }
            (_, histogram) => {
                Reading::Latencies(histogram.as_ref().map(Histogram::to_sparse).unwrap_or_default())
            }
        };
        Some(metrics.iter().zip(&self.latencies).map(reading).collect())
    }
}
