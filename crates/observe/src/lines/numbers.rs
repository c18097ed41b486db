//! The numbers that a log gives its lines, which show what did not arrive.

use std::collections::VecDeque;

/// If a number is smaller than the last by more than this, numbering restarted.
const DISORDER_MAX: u64 = 10_000;
/// The most lines that may be lost at once. A number further ahead is not believed.
const HOLE_MAX: u64 = 1_000_000;
/// The most concurrent series. A restarted terminator begins a new series; after a reload, old processes continue
/// beside the new one.
const SERIES_MAX: usize = 4;

/// The numbers of one log.
#[derive(Debug, Default)]
pub(crate) struct LineNumbers {
    /// Ordered by their latest line, the most recent last.
    series: VecDeque<NumberRange>,
    /// Missing numbers of series that are over.
    missing_before: u64,
}

impl LineNumbers {
    /// Notes the number of a line. False if so many lines cannot have been lost before it: the next lines may go on from
    /// it, but the lines before are not missing.
    pub(crate) fn add(&mut self, number: u64) -> bool {
        let last = self.series.back().map_or(number, |series| series.last);
        let candidates = self.series.iter().enumerate().filter(|(_, series)| series.may_have(number));
        let nearest = candidates.min_by_key(|(_, series)| series.last.abs_diff(number)).map(|(at, _)| at);
        if let Some(mut series) = nearest.and_then(|at| self.series.remove(at)) {
            series.add(number);
            self.series.push_back(series);
            return true;
        }
        if self.series.len() == SERIES_MAX {
            let over = self.series.pop_front().map_or(0, |mut over| over.missing_at_end());
            self.missing_before = self.missing_before.saturating_add(over);
        }
        self.series.push_back(NumberRange::new(number));
        number <= last
    }

    /// Counts what is missing of the lines that were due, then makes all that were sent so far due. At the end nothing can
    /// follow.
    pub(crate) fn expect(&mut self, is_last: bool) {
        for series in &mut self.series {
            if is_last {
                series.missing_at_end();
            } else {
                series.expect();
            }
        }
    }

    /// Lines that did not arrive.
    pub(crate) fn missing(&self) -> u64 {
        self.series.iter().map(|series| series.missing).fold(self.missing_before, u64::saturating_add)
    }
}

/// The numbers of one process.
#[derive(Debug)]
struct NumberRange {
    first: u64,
    last: u64,
    seen: u64,
    /// The last number whose line can no longer be on its way.
    due: u64,
    /// Lines seen with numbers up to `due`.
    seen_due: u64,
    missing: u64,
    /// Lines before the first may still come.
    is_young: bool,
}

impl NumberRange {
    fn new(first: u64) -> Self {
        Self { first, last: first, seen: 1, due: first, seen_due: 1, missing: 0, is_young: true }
    }

    fn may_have(&self, number: u64) -> bool {
        let earliest = self.last.saturating_sub(DISORDER_MAX);
        let earliest = if self.is_young { earliest } else { earliest.max(self.first) };
        (earliest..=self.last.saturating_add(HOLE_MAX)).contains(&number)
    }

    fn add(&mut self, number: u64) {
        self.first = self.first.min(number);
        self.last = self.last.max(number);
        self.seen += 1;
        if number <= self.due {
            self.seen_due += 1;
        }
    }

    fn expect(&mut self) {
        self.missing = (self.due - self.first).saturating_add(1).saturating_sub(self.seen_due);
        self.due = self.last;
        self.seen_due = self.seen;
        self.is_young = false;
    }

    fn missing_at_end(&mut self) -> u64 {
        self.expect();
        self.expect();
        self.missing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(numbers: &[u64]) -> u64 {
        let mut log = LineNumbers::default();
        assert!(numbers.iter().all(|&number| log.add(number)));
        log.expect(true);
        log.missing()
    }

    #[test]
    fn holes_in_the_numbers_of_a_log_are_lost_lines() {
        assert_eq!(missing(&[5, 6, 8, 9, 7]), 0, "out of order is not lost");
        assert_eq!(missing(&[5, 6, 9]), 2);
        assert_eq!(missing(&[5, 900_000]), 899_994, "nobody read for a while");
    }

    #[test]
    fn a_restarted_log_loses_nothing_by_counting_from_the_start() {
        assert_eq!(missing(&[50_000, 50_001, 50_003, 1, 2]), 1);
        let mut young = LineNumbers::default();
        assert!((400..500).all(|number| young.add(number)));
        young.expect(false);
        assert!((0..10).all(|number| young.add(number)));
        young.expect(true);
        assert_eq!(young.missing(), 0);
    }

    #[test]
    fn a_process_that_ends_while_its_successor_logs_loses_nothing() {
        assert_eq!(missing(&[50_000, 1, 50_001, 2, 3, 50_002, 50_004, 4]), 1);
    }

    #[test]
    fn a_forged_number_is_refused_and_makes_no_lost_lines() {
        let mut log = LineNumbers::default();
        let forged = [u64::MAX, 1 << 40];
        for number in [100_000, forged[0], 100_001, 0, forged[1], 100_002, 100_004] {
            assert_eq!(log.add(number), !forged.contains(&number), "{number}");
        }
        log.expect(true);
        assert_eq!(log.missing(), 1);
    }
}
