//! The permutation test of two groups: if they did not differ, each value might as well have been in the other
//! (R. A. Fisher, The Design of Experiments, 1935, section 21.1; E. J. G. Pitman, 1937).

/// Up to so many ways to divide the values all are counted; with more, a sample of them.
const EXACT_MAX: u64 = 200_000;
/// Ways that are drawn when there are too many to count.
const DRAWS: u32 = 50_000;
/// Two sums that differ by less than this share of the largest possible one are the same.
const TIE: f64 = 1e-9;

/// How large a share of all ways to divide the values into groups of these sizes makes the means differ at least as much
/// as they do: a two-sided p-value. 1 if a group is empty. `seed` only matters where ways are drawn.
pub fn permutation_p(a: &[f64], b: &[f64], seed: u64) -> f64 {
    if a.is_empty() || b.is_empty() {
        return 1.0;
    }
    let all: Vec<f64> = a.iter().chain(b).copied().collect();
    // The means differ by as much as the sum of the first group does from what it would be without a difference.
    let mean = all.iter().sum::<f64>() / all.len() as f64;
    let centred: Vec<f64> = all.iter().map(|value| value - mean).collect();
    let observed = centred[..a.len()].iter().sum::<f64>().abs();
    let bound = observed - TIE * centred.iter().map(|value| value.abs()).sum::<f64>();
    match ways(all.len() as u64, a.len() as u64) {
        Some(ways) => exact(&centred, a.len(), 0.0, bound) as f64 / ways as f64,
        None => drawn(centred, a.len(), bound, seed),
    }
}

/// Ways to choose `k` of `n`, unless they are too many.
fn ways(n: u64, k: u64) -> Option<u64> {
    (1..=k.min(n - k)).try_fold(1_u64, |ways, i| {
        let ways = ways * (n - i + 1) / i;
        (ways <= EXACT_MAX).then_some(ways)
    })
}

/// Ways to add `wanted` of the values to `sum` that end at least `bound` away from nothing.
fn exact(values: &[f64], wanted: usize, sum: f64, bound: f64) -> u64 {
    match values.split_first() {
        _ if wanted == 0 => u64::from(sum.abs() >= bound),
        Some((first, rest)) if values.len() > wanted => {
            exact(rest, wanted - 1, sum + first, bound) + exact(rest, wanted, sum, bound)
        }
        _ => u64::from((sum + values.iter().sum::<f64>()).abs() >= bound),
    }
}

fn drawn(mut values: Vec<f64>, first: usize, bound: f64, seed: u64) -> f64 {
    let mut rng = fastrand::Rng::with_seed(seed);
    let mut is_extreme = |values: &mut Vec<f64>| {
        rng.shuffle(values);
        values[..first].iter().sum::<f64>().abs() >= bound
    };
    let extreme = (0..DRAWS).filter(|_| is_extreme(&mut values)).count();
    (extreme + 1) as f64 / f64::from(DRAWS + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_p(a: &[f64], b: &[f64], extreme: u32, of: u32) {
        let p = permutation_p(a, b, 1);
        assert!((p - f64::from(extreme) / f64::from(of)).abs() < 1e-12, "{a:?} {b:?}: {p}");
    }

    #[test]
    fn small_cases_come_out_as_counted_by_hand() {
        // Of the six ways to choose two of 1 2 3 4, the sums are 3 4 5 5 6 7.
        assert_p(&[1.0, 2.0], &[3.0, 4.0], 2, 6);
        assert_p(&[1.0, 3.0], &[2.0, 4.0], 4, 6);
        assert_p(&[1.0, 4.0], &[2.0, 3.0], 6, 6);
        // 252 ways, and only two of them set five apart from the other five.
        assert_p(&[1.0, 2.0, 3.0, 4.0, 5.0], &[11.0, 12.0, 13.0, 14.0, 15.0], 2, 252);
        assert_p(&[1.0], &[], 1, 1);
    }

    #[test]
    fn a_sample_of_the_ways_agrees_with_the_count() {
        let (a, b) = ([1.0, 4.0, 3.5, 2.0, 5.0, 2.5], [4.5, 6.0, 3.0, 7.0, 5.5, 6.5]);
        let exact = permutation_p(&a, &b, 1);
        let mean = a.iter().chain(&b).sum::<f64>() / 12.0;
        let centred: Vec<f64> = a.iter().chain(&b).map(|value| value - mean).collect();
        let bound = centred[..6].iter().sum::<f64>().abs() - 1e-9;
        let drawn = drawn(centred, 6, bound, 3);
        assert!(
            (drawn - exact).abs() < 4.0 * (exact * (1.0 - exact) / 50_000.0).sqrt() + 1e-4,
            "{drawn} {exact}"
        );
    }
}
