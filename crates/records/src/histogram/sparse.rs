//! Sparse histograms, as records and series carry them: only the buckets that hold samples.

/// Width of the narrowest bucket: the largest power of two within [`LOWEST_NS`](crate::histogram::LOWEST_NS).
pub(crate) const UNIT_NS: u64 = 64;

/// The samples of one bucket. Series hold many buckets, so each is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bucket {
    /// Highest latency of the bucket, in units of [`UNIT_NS`] rounded down; 60 s are 2³⁰ of them.
    units: u32,
    count: u32,
}

impl Bucket {
    /// As many as it takes to hold the count.
    fn all(units: u32, count: u64) -> impl Iterator<Item = Self> {
        let full = count / u64::from(u32::MAX);
        let rest = (count % u64::from(u32::MAX)) as u32;
        let full = std::iter::repeat_n(u32::MAX, full as usize);
        full.chain((rest > 0).then_some(rest)).map(move |count| Self { units, count })
    }

    fn highest_ns(self) -> u64 {
        u64::from(self.units) * UNIT_NS + (UNIT_NS - 1)
    }
}

pub(crate) struct Buckets {
    buckets: Vec<Bucket>,
    count: u64,
}

impl Buckets {
    pub(crate) fn with_capacity(buckets: usize) -> Self {
        Self { buckets: Vec::with_capacity(buckets), count: 0 }
    }

    /// Adds samples of one bucket, by its highest latency in units of [`UNIT_NS`]; each call is of a higher one.
    // Reading records costs 5 % more where it is a call, which else depends on the compiler's division of the crate.
    #[inline]
    pub(crate) fn push(&mut self, units: u32, count: u64) {
        self.count = self.count.saturating_add(count);
        match u32::try_from(count) {
            Ok(0) => {}
            Ok(count) => self.buckets.push(Bucket { units, count }),
            Err(_) => self.buckets.extend(Bucket::all(units, count)),
        }
    }

    /// Number of samples so far.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Builds the histogram without the exact figures that records carry beside the buckets.
    pub(crate) fn into_sparse(self) -> SparseHistogram {
        let Self { buckets, count } = self;
        SparseHistogram { buckets: buckets.into_boxed_slice(), count, sum_ns: 0, max_ns: 0, saturated: 0 }
    }
}

/// A histogram of only the buckets that hold samples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SparseHistogram {
    /// In ascending order.
    buckets: Box<[Bucket]>,
    count: u64,
    sum_ns: u64,
    max_ns: u64,
    saturated: u64,
}

impl SparseHistogram {
    /// Memory that a bucket takes.
    pub const BUCKET_BYTES: usize = size_of::<Bucket>();

    /// Samples by bucket, in ascending order, with the exact figures beside them.
    #[cfg(test)]
    pub(crate) fn from_units(
        units: impl Iterator<Item = (u32, u64)>,
        [sum_ns, max_ns, saturated]: [u64; 3],
    ) -> Self {
        let mut buckets = Buckets::with_capacity(units.size_hint().0);
        units.for_each(|(units, count)| buckets.push(units, count));
        Self { sum_ns, max_ns, saturated, ..buckets.into_sparse() }
    }

    /// Adds the exact figures that records carry beside the buckets.
    pub(crate) fn with_exact(self, sum_ns: u64, max_ns: u64, saturated: u64) -> Self {
        Self { sum_ns, max_ns, saturated, ..self }
    }

