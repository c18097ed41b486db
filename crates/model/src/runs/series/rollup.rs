//! Merges intervals that are too old to be kept one by one.

use std::collections::VecDeque;
use std::sync::Arc;

use crate::runs::series::interval::Interval;
use records::histogram::SparseHistogram;
use records::metrics::Metric;

/// Length of a merged interval at first, in microseconds.
const PERIOD_US: u64 = 10_000_000;
/// They get longer if their latencies have too many buckets, up to this, in microseconds.
const PERIOD_MAX_US: u64 = 600_000_000;
/// Merged intervals that are kept: six hours at first.
const PERIODS_MAX: usize = 2_160;
/// Latency buckets in all of them, eight bytes each: six hours of some 1,800 each, which is more than two digits of
/// all classes take.
const BUCKETS_MAX: usize = 4_000_000;

/// Older intervals, merged to ten seconds or more each, with latencies to two significant digits.
#[derive(Debug)]
pub(in crate::runs) struct Rollup<C: Metric, L: Metric> {
    periods: VecDeque<Arc<Interval<C, L>>>,
    /// How long each is at least, in microseconds.
    period_us: u64,
    buckets: usize,
}

impl<C: Metric, L: Metric> Default for Rollup<C, L> {
    fn default() -> Self {
        Self { periods: VecDeque::new(), period_us: PERIOD_US, buckets: 0 }
    }
}

impl<C: Metric, L: Metric> Rollup<C, L> {
    /// Adds the next interval. An interval after a loss is not merged: its gap must not blank its neighbours. Nor is one of
    /// another period: an idle part has no intervals between.
    pub(in crate::runs) fn add(&mut self, interval: &Interval<C, L>) {
        let is_open = |last: &&mut Arc<Interval<C, L>>| {
            let after_us = interval.start_us.saturating_sub(last.start_us);
            !last.after_loss && !interval.after_loss && after_us < self.period_us
        };
        if let Some(last) = self.periods.back_mut().filter(is_open) {
            self.buckets -= last.buckets();
            let span_us = (last.start_us, interval.end_us);
            *last = Arc::new(Interval::merged(span_us, &[last, interval], two_digits));
        } else {
            let span_us = (interval.start_us, interval.end_us);
            self.periods.push_back(Arc::new(Interval::merged(span_us, &[interval], two_digits)));
        }
        self.buckets += self.periods.back().map_or(0, |last| last.buckets());
        while self.buckets > BUCKETS_MAX && self.period_us < PERIOD_MAX_US {
            self.widen(2 * self.period_us);
        }
        while self.periods.len() > PERIODS_MAX || (self.buckets > BUCKETS_MAX && self.periods.len() > 1) {
            self.buckets -= self.periods.pop_front().map_or(0, |oldest| oldest.buckets());
        }
    }

    /// Merges intervals further, to as many microseconds each.
    pub(in crate::runs) fn widen(&mut self, period_us: u64) {
        if period_us > self.period_us {
            let finer = std::mem::replace(self, Self { period_us, ..Self::default() });
            finer.periods.iter().for_each(|interval| self.add(interval));
        }
    }

    /// Its size in memory, in bytes.
    pub(in crate::runs) fn bytes(&self) -> usize {
        self.periods.len() * Interval::<C, L>::bytes_without_buckets()
            + self.buckets * SparseHistogram::BUCKET_BYTES
    }

    /// Oldest first.
    pub(in crate::runs) fn iter(&self) -> impl DoubleEndedIterator<Item = &Arc<Interval<C, L>>> {
        self.periods.iter()
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
    use records::histogram::Histogram;
    use records::metrics::{Counters, ProxyCounter, ProxyLatency};

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

    #[test]
    fn a_day_of_full_minutes_is_kept_in_fewer_of_its_buckets() {
        let minute_us = 60_000_000;
        let mut histogram = Histogram::new();
        (1..=6_000_u64).for_each(|i| histogram.record_ns(1_000 + i * i * 1_000));
        let latencies = || ProxyLatency::ALL.iter().map(|_| histogram.to_sparse()).collect();
        let mut rollup = Rollup::<ProxyCounter, ProxyLatency>::default();
        for minute in 0..1_440 {
            let span_us = (minute * minute_us, (minute + 1) * minute_us);
            rollup.add(&Interval::new(span_us, false, Counters::default(), latencies()));
            assert!(rollup.buckets <= BUCKETS_MAX);
        }
        let kept: Vec<_> = rollup.iter().collect();
        assert_eq!((kept[0].start_us, kept[kept.len() - 1].end_us), (0, 1_440 * minute_us));
        assert!(kept.is_sorted_by(|a, b| a.end_us == b.start_us), "without a hole");
        let samples: u64 = kept.iter().map(|interval| interval.latency(ProxyLatency::Exchange).count()).sum();
        assert_eq!(samples, 1_440 * histogram.count());
        assert!((120_000_000..1_200_000_000).contains(&kept[0].length_us()), "{}", kept[0].length_us());
    }
}
