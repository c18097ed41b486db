//! Student's t of the difference of two means.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// The difference of the means of two groups, with its standard error. The degrees of freedom are those of the smaller
/// group, so the groups may have different variances.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DifferenceOfMeans {
    difference: f64,
    error: f64,
    distribution: StudentsT,
}

impl DifferenceOfMeans {
    /// `None` with fewer than two values in a group.
    pub(crate) fn new(a: &[f64], b: &[f64]) -> Option<Self> {
        let freedom = a.len().min(b.len()).checked_sub(1)?;
        let distribution = StudentsT::new(0.0, 1.0, freedom as f64).ok()?;
        let (mean_a, square_a) = mean_and_squared_error(a);
        let (mean_b, square_b) = mean_and_squared_error(b);
        Some(Self { difference: mean_b - mean_a, error: (square_a + square_b).sqrt(), distribution })
    }

    /// Half the width of the interval at a confidence of 1 - `alpha`.
    pub(crate) fn margin(&self, alpha: f64) -> Option<f64> {
        let margin = self.distribution.inverse_cdf(1.0 - alpha / 2.0) * self.error;
        margin.is_finite().then_some(margin)
    }

    /// The two-sided p-value.
    pub(crate) fn p(&self) -> Option<f64> {
        if self.error == 0.0 {
            return Some(if self.difference == 0.0 { 1.0 } else { 0.0 });
        }
        let p = 2.0 * self.distribution.sf((self.difference / self.error).abs());
        p.is_finite().then_some(p)
    }
}

fn mean_and_squared_error(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, squares / (n - 1.0) / n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_equal_the_published_tables() {
        // Means 2.5 and 6.5, each with a standard error of √(5/3/4): t = 4 / √(5/6) = 4.3818 with 3 degrees of freedom.
        let found = DifferenceOfMeans::new(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0]).unwrap();
        assert!((found.p().unwrap() - 0.0220).abs() < 1e-4, "{found:?} {:?}", found.p());
        // t of 95 % is 3.1824, of 99 % 5.8409.
        for (alpha, t) in [(0.05, 3.1824), (0.01, 5.8409)] {
            assert!((found.margin(alpha).unwrap() - t * (5.0_f64 / 6.0).sqrt()).abs() < 1e-3, "{found:?}");
        }
    }

    #[test]
    fn values_that_do_not_vary_differ_for_certain_or_not_at_all() {
        let of = |b: f64| DifferenceOfMeans::new(&[1.0; 4], &[b; 4]).unwrap();
        assert_eq!((of(1.0).p(), of(1.0).margin(0.05)), (Some(1.0), Some(0.0)));
        assert_eq!((of(2.0).p(), of(2.0).margin(0.05)), (Some(0.0), Some(0.0)));
        assert!(DifferenceOfMeans::new(&[1.0], &[2.0]).is_none());
    }
}
