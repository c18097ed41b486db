//! The confidence interval of a percentile.
//!
//! An order-statistic interval: of `n` samples in ascending order the `low`-th and the `high`-th enclose the
//! percentile in at least 95 of 100 cases for any distribution, because the number of samples above it is binomial (H.
//! A. David, H. N. Nagaraja, Order Statistics, 3rd ed., section 7.1). If there are too few samples beyond the
//! percentile, the interval is open at that end. Samples count as independent. Samples of one stall are not, so the
//! true interval is wider.

/// The probability beyond each end.
const TAIL: f64 = 0.025;
/// Standard deviations that leave as much of a normal distribution beyond them.
const NORMAL_TAIL: f64 = 1.959_964;
/// From this variance on the binomial distribution is as good as normal.
const VARIANCE_MAX: f64 = 100.0;

/// The 95 % confidence interval of the percentile at `q` of `n` samples, in nanoseconds. An end is `None` if too few
/// samples lie beyond it. `quantile_ns` returns the latency that a share of the samples does not exceed.
pub fn percentile_interval_ns(
    n: u64,
    q: f64,
    quantile_ns: impl Fn(f64) -> Option<u64>,
) -> (Option<u64>, Option<u64>) {
    // Half a rank less, so rounding never selects the next rank.
    let at = |rank: u64| quantile_ns((rank as f64 - 0.5) / n as f64);
    let (low, high) = ranks(n, q);
    (low.and_then(at), high.and_then(at))
}

/// Ranks, from 1, of the samples that enclose the percentile at `q` of `n`; `None` where no sample is far enough out.
fn ranks(n: u64, q: f64) -> (Option<u64>, Option<u64>) {
    let (most, fewest) = above(n, 1.0 - q);
    // With at most `most` samples above it, the sample below those is not above it.
    let low = most.and_then(|most| n.checked_sub(most)).filter(|&rank| rank > 0);
    (low, fewest.map(|fewest| n - fewest))
}

/// The number of samples above the percentile that is exceeded with a probability of at most [`TAIL`], and the number
/// that is undercut as rarely; `None` if no number in `0..n` qualifies.
fn above(n: u64, share: f64) -> (Option<u64>, Option<u64>) {
    let mean = n as f64 * share;
    let variance = mean * (1.0 - share);
    if variance > VARIANCE_MAX {
        let half = NORMAL_TAIL * variance.sqrt();
        let most = (mean + half).ceil() as u64;
        return ((most < n).then_some(most), Some((mean - half).floor() as u64).filter(|_| mean > half));
    }
    // The counts on the smaller side are few: their probabilities are summed one by one.
    let mut probability = (1.0 - share).powf(n as f64);
    let (mut sum, mut most, mut fewest) = (0.0, None, None);
    for k in 0..n {
        sum += probability;
        // P(K ≤ k): the probability of at most k samples above it.
        if sum <= TAIL {
            fewest = Some(k);
        }
        // P(K > k): the probability of more.
        if 1.0 - sum <= TAIL {
            most = Some(k);
            break;
        }
        probability *= (n - k) as f64 / (k + 1) as f64 * share / (1.0 - share);
    }
    (most, fewest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_tables() {
        // The median of ten lies between the 2nd and the 9th, with 97.9 %.
        assert_eq!(ranks(10, 0.5), (Some(2), Some(9)));
        assert_eq!(ranks(100, 0.5), (Some(40), Some(61)));
        assert_eq!(ranks(5, 0.5), (None, None));
        assert_eq!(ranks(6, 0.5), (Some(1), Some(6)));
    }

    #[test]
    fn a_tail_of_few_samples_has_no_upper_end() {
        // The largest of 368 is above the 99th percentile in 97.5 % of all cases; of 367 not quite.
        assert_eq!(ranks(368, 0.99).1, Some(368));
        assert_eq!(ranks(367, 0.99).1, None);
        assert!(ranks(367, 0.99).0.is_some_and(|low| low < 364));
        assert_eq!(ranks(0, 0.99), (None, None));
    }

    #[test]
    fn both_ways_of_reckoning_meet() {
        // A variance just below and just above the bound.
        let (few, many) = (ranks(10_100, 0.99), ranks(10_102, 0.99));
        let apart = |a: Option<u64>, b: Option<u64>| a.unwrap().abs_diff(b.unwrap());
        assert!(apart(few.0, many.0) <= 4 && apart(few.1, many.1) <= 4, "{few:?} {many:?}");
    }

    #[test]
    fn the_interval_holds_the_percentile_in_95_of_100_cases() {
        let mut random = 7_u64;
        let mut draw = || {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 40) as f64 / f64::from(1 << 24)
        };
        for (n, q) in [(40, 0.5), (1_000, 0.99), (500, 0.5)] {
            let (low, high) = ranks(n, q);
            let trials = 400;
            let held = (0..trials).filter(|_| {
                let mut samples: Vec<f64> = (0..n).map(|_| draw()).collect();
                samples.sort_unstable_by(f64::total_cmp);
                let at = |rank: Option<u64>| samples[rank.unwrap() as usize - 1];
                // A percentile of numbers drawn evenly from 0 to 1 is the share itself.
                at(low) <= q && q <= at(high)
            });
            let held = held.count();
            assert!(held * 100 >= trials * 92, "{held} of {trials} for {n}, {q}");
        }
    }
}