    /// The samples of all of them, bucket by bucket: nothing is lost.
    pub fn merged<'a>(all: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::merged_wider(all, |units| units)
    }

    /// The samples of all histograms in wider buckets: `widen` maps a bucket to a wider one, and keeps the order.
    pub fn merged_wider<'a>(all: impl IntoIterator<Item = &'a Self>, widen: impl Fn(u32) -> u32) -> Self {
        Self::sum(&all.into_iter().collect::<Vec<_>>(), &widen)
    }

    /// Sums are added to sums: one sum to which each histogram is added would be copied as often.
    fn sum(all: &[&Self], widen: &impl Fn(u32) -> u32) -> Self {
        match all {
            [] => Self::default(),
            [one] => Self::default().with(one, widen),
            [one, other] => one.with(other, widen),
            all => {
                let (some, others) = all.split_at(all.len() / 2);
                Self::sum(some, widen).with(&Self::sum(others, widen), widen)
            }
        }
    }

    fn with(&self, other: &Self, widen: impl Fn(u32) -> u32) -> Self {
        let mut buckets = Buckets::with_capacity(self.buckets.len().max(other.buckets.len()));
        let (mut rest, mut other_rest) = (&*self.buckets, &*other.buckets);
        let (mut open_units, mut count) = (0, 0_u64);
        loop {
            let lower = match (rest, other_rest) {
                ([], []) => break,
                ([_, ..], []) => &mut rest,
                ([first, ..], [second, ..]) if first.units <= second.units => &mut rest,
                _ => &mut other_rest,
            };
            let [next, after @ ..] = *lower else { break };
            *lower = after;
            let units = widen(next.units);
            if units != open_units {
                buckets.push(open_units, count);
                (open_units, count) = (units, 0);
            }
            count = count.saturating_add(u64::from(next.count));
        }
        buckets.push(open_units, count);
        let sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        let saturated = self.saturated.saturating_add(other.saturated);
        buckets.into_sparse().with_exact(sum_ns, self.max_ns.max(other.max_ns), saturated)
    }

    /// Highest latency of each bucket in nanoseconds, with the number of samples in it, in ascending order.
    pub fn buckets(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> + ExactSizeIterator {
        self.buckets.iter().map(|bucket| (bucket.highest_ns(), u64::from(bucket.count)))
    }

    /// Highest latency of each bucket in units of [`UNIT_NS`], with the number of samples in it, in ascending order.
    pub(crate) fn units(&self) -> impl Iterator<Item = (u32, u64)> {
        self.buckets.iter().map(|bucket| (bucket.units, u64::from(bucket.count)))
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Exact sum of all samples, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Exact largest sample, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Samples above 60 s.
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The latency that the share `q` (above 0, to 1) of the samples does not exceed, in nanoseconds; `None` without
    /// samples. Agrees with [`Histogram::quantile_ns`](crate::histogram::Histogram::quantile_ns).
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let last = self.buckets.last()?;
        let wanted = ((q.clamp(0.0, 1.0) * self.count as f64).ceil() as u64).max(1);
        let mut below = 0_u64;
        let bucket = self.buckets.iter().find(|bucket| {
            below = below.saturating_add(u64::from(bucket.count));
            below >= wanted
        });
        Some(bucket.unwrap_or(last).highest_ns().min(self.max_ns))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Samples by bucket, with counts that take several of them.
    fn samples() -> impl Strategy<Value = BTreeMap<u32, u64>> {
        let count = prop_oneof![1..100_u64, u64::from(u32::MAX) - 1..u64::from(u32::MAX) * 3];
        prop::collection::btree_map(0..5_000_u32, count, 0..200)
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn merged_in_wider_buckets_is_the_sum_over_each_of_them(a in samples(), b in samples(), power in 0..8_u32) {
            let widen = |units: u32| (units >> power << power) | ((1 << power) - 1);
            let mut sums = BTreeMap::new();
            for (units, count) in a.iter().chain(&b) {
                *sums.entry(widen(*units)).or_default() += count;
            }
            let [a, b] = [(a, [1, 7, 2]), (b, [10, 5, 20])]
                .map(|(samples, exact)| SparseHistogram::from_units(samples.into_iter(), exact));
            let merged = SparseHistogram::merged_wider([&a, &b], widen);
            prop_assert_eq!(merged, SparseHistogram::from_units(sums.into_iter(), [11, 7, 22]));
        }
    }
}
