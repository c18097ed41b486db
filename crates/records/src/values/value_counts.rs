//! Counts whole numbers, such as sizes, in classes that grow with the number.

use std::fmt;
use std::str::FromStr;

use crate::text::ParseIdError;
use crate::wire::absent_if_empty;

/// Classes of each power of two.
const PARTS: u32 = 32;
/// Numbers from here on count as this one: a terabyte, or twelve days in microseconds.
const HIGHEST: u64 = 1 << 40;

/// Counts of whole numbers. Numbers below 64 are exact, others known to a 64th.
///
/// As text, `number:count` separated by blanks, each number in the middle of its class: `0:3 13:400 10112:2`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueCounts {
    /// By class, as far as the highest.
    counts: Vec<u64>,
}

impl ValueCounts {
    #[inline]
    pub fn count(&mut self, number: u64) {
        match self.counts.get_mut(class_of(number)) {
            Some(n) => *n += 1,
            None => self.count_n(number, 1),
        }
    }

    pub fn count_n(&mut self, number: u64, n: u64) {
        let class = class_of(number);
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] = self.counts[class].saturating_add(n);
    }

    pub fn add(&mut self, more: &Self) {
        if self.counts.len() < more.counts.len() {
            self.counts.resize(more.counts.len(), 0);
        }
        for (own, n) in self.counts.iter_mut().zip(&more.counts) {
            *own = own.saturating_add(*n);
        }
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.fill(0);
    }

    /// The middle of each class that has numbers, with how many, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let counted = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        counted.map(|(class, &n)| (middle_of(class), n))
    }

    /// Numbers counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    pub fn is_empty(&self) -> bool {
        self.counts.iter().all(|n| *n == 0)
    }

    /// The mean of the classes' middles; 0 if nothing was counted.
    pub fn mean(&self) -> f64 {
        let sum: f64 = self.iter().map(|(number, n)| number as f64 * n as f64).sum();
        sum / self.total().max(1) as f64
    }

    /// The number that the share `q` (above 0, to 1) of the numbers does not exceed, by its class; `None` if nothing was
    /// counted.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let wanted = ((q.clamp(0.0, 1.0) * self.total() as f64).ceil() as u64).max(1);
        let mut below = 0_u64;
        let reached = self.iter().find(|(_, n)| {
            below = below.saturating_add(*n);
            below >= wanted
        });
        reached.map(|(number, _)| number)
    }
}

fn class_of(number: u64) -> usize {
    let number = number.min(HIGHEST);
    let power = (number | u64::from(2 * PARTS - 1)).ilog2() - PARTS.ilog2();
    (u64::from(power * PARTS) + (number >> power)) as usize
}

fn middle_of(class: usize) -> u64 {
    let power = (class as u64 / u64::from(PARTS)).saturating_sub(1);
    let lowest = (class as u64 - power * u64::from(PARTS)) << power;
    lowest + (1 << power) / 2
}

impl fmt::Display for ValueCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut blank = "";
        for (number, n) in self.iter() {
            write!(f, "{blank}{number}:{n}")?;
            blank = " ";
        }
        Ok(())
    }
}

impl FromStr for ValueCounts {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let mut counts = Self::default();
        for part in text.split_ascii_whitespace() {
            let (number, n) = part.split_once(':').ok_or(ParseIdError)?;
            let [number, n] = [number, n].map(|part| part.parse::<u64>().map_err(|_| ParseIdError));
            counts.count_n(number?, n?);
        }
        Ok(counts)
    }
}

absent_if_empty!(ValueCounts);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_number_is_known_to_a_64th_and_its_text_comes_back(number in 0..HIGHEST, n in 1..u64::MAX) {
            let mut counts = ValueCounts::default();
            counts.count_n(number, n);
            let (middle, counted) = counts.iter().next().unwrap();
            prop_assert!(middle.abs_diff(number) <= number / 64, "{} for {}", middle, number);
            prop_assert_eq!((counted, counts.quantile(0.5)), (n, Some(middle)));
            prop_assert_eq!(counts.to_string().parse(), Ok(counts));
        }
    }

    #[test]
    fn numbers_add_up() {
        let mut counts = ValueCounts::default();
        for number in [0, 0, 63, 64, 10_000, u64::MAX] {
            counts.count(number);
        }
        let mut sum = counts.clone();
        sum.add(&counts);
        assert_eq!(sum.total(), 12);
        assert_eq!([0.3, 0.5, 0.51, 1.0].map(|q| sum.quantile(q).unwrap()), [0, 63, 65, HIGHEST + (1 << 34)]);
        sum.clear();
        assert!(sum.is_empty() && sum.quantile(0.5).is_none());
    }

    #[test]
    fn memory_is_bounded_whatever_is_counted() {
        let mut counts = ValueCounts::default();
        (0..64).for_each(|power| counts.count(u64::MAX >> power));
        assert!(counts.counts.len() <= 1_200);
    }

    #[test]
    fn text_that_counts_nothing_is_refused() {
        for text in ["60", "60:", "x:1", "60:-1", "60:1,70:2"] {
            assert_eq!(text.parse::<ValueCounts>(), Err(ParseIdError), "{text}");
        }
    }
}
