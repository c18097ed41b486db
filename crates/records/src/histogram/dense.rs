//! Dense histograms, in which latencies are recorded.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::ops::{Index, IndexMut};
use std::time::Duration;

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::iterators::IterationValue;

use crate::histogram::compact::CompactHistogram;
use crate::histogram::sparse::{Buckets, SparseHistogram, UNIT_NS};
use crate::metrics::Metric;

/// Latencies below this share one bucket, in nanoseconds.
pub(crate) const LOWEST_NS: u64 = 100;
/// Latencies above this count as saturated, in nanoseconds.
pub const HIGHEST_NS: u64 = 60_000_000_000;
/// Significant decimal digits of a latency.
pub(crate) const DIGITS: u8 = 3;
/// Most samples that a histogram accepts from records, so a rank among them is exact as `f64`.
const COUNT_MAX: u64 = 1 << 53;
/// How many times as long a packed sum is as the next. One sum would be copied for each histogram that is added; of several,
/// the short ones are, and all together are little longer than the longest.
const PACKED_RATIO: usize = 8;
/// A percentile that rests on fewer samples above it than this is marked as thin.
pub(crate) const SAMPLES_ABOVE_MIN: f64 = 10.0;

/// A dense histogram of nanoseconds, 3 significant digits, 100 ns to 60 s, with the exact maximum and sum. The first
/// sample allocates its 170 kB, unless it is packed.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    /// `None` until there is a sample.
    inner: Option<Hdr<u64>>,
    /// The buckets with samples, in place of `inner`: sums, each [`PACKED_RATIO`] times as long as the next at least.
    packed: Option<Vec<SparseHistogram>>,
    sum_ns: u64,
    max_ns: u64,
    saturated: u64,
}

impl Histogram {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn record(&mut self, latency: Duration) {
        self.record_ns(u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Counts one latency in nanoseconds; above 60 s it enters at 60 s and is counted as saturated.
    pub fn record_ns(&mut self, latency_ns: u64) {
        self.dense().saturating_record(latency_ns);
        self.sum_ns = self.sum_ns.saturating_add(latency_ns);
        self.max_ns = self.max_ns.max(latency_ns);
        self.saturated += u64::from(latency_ns > HIGHEST_NS);
    }

    pub fn add(&mut self, other: &Self) {
        if let Some(theirs) = other.recorded() {
            self.dense().add(&*theirs).expect("all our histograms have the same bounds");
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.saturated += other.saturated;
    }

    /// Adds all samples of a sparse histogram that came from a record. Beyond 2⁵³ samples, which no honest journal
    /// holds, it adds none.
    pub fn add_sparse(&mut self, other: &SparseHistogram) {
        if other.count() > COUNT_MAX.saturating_sub(self.count()) {
            return;
        }
        match &mut self.packed {
            _ if other.is_empty() => {}
            Some(sums) => add_packed(sums, other.clone()),
            None => add_buckets(self.dense(), other),
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns());
        self.max_ns = self.max_ns.max(other.max_ns());
        self.saturated = self.saturated.saturating_add(other.saturated());
    }

    /// Keeps only the buckets with samples from now on, eight bytes each. [`Self::add_sparse`] takes longer then; single
    /// samples undo it.
    pub fn pack(&mut self) {
        if self.packed.is_none() {
            self.packed = Some(vec![self.to_sparse()]);
            self.inner = None;
        }
    }

    /// Adds all samples of a histogram of another form.
    pub(crate) fn add_compact(&mut self, other: &CompactHistogram) {
        if !other.is_empty() {
            let dense = self.dense();
            other.buckets().for_each(|(value_ns, count)| dense.saturating_record_n(value_ns, count));
        }
        self.sum_ns = self.sum_ns.saturating_add(other.sum_ns());
        self.max_ns = self.max_ns.max(other.max_ns());
        self.saturated += other.saturated();
    }

    /// Forgets all samples. The memory is kept for the next ones, and given back if there were none.
    pub fn clear(&mut self) {
        match &mut self.inner {
            Some(inner) if !inner.is_empty() => inner.reset(),
            unused => *unused = None,
        }
        self.packed.iter_mut().for_each(Vec::clear);
        (self.sum_ns, self.max_ns, self.saturated) = (0, 0, 0);
    }

    /// The memory of its buckets, in bytes.
    pub fn bucket_bytes(&self) -> usize {
        let packed: usize = self.packed.iter().flatten().map(|sum| sum.buckets().len()).sum();
        self.inner.as_ref().map_or(0, |inner| inner.distinct_values() * size_of::<u64>())
            + packed * SparseHistogram::BUCKET_BYTES
    }

    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        let packed: u64 = self.packed.iter().flatten().map(SparseHistogram::count).sum();
        packed + self.inner.as_ref().map_or(0, Hdr::len)
    }

    /// Exact sum of all samples, in nanoseconds.
    pub fn sum_ns(&self) -> u64 {
        self.sum_ns
    }

    /// Exact largest sample, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// Samples above 60 s, which the buckets cannot distinguish.
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// Smallest sample to three digits, in nanoseconds; `None` without samples.
    pub fn min_ns(&self) -> Option<u64> {
        self.recorded().map(|inner| inner.min().min(self.max_ns))
    }

    /// Exact mean, in nanoseconds; `None` without samples.
    pub fn mean_ns(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum_ns as f64 / self.count() as f64)
    }

