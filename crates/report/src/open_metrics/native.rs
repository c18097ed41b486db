//! Buckets of Prometheus' native histograms: their bounds are the powers of one base.

use records::metrics::TimeResolution;

/// Bounds double in `2^SCHEMA` steps: each is 4.4 % above the one before.
pub(super) const SCHEMA: i32 = 4;
/// Latencies up to this count as zero, in seconds: a recorded histogram has no narrower bucket.
const ZERO_THRESHOLD_S: f64 = 64e-9;

/// Latencies by native buckets.
///
/// The samples of a recorded bucket count together, at its highest latency. That is above a sample by at most 64 ns or
/// 0.1 %, whichever is more. A sample that is as near as that to the next native bucket may count there; all others count
/// in the bucket that holds them. The counts are exact. There are fewer than 500 buckets.
///
/// A latency at the resolution of its log is only known to be no more than that: it counts as zero.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct NativeBuckets {
    /// In seconds; it counts as zero itself.
    pub(super) zero_threshold: f64,
    pub(super) zero_count: u64,
    /// Bucket `i` holds latencies above `bound(i - 1)` and up to `bound(i)`; only buckets with samples, in ascending order.
    pub(super) positive: Vec<(i32, u64)>,
}

impl NativeBuckets {
    pub(super) fn new(resolution: TimeResolution) -> Self {
        let zero_threshold = (resolution.us() as f64 / 1e6).max(ZERO_THRESHOLD_S);
        Self { zero_threshold, zero_count: 0, positive: Vec::new() }
    }

    /// Adds samples of a latency, which is not below the one before.
    pub(super) fn add(&mut self, seconds: f64, count: u64) {
        if seconds <= self.zero_threshold {
            self.zero_count += count;
            return;
        }
        let index = index(seconds);
        match self.positive.last_mut() {
            Some((last, total)) if *last == index => *total += count,
            _ => self.positive.push((index, count)),
        }
    }
}

/// The highest latency of a bucket, in seconds.
fn bound(index: i32) -> f64 {
    (f64::from(index) / f64::from(1 << SCHEMA)).exp2()
}

/// The bucket that holds a latency.
fn index(seconds: f64) -> i32 {
    // The logarithm may be rounded across a bound.
    let about = (seconds.log2() * f64::from(1 << SCHEMA)).ceil() as i32;
    if seconds <= bound(about - 1) {
        about - 1
    } else if seconds <= bound(about) {
        about
    } else {
        about + 1
    }
}

#[cfg(test)]
mod tests {
    use records::histogram::{HIGHEST_NS, Histogram};

    use super::super::histograms::sample;
    use super::*;

    #[test]
    fn a_bound_belongs_to_the_bucket_below_it() {
        for power in -23..6 {
            let (index_of_power, seconds) = (power << SCHEMA, f64::from(power).exp2());
            assert_eq!(index(seconds.next_down()), index_of_power);
            assert_eq!(index(seconds), index_of_power, "2^{power} s");
            assert_eq!(index(seconds.next_up()), index_of_power + 1);
        }
        for i in -400..100 {
            let seconds = bound(i);
            assert_eq!([seconds.next_down(), seconds, seconds.next_up()].map(index), [i, i, i + 1]);
        }
    }

    #[test]
    fn a_sample_counts_once_in_its_bucket_or_in_one_just_above_it() {
        let mut all = Histogram::new();
        let mut ns = 0;
        while ns <= HIGHEST_NS {
            let mut one = Histogram::new();
            one.record_ns(ns);
            all.record_ns(ns);
            let NativeBuckets { zero_threshold, zero_count, positive } =
                sample(&one, TimeResolution::FINE).native;
            let seconds = ns as f64 / 1e9;
            match positive[..] {
                [] => assert!(zero_count == 1 && seconds <= zero_threshold, "{ns} ns"),
                [(i, 1)] => {
                    assert!(bound(i - 1) < seconds * 1.001 + 64e-9 && seconds <= bound(i), "{ns} ns in {i}");
                }
                _ => panic!("{positive:?}"),
            }
            ns += ns / 300 + 13;
        }
        all.record_ns(u64::MAX);
        let found = sample(&all, TimeResolution::FINE);
        let NativeBuckets { zero_count, positive, .. } = &found.native;
        assert_eq!(zero_count + positive.iter().map(|(_, count)| count).sum::<u64>(), found.count);
        assert!(positive.is_sorted_by(|(one, _), (next, _)| one < next));
        let [lowest, highest] = [index(ZERO_THRESHOLD_S), positive.last().unwrap().0];
        assert!(highest - lowest < 500, "{lowest} to {highest}");
    }

    #[test]
    fn a_latency_at_the_resolution_of_its_log_counts_as_zero() {
        let mut histogram = Histogram::new();
        for ns in [0, 400_000, 1_000_000, 2_000_000] {
            histogram.record_ns(ns);
        }
        let NativeBuckets { zero_threshold, zero_count, positive } =
            sample(&histogram, TimeResolution::from_us(1_000)).native;
        assert_eq!((zero_threshold.to_bits(), zero_count), (0.001_f64.to_bits(), 3));
        assert_eq!(positive, [(index(0.002), 1)]);
    }
}
