//! A histogram small enough for every client.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::text::ParseIdError;

/// Buckets of a power of two.
const PARTS: u32 = 8;
/// The last bucket ends here, in microseconds: latencies above it, of more than a minute, are counted in it.
const HIGHEST_US: u64 = (1 << 26) - 1;
/// Buckets that there can be.
const BUCKETS_MAX: usize = 192;

/// Latencies to an eighth: only the buckets that hold samples, and the exact maximum.
///
/// Bucket `b` below 16 holds what took from `b` to below `b + 1` µs. From there on each power of two has eight: bucket
/// `b` holds what took from `(8 + b % 8) << p` to below `(9 + b % 8) << p` µs, with `p = b / 8 - 1`. So a percentile
/// of it is never below the exact one, and above it by an eighth at the most, or by a microsecond.
///
/// As text it is the maximum in nanoseconds and, in ascending order, `bucket:samples`, all parted by blanks:
/// `31200455 93:4 94:17`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// In ascending order, each with a sample at least.
    buckets: Vec<(u8, u32)>,
    max_ns: u64,
}

impl Sketch {
    pub fn record(&mut self, latency: Duration) {
        let ns = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.put(bucket(ns), 1);
        self.max_ns = self.max_ns.max(ns);
    }

    pub fn add(&mut self, other: &Self) {
        if self.buckets.is_empty() {
            self.buckets.clone_from(&other.buckets);
        } else {
            other.buckets.iter().for_each(|&(at, count)| self.put(at, count));
        }
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Removes the samples of another sketch that was added before. The maximum stays until no sample is left.
    pub fn remove(&mut self, other: &Self) {
        for &(at, count) in &other.buckets {
            if let Ok(place) = self.place(at) {
                self.buckets[place].1 = self.buckets[place].1.saturating_sub(count);
            }
        }
        self.buckets.retain(|&(_, count)| count > 0);
        self.max_ns = if self.buckets.is_empty() { 0 } else { self.max_ns };
    }

    fn put(&mut self, at: u8, count: u32) {
        match self.place(at) {
            Ok(place) => self.buckets[place].1 = self.buckets[place].1.saturating_add(count),
            Err(place) => self.buckets.insert(place, (at, count)),
        }
    }

    fn place(&self, at: u8) -> Result<usize, usize> {
        self.buckets.binary_search_by_key(&at, |&(at, _)| at)
    }

    /// The memory of its buckets, in bytes.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<(u8, u32)>()
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.buckets.iter().map(|&(_, count)| u64::from(count)).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// Exact largest sample, in nanoseconds.
    pub fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The highest latency of the bucket in which the share `q` (above 0, to 1) of the samples is reached, in
    /// nanoseconds, and never above the exact maximum; `None` without samples.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        let (last, _) = self.buckets.last()?;
        let wanted = ((q.clamp(0.0, 1.0) * self.count() as f64).ceil() as u64).max(1);
        let mut below = 0;
        let reached = self.buckets.iter().find(|&&(_, count)| {
            below += u64::from(count);
            below >= wanted
        });
        Some(highest_ns(reached.map_or(*last, |&(at, _)| at)).min(self.max_ns))
    }
}

/// The bucket of a latency in nanoseconds.
fn bucket(ns: u64) -> u8 {
    let us = (ns / 1_000).min(HIGHEST_US) as u32;
    let power = (us | (2 * PARTS - 1)).ilog2() - PARTS.ilog2();
    (power * PARTS + (us >> power)) as u8
}

/// The highest latency of a bucket, in nanoseconds.
fn highest_ns(bucket: u8) -> u64 {
    let power = (u32::from(bucket) / PARTS).saturating_sub(1);
    let parts = u64::from(u32::from(bucket) - power * PARTS + 1);
    (parts << power) * 1_000 - 1
}

impl fmt::Display for Sketch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.max_ns)?;
        self.buckets.iter().try_for_each(|(at, count)| write!(f, " {at}:{count}"))
    }
}

