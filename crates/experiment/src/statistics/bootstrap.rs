//! The interval of an effect by a paired bootstrap: pairs are drawn with replacement, and each draw's figures compared.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// With fewer pairs too few draws differ for an interval.
const UNITS_MIN: usize = 4;

/// Both ends of an effect's interval at a confidence of 1 - `alpha`. `effect` gives the effect of a draw, in which
/// each pair counts by its weight, or `None` without samples. The result is `None` with fewer than four pairs, or if
/// more than a tenth of the draws have no effect.
///
/// Percentiles of so few pairs make too narrow an interval, like the normal distribution in place of Student's t. The
/// interval is widened by the same factor (T. Hesterberg, What Teachers Should Know About the Bootstrap, 2015, section
/// 3.4: the expanded percentile interval).
pub(crate) fn interval(
    pairs: usize,
    alpha: f64,
    draws: u32,
    seed: u64,
    mut effect: impl FnMut(&[u32]) -> Option<f64>,
) -> Option<(f64, f64)> {
    let tail = expanded_tail(pairs, alpha)?;
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut weights = vec![0_u32; pairs];
    let mut effects = Vec::with_capacity(draws as usize);
    for _ in 0..draws {
        weights.fill(0);
        (0..pairs).for_each(|_| weights[rng.usize(..pairs)] += 1);
        effects.extend(effect(&weights));
    }
    ends(effects, draws, tail)
}

/// Percentiles of the effects; `None` if too many draws have none.
fn ends(mut effects: Vec<f64>, draws: u32, tail: f64) -> Option<(f64, f64)> {
    if effects.len() * 10 < draws as usize * 9 {
        return None;
    }
    effects.sort_unstable_by(f64::total_cmp);
    let at = |share: f64| effects[((share * effects.len() as f64) as usize).min(effects.len() - 1)];
    Some((at(tail), at(1.0 - tail)))
}

/// The share of draws beyond each end of the interval.
fn expanded_tail(pairs: usize, alpha: f64) -> Option<f64> {
    let n = (pairs >= UNITS_MIN).then_some(pairs as f64)?;
    let t = StudentsT::new(0.0, 1.0, n - 1.0).ok()?.inverse_cdf(1.0 - alpha / 2.0);
    Some(Normal::standard().cdf(-(n / (n - 1.0)).sqrt() * t))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_widened_as_students_t_would() {
        // n 6: t 2.5706 · √(6/5) = 2.8160, Φ(-2.8160) = 0.00243; with many pairs it is what was asked for.
        assert!((expanded_tail(6, 0.05).unwrap() - 0.002_43).abs() < 5e-6);
        assert!((expanded_tail(12, 0.05).unwrap() - 0.010_76).abs() < 5e-6);
        assert!((expanded_tail(100_000, 0.05).unwrap() - 0.025).abs() < 1e-5);
        assert_eq!(expanded_tail(3, 0.05), None);
    }

    #[test]
    fn the_interval_of_a_mean_is_that_of_students_t() {
        // Mean 0, standard deviation 1.4142 of 12 values -2, -1, 0, 1, 2, …: t interval ±2.201 · s/√12.
        let values: Vec<f64> = (0..12).map(|i| f64::from(i % 6) - 2.5).collect();
        let sd = (values.iter().map(|value| value * value).sum::<f64>() / 11.0).sqrt();
        let half = 2.201 * sd / 12_f64.sqrt();
        let mean = |weights: &[u32]| {
            Some(values.iter().zip(weights).map(|(value, &n)| value * f64::from(n)).sum::<f64>() / 12.0)
        };
        let (low, high) = interval(12, 0.05, 20_000, 1, mean).unwrap();
        assert!((low + half).abs() < 0.08 && (high - half).abs() < 0.08, "{low} {high}, expected ±{half}");
    }

    #[test]
    fn there_is_no_interval_without_four_pairs_or_effects() {
        assert_eq!(interval(3, 0.05, 100, 1, |_| Some(1.0)), None);
        assert_eq!(interval(8, 0.05, 100, 1, |_| None), None);
    }
}