    /// Standard deviation over all samples, in nanoseconds; each is taken at its bucket, three digits exact.
    pub fn stdev_ns(&self) -> Option<f64> {
        self.recorded().map(|inner| inner.stdev())
    }

    /// Share of the samples from `low_ns` to `high_ns`, both included, to the bucket; `None` without samples.
    pub fn share_within(&self, low_ns: u64, high_ns: u64) -> Option<f64> {
        let high_ns = high_ns.max(low_ns).min(HIGHEST_NS);
        self.recorded().map(|inner| inner.count_between(low_ns, high_ns) as f64 / inner.len() as f64)
    }

    /// The percentiles of an `HdrHistogram` percentile file: latency in nanoseconds, quantile, and samples up to it.
    /// Steps shrink towards 1, with `ticks` for each halving of the rest.
    pub fn percentiles(&self, ticks: u32) -> Vec<(u64, f64, u64)> {
        let Some(inner) = self.recorded() else { return Vec::new() };
        let mut below = 0;
        let line = |step: IterationValue<u64>| {
            below += step.count_since_last_iteration();
            (step.value_iterated_to().min(self.max_ns), step.quantile_iterated_to(), below)
        };
        inner.iter_quantiles(ticks).map(line).collect()
    }

    /// The latency that the share `q` (above 0, to 1) of the samples does not exceed, in nanoseconds; `None` without
    /// samples. Never above the exact maximum.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        if self.packed.is_some() {
            return self.to_sparse().quantile_ns(q);
        }
        self.recorded().map(|inner| inner.value_at_quantile(q).min(self.max_ns))
    }

    /// Converts the samples to the form that records carry.
    pub fn to_sparse(&self) -> SparseHistogram {
        let sum = if let Some(sums) = &self.packed {
            SparseHistogram::merged(sums)
        } else {
            let mut buckets = Buckets::with_capacity(0);
            for bucket in self.recorded().iter().flat_map(|inner| inner.iter_recorded()) {
                buckets.push((bucket.value_iterated_to() / UNIT_NS) as u32, bucket.count_at_value());
            }
            buckets.into_sparse()
        };
        sum.with_exact(self.sum_ns, self.max_ns, self.saturated)
    }

    /// The buckets, if any of them holds a sample; those of a packed one are spread out for it.
    fn recorded(&self) -> Option<Cow<'_, Hdr<u64>>> {
        let inner = match (&self.packed, &self.inner) {
            (Some(packed), _) => Cow::Owned(unpacked(packed)),
            (None, inner) => Cow::Borrowed(inner.as_ref()?),
        };
        (!inner.is_empty()).then_some(inner)
    }

    /// The buckets, whose memory is taken now unless there is some.
    fn dense(&mut self) -> &mut Hdr<u64> {
        let packed = &mut self.packed;
        self.inner.get_or_insert_with(|| unpacked(&packed.take().unwrap_or_default()))
    }

    /// The library's form of it.
    #[cfg(test)]
    pub(crate) fn into_hdr(mut self) -> Hdr<u64> {
        self.dense().clone()
    }

    #[cfg(test)]
    pub(crate) fn from_hdr(inner: Hdr<u64>, sum_ns: u64, max_ns: u64, saturated: u64) -> Self {
        Self { inner: Some(inner), packed: None, sum_ns, max_ns, saturated }
    }
}

