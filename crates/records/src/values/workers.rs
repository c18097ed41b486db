//! What each worker of the proxy did.

use std::fmt;
use std::str::FromStr;

use crate::text::ParseIdError;
use crate::wire::absent_if_empty;

/// The most workers that a record lists, which is as many as a proxy may have.
pub const WORKERS_LISTED_MAX: usize = 256;
/// Separates two workers.
const SEPARATOR: &str = "; ";

/// Counts of one worker: in a record those of the run, in a delta those since the last hand-over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WorkerCounts {
    /// Its number, from 0.
    pub number: u32,
    /// CPU time of its thread, in microseconds.
    pub cpu_us: u64,
    /// Open connections; in a delta, those accepted less those closed.
    pub open: i64,
    pub accepted: u64,
    pub handshakes_full: u64,
    pub handshakes_resumed: u64,
    /// The longest loop delay of a handshake in the interval, in microseconds; 0 without a handshake.
    pub loop_delay_us_max: u64,
}

impl WorkerCounts {
    pub fn handshakes(&self) -> u64 {
        self.handshakes_full.saturating_add(self.handshakes_resumed)
    }

    fn add(&mut self, other: &Self) {
        self.cpu_us = self.cpu_us.saturating_add(other.cpu_us);
        self.open = self.open.saturating_add(other.open);
        self.accepted = self.accepted.saturating_add(other.accepted);
        self.handshakes_full = self.handshakes_full.saturating_add(other.handshakes_full);
        self.handshakes_resumed = self.handshakes_resumed.saturating_add(other.handshakes_resumed);
        self.loop_delay_us_max = self.loop_delay_us_max.max(other.loop_delay_us_max);
    }

    /// Counts from earlier counts on.
    fn since(self, before: &Self) -> Self {
        Self {
            cpu_us: self.cpu_us.saturating_sub(before.cpu_us),
            accepted: self.accepted.saturating_sub(before.accepted),
            handshakes_full: self.handshakes_full.saturating_sub(before.handshakes_full),
            handshakes_resumed: self.handshakes_resumed.saturating_sub(before.handshakes_resumed),
            ..self
        }
    }
}

/// The proxy's workers by their numbers, at most [`WORKERS_LISTED_MAX`]. As text: the seven numbers of each, with a
/// semicolon and a blank between two workers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkerList(Vec<WorkerCounts>);

impl WorkerList {
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &WorkerCounts> {
        self.0.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds counts to those of the same worker.
    pub fn add(&mut self, counts: &WorkerCounts) {
        match self.place(counts.number) {
            Ok(at) => self.0[at].add(counts),
            Err(at) if self.0.len() < WORKERS_LISTED_MAX => self.0.insert(at, *counts),
            Err(_) => {}
        }
    }

    /// Counts from an earlier list on.
    pub fn rebase(&mut self, before: &Self) {
        for worker in &mut self.0 {
            if let Ok(at) = before.place(worker.number) {
                *worker = worker.since(&before.0[at]);
            }
        }
    }

    /// Merges an earlier list, to cover the intervals of both.
    pub fn downsample(&mut self, earlier: &Self) {
        for worker in &mut self.0 {
            if let Ok(at) = earlier.place(worker.number) {
                worker.loop_delay_us_max = worker.loop_delay_us_max.max(earlier.0[at].loop_delay_us_max);
            }
        }
    }

    /// Begins the next interval.
    pub fn end_interval(&mut self) {
        self.0.iter_mut().for_each(|worker| worker.loop_delay_us_max = 0);
    }

    fn place(&self, number: u32) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |worker| worker.number)
    }
}

impl fmt::Display for WorkerList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, worker) in self.iter().enumerate() {
            let WorkerCounts {
                number,
                cpu_us,
                open,
                accepted,
                handshakes_full,
                handshakes_resumed,
                loop_delay_us_max,
            } = worker;
            let separator = if at == 0 { "" } else { SEPARATOR };
            write!(f, "{separator}{number} {cpu_us} {open} {accepted} ")?;
            write!(f, "{handshakes_full} {handshakes_resumed} {loop_delay_us_max}")?;
        }
        Ok(())
    }
}

