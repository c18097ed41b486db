//! The sign-flip test. The order of each pair is random, so if the values do not differ, each difference could equally
//! have the opposite sign (R. A. Fisher, The Design of Experiments, 1935, section 21).

/// Up to this many pairs all assignments of signs are counted; above it, a sample of them.
pub const EXACT_PAIRS_MAX: usize = 20;
/// The sample size when there are too many assignments to count.
const DRAWS: u32 = 100_000;
/// Sums that differ by less than this share of the largest possible sum are equal.
const TIE: f64 = 1e-9;

/// The share of all assignments of signs whose sum is at least as far from zero as the observed one: a two-sided
/// p-value. 1 without differences. `seed` matters only above [`EXACT_PAIRS_MAX`].
pub fn sign_flip_p(differences: &[f64], seed: u64) -> f64 {
    let observed = differences.iter().sum::<f64>().abs();
    let largest = differences.iter().map(|difference| difference.abs()).sum::<f64>();
    let bound = observed - TIE * largest;
    match differences {
        [] => 1.0,
        _ if differences.len() <= EXACT_PAIRS_MAX => exact(differences, bound),
        _ => drawn(differences, bound, seed),
    }
}

/// Counts the assignments in which the first sign is kept; the others mirror them.
fn exact(differences: &[f64], bound: f64) -> f64 {
    let assignments = 1_u32 << (differences.len() - 1);
    let mut signed = differences.to_vec();
    let mut sum = signed.iter().sum::<f64>();
    let mut extreme = u32::from(sum.abs() >= bound);
    for step in 1..assignments {
        // In Gray code order one sign changes at each step.
        let flipped = &mut signed[1 + step.trailing_zeros() as usize];
        sum -= 2.0 * *flipped;
        *flipped = -*flipped;
        extreme += u32::from(sum.abs() >= bound);
    }
    f64::from(extreme) / f64::from(assignments)
}

/// The observed assignment counts as one of the draws, which keeps the test valid (B. Phipson and G. K. Smyth,
/// Permutation p-values should never be zero, 2010).
fn drawn(differences: &[f64], bound: f64, seed: u64) -> f64 {
    let mut rng = fastrand::Rng::with_seed(seed);
    let is_extreme = |rng: &mut fastrand::Rng| {
        let sum: f64 =
            differences.iter().map(|difference| if rng.bool() { *difference } else { -difference }).sum();
        sum.abs() >= bound
    };
    let extreme = (0..DRAWS).filter(|_| is_extreme(&mut rng)).count();
    (extreme + 1) as f64 / f64::from(DRAWS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_p(differences: &[f64], extreme: u32, of: u32) {
        let expected = f64::from(extreme) / f64::from(of);
        let p = sign_flip_p(differences, 1);
        assert!((p - expected).abs() < 1e-12, "{differences:?}: {p}, expected {extreme}/{of}");
    }

    #[test]
    fn small_cases_come_out_as_counted_by_hand() {
        // The sums are 6 4 2 0 0 -2 -4 -6.
        assert_p(&[1.0, 2.0, 3.0], 2, 8);
        assert_p(&[-1.0, 2.0, 3.0], 4, 8);
        assert_p(&[1.0, -2.0, 3.0], 6, 8);
        assert_p(&[1.0, 2.0, -3.0], 8, 8);
        // One pair can show nothing; a difference of nothing flips into itself.
        assert_p(&[5.0], 1, 1);
        assert_p(&[], 1, 1);
        assert_p(&[0.0, 0.0, 4.0], 8, 8);
        // All alike: only the two assignments in which all signs are equal.
        assert_p(&[0.1; 6], 2, 64);
        assert_p(&[-0.3; 12], 2, 4_096);
        // Five alike and one against them: |sum| 4 or more in 2 · (1 + 6) of 64.
        assert_p(&[1.0, 1.0, 1.0, -1.0, 1.0, 1.0], 14, 64);
    }

    #[test]
    fn darwins_maize_comes_out_as_fisher_counted_it() {
        // Crossed less self-fertilised height in eighths of an inch, 15 pairs; Fisher counted 863 of 32,768 assignments
        // in which the sum is 314 or more, and as many in which it is -314 or less.
        let differences: [f64; 15] =
            [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];
        assert_p(&differences, 2 * 863, 32_768);
    }

    #[test]
    fn a_sample_of_the_assignments_agrees_with_the_count() {
        let darwin =
            [49.0, -67.0, 8.0, 16.0, 6.0, 23.0, 28.0, 41.0, 14.0, 29.0, 56.0, 24.0, 75.0, 60.0, -48.0];
        let drawn = drawn(&darwin, 314.0, 7);
        // Four standard errors of a share of 0.0527 among 100,000.
        assert!((drawn - 0.052_67).abs() < 4.0 * 0.000_71, "{drawn}");
        assert!(sign_flip_p(&[1.0; 40], 1) <= 1.0 / 100_000.0);
    }

    #[test]
    fn neither_units_nor_signs_nor_order_matter() {
        let all = [3.0, -1.0, 4.0, -1.5, 5.0, -9.0, 2.0];
        let p = sign_flip_p(&all, 1);
        let scaled: Vec<f64> = all.iter().rev().map(|difference| -difference * 1e-6).collect();
        assert!((sign_flip_p(&scaled, 2) - p).abs() < 1e-12);
    }
}
