//! Counts ages, such as those of tickets, in classes that grow with the age.

use crate::wire::absent_if_empty;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::text::ParseIdError;

/// Classes of each octave.
const PER_OCTAVE: u32 = 4;
/// Ages from 2^25 s (over a year) on are one class.
const CLASSES_MAX: usize = 25 * PER_OCTAVE as usize;

/// Counts of ages in classes of a quarter octave: an age is known to less than a fifth. Ages up to 1 s are one class, and so
/// are those above a year.
///
/// As text, `seconds:count` separated by blanks, with the upper end of each class: `60:11 3600:80`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AgeCounts {
    /// By class, as far as the oldest.
    counts: Vec<u64>,
}

impl AgeCounts {
    pub fn count(&mut self, age: Duration) {
        self.count_n(class_of(age.as_secs()), 1);
    }

    fn count_n(&mut self, class: usize, n: u64) {
        if self.counts.len() <= class {
            self.counts.resize(class + 1, 0);
        }
        self.counts[class] = self.counts[class].saturating_add(n);
    }

    pub fn add(&mut self, more: &Self) {
        for (class, &n) in more.counts.iter().enumerate().filter(|(_, n)| **n > 0) {
            self.count_n(class, n);
        }
    }

    /// The counts since `earlier`.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let before = |class: usize| earlier.counts.get(class).copied().unwrap_or(0);
        let counts =
            self.counts.iter().enumerate().map(|(class, n)| n.saturating_sub(before(class))).collect();
        Self { counts }
    }

    /// Forgets all and keeps the memory.
    pub fn clear(&mut self) {
        self.counts.clear();
    }

    /// Ages counted.
    pub fn total(&self) -> u64 {
        self.counts.iter().fold(0, |sum, &n| sum.saturating_add(n))
    }

    /// Ages counted whose class ends at `age` or before: no age above it is among them.
    pub fn up_to(&self, age: Duration) -> u64 {
        self.iter().take_while(|(end, _)| *end <= age).fold(0, |sum, (_, n)| sum.saturating_add(n))
    }

    /// Each class that has ages, by its upper end, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (Duration, u64)> {
        let counted = self.counts.iter().enumerate().filter(|(_, n)| **n > 0);
        counted.map(|(class, &n)| (Duration::from_secs(end_of(class)), n))
    }

    pub fn is_empty(&self) -> bool {
        self.total() == 0
    }

    pub(crate) fn capacity_bytes(&self) -> usize {
        self.counts.capacity() * size_of::<u64>()
    }
}

/// The class of an age: the first that ends at it or later.
fn class_of(seconds: u64) -> usize {
    let guess = f64::from(PER_OCTAVE) * (seconds.max(1) as f64).log2();
    // Rounding may put an age just beyond the end of the class.
    let class = (guess as usize).min(CLASSES_MAX);
    (class.saturating_sub(1)..CLASSES_MAX).find(|&class| end_of(class) >= seconds).unwrap_or(CLASSES_MAX)
}

/// The upper end of a class, in seconds: rounded, so the first classes may share one.
fn end_of(class: usize) -> u64 {
    2_f64.powf(class as f64 / f64::from(PER_OCTAVE)).round() as u64
}

impl fmt::Display for AgeCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut blank = "";
        for (end, n) in self.iter() {
            write!(f, "{blank}{}:{n}", end.as_secs())?;
            blank = " ";
        }
        Ok(())
    }
}

impl FromStr for AgeCounts {
    type Err = ParseIdError;

    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        let mut ages = Self::default();
        for part in text.split_ascii_whitespace() {
            let (end, n) = part.split_once(':').ok_or(ParseIdError)?;
            let seconds: u64 = end.parse().map_err(|_| ParseIdError)?;
            ages.count_n(class_of(seconds), n.parse().map_err(|_| ParseIdError)?);
        }
        Ok(ages)
    }
}

absent_if_empty!(AgeCounts);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_is_counted_in_the_class_that_ends_at_it_or_soon_after() {
        for seconds in [0, 1, 2, 3, 59, 60, 3_599, 43_200, 86_400, 604_800, 20_000_000] {
            let mut ages = AgeCounts::default();
            ages.count(Duration::from_secs(seconds));
            let (end, n) = ages.iter().next().unwrap();
            assert!(n == 1 && end.as_secs() >= seconds, "{seconds}: {end:?}");
            assert!(end.as_secs_f64() <= (seconds.max(1) as f64 * 1.2).ceil(), "{seconds}: {end:?}");
            assert_eq!((ages.up_to(end), ages.total()), (1, 1));
            assert_eq!(ages.to_string().parse(), Ok(ages.clone()), "{seconds}");
        }
    }

    #[test]
    fn ages_add_up_and_are_counted_from_an_earlier_state_on() {
        let (mut before, mut later) = (AgeCounts::default(), AgeCounts::default());
        before.count(Duration::from_secs(60));
        later.add(&before);
        later.count(Duration::from_secs(7_200));
        later.count(Duration::from_secs(u64::MAX));
        assert_eq!(later.since(&before).total(), 2);
        assert_eq!(later.total(), 3);
    }

    #[test]
    fn text_that_counts_nothing_is_refused() {
        for text in ["60", "60:", "x:1", "60:-1", "60:1,70:2"] {
            assert_eq!(text.parse::<AgeCounts>(), Err(ParseIdError), "{text}");
        }
        assert!("".parse::<AgeCounts>().unwrap().is_empty());
    }
}
