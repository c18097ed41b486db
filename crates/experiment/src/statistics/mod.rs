//! Intervals and p-values from pairs of blocks. The block is the unit throughout: samples and seconds within a block
//! depend on each other, and treating them as independent would find differences that do not exist.

mod bootstrap;
mod pooled;
mod ratio;
mod resolution;
mod sign_flip;
mod students_t;

pub(crate) use bootstrap::interval;
pub(crate) use pooled::PooledValues;
pub use ratio::{Ratio, holm, median, sign_flip_p_of_pairs};
pub(crate) use resolution::{detectable, resolution};
pub use sign_flip::{EXACT_PAIRS_MAX, sign_flip_p};
pub(crate) use students_t::DifferenceOfMeans;

/// The fewest pairs with which the sign-flip test can reach `alpha`: only one of 2ⁿ⁻¹ outcomes is the most extreme.
pub fn pairs_min(alpha: f64) -> u32 {
    (1..64).find(|&pairs| 2_f64.powi(1 - pairs as i32) <= alpha).unwrap_or(64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn six_pairs_are_the_fewest_for_one_figure_at_five_percent() {
        assert_eq!([0.05, 0.025, 0.0125, 0.01].map(pairs_min), [6, 7, 8, 8]);
    }
}
