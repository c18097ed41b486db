//! A figure over any weighting of blocks, computed fast.

use crate::block::BlockValue;
use crate::comparable_figure::{ComparableFigure, FigureKind};

/// The values of one arm, laid out for fast figures over weighted blocks: a bootstrap computes thousands.
#[derive(Debug)]
pub(crate) enum PooledValues {
    Quantile {
        q: f64,
        /// Highest latency of each bucket that any block uses, ascending, in nanoseconds.
        values_ns: Vec<u64>,
        /// Cumulative samples: a row for each bucket, a column for each block.
        below: Vec<u64>,
        blocks: usize,
    },
    Quotient(Vec<(f64, f64)>),
}

impl PooledValues {
    pub(crate) fn new<'a>(
        metric: &ComparableFigure,
        values: impl Iterator<Item = &'a BlockValue> + Clone,
    ) -> Self {
        match metric.kind {
            FigureKind::Quantile(_, q) => Self::of_latencies(q, values),
            FigureKind::Mean(_) | FigureKind::Quotient(_) => Self::Quotient(
                values
                    .map(|value| match value {
                        BlockValue::Quotient { of, per } => (*of, *per),
                        BlockValue::Latencies(_) => (0.0, 0.0),
                    })
                    .collect(),
            ),
        }
    }

    fn of_latencies<'a>(q: f64, values: impl Iterator<Item = &'a BlockValue> + Clone) -> Self {
        let buckets = |value: &'a BlockValue| match value {
            BlockValue::Latencies(histogram) => Some(histogram.buckets()).into_iter().flatten(),
            BlockValue::Quotient { .. } => None.into_iter().flatten(),
        };
        let mut values_ns: Vec<u64> = values.clone().flat_map(buckets).map(|(value, _)| value).collect();
        values_ns.sort_unstable();
        values_ns.dedup();
        let blocks = values.clone().count();
        let mut below = vec![0; values_ns.len() * blocks];
        for (block, value) in values.enumerate() {
            let mut samples = 0;
            let mut own = buckets(value).peekable();
            for (row, value) in values_ns.iter().enumerate() {
                // A bucket with very many samples is stored in several parts.
                while let Some((_, count)) = own.next_if(|(highest, _)| highest <= value) {
                    samples += count;
                }
                below[row * blocks + block] = samples;
            }
        }
        Self::Quantile { q, values_ns, below, blocks }
    }

    /// The figure over the blocks, weighted by `weights`; `None` if there is nothing to divide by. Latencies are in
    /// microseconds.
    pub(crate) fn figure(&self, weights: &[u32]) -> Option<f64> {
        match self {
            Self::Quotient(amounts) => {
                let weighted = amounts
                    .iter()
                    .zip(weights)
                    .map(|((of, per), n)| (of * f64::from(*n), per * f64::from(*n)));
                let (of, per) =
                    weighted.fold((0.0, 0.0), |sum, amounts| (sum.0 + amounts.0, sum.1 + amounts.1));
                (per > 0.0).then(|| of / per)
            }
            Self::Quantile { q, values_ns, below, blocks } => {
                let samples = |row: usize| -> u64 {
                    let row = &below[row * blocks..(row + 1) * blocks];
                    row.iter().zip(weights).map(|(samples, &n)| samples * u64::from(n)).sum()
                };
                let all = values_ns.len().checked_sub(1).map(samples).filter(|&all| all > 0)?;
                let wanted = ((q * all as f64).ceil() as u64).clamp(1, all);
                let (mut low, mut high) = (0, values_ns.len() - 1);
                while low < high {
                    let middle = usize::midpoint(low, high);
                    if samples(middle) >= wanted { high = middle } else { low = middle + 1 }
                }
                Some(values_ns[low] as f64 / 1e3)
            }
        }
    }

    /// Samples of all blocks together; `None` for quotients.
    pub(crate) fn samples(&self) -> Option<u64> {
        match self {
            Self::Quotient(_) => None,
            Self::Quantile { below, blocks, .. } => Some(below.iter().rev().take(*blocks).sum()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use records::histogram::Histogram;

    fn value(latencies_us: &[u64]) -> (BlockValue, Histogram) {
        let mut histogram = Histogram::new();
        for us in latencies_us {
            histogram.record_ns(us * 1_000);
        }
        (BlockValue::Latencies(histogram.to_sparse()), histogram)
    }

    proptest! {
        #[test]
        fn the_percentile_over_chosen_blocks_is_that_of_their_merged_histograms(
            blocks in prop::collection::vec((prop::collection::vec(1_u64..5_000_000, 0..40), 0_u32..4), 1..6),
            percent in 1_u32..100,
        ) {
            let metric: ComparableFigure = format!("exchange.p{percent:02}").parse().unwrap();
            let q = f64::from(percent) / 100.0;
            let (values, histograms): (Vec<_>, Vec<_>) = blocks.iter().map(|(us, _)| value(us)).unzip();
            let weights: Vec<u32> = blocks.iter().map(|(_, weight)| *weight).collect();
            let mut merged = Histogram::new();
            for (histogram, &weight) in histograms.iter().zip(&weights) {
                (0..weight).for_each(|_| merged.add(histogram));
            }
            let figure = PooledValues::new(&metric, values.iter()).figure(&weights);
            match (figure, merged.quantile_ns(q)) {
                (Some(us), Some(ns)) => prop_assert!((us * 1e3 / ns as f64 - 1.0).abs() < 2e-3, "{us} {ns}"),
                (figure, ns) => prop_assert_eq!((figure, ns), (None, None)),
            }
        }
    }

    #[test]
    fn a_quotient_over_blocks_is_sum_by_sum() {
        let metric: ComparableFigure = "cpu.per_exchange".parse().unwrap();
        let values = [(10.0, 1.0), (10.0, 4.0)].map(|(of, per)| BlockValue::Quotient { of, per });
        let pooled = PooledValues::new(&metric, values.iter());
        assert_eq!(pooled.figure(&[1, 1]), Some(4.0));
        assert_eq!(pooled.figure(&[0, 2]), Some(2.5));
        assert_eq!(pooled.figure(&[0, 0]), None);
    }
}
