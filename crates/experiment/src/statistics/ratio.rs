//! The ratio of measurements that were taken in pairs.

use statrs::distribution::{ContinuousCDF, StudentsT};

use serde::Serialize;

use super::resolution::detectable;
use super::sign_flip_p;

/// The error rate of the interval.
const ALPHA: f64 = 0.05;
/// Matters above [`EXACT_PAIRS_MAX`](super::EXACT_PAIRS_MAX) pairs only, where the sign-flip test draws.
const SIGN_FLIP_SEED: u64 = 1;

/// The ratio `b / a` of pairs `(a, b)`, with its 95 % confidence interval and the p-value of a test that it is 1.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Ratio {
    /// The geometric mean of the pairs' ratios.
    pub mean: f64,
    /// The lower end of the interval; not a number with fewer than two pairs.
    pub low: f64,
    /// The upper end of the interval; not a number with fewer than two pairs.
    pub high: f64,
    pub pairs: usize,
    /// The two-sided p-value of the paired t-test on logarithms; 1 with fewer than two pairs.
    pub p: f64,
    /// The standard error of the mean logarithm; not a number with fewer than two pairs.
    pub error: f64,
}

impl Ratio {
    /// Compares pairs of positive measurements that were taken together. It averages logarithms, so `a / b` is exactly
    /// the inverse of `b / a`, and slow pairs weigh no more than fast ones.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Self {
        let logs = logs(pairs);
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let variance = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (variance / n).sqrt();
        let distribution = StudentsT::new(0.0, 1.0, n - 1.0).ok();
        let half = distribution.map_or(f64::NAN, |t| t.inverse_cdf(1.0 - ALPHA / 2.0) * error);
        let p = distribution.map_or(1.0, |t| if mean == 0.0 { 1.0 } else { 2.0 * t.sf(mean.abs() / error) });
        Self {
            mean: mean.exp(),
            low: (mean - half).exp(),
            high: (mean + half).exp(),
            pairs: pairs.len(),
            p,
            error,
        }
    }

    /// The smallest difference, as a share, that as many pairs show four times in five at the error rate `alpha`; `None`
    /// with fewer than two pairs.
    pub fn resolution(&self, alpha: f64) -> Option<f64> {
        detectable(self.error, self.pairs as u32, alpha).map(f64::exp_m1)
    }
}

/// The two-sided p-value of the sign-flip test on the logarithms of the ratios, which assumes no distribution. Its cost
/// doubles with each pair, up to [`EXACT_PAIRS_MAX`](super::EXACT_PAIRS_MAX).
pub fn sign_flip_p_of_pairs(pairs: &[(f64, f64)]) -> f64 {
    sign_flip_p(&logs(pairs), SIGN_FLIP_SEED)
}

fn logs(pairs: &[(f64, f64)]) -> Vec<f64> {
    pairs.iter().map(|(a, b)| (b / a).ln()).collect()
}

/// The p-values of a family of tests, adjusted so that a limit on them bounds the probability of any false finding (S.
/// Holm, A Simple Sequentially Rejective Multiple Test Procedure, 1979).
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &at) in order.iter().enumerate() {
        largest = largest.max(p_values[at] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[at] = largest;
    }
    adjusted
}

/// The median: of an even number of values the mean of the middle two; not a number without values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 0 => f64::midpoint(values[n / 2 - 1], values[n / 2]),
        n => values[n / 2],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_does_not_depend_on_the_scale_of_a_pair() {
        let ratio = Ratio::of_pairs(&[(100.0, 98.0), (50.0, 49.0), (10.0, 9.8)]);
        assert!((ratio.mean - 0.98).abs() < 1e-9 && (ratio.high - ratio.low) < 1e-9, "{ratio:?}");
    }

    #[test]
    fn interval_and_p_are_those_of_students_t() {
        // Logarithms 0.01, 0.02, 0.03: mean 0.02, standard error 0.01/√3, t 4.3027 at 2 degrees of freedom. Of t at two
        // degrees of freedom, p is 1 - t/√(t² + 2), and t is 2√3 here.
        let pairs = [0.01_f64, 0.02, 0.03].map(|log| (1.0, log.exp()));
        let ratio = Ratio::of_pairs(&pairs);
        assert!((ratio.mean.ln() - 0.02).abs() < 1e-9);
        assert!((ratio.high.ln() - 0.02 - 4.302_65 * 0.01 / 3_f64.sqrt()).abs() < 1e-6, "{ratio:?}");
        let t = 2.0 * 3_f64.sqrt();
        assert!((ratio.p - (1.0 - t / (t * t + 2.0).sqrt())).abs() < 1e-6, "{ratio:?}");
        assert!((sign_flip_p_of_pairs(&pairs) - 0.25).abs() < 1e-12);
    }

    #[test]
    fn the_inverse_has_the_inverse_ratio_and_the_same_p() {
        let pairs = [(1.0, 1.1), (2.0, 2.3), (3.0, 2.9), (4.0, 4.4)];
        let (there, back) = (Ratio::of_pairs(&pairs), Ratio::of_pairs(&pairs.map(|(a, b)| (b, a))));
        assert!((there.mean * back.mean - 1.0).abs() < 1e-12 && (there.low * back.high - 1.0).abs() < 1e-12);
        assert!((there.p - back.p).abs() < 1e-12);
    }

    #[test]
    fn one_pair_has_no_interval_and_pairs_alike_no_difference() {
        let ratio = Ratio::of_pairs(&[(2.0, 1.0)]);
        assert!((ratio.mean - 0.5).abs() < 1e-9 && ratio.low.is_nan() && ratio.resolution(0.05).is_none());
        assert!((ratio.p - 1.0).abs() < 1e-12, "{ratio:?}");
        let alike = Ratio::of_pairs(&[(3.0, 3.0); 6]);
        assert!([alike.mean, alike.low, alike.high, alike.p].iter().all(|one| (one - 1.0).abs() < 1e-12));
    }

    #[test]
    fn holm_multiplies_the_smallest_by_all_and_keeps_the_order() {
        // 4 · 0.01, 3 · 0.02, then 2 · 0.025 = 0.05, which may not be below the one before it, and 1 · 0.5.
        let adjusted = holm(&[0.02, 0.5, 0.01, 0.025]);
        let expected = [0.06, 0.5, 0.04, 0.06];
        assert!(adjusted.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{adjusted:?}");
        assert_eq!(holm(&[0.7, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), [0.0; 0]);
    }

    #[test]
    fn a_median_of_an_even_number_is_between_the_middle_two() {
        assert!((median([4.0, 1.0, 3.0, 2.0]) - 2.5).abs() < 1e-12);
        assert!((median([9.0, 1.0, 2.0]) - 2.0).abs() < 1e-12);
        assert!(median([]).is_nan());
    }
}
