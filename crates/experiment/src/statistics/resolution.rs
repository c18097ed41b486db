//! The smallest difference that a number of pairs can show.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The power: the probability that the difference is shown.
const POWER: f64 = 0.8;

/// The smallest mean difference that `planned` pairs show with a power of 80 % at `alpha`, by a paired t-test on the
/// spread of these differences. `None` with fewer than two pairs.
pub(crate) fn resolution(differences: &[f64], planned: u32, alpha: f64) -> Option<f64> {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let sum = differences.iter().map(|difference| (difference - mean).powi(2)).sum::<f64>();
    let error = (sum / (n - 1.0)).sqrt() / f64::from(planned).sqrt();
    (n >= 2.0).then_some(error).and_then(|error| detectable(error, planned, alpha))
}

/// The smallest such difference, computed from the standard error of the mean difference of `pairs` pairs.
pub(crate) fn detectable(error: f64, pairs: u32, alpha: f64) -> Option<f64> {
    let t = StudentsT::new(0.0, 1.0, f64::from(pairs) - 1.0).ok()?;
    Some((t.inverse_cdf(1.0 - alpha / 2.0) + t.inverse_cdf(POWER)) * error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_p_value_is_that_of_a_paired_t_test() {
        // Standard deviation 1; 12 pairs: (2.2010 + 0.8755) / √12.
        let differences = [1.0, -1.0, 1.0, -1.0].map(|sign| sign * 0.75_f64.sqrt());
        let found = resolution(&differences, 12, 0.05).unwrap();
        assert!((found - 3.0765 / 12_f64.sqrt()).abs() < 1e-4, "{found}");
        assert_eq!(resolution(&[1.0], 12, 0.05), None);
    }
}