#[cold]
fn unpacked(sums: &[SparseHistogram]) -> Hdr<u64> {
    let mut inner = Hdr::new_with_bounds(LOWEST_NS, HIGHEST_NS, DIGITS)
        .expect("the bounds are constants that the library accepts");
    for sum in sums {
        add_buckets(&mut inner, sum);
    }
    inner
}

fn add_packed(sums: &mut Vec<SparseHistogram>, mut other: SparseHistogram) {
    while let Some(last) = sums.pop_if(|last| last.buckets().len() < PACKED_RATIO * other.buckets().len()) {
        other = SparseHistogram::merged([&last, &other]);
    }
    sums.push(other);
}

fn add_buckets(inner: &mut Hdr<u64>, sparse: &SparseHistogram) {
    sparse.buckets().for_each(|(value_ns, count)| inner.saturating_record_n(value_ns, count));
}

/// True if a percentile at `q` of `n` samples rests on fewer than ten samples above it.
pub fn quantile_is_thin(n: u64, q: f64) -> bool {
    // One part in a million of slack: 1 − 0.99 is not exactly a hundredth.
    n as f64 * (1.0 - q) < SAMPLES_ABOVE_MIN * (1.0 - 1e-6)
}

/// A dense histogram for each class of a family, as workers keep them.
#[derive(Clone, Debug)]
pub struct Histograms<M: Metric> {
    classes: Vec<Histogram>,
    family: PhantomData<M>,
}

impl<M: Metric> Default for Histograms<M> {
    fn default() -> Self {
        Self { classes: vec![Histogram::new(); M::ALL.len()], family: PhantomData }
    }
}

impl<M: Metric> Histograms<M> {
    pub fn iter(&self) -> impl Iterator<Item = (M, &Histogram)> {
        M::ALL.iter().copied().zip(&self.classes)
    }

    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            if !theirs.is_empty() {
                mine.add(theirs);
            }
        }
    }

    /// Keeps each class as [`Histogram::pack`] does.
    pub fn pack(&mut self) {
        self.classes.iter_mut().filter(|class| !class.is_empty()).for_each(Histogram::pack);
    }

    /// Forgets all samples, each class as [`Histogram::clear`] does.
    pub fn clear(&mut self) {
        self.classes.iter_mut().for_each(Histogram::clear);
    }
}

impl<M: Metric> Index<M> for Histograms<M> {
    type Output = Histogram;

    fn index(&self, class: M) -> &Histogram {
        &self.classes[class.index()]
    }
}

