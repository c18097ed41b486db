//! Latencies in steps of 1, 2, 5, 10 and so on, for the heat map and its axis.

use records::histogram::SparseHistogram;

/// The levels, three to a power of ten: from 1 µs to 50 s and above.
pub(crate) const LEVELS: usize = 24;
/// The power of ten of the first level, in milliseconds.
const FIRST_POWER: i32 = -3;

/// Samples by level.
pub(crate) type Levels = [u64; LEVELS];

/// Where a level begins, in milliseconds.
pub(crate) fn beginning_ms(level: usize) -> f64 {
    [1.0, 2.0, 5.0][level % 3] * 10_f64.powi(level as i32 / 3 + FIRST_POWER)
}

/// Adds the samples of a histogram. Each bucket lies in the level of its highest latency.
pub(crate) fn add(levels: &mut Levels, histogram: &SparseHistogram) {
    let end_ns = |level: usize| (beginning_ms(level + 1) * 1e6) as u64;
    let (mut level, mut end) = (0, end_ns(0));
    for (ns, count) in histogram.buckets() {
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
        let mut histogram = records::histogram::Histogram::new();
        for us in [1, 100, 999, 1_100, 3_900, 4_100, 50_000_000] {
            histogram.record_ns(us * 1_000);
        }
        let mut levels = [0; LEVELS];
        add(&mut levels, &histogram.to_sparse());
        let found: Vec<f64> = (0..LEVELS).filter(|&l| levels[l] > 0).map(beginning_ms).collect();
        assert_eq!(found, [0.001, 0.1, 0.5, 1.0, 2.0, 50_000.0]);
        assert_eq!(levels.iter().sum::<u64>(), 7);
    }
}
