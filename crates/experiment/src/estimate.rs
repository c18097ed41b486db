//! Estimates the difference of a figure from blocks.

use records::kinds::Estimate;

use crate::block::BlockValue;
use crate::comparable_figure::{ComparableFigure, FigureKind, Scale};
use crate::statistics::{DifferenceOfMeans, PooledValues, interval, resolution, sign_flip_p};

#[derive(Clone, Copy, Debug)]
pub struct EstimateOptions {
    /// Error rate of this figure's verdict, such as 0.05.
    pub alpha: f64,
    /// Draws of the bootstrap.
    pub draws: u32,
    /// Pairs that are planned, for the resolution.
    pub pairs_planned: u32,
    pub seed: u64,
}

impl EstimateOptions {
    /// Enough draws that about twenty lie beyond each end of the widest interval, that of six pairs.
    pub const DRAWS: u32 = 10_000;
}

/// The difference of a figure between two arms, and whether enough samples are behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SampledEstimate {
    pub estimate: Estimate,
    /// True if a percentile rests on fewer than ten samples above it in one of the arms.
    pub is_thin: bool,
}

impl SampledEstimate {
    /// True if both the test and the interval show a difference at this error rate, which is that of the interval.
    pub(crate) fn shows_difference(&self, alpha: f64) -> bool {
        let Estimate { p_value, low, high, .. } = self.estimate;
        p_value <= alpha && (low > 0.0 || high < 0.0)
    }
}

fn confidence_percent(alpha: f64) -> f64 {
    (1.0 - alpha) * 100.0
}

/// Compares the values of pairs `(a, b)` by the sign-flip test; `None` with fewer than four pairs that hold something to compare.
pub fn estimate(
    metric: &ComparableFigure,
    pairs: &[(&BlockValue, &BlockValue)],
    options: &EstimateOptions,
) -> Option<SampledEstimate> {
    let scale = metric.scale();
    let (used, differences): (Vec<(&BlockValue, &BlockValue)>, Vec<f64>) =
        pairs.iter().filter_map(|pair| Some((*pair, pair_difference(metric, pair.0, pair.1)?))).unzip();
    let pooled_a = PooledValues::new(metric, used.iter().map(|(a, _)| *a));
    let pooled_b = PooledValues::new(metric, used.iter().map(|(_, b)| *b));
    let effect_of = |weights: &[u32]| difference(scale, pooled_a.figure(weights)?, pooled_b.figure(weights)?);
    let all = vec![1; used.len()];
    let (low, high) = interval(used.len(), options.alpha, options.draws, options.seed, effect_of)?;
    let estimate = Estimate {
        pairs_used: used.len() as u64,
        a: pooled_a.figure(&all)?,
        b: pooled_b.figure(&all)?,
        effect: percent(scale, effect_of(&all)?),
        low: percent(scale, low),
        high: percent(scale, high),
        confidence_percent: confidence_percent(options.alpha),
        p_value: sign_flip_p(&differences, options.seed),
        resolution: percent(scale, resolution(&differences, options.pairs_planned, options.alpha)?),
    };
    let is_thin = [pooled_a, pooled_b].iter().any(|pooled| is_thin(metric, pooled));
    Some(SampledEstimate { estimate, is_thin })
}

/// The effect of the second value within one pair; `None` without anything to compare.
pub(crate) fn pair_effect(metric: &ComparableFigure, a: &BlockValue, b: &BlockValue) -> Option<f64> {
    Some(percent(metric.scale(), pair_difference(metric, a, b)?))
}

fn pair_difference(metric: &ComparableFigure, a: &BlockValue, b: &BlockValue) -> Option<f64> {
    let alone = |value: &BlockValue| PooledValues::new(metric, std::iter::once(value)).figure(&[1]);
    difference(metric.scale(), alone(a)?, alone(b)?)
}

/// Parts of a run that are compared: quarters.
pub(crate) const BATCHES: usize = 4;

/// Compares the blocks of two runs by quarters and Student's t; `None` if a quarter of either has no samples. The
/// estimate's `pairs_used` is the number of quarters, and its `resolution` is 0, because it is unknown.
pub(crate) fn estimate_unpaired(
    metric: &ComparableFigure,
    a: &[BlockValue],
    b: &[BlockValue],
    alpha: f64,
) -> Option<SampledEstimate> {
    let scale = metric.scale();
    let [a, b] = [a, b].map(|blocks| (PooledValues::new(metric, blocks.iter()), blocks.len()));
    let difference = DifferenceOfMeans::new(&quarters(scale, &a)?, &quarters(scale, &b)?)?;
    let ([(a, blocks_a), (b, blocks_b)], margin) = ([a, b], difference.margin(alpha)?);
    let (of_a, of_b) = (a.figure(&vec![1; blocks_a])?, b.figure(&vec![1; blocks_b])?);
    let effect = self::difference(scale, of_a, of_b)?;
    let estimate = Estimate {
        pairs_used: BATCHES as u64,
        a: of_a,
        b: of_b,
        effect: percent(scale, effect),
        low: percent(scale, effect - margin),
        high: percent(scale, effect + margin),
        confidence_percent: confidence_percent(alpha),
        p_value: difference.p()?,
        resolution: 0.0,
    };
    Some(SampledEstimate { estimate, is_thin: [a, b].iter().any(|pooled| is_thin(metric, pooled)) })
}

