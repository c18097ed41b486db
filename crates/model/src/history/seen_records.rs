//! Remembers which records were read, so copies of a journal count once.
//!
//! A folder may hold the same run twice: the file that a host wrote and the copy of `systemd-journal-remote`, or
//! repeated uploads. Files are read one after the other, so a copy may come long after the original.

use std::collections::VecDeque;

use foldhash::HashMap;

use records::codec::{Origin, SuppressedMessages};
use records::ids::RunId;
use records::kinds::Stamp;

/// Remembered runs; a further one replaces the run that has been silent longest.
const RUNS_MAX: usize = 4_096;
/// Ranges of numbers that are remembered for a run. A further hole replaces the oldest one: records lost there are not
/// read from a copy.
const RANGES_MAX: usize = 64;
/// Messages of journald that are remembered.
const NOTICES_MAX: usize = 256;

/// The numbers of the records that were read.
#[derive(Debug, Default)]
pub struct SeenRecords {
    /// A run is identified by its writer too: another process that writes under its id hides none of its records.
    runs: HashMap<(RunId, Origin), SeenRun>,
    /// How many records were read; the age of a run.
    read: u64,
    notices: VecDeque<(u128, u64, SuppressedMessages)>,
}

/// The numbers that were read of one run.
#[derive(Debug, Default)]
struct SeenRun {
    /// First and last number of each range, ascending, with holes between them.
    ranges: Vec<(u64, u64)>,
    /// When its latest record was read, by the count of records.
    latest: u64,
}

impl SeenRecords {
    /// Remembers a record; false if it was read before.
    pub fn insert(&mut self, writer: &Origin, stamp: &Stamp) -> bool {
        self.read += 1;
        let key = (stamp.run, *writer);
        if self.runs.len() == RUNS_MAX && !self.runs.contains_key(&key) {
            let oldest = self.runs.iter().min_by_key(|(_, run)| run.latest).map(|(key, _)| *key);
            oldest.and_then(|key| self.runs.remove(&key));
        }
        let run = self.runs.entry(key).or_default();
        run.latest = self.read;
        run.insert(stamp.seq)
    }

    /// Remembers a message that journald wrote in this boot at this time, `CLOCK_REALTIME` in microseconds; false if it was
    /// read before.
    pub(crate) fn insert_notice(
        &mut self,
        (boot, realtime_us): (u128, u64),
        notice: &SuppressedMessages,
    ) -> bool {
        let is_same = |(its_boot, its_us, other): &(u128, u64, SuppressedMessages)| {
            (*its_boot, *its_us) == (boot, realtime_us) && other == notice
        };
        if self.notices.iter().any(is_same) {
            return false;
        }
        if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back((boot, realtime_us, notice.clone()));
        true
    }
}

impl SeenRun {
    fn insert(&mut self, seq: u64) -> bool {
        // The range that begins last of those that begin at or before the number.
        let after = self.ranges.partition_point(|(first, _)| *first <= seq);
        let joins_next = self.ranges.get(after).is_some_and(|(first, _)| seq.checked_add(1) == Some(*first));
        let before = after.checked_sub(1).map(|at| &mut self.ranges[at]);
        match before {
            Some((_, last)) if seq <= *last => return false,
            Some((_, last)) if last.checked_add(1) == Some(seq) => {
                *last = seq;
                if joins_next {
                    self.ranges[after - 1].1 = self.ranges[after].1;
                    self.ranges.remove(after);
                }
            }
            _ if joins_next => self.ranges[after].0 = seq,
            _ => {
                self.ranges.insert(after, (seq, seq));
                if self.ranges.len() > RANGES_MAX {
                    self.ranges[1].0 = self.ranges[0].0;
                    self.ranges.remove(0);
                }
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn stamp(run: u128, seq: u64) -> Stamp {
        Stamp { run: RunId::from_bits(run), seq, mono_us: 1, realtime_us: 1, interval_us: 1 }
    }

    proptest! {
        #[test]
        fn each_number_is_new_once(numbers in prop::collection::vec(0_u64..100, 0..300)) {
            let (mut seen, mut known) = (SeenRecords::default(), BTreeSet::new());
            for seq in numbers {
                prop_assert_eq!(seen.insert(&Origin::default(), &stamp(1, seq)), known.insert(seq), "{}", seq);
            }
        }
    }

    #[test]
    fn the_highest_numbers_are_numbers_too() {
        let mut seen = SeenRecords::default();
        for seq in [u64::MAX, u64::MAX - 1, 0] {
            assert!(seen.insert(&Origin::default(), &stamp(1, seq)));
            assert!(!seen.insert(&Origin::default(), &stamp(1, seq)));
        }
    }

    #[test]
    fn runs_and_writers_are_known_apart() {
        let mut seen = SeenRecords::default();
        let other = Origin { pid: Some(1), ..Origin::default() };
        for (writer, run) in [(Origin::default(), 1), (Origin::default(), 2), (other, 1)] {
            assert!(seen.insert(&writer, &stamp(run, 1)));
        }
    }

    #[test]
    fn holes_and_runs_without_end_take_bounded_memory() {
        let mut seen = SeenRecords::default();
        for seq in 0..10_000 {
            assert!(seen.insert(&Origin::default(), &stamp(1, 2 * seq)));
        }
        assert_eq!(seen.runs.values().map(|run| run.ranges.len()).collect::<Vec<_>>(), [RANGES_MAX]);
        assert!(!seen.insert(&Origin::default(), &stamp(1, 1)), "a hidden hole");
        assert!(seen.insert(&Origin::default(), &stamp(1, 19_997)), "one that is still known");
        for run in 2..10_000 {
            seen.insert(&Origin::default(), &stamp(run, 1));
            assert!(!seen.insert(&Origin::default(), &stamp(1, 0)), "a run whose records come is remembered");
        }
        assert_eq!(seen.runs.len(), RUNS_MAX);
    }

    #[test]
    fn a_message_of_journald_counts_once() {
        let mut seen = SeenRecords::default();
        let notice =
            SuppressedMessages { boot: Some(1), pid: None, unit: "a.service".to_owned(), dropped: 5 };
        assert!(seen.insert_notice((1, 10), &notice));
        assert!(!seen.insert_notice((1, 10), &notice));
        assert!(seen.insert_notice((1, 11), &notice));
        assert!(seen.insert_notice((2, 10), &notice));
    }
}
