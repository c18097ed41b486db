//! Latencies as records carry them.

use crate::histogram::Histograms;
use crate::histogram::SparseHistogram;
use crate::metrics::{Counters, Metric};

/// The latencies of one class in a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Latency {
    /// Samples of the run. If it grew by more than the number in `interval` since the last record read, a histogram
    /// was lost.
    pub samples_total: u64,
    /// The samples of this record's interval.
    pub interval: SparseHistogram,
}

/// The latencies of all classes of a family in a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Latencies<M: Metric> {
    classes: Vec<Latency>,
    family: std::marker::PhantomData<M>,
}

impl<M: Metric> Default for Latencies<M> {
    fn default() -> Self {
        Self { classes: vec![Latency::default(); M::ALL.len()], family: std::marker::PhantomData }
    }
}

impl<M: Metric> Latencies<M> {
    /// Those of an interval's histograms, with the samples counted in the run up to its end.
    pub fn new(interval: &Histograms<M>, samples_total: &Counters<M>) -> Self {
        let class = |(class, histogram): (M, &crate::Histogram)| Latency {
            samples_total: samples_total[class],
            interval: histogram.to_sparse(),
        };
        Self { classes: interval.iter().map(class).collect(), family: std::marker::PhantomData }
    }

    /// Counts samples from an earlier record on.
    pub(crate) fn rebase(&mut self, before: &Self) {
        for (latency, before) in self.classes.iter_mut().zip(&before.classes) {
            latency.samples_total = latency.samples_total.saturating_sub(before.samples_total);
        }
    }

    /// Adds the samples of the record before.
    pub(crate) fn downsample(&mut self, earlier: &Self) {
        for (latency, earlier) in self.classes.iter_mut().zip(&earlier.classes) {
            latency.interval = SparseHistogram::merged([&latency.interval, &earlier.interval]);
        }
    }

    /// The same without histograms: the samples that were counted.
    pub(crate) fn without_intervals(&self) -> Self {
        let counted =
            |latency: &Latency| Latency { samples_total: latency.samples_total, ..Latency::default() };
        Self { classes: self.classes.iter().map(counted).collect(), family: self.family }
    }

    /// Each class with its latencies.
    pub fn iter(&self) -> impl Iterator<Item = (M, &Latency)> {
        M::ALL.iter().copied().zip(&self.classes)
    }
}

impl<M: Metric> std::ops::Index<M> for Latencies<M> {
    type Output = Latency;

    fn index(&self, class: M) -> &Latency {
        &self.classes[class.index()]
    }
}

impl<M: Metric> std::ops::IndexMut<M> for Latencies<M> {
    fn index_mut(&mut self, class: M) -> &mut Latency {
        &mut self.classes[class.index()]
    }
}
