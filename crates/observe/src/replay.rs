//! Counts a complete log by its own times, into the intervals of a run.

use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use journal::Timestamps;
use recorder::publish::{Publisher, Sink};
use records::delta::Delta as _;
use records::kinds::{NoticeRecord, RunRecord};
use records::metrics::ProxyCounter;

use crate::format::{BadLine, LogParser};
use crate::lines::LineReader;
use crate::lines::health::{LineHealth, LogTransport};
use crate::local_clock::AHEAD;
use crate::log_counter::LogCounter;

/// The earliest plausible time, in microseconds since 1970: 2000-01-01. A clock that was never set shows less.
const EARLIEST_US: u64 = 946_684_800_000_000;
/// Lines that are earlier than others before them by more than this get a notice: a log is never in exact order.
const DISORDER_MAX: Duration = Duration::from_secs(60);

#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    #[error("cannot read it: {0}")]
    Read(#[from] io::Error),
    /// No line has a time and something to count.
    #[error("none of its {lines} lines has a time and a connection or request to count{}", sample.as_ref().map(|text| format!("; {text}")).unwrap_or_default())]
    Empty {
        lines: u64,
        /// About the last of them.
        sample: Option<String>,
    },
    /// The journal takes no records.
    #[error("the journal takes no records: {0}")]
    Refused(String),
}

/// A log that was counted.
#[derive(Debug)]
pub struct ReplayedLog<S> {
    /// The sink, which has the records.
    pub sink: S,
    pub lines: u64,
    /// Lines that could not be read.
    pub bad: u64,
    /// Lines that did not arrive.
    pub lost: u64,
    /// What there is to say of it; the records have it too.
    pub notices: Vec<NoticeRecord>,
}

/// Counts a whole log and publishes its intervals.
#[derive(Debug)]
pub struct LogReplay<S> {
    publisher: Publisher<S>,
    interval_us: u64,
    header: RunRecord,
    counter: LogCounter,
    health: LineHealth,
    /// Times that lines may have, in microseconds since 1970.
    plausible_us: RangeInclusive<u64>,
    /// When the log began, in microseconds since 1970.
    began_us: u64,
    /// The end of the interval that is counted, in the same way; 0 before the first line.
    end_us: u64,
    /// Lines that count in a later time than their own, and by how much at most.
    out_of_order: u64,
    late_us_max: u64,
    notices: Vec<NoticeRecord>,
    refused: Option<String>,
}

impl<S: Sink> LogReplay<S> {
    /// Counts into this publisher, which must be new. `header` opens the run, at the time of the log's first line.
    pub fn new(publisher: Publisher<S>, interval: Duration, header: RunRecord) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            publisher,
            interval_us: (interval.as_micros() as u64).max(1),
            header,
            counter: LogCounter::default(),
            health: LineHealth::new(LogTransport::File),
            plausible_us: EARLIEST_US..=(now + AHEAD).as_micros() as u64,
            began_us: 0,
            end_us: 0,
            out_of_order: 0,
            late_us_max: 0,
            notices: Vec::new(),
            refused: None,
        }
    }

    /// Reads the log to its end and closes the run.
    ///
    /// # Errors
    /// When the log cannot be read, has nothing to tell, or its records cannot be written.
    pub fn run(mut self, parser: &mut LogParser, log: &mut impl Read) -> Result<ReplayedLog<S>, ReplayError> {
        let mut lines = LineReader::default();
        while lines.read(log, |line| self.line(parser, line))? > 0 {
            if let Some(reason) = self.refused {
                return Err(ReplayError::Refused(reason));
            }
        }
        lines.finish(|line| self.line(parser, line));
        self.finish()
    }

    fn finish(mut self) -> Result<ReplayedLog<S>, ReplayError> {
        if self.out_of_order > 0 {
            let text = format!(
                "{} lines are up to {} minutes earlier than a line before them, and count in the time of that: read the oldest log first, such as `zcat -f access.log.2.gz access.log.1 access.log | tlsdash observe … --file -`",
                self.out_of_order,
                Duration::from_micros(self.late_us_max).as_secs().div_ceil(60)
            );
            self.health.warn("log-order", &text);
        }
        self.note_health(true);
        let Self { mut publisher, mut counter, health, notices, .. } = self;
        let (lines, bad, lost) = (health.lines, health.bad, health.lost());
        if self.end_us == 0 {
            let about_lines = notices.iter().find(|notice| notice.topic == "log-line");
            let sample = about_lines.map(|notice| notice.text.clone());
            return Err(ReplayError::Empty { lines, sample });
        }
        counter.seal();
        publisher.stop(self.header, Some(&counter.delta), None, None, timestamps(self.end_us));
        for _ in 0..2 {
            publisher.retry();
        }
        match publisher.refusal() {
            Some(reason) if publisher.pending() > 0 => Err(ReplayError::Refused(reason.to_owned())),
            _ => Ok(ReplayedLog { sink: publisher.into_sink(), lines, bad, lost, notices }),
        }
    }

    fn line(&mut self, parser: &mut LogParser, line: &[u8]) {
        let outcome = parser.parse(line, |event| {
            let Some(event) = event else { return Ok(()) };
            self.health.note(&event)?;
            event.time_us.map_or(Ok(()), |time_us| self.advance(time_us))?;
            self.counter.count(&event);
            Ok(())
        });
        self.health.close(parser, line, outcome);
    }

    /// Ends the intervals before this time. Lines come a little out of order; a late one counts in the present interval.
    fn advance(&mut self, time_us: u64) -> Result<(), BadLine> {
        if !self.plausible_us.contains(&time_us) {
            return Err(BadLine::Implausible("time"));
        }
        let end_us = (time_us / self.interval_us).saturating_add(1).saturating_mul(self.interval_us);
        if self.end_us == 0 {
            (self.began_us, self.end_us) = (end_us - self.interval_us, end_us);
            self.publisher.start(self.header.clone(), timestamps(self.began_us));
        }
        if time_us < self.end_us {
            let late_us = (self.end_us - self.interval_us).saturating_sub(time_us);
            if late_us > DISORDER_MAX.as_micros() as u64 {
                self.late_us_max = self.late_us_max.max(late_us);
                self.out_of_order += 1;
                self.counter.delta.counters[ProxyCounter::LinesOutOfOrder] += 1;
            }
            return Ok(());
        }
        self.publish();
        // A time without lines is one interval.
        if end_us - self.interval_us > self.end_us {
            self.end_us = end_us - self.interval_us;
            self.publish();
        }
        self.end_us = end_us;
        Ok(())
    }

    fn publish(&mut self) {
        self.note_health(false);
        self.counter.seal();
        self.publisher.interval(Some(&self.counter.delta), None, None, timestamps(self.end_us));
        self.counter.delta.clear();
        self.refused = self.publisher.refusal().or_else(|| self.publisher.stalled()).map(str::to_owned);
    }

    /// Counts what is known of the lines. Of those that are lost or cannot be read there is one notice at the end.
    fn note_health(&mut self, is_last: bool) {
        let since_start = Duration::from_micros(self.end_us - self.began_us);
        self.health.expect(since_start, is_last);
        if is_last {
            self.health.tell(since_start, is_last);
        }
        self.health.count_into(&mut self.counter.delta);
        for notice in self.health.take_notices() {
            self.publisher.notice(notice.clone(), timestamps(self.end_us));
            self.notices.push(notice);
        }
    }
}

/// Both clocks of a moment of the log: there is no monotonic one, so the times of the log are both.
fn timestamps(us: u64) -> Timestamps {
    Timestamps { realtime_us: us, monotonic_us: us }
}
