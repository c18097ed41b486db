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
/// How late a line may come, counted from the first that overtook it. A terminator's threads number their lines before
/// they send them.
const LATE_MAX: Duration = Duration::from_secs(2);
/// A log that has had no line for so long since the start gets a notice.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// What became of the lines.
#[derive(Debug, Default)]
pub struct LineHealth {
    /// Lines read.
    pub lines: u64,
    /// Lines that could not be read.
    pub bad: u64,
    /// Lines that the kernel dropped since the socket's buffer was full.
    pub dropped: u64,
    /// Messages that journald's rate limit dropped.
    pub suppressed: u64,
    /// The last line that could not be read, with the reason.
    sample: String,
    logs: HashMap<Box<str>, NumberRange>,
    /// Missing numbers of earlier lives of a log.
    missing_before: u64,
    /// When each log's lines were last expected to have come.
    expected_at: Option<Instant>,
    /// When the first check was.
    checked_since: Option<Instant>,
    is_silence_told: bool,
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
    /// The last number whose line can no longer be on its way.
    due: u64,
    /// Lines seen with numbers up to `due`.
    seen_due: u64,
    missing: u64,
}

impl NumberRange {
    fn new(first: u64) -> Self {
        Self { first, last: first, seen: 1, due: first, seen_due: 1, missing: 0 }
    }

    fn add(&mut self, number: u64) {
        self.first = self.first.min(number);
        self.last = self.last.max(number);
        self.seen += 1;
        if number <= self.due {
            self.seen_due += 1;
        }
    }

    /// Counts what is missing of the lines that were due, then makes all that were sent so far due.
    fn expect(&mut self) {
        self.missing = (self.due - self.first).saturating_add(1).saturating_sub(self.seen_due);
        self.due = self.last;
        self.seen_due = self.seen;
    }

    /// What is missing, once nothing can follow.
    fn missing_at_end(&mut self) -> u64 {
        self.expect();
        self.expect();
        self.missing
    }
}

impl LineHealth {
    /// Notes a line's number.
    pub(crate) fn number(&mut self, line: &LineNumber<'_>) {
        let number = line.number;
        let has_room = self.logs.len() < LOGS_MAX;
        match self.logs.get_mut(&*line.log) {
            Some(range) if number.saturating_add(DISORDER_MAX) < range.last => {
                self.missing_before = self.missing_before.saturating_add(range.missing_at_end());
                *range = NumberRange::new(number);
            }
            Some(range) => range.add(number),
            None if has_room => {
                self.logs.insert((*line.log).into(), NumberRange::new(number));
            }
            None => {}
        }
    }

    /// Notes a line that cannot be read.
    pub(crate) fn bad_line(&mut self, line: &[u8], why: &BadLine) {
        self.bad += 1;
        self.sample = format!("{}: {why}", clean::bytes(line));
    }

    /// Lines that did not arrive, as of the last check: dropped by the kernel, or missing in the numbers of a log.
    pub fn lost(&self) -> u64 {
        let missing =
            self.logs.values().map(|range| range.missing).fold(self.missing_before, u64::saturating_add);
        // A line that the kernel dropped is missing in its log too, if that has numbers.
        self.dropped.max(missing).max(self.suppressed)
    }

    /// Counts what was lost, and makes notices of what is new, each kind at most every ten seconds. `is_last`: nothing
    /// follows.
    pub(crate) fn check(&mut self, now: Instant, is_last: bool) {
        self.expect_lines(now, is_last);
        self.notice_silence(now);
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
            let what_helps = if self.suppressed > 0 {
                "journald's rate limit dropped them: raise LogRateLimitBurst= of the unit"
            } else {
                "raise net.unix.max_dgram_qlen, or use --syslog udp:"
            };
            let text = format!(
                "{lost} lines of the log were lost beside {} that were read: counts are too low by them; {what_helps}",
                self.lines
            );
            self.notices.push(NoticeRecord::new(Level::Warning, "log-lost", &text));
        }
    }

    fn notice_silence(&mut self, now: Instant) {
        let silence = now.duration_since(*self.checked_since.get_or_insert(now));
        if self.lines == 0 && silence >= SILENCE_MAX && !self.is_silence_told {
            self.is_silence_told = true;
            let text = format!(
                "no line of the log came in the first {} s; if there were connections, the terminator does not log here: `tlsdash observe setup` prints what to configure",
                SILENCE_MAX.as_secs()
            );
            self.notices.push(NoticeRecord::new(Level::Notice, "log-silent", &text));
        }
    }

    fn expect_lines(&mut self, now: Instant, is_last: bool) {
        let expected_at = *self.expected_at.get_or_insert(now);
        if is_last {
            for range in self.logs.values_mut() {
                range.missing_at_end();
            }
        } else if now.duration_since(expected_at) >= LATE_MAX {
            self.expected_at = Some(now);
            self.logs.values_mut().for_each(NumberRange::expect);
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
        add(&mut health, numbers);
        health.check(Instant::now(), true);
        health
    }

    fn add(health: &mut LineHealth, numbers: &[u64]) {
        for &number in numbers {
            health.number(&LineNumber { log: "in".into(), number });
        }
    }

    #[test]
    fn a_line_is_lost_once_it_can_no_longer_come() {
        let mut health = LineHealth::default();
        let start = Instant::now();
        let mut lost_at = |seconds, numbers: &[u64]| {
            add(&mut health, numbers);
            health.check(start + Duration::from_secs(seconds), false);
            health.lost()
        };
        assert_eq!(lost_at(0, &[1, 3]), 0);
        assert_eq!(lost_at(2, &[5]), 0, "4 is late for the first time, and 2 was not awaited yet");
        assert_eq!(lost_at(4, &[2, 7]), 1, "2 came late, 4 did not come");
        assert_eq!(lost_at(6, &[9]), 2);
        assert_eq!(lost_at(7, &[]), 2, "8 is awaited");
        assert_eq!(health.take_notices().len(), 1);
    }

    #[test]
    fn holes_in_the_numbers_of_a_log_are_lost_lines() {
        assert_eq!(health(&[5, 6, 8, 9, 7]).lost(), 0, "out of order is not lost");
        assert_eq!(health(&[5, 6, 9]).lost(), 2);
    }

    #[test]
    fn what_journald_dropped_is_lost_and_the_notice_names_its_limit() {
        let mut health = LineHealth { suppressed: 17, ..LineHealth::default() };
        health.check(Instant::now(), true);
        assert_eq!(health.lost(), 17);
        let notices = health.take_notices();
        assert!(notices[0].text.contains("LogRateLimitBurst"), "{}", notices[0].text);
    }

    #[test]
    fn a_log_without_a_line_is_told_of_once() {
        let start = Instant::now();
        let told = |health: &mut LineHealth, after| {
            health.check(start + Duration::from_secs(after), false);
            health.take_notices().len()
        };
        let mut silent = LineHealth::default();
        assert_eq!([0, 9, 10, 60].map(|after| told(&mut silent, after)), [0, 0, 1, 0]);
        let mut heard = LineHealth { lines: 1, ..LineHealth::default() };
        assert_eq!([0, 60].map(|after| told(&mut heard, after)), [0, 0]);
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
            health.lines += 1;
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
