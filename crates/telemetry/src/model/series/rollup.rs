//! Intervals that are too old to be kept one by one.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::histogram::SparseHistogram;
use crate::metric::Metric;
use crate::model::series::Interval;

/// Time that intervals are put together to, in microseconds.
const STRETCH_US: u64 = 10_000_000;
/// Stretches that are kept: six hours of them.
const STRETCHES_MAX: usize = 2_160;
/// Buckets of latencies in all of them, eight bytes each: six hours of some 1,800 a stretch, which is more than two
/// digits of all classes take.
const BUCKETS_MAX: usize = 4_000_000;

/// Older intervals, put together to ten seconds each, with latencies to two significant digits.
#[derive(Debug)]
pub(in crate::model) struct Rollup<C: Metric, L: Metric> {
    stretches: VecDeque<Arc<Interval<C, L>>>,
    buckets: usize,
}

impl<C: Metric, L: Metric> Default for Rollup<C, L> {
    fn default() -> Self {
        Self { stretches: VecDeque::new(), buckets: 0 }
    }
}

impl<C: Metric, L: Metric> Rollup<C, L> {
    /// Takes in an interval that follows the one before. One that follows a loss stays alone: what is blank must not
    /// make blank what is beside it.
    pub(in crate::model) fn take_in(&mut self, interval: &Interval<C, L>) {
        let is_open = |last: &&mut Arc<Interval<C, L>>| {
            !last.after_loss && !interval.after_loss && last.length_us() < STRETCH_US
        };
        if let Some(last) = self.stretches.back_mut().filter(is_open) {
            self.buckets -= last.buckets();
            let span_us = (last.start_us, interval.end_us);
            *last = Arc::new(Interval::merged(span_us, &[last, interval], two_digits));
        } else {
            let span_us = (interval.start_us, interval.end_us);
            self.stretches.push_back(Arc::new(Interval::merged(span_us, &[interval], two_digits)));
        }
        self.buckets += self.stretches.back().map_or(0, |last| last.buckets());
        while self.stretches.len() > STRETCHES_MAX || (self.buckets > BUCKETS_MAX && self.stretches.len() > 1)
        {
            self.buckets -= self.stretches.pop_front().map_or(0, |oldest| oldest.buckets());
        }
    }

    /// What it takes of memory.
    pub(in crate::model) fn bytes(&self) -> usize {
        self.stretches.len() * Interval::<C, L>::bytes_without_buckets()
            + self.buckets * SparseHistogram::BUCKET_BYTES
    }

    /// Oldest first.
    pub(in crate::model) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Interval<C, L>>> {
        self.stretches.iter()
    }
}

/// The highest latency of a bucket of two significant digits, in the same units.
fn two_digits(units: u32) -> u32 {
    let power = (units | 255).ilog2() - 7;
    (units >> power << power) | ((1 << power) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Histogram;

    #[test]
    fn two_digits_of_a_percentile_are_kept() {
        let mut histogram = Histogram::new();
        (1..=10_000_u64).for_each(|i| histogram.record_ns(i * 10_000));
        let fine = histogram.to_sparse();
        let coarse = SparseHistogram::merged_wider([&fine], two_digits);
        assert_eq!((coarse.count(), coarse.max_ns()), (fine.count(), fine.max_ns()));
        assert!(coarse.buckets().len() * 4 < fine.buckets().len());
        for q in [0.5, 0.9, 0.99, 0.999] {
            let (exact, kept) = (fine.quantile_ns(q).unwrap(), coarse.quantile_ns(q).unwrap());
            assert!(kept >= exact && kept - exact <= exact / 100, "q {q}: {kept} for {exact}");
        }
    }
}
