//! A histogram of several intervals, from which intervals can be removed again.

use crate::histogram::sparse::{SparseHistogram, UNIT_NS};

/// Buckets of a power of two; both halves of the first one.
const HALF: usize = 1024;
/// Powers of two above the first, up to 2³² units of [`UNIT_NS`].
const POWERS: usize = 22;
const BUCKETS: usize = (POWERS + 1) * HALF;
/// Buckets that share a sum, so that a percentile is found without a look at every bucket.
const BLOCK: usize = 128;

/// The samples of several [`SparseHistogram`]s, in the buckets of the hdrhistogram library.
///
/// The library cannot remove samples from a histogram, and merging a whole window for each frame costs more than
/// drawing it. The layout is that of `HdrHistogram` (hdrhistogram.org): 3 significant digits, buckets of 64 ns up to
/// 131 µs, twice as wide with each power of two above.
#[derive(Clone, Debug, Default)]
pub struct WindowHistogram {
    /// Samples by bucket; empty until there is one.
    counts: Box<[u64]>,
    /// Sums over each [`BLOCK`] of buckets.
    blocks: Box<[u64]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
}

impl WindowHistogram {
    pub fn add(&mut self, histogram: &SparseHistogram) {
        if histogram.is_empty() {
            return;
        }
        if self.counts.is_empty() {
            self.counts = vec![0; BUCKETS].into_boxed_slice();
            self.blocks = vec![0; BUCKETS.div_ceil(BLOCK)].into_boxed_slice();
        }
        for (units, count) in histogram.units() {
            let at = index(units);
            self.counts[at] = self.counts[at].saturating_add(count);
            self.blocks[at / BLOCK] = self.blocks[at / BLOCK].saturating_add(count);
            self.count = self.count.saturating_add(count);
        }
        self.sum_ns = self.sum_ns.saturating_add(histogram.sum_ns());
        self.max_ns = self.max_ns.max(histogram.max_ns());
    }

    /// Removes all samples of a histogram that was added before. True if the maximum may have been one of them: then
    /// the caller must set it by [`Self::set_max_ns`].
    #[must_use]
    pub fn remove(&mut self, histogram: &SparseHistogram) -> bool {
        if histogram.is_empty() || self.counts.is_empty() {
            return false;
        }
        for (units, count) in histogram.units() {
            let at = index(units);
            self.counts[at] = self.counts[at].saturating_sub(count);
            self.blocks[at / BLOCK] = self.blocks[at / BLOCK].saturating_sub(count);
            self.count = self.count.saturating_sub(count);
        }
        self.sum_ns = self.sum_ns.saturating_sub(histogram.sum_ns());
        histogram.max_ns() >= self.max_ns
    }

    /// Sets the exact maximum, in nanoseconds.
    pub fn set_max_ns(&mut self, max_ns: u64) {
        self.max_ns = max_ns;
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Exact sum of all samples, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Exact largest sample, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The latency that the share `q` (above 0, to 1) of the samples does not exceed, in nanoseconds; `None` without
    /// samples. Agrees with [`Histogram::quantile_ns`](crate::histogram::Histogram::quantile_ns).
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let wanted = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut below = 0_u64;
        let block = self.blocks.iter().position(|&count| {
            let holds_it = below.saturating_add(count) >= wanted;
            below = if holds_it { below } else { below.saturating_add(count) };
            holds_it
        })?;
        let within = self.counts[block * BLOCK..].iter().position(|&count| {
            below = below.saturating_add(count);
            below >= wanted
        })?;
        Some(highest_ns(block * BLOCK + within).min(self.max_ns))
    }
}

/// The bucket of a latency in units.
pub(crate) fn index(units: u32) -> usize {
    let power = (units | (2 * HALF as u32 - 1)).ilog2() as usize - HALF.ilog2() as usize;
    power * HALF + (units >> power) as usize
}

/// The highest latency of a bucket, in nanoseconds.
pub(crate) fn highest_ns(index: usize) -> u64 {
    (u64::from(highest_units(index)) + 1) * UNIT_NS - 1
}

/// The highest latency of a bucket, in units.
pub(crate) fn highest_units(index: usize) -> u32 {
    let power = (index / HALF).saturating_sub(1);
    let units = ((index - power * HALF + 1) as u64) << power;
    (units - 1) as u32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::histogram::Histogram;

    fn histogram(samples: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &ns in samples {
            histogram.record_ns(ns);
        }
        histogram
    }

    #[test]
    fn every_bucket_lies_where_its_highest_latency_does() {
        for at in (0..BUCKETS).step_by(7).chain([BUCKETS - 1]) {
            let units = highest_ns(at) / UNIT_NS;
            assert_eq!(index(u32::try_from(units).unwrap()), at);
        }
        assert!(index(u32::MAX) < BUCKETS);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn after_removals_percentiles_equal_those_of_the_rest(
            kept in proptest::collection::vec(1..100_000_000_000_u64, 0..300),
            removed in proptest::collection::vec(1..100_000_000_000_u64, 0..300),
        ) {
            let mut merged = WindowHistogram::default();
            let (stays, leaves) = (histogram(&kept), histogram(&removed));
            merged.add(&stays.to_sparse());
            merged.add(&leaves.to_sparse());
            if merged.remove(&leaves.to_sparse()) {
                merged.set_max_ns(stays.max_ns());
            }
            prop_assert_eq!((merged.count(), merged.max_ns()), (stays.count(), stays.max_ns()));
            for q in [0.001, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0] {
                prop_assert_eq!(merged.quantile_ns(q), stays.quantile_ns(q), "q {}", q);
            }
        }
    }
}
