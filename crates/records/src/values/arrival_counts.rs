//! Counts arrivals by tenths of a second.

use std::fmt;
use std::str::FromStr;

use crate::text::ParseIdError;
use crate::wire::absent_if_empty;

/// Most tenths of a second that are told apart: further ones count in the last.
const TENTHS_MAX: usize = 600;

/// Arrivals in each tenth of a second of `CLOCK_MONOTONIC`.
///
/// As text, `tenth:count` separated by blanks: the first tenth is counted from the clock's beginning, each other one from
/// the one before it: `1928330:12 1:40 3:7`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArrivalCounts {
    /// In ascending order.
    counts: Vec<(u64, u64)>,
}

impl ArrivalCounts {
    /// A tenth of a second, in microseconds.
    pub const TENTH_US: u64 = 100_000;

    /// Counts an arrival at this time of `CLOCK_MONOTONIC`, in microseconds.
    #[inline]
    pub fn count(&mut self, at_us: u64) {
        let tenth = at_us / Self::TENTH_US;
        // Nearly always it is the last one.
        match self.counts.last_mut().filter(|(last, _)| *last == tenth) {
            Some((_, n)) => *n += 1,
            None => self.count_n(tenth, 1),
        }
    }

    fn count_n(&mut self, tenth: u64, n: u64) {
        let at = self.counts.iter().rposition(|&(known, _)| known <= tenth);
        match at {
            Some(at) if self.counts[at].0 == tenth => self.counts[at].1 = self.counts[at].1.saturating_add(n),
            _ if self.counts.len() < TENTHS_MAX => {
                self.counts.insert(at.map_or(0, |at| at + 1), (tenth, n));
            }
            _ => self.counts.last_mut().expect("it is full").1 += n,
        }
    }

    pub fn add(&mut self, more: &Self) {
        more.iter().for_each(|(tenth, n)| self.count_n(tenth, n));
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// Each tenth that has arrivals, counted from the clock's beginning, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.counts.iter().copied()
    }

    /// Arrivals counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, (_, n)| sum.saturating_add(*n))
    }

    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }
}

impl fmt::Display for ArrivalCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut blank, mut before) = ("", 0);
        for (tenth, n) in self.iter() {
            write!(f, "{blank}{}:{n}", tenth - before)?;
            (blank, before) = (" ", tenth);
        }
        Ok(())
    }
}

impl FromStr for ArrivalCounts {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let (mut counts, mut tenth) = (Self::default(), 0_u64);
        for part in text.split_ascii_whitespace() {
            let (after, n) = part.split_once(':').ok_or(ParseIdError)?;
            let [after, n] = [after, n].map(|part| part.parse::<u64>().map_err(|_| ParseIdError));
            tenth = tenth.checked_add(after?).ok_or(ParseIdError)?;
            counts.count_n(tenth, n?);
        }
        Ok(counts)
    }
}

absent_if_empty!(ArrivalCounts);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrivals_of_workers_add_up_in_order() {
        let (mut one, mut other) = (ArrivalCounts::default(), ArrivalCounts::default());
        for (counts, at_us) in
            [(&mut one, [1_000_000, 1_099_999, 1_300_000]), (&mut other, [1_200_000, 900_000, 1_300_001])]
        {
            for at_us in at_us {
                counts.count(at_us);
            }
        }
        one.add(&other);
        assert_eq!(one.to_string(), "9:1 1:2 2:1 1:2");
        assert_eq!((one.to_string().parse(), one.total()), (Ok(one.clone()), 6));
    }

    #[test]
    fn memory_is_bounded_and_no_arrival_is_lost() {
        let mut counts = ArrivalCounts::default();
        (0..10_000).rev().for_each(|tenth| counts.count(tenth * ArrivalCounts::TENTH_US));
        assert_eq!((counts.counts.len(), counts.total()), (TENTHS_MAX, 10_000));
    }

    #[test]
    fn text_that_counts_nothing_is_refused() {
        for text in ["60", "60:", "x:1", "1:2 18446744073709551615:1"] {
            assert_eq!(text.parse::<ArrivalCounts>(), Err(ParseIdError), "{text}");
        }
    }
}
