//! A log that is whole, counted in its own time: the intervals of a run that nobody watched.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use journal::Timestamps;
use telemetry::{Publisher, RunRecord, Sink};

use crate::format::LogParser;
use crate::line_health::LineHealth;
use crate::lines::LineReader;
use crate::log_counter::LogCounter;
use crate::log_observer::LogStats;

/// Why a log cannot be counted.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// It cannot be read.
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),
    /// No line has a time and something to count.
    #[error("none of its {lines} lines has a time and a connection or request to count{}", sample.as_ref().map(|text| format!("; {text}")).unwrap_or_default())]
    Empty {
        /// Lines that there are.
        lines: u64,
        /// About the last of them.
        sample: Option<String>,
    },
    /// The journal takes no records.
    #[error("the journal takes no records: {0}")]
    Refused(String),
}

/// Counts a whole log and publishes its intervals.
#[derive(Debug)]
pub struct LogReplay<S> {
    publisher: Publisher<S>,
    interval_us: u64,
    header: RunRecord,
    counter: LogCounter,
    health: LineHealth,
    /// The end of the interval that is counted, in microseconds since 1970; 0 before the first line.
    end_us: u64,
    refused: Option<String>,
}

impl<S: Sink> LogReplay<S> {
    /// Counts into this publisher, which must be new. `header` opens the run, at the time of the log's first line.
    pub fn new(publisher: Publisher<S>, interval: Duration, header: RunRecord) -> Self {
        Self {
            publisher,
            interval_us: (interval.as_micros() as u64).max(1),
            header,
            counter: LogCounter::default(),
            health: LineHealth::default(),
            end_us: 0,
            refused: None,
        }
    }

    /// Reads the log to its end and closes the run.
    ///
    /// # Errors
    /// When the log cannot be read, has nothing to tell, or its records cannot be written.
    pub fn run(mut self, parser: &mut LogParser, log: &mut impl Read) -> Result<(S, LogStats), ReplayError> {
        let mut lines = LineReader::default();
        while lines.read(log, |line| self.line(parser, line))? > 0 {
            if let Some(reason) = self.refused {
                return Err(ReplayError::Refused(reason));
            }
        }
        lines.finish(|line| self.line(parser, line));
        self.finish()
    }

    fn finish(mut self) -> Result<(S, LogStats), ReplayError> {
        self.health.check(Instant::now(), true);
        let notices = self.health.take_notices();
        let Self { mut publisher, mut counter, health, .. } = self;
        let stats = LogStats { lines: health.lines, bad: health.bad, lost: health.lost() };
        if self.end_us == 0 {
            let sample = notices.first().map(|notice| notice.text.clone());
            return Err(ReplayError::Empty { lines: stats.lines, sample });
        }
        let now = timestamps(self.end_us);
        for notice in notices {
            publisher.notice(notice, now);
        }
        counter.seal();
        publisher.stop(self.header, Some(&counter.delta), None, None, now);
        for _ in 0..2 {
            publisher.retry();
        }
        match publisher.refusal() {
            Some(reason) if publisher.pending() > 0 => Err(ReplayError::Refused(reason.to_owned())),
            _ => Ok((publisher.into_sink(), stats)),
        }
    }

    fn line(&mut self, parser: &mut LogParser, line: &[u8]) {
        self.health.lines += 1;
        let outcome = parser.parse(line, |event| {
            let Some(event) = event else { return };
            if let Some(time_us) = event.time_us {
                self.advance(time_us);
            }
            if let Some(number) = &event.sequence {
                self.health.number(number);
            }
            self.counter.count(&event);
        });
        if let Err(why) = outcome {
            self.health.bad_line(line, &why);
        }
    }

    /// Ends the intervals before this time. Lines come a little out of order; a late one counts in the present interval.
    fn advance(&mut self, time_us: u64) {
        let end_us = (time_us / self.interval_us).saturating_add(1).saturating_mul(self.interval_us);
        if self.end_us == 0 {
            let began = timestamps(end_us - self.interval_us);
            self.publisher.start(self.header.clone(), began);
            self.end_us = end_us;
        }
        if time_us < self.end_us {
            return;
        }
        self.publish();
        // A time without lines is one interval.
        if end_us - self.interval_us > self.end_us {
            self.end_us = end_us - self.interval_us;
            self.publish();
        }
        self.end_us = end_us;
    }

    fn publish(&mut self) {
        self.counter.seal();
        self.publisher.interval(Some(&self.counter.delta), None, None, timestamps(self.end_us));
        telemetry::Delta::clear(&mut self.counter.delta);
        self.refused = self.publisher.refusal().or_else(|| self.publisher.stalled()).map(str::to_owned);
    }
}

/// Both clocks of a moment of the log: there is no monotonic one, so the times of the log are both.
fn timestamps(us: u64) -> Timestamps {
    Timestamps { realtime_us: us, monotonic_us: us }
}