impl FromStr for WorkerList {
    type Err = ParseIdError;

    /// Ignores numbers after the seventh: a later version may add some.
    fn from_str(text: &str) -> Result<Self, ParseIdError> {
        fn next<T: FromStr>(words: &mut std::str::Split<'_, char>) -> Result<T, ParseIdError> {
            words.next().and_then(|word| word.parse().ok()).ok_or(ParseIdError)
        }
        let mut workers = Self::default();
        for part in text.split(SEPARATOR).take(WORKERS_LISTED_MAX) {
            let words = &mut part.split(' ');
            workers.add(&WorkerCounts {
                number: next(words)?,
                cpu_us: next(words)?,
                open: next(words)?,
                accepted: next(words)?,
                handshakes_full: next(words)?,
                handshakes_resumed: next(words)?,
                loop_delay_us_max: next(words)?,
            });
        }
        Ok(workers)
    }
}

absent_if_empty!(WorkerList);

#[cfg(test)]
mod tests {
    use super::*;

    fn worker(number: u32, n: u64) -> WorkerCounts {
        WorkerCounts {
            number,
            cpu_us: n,
            open: n as i64,
            accepted: 2 * n,
            handshakes_full: 3 * n,
            handshakes_resumed: 4 * n,
            loop_delay_us_max: 5 * n,
        }
    }

    fn list(workers: &[WorkerCounts]) -> WorkerList {
        let mut list = WorkerList::default();
        for worker in workers {
            list.add(worker);
        }
        list
    }

    #[test]
    fn the_text_of_a_list_is_read_back() {
        let all: Vec<_> = (0..WORKERS_LISTED_MAX as u32 + 9).map(|n| worker(n, u64::from(n))).collect();
        let list = list(&all);
        assert_eq!(list.iter().len(), WORKERS_LISTED_MAX);
        assert_eq!(list.to_string().parse::<WorkerList>().unwrap(), list);
        let later = "0 1 2 3 4 5 6 7 8; 1 1 -2 3 4 5 6";
        assert_eq!(later.parse::<WorkerList>().unwrap().to_string(), "0 1 2 3 4 5 6; 1 1 -2 3 4 5 6");
    }

    #[test]
    fn text_that_lists_no_workers_is_refused() {
        for text in ["; ", "1 2 3 4 5 6", "0 1 2 3 4 5 x", "-1 1 2 3 4 5 6", "0 1 2 3 4 5 6; "] {
            assert!(text.parse::<WorkerList>().is_err(), "{text:?}");
        }
    }

    #[test]
    fn counts_of_a_worker_add_up_and_its_delay_is_the_longest() {
        let sum = list(&[worker(3, 10), worker(1, 5), worker(3, 7), worker(1, u64::MAX / 9)]);
        let numbers: Vec<_> = sum.iter().map(|worker| worker.number).collect();
        assert_eq!(numbers, [1, 3]);
        assert_eq!(sum.iter().last(), Some(&WorkerCounts { loop_delay_us_max: 50, ..worker(3, 17) }));
    }

    #[test]
    fn since_an_earlier_list_counts_are_differences_and_open_connections_are_not() {
        let mut later = list(&[worker(0, 10), worker(1, 4)]);
        later.rebase(&list(&[worker(0, 7)]));
        let since = WorkerCounts { open: 10, loop_delay_us_max: 50, ..worker(0, 3) };
        assert_eq!(later, list(&[since, worker(1, 4)]));
    }

    #[test]
    fn two_intervals_have_the_longer_delay() {
        let mut later = list(&[worker(0, 10), worker(1, 4)]);
        later.end_interval();
        later.downsample(&list(&[worker(0, 7), worker(2, 9)]));
        let delays: Vec<_> = later.iter().map(|worker| worker.loop_delay_us_max).collect();
        assert_eq!(delays, [35, 0]);
    }
}
