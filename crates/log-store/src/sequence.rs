//! The records of each run in the order of their numbers. A store has them by time: a writer's clock may step back, and a
//! part of a second may arrive after later seconds.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use journal::Entry;

/// Records behind a hole that wait for it, of all runs together.
const WAITING_MAX: usize = 5_000;
/// The runs whose numbers are kept; beyond them all begin anew.
const RUNS_MAX: usize = 10_000;

/// What is known of the numbers of each run.
#[derive(Debug, Default)]
pub(crate) struct RunSequences {
    /// By run and writer.
    runs: HashMap<Box<str>, RunSequence>,
    waiting: usize,
}

#[derive(Debug)]
struct RunSequence {
    /// The number that comes next.
    next: u64,
    /// Behind a hole.
    waiting: BTreeMap<u64, Entry>,
    /// Since when.
    since: Instant,
}

impl RunSequences {
    /// Passes a record on if it comes next, and those that waited for it. What has no number, or was passed by, goes on at
    /// once.
    pub(crate) fn take(&mut self, entry: Entry, now: Instant, each: &mut dyn FnMut(&Entry)) {
        let Some((key, number)) = key_and_number(&entry) else { return each(&entry) };
        if self.runs.len() == RUNS_MAX && !self.runs.contains_key(&key) {
            self.release(each);
            self.runs.clear();
        }
        let new = || RunSequence { next: 1, waiting: BTreeMap::new(), since: now };
        let run = self.runs.entry(key).or_insert_with(new);
        if number > run.next {
            if run.waiting.is_empty() {
                run.since = now;
            }
            self.waiting += usize::from(run.waiting.insert(number, entry).is_none());
            if self.waiting > WAITING_MAX {
                self.release(each);
            }
            return;
        }
        each(&entry);
        if number == run.next {
            run.next += 1;
            while let Some(entry) = run.waiting.remove(&run.next) {
                each(&entry);
                run.next += 1;
                self.waiting -= 1;
            }
            run.since = now;
        }
    }

    /// Passes on what waits: the holes are losses.
    pub(crate) fn release(&mut self, each: &mut dyn FnMut(&Entry)) {
        self.runs.values_mut().for_each(|run| run.release(each));
        self.waiting = 0;
    }

    /// Passes on what has waited for so long.
    pub(crate) fn release_older(&mut self, patience: Duration, now: Instant, each: &mut dyn FnMut(&Entry)) {
        if self.waiting == 0 {
            return;
        }
        for run in self.runs.values_mut().filter(|run| !run.waiting.is_empty()) {
            if now.saturating_duration_since(run.since) >= patience {
                self.waiting -= run.waiting.len();
                run.release(each);
            }
        }
    }
}

impl RunSequence {
    fn release(&mut self, each: &mut dyn FnMut(&Entry)) {
        for (number, entry) in std::mem::take(&mut self.waiting) {
            each(&entry);
            self.next = number.saturating_add(1);
        }
    }
}

/// The run and its writer, and the number of a record; `None` if it has none.
fn key_and_number(entry: &Entry) -> Option<(Box<str>, u64)> {
    let number = entry.text("TLSDASH_SEQ")?.parse().ok().filter(|number| (1..u64::MAX).contains(number))?;
    let text = |name| entry.text(name).unwrap_or_default();
    let key = format!("{} {} {}", entry.text("TLSDASH_RUN")?, text("_BOOT_ID"), text("_PID"));
    Some((key.into(), number))
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
            sequences.take(record("a", *number), now, &mut each);
        }
        sequences.release_older(Duration::from_secs(10), now, &mut each);
        passed
    }

    #[test]
    fn records_wait_for_those_before_them_and_not_for_ever() {
        let (mut sequences, now) = (RunSequences::default(), Instant::now());
        assert_eq!(taken(&[1, 2, 5, 4, 2], &mut sequences, now), [1, 2, 2], "a copy is passed on");
        assert_eq!(taken(&[3, 7], &mut sequences, now + Duration::from_secs(9)), [3, 4, 5]);
        assert_eq!(taken(&[9], &mut sequences, now + Duration::from_secs(18)), [0; 0]);
        assert_eq!(taken(&[], &mut sequences, now + Duration::from_secs(19)), [7, 9]);
        assert_eq!(taken(&[10, 6], &mut sequences, now + Duration::from_secs(20)), [10, 6]);
        assert_eq!(sequences.waiting, 0);
    }

    #[test]
    fn what_waits_is_bounded_also_for_many_runs() {
        let (mut sequences, now) = (RunSequences::default(), Instant::now());
        let mut passed = 0;
        for number in 0..20_000 {
            sequences.take(record(&format!("{}", number % 3), 2 + number), now, &mut |_| passed += 1);
            assert!(sequences.waiting <= WAITING_MAX);
        }
        for run in 0..30_000 {
            sequences.take(record(&format!("run {run}"), 1), now, &mut |_| passed += 1);
            assert!(sequences.runs.len() <= RUNS_MAX);
        }
        assert_eq!(passed, 50_000);
    }
}
