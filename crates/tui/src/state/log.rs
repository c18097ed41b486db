//! The log of the run, the dashboard's notices in it, and the message line.

use model::runs::{Level, LogLine};
use records::codec::message::without_connection;

use super::State;
use super::message::Message;
use crate::clock::ClockReading;
use crate::view_model::LOG_CONNECTIONS_MAX;

/// The number of the dashboard's own notices that are kept.
const NOTICES_MAX: usize = 50;

impl State {
    /// Log lines of the run and notices of the dashboard up to the moment that was sought, oldest first.
    pub(crate) fn log_lines(&self) -> Vec<&LogLine> {
        let of_run = self.figures().map_or(&[][..], |figures| &figures.log);
        let until_us = self.cursor_us().map_or(u64::MAX, |us| self.realtime_at(us));
        let notices = self.notices.iter().filter(|line| line.realtime_us <= until_us);
        let mut lines: Vec<&LogLine> = of_run.iter().chain(notices).collect();
        lines.sort_by_key(|line| line.realtime_us);
        lines
    }

    /// Log lines of the run and notices of the dashboard, the latest `n` of them, oldest first. A line that says the same as
    /// one some seconds later is counted there.
    pub(crate) fn log(&self, n: usize) -> Vec<RepeatedLine<'_>> {
        let mut merged: Vec<RepeatedLine<'_>> = Vec::new();
        let lines = self.log_lines();
        let of_connections: Vec<_> = lines.iter().filter(|line| line.is_of_connection()).collect();
        let is_full = of_connections.len() >= LOG_CONNECTIONS_MAX;
        let oldest_us = of_connections.first().filter(|_| is_full).map(|line| line.realtime_us);
        for line in lines.into_iter().rev() {
            if merged.len() == n && !merged.iter().any(|later| later.is_near(line)) {
                break;
            }
            match merged.iter().position(|later| later.repeats(line)) {
                Some(at) => {
                    (merged[at].times, merged[at].first_us) = (merged[at].times + 1, line.realtime_us);
                }
                // Earlier ones may still repeat what is kept.
                None if merged.len() == n => {}
                None => merged.push(RepeatedLine {
                    line,
                    times: 1,
                    first_us: line.realtime_us,
                    is_at_least: false,
                }),
            }
        }
        for repeated in &mut merged {
            repeated.is_at_least = repeated.times > 1 && oldest_us == Some(repeated.first_us);
        }
        merged.reverse();
        merged
    }

    pub(crate) fn notice(&mut self, level: Level, text: impl Into<String>, now: ClockReading) {
        if self.notices.len() == NOTICES_MAX {
            self.notices.pop_front();
        }
        let text = text.into();
        if self.notices.back().is_some_and(|last| last.text == text) {
            self.notices.pop_back();
        }
        self.notices.push_back(LogLine { mono_us: 0, realtime_us: now.realtime_us, level, text });
    }

    pub(crate) fn say(&mut self, text: impl Into<String>, now: ClockReading) {
        self.message = Some(Message::new(Level::Notice, text.into(), now));
    }

    /// Removes a message that has been shown for long enough; false if there is none.
    pub(crate) fn drop_old_message(&mut self, now: ClockReading) -> bool {
        self.message.take_if(|message| message.is_old(now)).is_some()
    }

    /// Reports the result of a key: in the message line, where it is seen whatever the log is full of, and in the log.
    pub(crate) fn answer(&mut self, level: Level, text: impl Into<String>, now: ClockReading) {
        let text = text.into();
        if level == Level::Warning {
            self.control.note_refusal(&text);
        }
        self.message = Some(Message::new(level, text.clone(), now));
        self.notice(level, text, now);
    }
}

/// Returns what a line says.
fn said(line: &LogLine) -> &str {
    without_connection(&line.text).unwrap_or(&line.text)
}

/// Lines that say the same within [`REPEATS_US`] of each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepeatedLine<'a> {
    /// The latest.
    pub(crate) line: &'a LogLine,
    pub(crate) times: u64,
    /// The wall clock of the first.
    pub(crate) first_us: u64,
    /// Whether the first is the oldest line about a connection that is kept: there may have been more.
    pub(crate) is_at_least: bool,
}

/// How far apart repeated lines may be, in microseconds.
const REPEATS_US: u64 = 10_000_000;

impl RepeatedLine<'_> {
    fn is_near(&self, earlier: &LogLine) -> bool {
        self.first_us.saturating_sub(earlier.realtime_us) <= REPEATS_US
    }

    /// A connection's number sets no line apart.
    fn repeats(&self, earlier: &LogLine) -> bool {
        self.is_near(earlier) && said(self.line) == said(earlier)
    }
}
