//! Latencies by powers of two, for the heat map.

use telemetry::SparseHistogram;

/// Powers of two that are told apart: from 1 µs to 1 min.
pub(crate) const LEVELS: usize = 27;
/// The level that begins at a millisecond.
const MILLISECOND: i32 = 10;

/// Samples by level.
pub(crate) type Levels = [u64; LEVELS];

/// Where a level begins, in milliseconds.
pub(crate) fn beginning_ms(level: usize) -> f64 {
    f64::from(level as i32 - MILLISECOND).exp2()
}

/// Adds the samples of a distribution. A bucket of it lies in the level of its highest latency.
pub(super) fn add(levels: &mut Levels, distribution: &SparseHistogram) {
    let end_ns = |level: usize| (beginning_ms(level + 1) * 1e6) as u64;
    let (mut level, mut end) = (0, end_ns(0));
    for (ns, count) in distribution.buckets() {
        while ns >= end && level + 1 < LEVELS {
            level += 1;
            end = end_ns(level);
        }
        levels[level] = levels[level].saturating_add(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_lies_in_the_level_that_begins_below_it() {
        let mut histogram = telemetry::Histogram::new();
        for us in [1, 100, 999, 1_100, 3_900, 4_100, 50_000_000] {
            histogram.record_ns(us * 1_000);
        }
        let mut levels = [0; LEVELS];
        add(&mut levels, &histogram.to_sparse());
        let found: Vec<f64> = (0..LEVELS).filter(|&l| levels[l] > 0).map(beginning_ms).collect();
        assert_eq!(found, [0.000_976_562_5, 0.0625, 0.5, 1.0, 2.0, 4.0, 32_768.0]);
        assert_eq!(levels.iter().sum::<u64>(), 7);
    }
}