impl<M: Metric> IndexMut<M> for Histograms<M> {
    fn index_mut(&mut self, class: M) -> &mut Histogram {
        &mut self.classes[class.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Histogram {
        let mut histogram = Histogram::new();
        (1..=10_000_u64).for_each(|i| histogram.record_ns(i * 1_000));
        histogram
    }

    #[test]
    fn quantiles_are_within_three_digits_and_never_above_the_maximum() {
        let histogram = sample();
        let p50 = histogram.quantile_ns(0.5).unwrap();
        assert!(p50.abs_diff(5_000_000) <= 5_000, "{p50}");
        assert_eq!(histogram.quantile_ns(1.0), Some(10_000_000));
        assert_eq!((histogram.count(), histogram.max_ns()), (10_000, 10_000_000));
        assert_eq!(histogram.sum_ns(), 50_005_000_000);
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        let mut histogram = Histogram::new();
        for _ in 0..2 {
            assert_eq!((histogram.quantile_ns(0.5), histogram.mean_ns()), (None, None));
            assert_eq!((histogram.percentiles(5).len(), histogram.count()), (0, 0));
            assert_eq!(histogram.to_sparse(), SparseHistogram::default());
            // Memory that was used before makes no difference.
            histogram.record_ns(1_000);
            histogram.clear();
        }
        assert_eq!(SparseHistogram::default().quantile_ns(0.5), None);
    }

    #[test]
    fn a_sparse_histogram_gives_the_same_quantiles() {
        let histogram = sample();
        let sparse = histogram.to_sparse();
        for q in [0.001, 0.5, 0.9, 0.99, 0.999, 0.9999, 1.0] {
            assert_eq!(histogram.quantile_ns(q), sparse.quantile_ns(q), "q {q}");
        }
        let mut back = Histogram::new();
        back.add_sparse(&sparse);
        assert_eq!(back.to_sparse(), sparse);
    }

    #[test]
    fn a_packed_histogram_says_the_same_in_less_memory() {
        let (mut dense, mut packed) = (sample(), sample());
        packed.pack();
        assert!(packed.bucket_bytes() * 4 < dense.bucket_bytes(), "{}", packed.bucket_bytes());
        let figures = |it: &Histogram| {
            let exact = (it.count(), it.sum_ns(), it.max_ns(), it.min_ns(), it.is_empty());
            let shares = (it.share_within(1_000, 500_000), it.stdev_ns(), it.percentiles(5));
            (it.to_sparse(), exact, shares, [0.001, 0.5, 0.99, 1.0].map(|q| it.quantile_ns(q)))
        };
        for _ in 0..2 {
            for one in [&mut dense, &mut packed] {
                one.add_sparse(&SparseHistogram::merged([
                    &sample().to_sparse(),
                    &SparseHistogram::default(),
                ]));
            }
            assert_eq!(figures(&packed), figures(&dense));
        }
        let mut sum = Histogram::new();
        sum.add(&packed);
        assert_eq!(figures(&sum), figures(&dense));
        assert!(packed.bucket_bytes() < sum.bucket_bytes());
        packed.record_ns(7_000);
        dense.record_ns(7_000);
        assert_eq!((figures(&packed), packed.bucket_bytes()), (figures(&dense), dense.bucket_bytes()));
        packed.pack();
        packed.clear();
        assert_eq!(figures(&packed), figures(&Histogram::new()));
    }

    #[test]
    fn counts_beyond_a_buckets_room_are_kept() {
        let mut histogram = Histogram::new();
        histogram.dense().saturating_record_n(5_000, 10_000_000_000);
        histogram.max_ns = 5_000;
        let sparse = histogram.to_sparse();
        assert_eq!(sparse.buckets().map(|(_, count)| count).sum::<u64>(), 10_000_000_000);
        let mut back = Histogram::new();
        back.add_sparse(&sparse);
        assert_eq!(back.count(), 10_000_000_000);
    }

    #[test]
    fn no_number_of_samples_makes_a_percentile_overflow() {
        let mut histogram = Histogram::new();
        histogram.dense().saturating_record_n(5_000, COUNT_MAX - 10);
        histogram.max_ns = 5_000;
        let more = sample().to_sparse();
        histogram.add_sparse(&more);
        assert_eq!(histogram.count(), COUNT_MAX - 10);
        assert_eq!(histogram.quantile_ns(1.0), Some(5_000));
    }

    #[test]
    fn a_latency_beyond_the_range_is_saturated_with_its_exact_maximum() {
        let mut histogram = Histogram::new();
        histogram.record(Duration::from_secs(90));
        assert_eq!((histogram.count(), histogram.saturated()), (1, 1));
        assert_eq!(histogram.max_ns(), 90_000_000_000);
    }

    #[test]
    fn a_percentile_is_thin_until_ten_samples_lie_above_it() {
        assert!(quantile_is_thin(999, 0.99));
        assert!(!quantile_is_thin(1_000, 0.99));
        assert!(!quantile_is_thin(100_000, 0.9999));
    }
}