impl FromStr for Sketch {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        parsed(text.as_bytes()).ok_or(ParseIdError)
    }
}

/// A journal of many clients is these texts for the most part, so they are read byte by byte.
fn parsed(text: &[u8]) -> Option<Sketch> {
    let mut words = text.split(|&byte| byte == b' ');
    let max_ns = number(words.next()?)?;
    let mut buckets: Vec<(u8, u32)> = Vec::with_capacity(words.clone().count().min(BUCKETS_MAX));
    for word in words {
        let colon = word.iter().position(|&byte| byte == b':')?;
        let at = u8::try_from(number(&word[..colon])?).ok()?;
        let count = u32::try_from(number(&word[colon + 1..])?).ok()?;
        let is_next = buckets.last().is_none_or(|&(last, _)| last < at);
        if !is_next || usize::from(at) >= BUCKETS_MAX || count == 0 {
            return None;
        }
        buckets.push((at, count));
    }
    (!buckets.is_empty() || max_ns == 0).then_some(Sketch { buckets, max_ns })
}

fn number(digits: &[u8]) -> Option<u64> {
    let append = |number: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(10)?;
        number.checked_mul(10)?.checked_add(u64::from(digit))
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, append) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sketch(samples_ns: &[u64]) -> Sketch {
        let mut sketch = Sketch::default();
        for &ns in samples_ns {
            sketch.record(Duration::from_nanos(ns));
        }
        sketch
    }

    #[test]
    fn every_bucket_lies_where_its_highest_latency_does() {
        for at in 0..BUCKETS_MAX as u8 {
            assert_eq!(bucket(highest_ns(at)), at);
            assert_eq!(bucket(highest_ns(at) + 1), (at + 1).min(191));
        }
        assert_eq!(bucket(u64::MAX), 191);
    }

    #[test]
    fn a_malformed_sketch_is_refused() {
        for text in [
            "",
            "x",
            "5",
            "5 1",
            "5 1:",
            "5 1:0",
            "5 2:1 1:1",
            "5 1:1 1:1",
            "5 192:1",
            "5 300:1",
            "5 1:4294967296",
            "5 1:+1",
            "+5 1:1",
            "5  1:1",
            "5 1:1 ",
            "5 1:1:1",
            "18446744073709551616 1:1",
        ] {
            assert!(text.parse::<Sketch>().is_err(), "{text}");
        }
        assert!("0".parse::<Sketch>().is_ok_and(|empty| empty.is_empty()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_percentile_is_right_to_an_eighth(
            mut samples in prop::collection::vec(1_000..60_000_000_000_u64, 1..200),
            q in 0.001..1.0_f64,
        ) {
            let sketch = sketch(&samples);
            samples.sort_unstable();
            let rank = ((q * samples.len() as f64).ceil() as usize).max(1);
            let (exact, told) = (samples[rank - 1], sketch.quantile_ns(q).unwrap());
            prop_assert!(told >= exact, "{} below {}", told, exact);
            prop_assert!(told - exact <= (exact / 8).max(1_000), "{} for {}", told, exact);
            prop_assert_eq!(sketch.quantile_ns(1.0), samples.last().copied());
        }

        #[test]
        fn text_comes_back_as_it_went(samples in prop::collection::vec(any::<u64>(), 0..100)) {
            let sent = sketch(&samples);
            prop_assert_eq!(sent.to_string().parse(), Ok(sent));
        }

        #[test]
        fn removing_a_histogram_undoes_adding_it(
            stays in prop::collection::vec(0..1_000_000_000_u64, 0..100),
            leaves in prop::collection::vec(0..1_000_000_000_u64, 0..100),
        ) {
            let (stays, leaves) = (sketch(&stays), sketch(&leaves));
            let mut both = stays.clone();
            both.add(&leaves);
            both.remove(&leaves);
            prop_assert_eq!(&both.buckets, &stays.buckets);
        }
    }
}
