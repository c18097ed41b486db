//! A histogram with memory only for the buckets with samples, for latencies that exist many times.

use std::time::Duration;

use foldhash::HashMap;

use crate::histogram::dense::HIGHEST_NS;
use crate::histogram::sparse::{Buckets, SparseHistogram, UNIT_NS};
use crate::histogram::window::{highest_ns, highest_units, index};

/// Latencies from here on share the bucket of [`HIGHEST_NS`].
const TRACKABLE_NS: u64 = 1 << 36;

/// The samples of a [`Histogram`](crate::histogram::Histogram), bucket by bucket, in a hash table: some kilobytes where that one
/// takes 170. Recording costs a little more.
#[derive(Clone, Debug, Default)]
pub struct CompactHistogram {
    /// Samples by the index of their bucket.
    counts: HashMap<u32, u64>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
    saturated: u64,
}

impl CompactHistogram {
    pub fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        let within_ns = if ns < TRACKABLE_NS { ns } else { HIGHEST_NS };
        let bucket = index((within_ns / UNIT_NS) as u32) as u32;
        // Nearly always there is a sample in the bucket.
        match self.counts.get_mut(&bucket) {
            Some(count) => *count += 1,
            None => drop(self.counts.insert(bucket, 1)),
        }
        self.count += 1;
        self.sum_ns = self.sum_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.saturated += u64::from(ns > HIGHEST_NS);
    }

    pub fn add(&mut self, other: &Self) {
        for (&bucket, &count) in &other.counts {
            *self.counts.entry(bucket).or_default() += count;
        }
        self.count += other.count;
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.saturated += other.saturated;
    }

    /// Forgets all samples. The memory is kept for the next ones, and given back if there were none.
    pub fn clear(&mut self) {
        if self.counts.is_empty() {
            self.counts = HashMap::default();
        }
        self.counts.clear();
        (self.count, self.sum_ns, self.max_ns, self.saturated) = (0, 0, 0, 0);
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    pub(super) fn max_ns(&self) -> u64 {
        self.max_ns
    }

    pub(super) fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Buckets with samples in no order: the highest latency, in nanoseconds, and the number of samples.
    pub(super) fn buckets(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().map(|(&bucket, &count)| (highest_ns(bucket as usize), count))
    }

    /// Converts the samples to the form that records carry.
    pub fn to_sparse(&self) -> SparseHistogram {
        let mut all: Vec<(u32, u64)> = self.counts.iter().map(|(&bucket, &count)| (bucket, count)).collect();
        all.sort_unstable();
        let mut buckets = Buckets::with_capacity(all.len());
        for (bucket, count) in all {
            buckets.push(highest_units(bucket as usize), count);
        }
        buckets.into_sparse().with_exact(self.sum_ns, self.max_ns, self.saturated)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::Histogram;

    proptest! {
        #[test]
        fn a_compact_histogram_equals_a_dense_one(
            all in prop::collection::vec((0_u32..64, any::<u64>()), 0..200),
            at in 0_usize..200,
        ) {
            let (mut dense, mut compact, mut later) = (Histogram::new(), CompactHistogram::default(), CompactHistogram::default());
            later.record(Duration::from_secs(1));
            later.clear();
            for (i, (shift, bits)) in all.into_iter().enumerate() {
                let latency = Duration::from_nanos(bits >> shift);
                dense.record(latency);
                if i < at { compact.record(latency) } else { later.record(latency) }
            }
            compact.add(&later);
            prop_assert_eq!(compact.to_sparse(), dense.to_sparse());
            prop_assert_eq!((compact.count(), compact.is_empty()), (dense.count(), dense.is_empty()));
            let mut added = Histogram::new();
            added.add_compact(&compact);
            prop_assert_eq!(added.to_sparse(), dense.to_sparse());
        }
    }
}
