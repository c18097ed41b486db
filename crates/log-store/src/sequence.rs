//! The records of each run in the order of their numbers. A store has them by time: a writer's clock may step back, and a
//! part of a second may arrive after later seconds.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use journal::Entry;
use records::rollups::{entry_bytes, key_and_number};

/// The bytes of records behind holes, of all runs together: beyond them, the run with most no longer waits.
const WAITING_BYTES_MAX: usize = 32 << 20;
/// The runs whose numbers are kept; beyond them all begin anew.
const RUNS_MAX: usize = 10_000;

/// What is known of the numbers of each run.
#[derive(Debug, Default)]
pub(crate) struct RunSequences {
    /// By run and writer.
    runs: HashMap<Box<str>, RunSequence>,
    bytes: usize,
}

#[derive(Debug)]
struct RunSequence {
    /// The number that comes next.
    next: u64,
    /// Behind a hole.
    waiting: BTreeMap<u64, Entry>,
    bytes: usize,
    /// Since when.
    since: Instant,
}

impl RunSequences {
    /// Passes a record on if it comes next, and those that waited for it. What has no number, or was passed by, goes on at
    /// once. A run begins with number 1 if `is_from_start`, else with the first that comes.
    pub(crate) fn take(
        &mut self,
        entry: Entry,
        (is_from_start, now): (bool, Instant),
        each: &mut dyn FnMut(&Entry),
    ) {
        let Some((key, number)) = key_and_number(&entry) else { return each(&entry) };
        if self.runs.len() == RUNS_MAX && !self.runs.contains_key(&key) {
            self.release(each);
            self.runs.clear();
        }
        let next = if is_from_start { 1 } else { number };
        let new = || RunSequence { next, waiting: BTreeMap::new(), bytes: 0, since: now };
        let run = self.runs.entry(key).or_insert_with(new);
        if number > run.next {
            if run.waiting.is_empty() {
                run.since = now;
            }
            let bytes = entry_bytes(&entry);
            let copy = run.waiting.insert(number, entry).as_ref().map_or(0, entry_bytes);
            run.bytes = run.bytes + bytes - copy;
            self.bytes = self.bytes + bytes - copy;
            if self.bytes > WAITING_BYTES_MAX
                && let Some(most) = self.runs.values_mut().max_by_key(|run| run.bytes)
            {
                self.bytes -= most.release(each);
            }
            return;
        }
        each(&entry);
        if number == run.next {
            run.next += 1;
            while let Some(entry) = run.waiting.remove(&run.next) {
                each(&entry);
                run.next += 1;
                run.bytes -= entry_bytes(&entry);
                self.bytes -= entry_bytes(&entry);
            }
            run.since = now;
        }
    }

    /// Passes on what waits: the holes are losses.
    pub(crate) fn release(&mut self, each: &mut dyn FnMut(&Entry)) {
        for run in self.runs.values_mut() {
            run.release(each);
        }
        self.bytes = 0;
    }

    /// Passes on the records of runs whose first one was not there: a store, or a filter, has no beginning of them.
    pub(crate) fn release_without_beginning(&mut self, each: &mut dyn FnMut(&Entry)) {
        for run in self.runs.values_mut().filter(|run| run.next == 1) {
            self.bytes -= run.release(each);
        }
    }

    /// Passes on what has waited for so long.
    pub(crate) fn release_older(&mut self, patience: Duration, now: Instant, each: &mut dyn FnMut(&Entry)) {
        if self.bytes == 0 {
            return;
        }
        for run in self.runs.values_mut().filter(|run| !run.waiting.is_empty()) {
            if now.saturating_duration_since(run.since) >= patience {
                self.bytes -= run.release(each);
            }
        }
    }

    /// Lets everything wait anew: nothing could be read until now.
    pub(crate) fn wait_from(&mut self, now: Instant) {
        self.runs.values_mut().for_each(|run| run.since = now);
    }
}

impl RunSequence {
    /// Returns the bytes that waited.
    fn release(&mut self, each: &mut dyn FnMut(&Entry)) -> usize {
        for (number, entry) in std::mem::take(&mut self.waiting) {
            each(&entry);
            self.next = number.saturating_add(1);
        }
        std::mem::take(&mut self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(run: &str, number: u64) -> Entry {
        Entry::from_fields(0, [("TLSDASH_RUN", run), ("TLSDASH_SEQ", &*number.to_string())])
    }

    fn taken(numbers: &[u64], sequences: &mut RunSequences, now: Instant) -> Vec<u64> {
        let mut passed = Vec::new();
        let mut each = |entry: &Entry| passed.push(entry.text("TLSDASH_SEQ").unwrap().parse().unwrap());
        for number in numbers {
            sequences.take(record("a", *number), (true, now), &mut each);
        }
        sequences.release_older(Duration::from_secs(10), now, &mut each);
        passed
    }

    #[test]
    fn records_wait_for_those_before_them_and_not_for_ever() {
        let (mut sequences, begin) = (RunSequences::default(), Instant::now());
        let at = |second| begin + Duration::from_secs(second);
        assert_eq!(taken(&[1, 2, 5, 4, 2], &mut sequences, at(0)), [1, 2, 2], "a copy is passed on");
        assert_eq!(taken(&[3, 7], &mut sequences, at(9)), [3, 4, 5]);
        assert_eq!(taken(&[9, 9], &mut sequences, at(18)), [0; 0]);
        assert_eq!(taken(&[], &mut sequences, at(19)), [7, 9]);
        assert_eq!(taken(&[10, 6, 12], &mut sequences, at(20)), [10, 6]);
        sequences.wait_from(at(29));
        assert_eq!(taken(&[], &mut sequences, at(38)), [0; 0]);
        assert_eq!(taken(&[11], &mut sequences, at(38)), [11, 12]);
        assert_eq!(sequences.bytes, 0);
        let mut passed = 0;
        sequences.take(record("late", 7), (false, begin), &mut |_| passed += 1);
        assert_eq!(passed, 1, "of a run that is met on its way");
        sequences.take(record("cut", 9), (true, begin), &mut |_| passed += 1);
        sequences.take(record("a", 14), (true, begin), &mut |_| passed += 1);
        sequences.release_without_beginning(&mut |entry| {
            assert_eq!(entry.text("TLSDASH_RUN"), Some("cut"));
            passed += 1;
        });
        assert_eq!(passed, 2);
    }

    #[test]
    fn what_waits_is_bounded_and_a_run_with_much_costs_no_other() {
        let (mut sequences, now, mut passed) = (RunSequences::default(), Instant::now(), 0);
        sequences.take(record("small", 2), (true, now), &mut |_| passed += 1);
        let long = "x".repeat(1 << 20);
        for number in 2..100 {
            let fields =
                [("TLSDASH_RUN", "big"), ("TLSDASH_SEQ", &*format!("{}", 2 * number)), ("MESSAGE", &*long)];
            sequences.take(Entry::from_fields(0, fields), (true, now), &mut |_| passed += 1);
            assert!(sequences.bytes <= WAITING_BYTES_MAX + (2 << 20));
        }
        assert!(passed > 32);
        let mut first = Vec::new();
        let each = &mut |entry: &Entry| first.push(entry.text("TLSDASH_RUN") == Some("small"));
        sequences.take(record("small", 1), (true, now), each);
        assert_eq!(first, [true, true]);
        for run in 0..30_000 {
            sequences.take(record(&format!("run {run}"), 1), (true, now), &mut |_| passed += 1);
            assert!(sequences.runs.len() <= RUNS_MAX);
        }
    }
}
