//! An interval of a series.

use records::histogram::SparseHistogram;
use records::metrics::{Counters, Metric};

/// Counters and latencies between two records of one kind.
#[derive(Clone, Debug)]
pub struct Interval<C: Metric, L: Metric> {
    /// Beginning of the time that the counters cover, `CLOCK_MONOTONIC` in microseconds.
    pub start_us: u64,
    pub end_us: u64,
    /// True if records between were lost, or the process did not run: the counters cover the hole too, the latencies only
    /// its end. A series shows a gap there, not a slow stretch.
    pub after_loss: bool,
    pub counters: Counters<C>,
    pub(super) latencies: Box<[SparseHistogram]>,
    pub(super) family: std::marker::PhantomData<L>,
}

impl<C: Metric, L: Metric> Interval<C, L> {
    pub(super) fn new(
        (start_us, end_us): (u64, u64),
        after_loss: bool,
        counters: Counters<C>,
        latencies: Box<[SparseHistogram]>,
    ) -> Self {
        Self { start_us, end_us, after_loss, counters, latencies, family: std::marker::PhantomData }
    }

    /// Merges intervals into one over the given time: counters add up, latencies are merged in the buckets that
    /// `widen` gives. It follows a loss if one of them does.
    pub(in crate::runs) fn merged(
        (start_us, end_us): (u64, u64),
        all: &[&Self],
        widen: impl Fn(u32) -> u32,
    ) -> Self {
        let mut counters = Counters::default();
        for interval in all {
            counters.add(&interval.counters);
        }
        let latency = |&class: &L| {
            SparseHistogram::merged_wider(all.iter().map(|interval| interval.latency(class)), &widen)
        };
        let after_loss = all.iter().any(|interval| interval.after_loss);
        Self::new((start_us, end_us), after_loss, counters, L::ALL.iter().map(latency).collect())
    }

    pub fn latency(&self, class: L) -> &SparseHistogram {
        &self.latencies[class.index()]
    }

    pub(in crate::runs) fn buckets(&self) -> usize {
        self.latencies.iter().map(|latency| latency.buckets().len()).sum()
    }

    /// Memory that an interval takes without its buckets.
    pub(in crate::runs) fn bytes_without_buckets() -> usize {
        size_of::<Self>() + L::ALL.len() * size_of::<SparseHistogram>()
    }

    /// Length of the time that the counters cover, in microseconds.
    pub fn length_us(&self) -> u64 {
        self.end_us.saturating_sub(self.start_us)
    }

    /// Length of the time that the counters cover, in seconds.
    pub fn seconds(&self) -> f64 {
        self.length_us() as f64 / 1e6
    }

    /// Halfway through the time that the counters cover.
    pub fn middle_us(&self) -> u64 {
        self.start_us.midpoint(self.end_us)
    }

    /// The moment that decides where in time the interval belongs. After a loss it covers the hole too, and its
    /// latencies only the end of it.
    pub fn place_us(&self) -> u64 {
        if self.after_loss { self.end_us.saturating_sub(1) } else { self.middle_us() }
    }

    /// Events a second; `None` for an interval of no length.
    pub fn rate(&self, metric: C) -> Option<f64> {
        let seconds = self.seconds();
        (seconds > 0.0).then(|| self.counters[metric] as f64 / seconds)
    }
}
