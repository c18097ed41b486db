//! The log of a run: its records that a person reads.

use std::collections::VecDeque;

use crate::runs::run::aligned::AlignedRun;
use records::codec::message;
use records::kinds::heap_size::HeapSize as _;
use records::kinds::{Body, Level, Record, Stamp};

/// Log lines that are kept, the latest.
const LINES_MAX: usize = 1_000;
/// Of these, lines about connections, of which one client may cause many a second: what else happened stays.
const CONNECTIONS_MAX: usize = 500;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// `CLOCK_MONOTONIC`, in microseconds.
    pub mono_us: u64,
    /// `CLOCK_REALTIME`, in microseconds.
    pub realtime_us: u64,
    pub level: Level,
    /// The record as a sentence.
    pub text: String,
}

impl LogLine {
    /// Whether it is about a single connection.
    pub fn is_of_connection(&self) -> bool {
        message::without_connection(&self.text).is_some()
    }
}

/// The latest lines, oldest first.
#[derive(Debug, Default)]
pub(in crate::runs) struct RunLog {
    lines: VecDeque<LogLine>,
    /// How many of them are about connections.
    connections: usize,
}

impl RunLog {
    /// Adds a record, if a person should read it.
    pub(in crate::runs) fn apply(&mut self, record: &Record) {
        // Requests have a separate list, and there may be many.
        if matches!(record.body, Body::Request(_)) {
            return;
        }
        let level = match message::priority(&record.body) {
            0..=4 => Level::Warning,
            5 => Level::Notice,
            // The sample of connections that ended well is data, not news.
            6.. => return,
        };
        let Stamp { mono_us, realtime_us, .. } = record.stamp;
        self.push(LogLine { mono_us, realtime_us, level, text: message::sentence(record) });
    }

    pub(in crate::runs) fn push(&mut self, line: LogLine) {
        let is_of_connection = line.is_of_connection();
        if is_of_connection && self.connections >= CONNECTIONS_MAX {
            self.remove(self.lines.iter().position(LogLine::is_of_connection));
        }
        if self.lines.len() == LINES_MAX {
            self.remove(Some(0));
        }
        self.connections += usize::from(is_of_connection);
        self.lines.push_back(line);
    }

    fn remove(&mut self, at: Option<usize>) {
        let removed = at.and_then(|at| self.lines.remove(at));
        self.connections -= usize::from(removed.is_some_and(|line| line.is_of_connection()));
    }

    /// The lines of several runs by time, each with the name of its run.
    pub(in crate::runs) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let of = |(run, log): &(AlignedRun<'_>, &Self)| -> Vec<LogLine> {
            let line = |line: &LogLine| LogLine {
                mono_us: run.shifted_us(line.mono_us),
                realtime_us: line.realtime_us,
                level: line.level,
                text: format!("{}: {}", run.name, line.text),
            };
            log.iter().map(line).collect()
        };
        let mut all: Vec<LogLine> = members.iter().flat_map(of).collect();
        all.sort_by_key(|line| line.mono_us);
        let too_many = all.len().saturating_sub(LINES_MAX);
        all.into_iter().skip(too_many).collect()
    }

    /// The lines up to a moment.
    pub(in crate::runs) fn until(&self, us: u64) -> Self {
        self.lines.iter().take_while(|line| line.mono_us <= us).cloned().collect()
    }

    pub(in crate::runs) fn iter(&self) -> impl DoubleEndedIterator<Item = &LogLine> + ExactSizeIterator {
        self.lines.iter()
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        self.lines.iter().map(|line| size_of::<LogLine>() + line.text.heap_bytes()).sum()
    }
}

impl FromIterator<LogLine> for RunLog {
    fn from_iter<I: IntoIterator<Item = LogLine>>(lines: I) -> Self {
        let lines = VecDeque::from_iter(lines);
        let connections = lines.iter().filter(|line| line.is_of_connection()).count();
        Self { lines, connections }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_that_fails_all_the_time_drives_nothing_else_out() {
        let line = |us, text: String| LogLine { mono_us: us, realtime_us: us, level: Level::Warning, text };
        let mut log = RunLog::default();
        for us in 0..5_000 {
            if us % 100 == 0 {
                log.push(line(us, format!("mark {us}")));
            }
            log.push(line(us, format!("127.0.0.9 not-tls: no TLS (connection {us})")));
        }
        let of_connections = log.iter().filter(|line| line.is_of_connection());
        assert_eq!((of_connections.count(), log.iter().len()), (CONNECTIONS_MAX, CONNECTIONS_MAX + 50));
        assert!(log.iter().is_sorted_by_key(|line| line.mono_us));
        assert!(log.iter().next_back().is_some_and(|line| line.text.contains("(connection 4999)")));
    }
}