/// The figure of each quarter of the blocks, on a scale on which differences add up.
fn quarters(scale: Scale, (pooled, blocks): &(PooledValues, usize)) -> Option<Vec<f64>> {
    let of_quarter = |quarter: usize| {
        let is_of_it = |block: usize| u32::from(block * BATCHES / blocks == quarter);
        let weights: Vec<u32> = (0..*blocks).map(is_of_it).collect();
        let figure = pooled.figure(&weights)?;
        match scale {
            Scale::Relative => (figure > 0.0).then(|| figure.ln()),
            Scale::Points => Some(figure),
        }
    };
    (0..BATCHES).map(of_quarter).collect()
}

/// The difference of two figures on a scale on which differences add up: the logarithm of their quotient, or the plain
/// difference of two shares.
fn difference(scale: Scale, a: f64, b: f64) -> Option<f64> {
    match scale {
        Scale::Relative => (a > 0.0 && b > 0.0).then(|| (b / a).ln()),
        Scale::Points => Some(b - a),
    }
}

fn percent(scale: Scale, difference: f64) -> f64 {
    match scale {
        Scale::Relative => difference.exp_m1() * 100.0,
        Scale::Points => difference * 100.0,
    }
}

fn is_thin(metric: &ComparableFigure, pooled: &PooledValues) -> bool {
    match metric.kind {
        FigureKind::Quantile(_, q) => {
            pooled.samples().is_some_and(|n| records::histogram::quantile_is_thin(n, q))
        }
        FigureKind::Mean(_) | FigureKind::Quotient(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::histogram::Histogram;

    const OPTIONS: EstimateOptions =
        EstimateOptions { alpha: 0.05, draws: 2_000, pairs_planned: 12, seed: 1 };

    fn quotients(pairs: &[(f64, f64)]) -> Vec<(BlockValue, BlockValue)> {
        let value = |of| BlockValue::Quotient { of, per: 100.0 };
        pairs.iter().map(|(a, b)| (value(*a), value(*b))).collect()
    }

    fn of(metric: &str, pairs: &[(BlockValue, BlockValue)]) -> Option<SampledEstimate> {
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a, b)).collect();
        estimate(&metric.parse().unwrap(), &pairs, &OPTIONS)
    }

    #[test]
    fn a_constant_ratio_is_found_exactly_whatever_the_pairs_have_in_common() {
        let pairs = quotients(&[100.0, 50.0, 400.0, 80.0, 90.0, 70.0].map(|a| (a, a * 0.95)));
        let found = of("cpu.per_exchange", &pairs).unwrap();
        let estimate = found.estimate;
        for found in [estimate.effect, estimate.low, estimate.high] {
            assert!((found + 5.0).abs() < 1e-9, "{estimate:?}");
        }
        assert!((estimate.p_value - 2.0 / 64.0).abs() < 1e-12 && found.shows_difference(0.05));
        assert!(estimate.resolution.abs() < 1e-9 && estimate.pairs_used == 6);
    }

    #[test]
    fn shares_differ_in_percentage_points_and_may_be_nothing() {
        let pairs = quotients(&[(0.0, 10.0); 8]);
        let estimate = of("failed.ratio", &pairs).unwrap().estimate;
        assert!((estimate.effect - 10.0).abs() < 1e-9 && estimate.a.abs() < 1e-12, "{estimate:?}");
        assert_eq!(of("cpu.per_exchange", &pairs), None, "nothing can be so many percent of nothing");
    }

    #[test]
    fn pairs_without_samples_do_not_count() {
        let value = |us: &[u64]| {
            let mut histogram = Histogram::new();
            for us in us {
                histogram.record_ns(us * 1_000);
            }
            BlockValue::Latencies(histogram.to_sparse())
        };
        let full = || (value(&[100; 50]), value(&[110; 50]));
        let mut pairs: Vec<_> = (0..7).map(|_| full()).collect();
        pairs.push((value(&[]), value(&[5])));
        let SampledEstimate { estimate, is_thin } = of("exchange.p50", &pairs).unwrap();
        assert_eq!((estimate.pairs_used, is_thin), (7, false));
        assert!((estimate.effect - 10.0).abs() < 0.2, "{estimate:?}");
        assert!(of("exchange.p99", &pairs).unwrap().is_thin, "350 samples are too few for a p99");
        assert_eq!(of("exchange.p50", &pairs[6..]), None, "one pair has no interval");
    }
}
