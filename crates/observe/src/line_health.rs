//! What is known of lines that did not arrive, or could not be read.

use std::time::{Duration, Instant};

use foldhash::HashMap;
use telemetry::{Level, NoticeRecord, clean};

use crate::event::LineNumber;
use crate::format::BadLine;

/// The most logs whose line numbers are followed. There are as many as frontends.
const LOGS_MAX: usize = 256;
/// The shortest time between two notices about the same.
const NOTICE_EVERY: Duration = Duration::from_secs(10);
/// A number that is smaller by more than this began anew: the terminator was restarted.
const DISORDER_MAX: u64 = 10_000;

/// What became of the lines.
#[derive(Debug, Default)]
pub struct LineHealth {
    /// Lines read.
    pub lines: u64,
    /// Lines that could not be read.
    pub bad: u64,
    /// Lines that the kernel dropped since the socket's buffer was full.
    pub dropped: u64,
    /// The last line that could not be read, with the reason.
    sample: String,
    logs: HashMap<Box<str>, NumberRange>,
    /// Missing numbers of earlier lives of a log.
    missing_before: u64,
    notices: Vec<NoticeRecord>,
    bad_told: Option<(Instant, u64)>,
    lost_told: Option<(Instant, u64)>,
}

/// The numbers that one log has given its lines.
#[derive(Debug)]
struct NumberRange {
    first: u64,
    last: u64,
    seen: u64,
}

impl NumberRange {
    fn missing(&self) -> u64 {
        (self.last - self.first).saturating_add(1).saturating_sub(self.seen)
    }
}

impl LineHealth {
    /// Notes a line's number.
    pub(crate) fn number(&mut self, line: &LineNumber<'_>) {
        let number = line.number;
        let has_room = self.logs.len() < LOGS_MAX;
        match self.logs.get_mut(&*line.log) {
            Some(range) if number.saturating_add(DISORDER_MAX) < range.last => {
                self.missing_before = self.missing_before.saturating_add(range.missing());
                *range = NumberRange { first: number, last: number, seen: 1 };
            }
            Some(range) => {
                range.first = range.first.min(number);
                range.last = range.last.max(number);
                range.seen += 1;
            }
            None if has_room => {
                self.logs.insert((*line.log).into(), NumberRange { first: number, last: number, seen: 1 });
            }
            None => {}
        }
    }

    /// Notes a line that cannot be read.
    pub(crate) fn bad_line(&mut self, line: &[u8], why: &BadLine) {
        self.bad += 1;
        self.sample = format!("{}: {why}", clean::bytes(line));
    }

    /// Lines that did not arrive: dropped by the kernel, or missing in the numbers of a log.
    pub fn lost(&self) -> u64 {
        let missing =
            self.logs.values().map(NumberRange::missing).fold(self.missing_before, u64::saturating_add);
        // A line that the kernel dropped is missing in its log too, if that has numbers.
        self.dropped.max(missing)
    }

    /// Makes notices of what is new, each kind at most every ten seconds. `is_last`: nothing follows.
    pub(crate) fn check(&mut self, now: Instant, is_last: bool) {
        let is_due = |told: Option<(Instant, u64)>, n: u64| match told {
            None => n > 0,
            Some((at, before)) => n > before && (is_last || now.duration_since(at) >= NOTICE_EVERY),
        };
        if is_due(self.bad_told, self.bad) {
            self.bad_told = Some((now, self.bad));
            let text =
                format!("{} of {} lines cannot be read; the last: {}", self.bad, self.lines, self.sample);
            self.notices.push(NoticeRecord::new(Level::Warning, "log-line", &text));
        }
        let lost = self.lost();
        if is_due(self.lost_told, lost) {
            self.lost_told = Some((now, lost));
            let text = format!(
                "{lost} lines of the log were lost beside {} that were read: counts are too low by them; raise net.unix.max_dgram_qlen, or use --syslog udp:",
                self.lines
            );
            self.notices.push(NoticeRecord::new(Level::Warning, "log-lost", &text));
        }
    }

    /// Takes the notices made so far.
    pub fn take_notices(&mut self) -> Vec<NoticeRecord> {
        std::mem::take(&mut self.notices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(numbers: &[u64]) -> LineHealth {
        let mut health = LineHealth::default();
        for &number in numbers {
            health.number(&LineNumber { log: "in".into(), number });
        }
        health
    }

    #[test]
    fn holes_in_the_numbers_of_a_log_are_lost_lines() {
        assert_eq!(health(&[5, 6, 8, 9, 7]).lost(), 0, "out of order is not lost");
        assert_eq!(health(&[5, 6, 9]).lost(), 2);
    }

    #[test]
    fn a_restarted_log_loses_nothing_by_counting_from_the_start() {
        assert_eq!(health(&[50_000, 50_001, 50_003, 1, 2]).lost(), 1);
    }

    #[test]
    fn a_further_bad_line_is_told_of_later_and_at_the_end() {
        let mut health = LineHealth::default();
        let start = Instant::now();
        let told = |health: &mut LineHealth, after, is_last| {
            health.bad_line(b"{\x1b[2J", &BadLine::Unknown);
            health.check(start + Duration::from_secs(after), is_last);
            health.take_notices().len()
        };
        assert_eq!(told(&mut health, 0, false), 1);
        assert_eq!(told(&mut health, 1, false), 0);
        assert_eq!(told(&mut health, 11, false), 1);
        assert_eq!(told(&mut health, 12, true), 1);
        assert!(!health.sample.contains('\u{1b}'), "{}", health.sample);
    }
}
