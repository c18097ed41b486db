//! The ratio of paired measurements, with its interval.

/// Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom. For more, the last one is used,
/// which is slightly too wide.
const T_95: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];

/// A ratio and its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The geometric mean of the pairs' ratios.
    pub mean: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Ratio {
    /// Returns the ratio `b / a` of pairs `(a, b)` of positive measurements that were taken together. It
    /// averages logarithms, so `a / b` is exactly the inverse. One pair has no interval.
    pub fn of_pairs(pairs: &[(f64, f64)]) -> Self {
        let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let spread = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let t = T_95.get(logs.len().saturating_sub(2)).unwrap_or(&T_95[T_95.len() - 1]);
        let half = t * (spread / n).sqrt();
        Self { mean: mean.exp(), low: (mean - half).exp(), high: (mean + half).exp() }
    }
}

/// Returns the median of the values; for an even number, the upper one of the middle two.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
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
    fn the_interval_is_students_t() {
        // Logarithms 0.01, 0.02, 0.03: mean 0.02, standard error 0.01/√3, t 4.303 at 2 degrees of freedom.
        let pairs = [0.01_f64, 0.02, 0.03].map(|log| (1.0, log.exp()));
        let ratio = Ratio::of_pairs(&pairs);
        assert!((ratio.mean.ln() - 0.02).abs() < 1e-9);
        assert!((ratio.high.ln() - 0.02 - 4.303 * 0.01 / 3_f64.sqrt()).abs() < 1e-9, "{ratio:?}");
    }

    #[test]
    fn one_pair_has_no_interval() {
        let ratio = Ratio::of_pairs(&[(2.0, 1.0)]);
        assert!((ratio.mean - 0.5).abs() < 1e-9 && ratio.low.is_nan());
    }
}
