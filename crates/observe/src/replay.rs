//! Counts a complete log by its own times, into the intervals of a run.

use std::io::{self, Read, Seek, SeekFrom};
use std::ops::RangeInclusive;
use std::time::Duration;

use recorder::observer::{Intervals, ObservedCounter, PublishError, plausible_us};
use recorder::publish::Sink;
use records::kinds::NoticeRecord;
use records::metrics::ProxyCounter;

use crate::format::{BadLine, LogKind, LogParser};
use crate::lines::LineReader;
use crate::lines::health::{LineHealth, LogTransport};
use crate::log_counter::LogCounter;

/// Lines that are earlier than others before them by more than this get a notice: a log is never in exact order.
const DISORDER_MAX: Duration = Duration::from_secs(60);

/// Bytes at each end of a log that tell what time it spans.
const SPAN_BYTES: u64 = 128 * 1024;

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
    #[error(transparent)]
    Refused(#[from] PublishError),
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
    intervals: Intervals<S>,
    counter: LogCounter,
    health: LineHealth,
    /// Times that lines may have, in microseconds since 1970.
    plausible_us: RangeInclusive<u64>,
    /// Lines that count in a later time than their own, and by how much at most.
    out_of_order: u64,
    lateness_max: Duration,
    notices: Vec<NoticeRecord>,
}

impl<S: Sink> LogReplay<S> {
    pub fn new(intervals: Intervals<S>) -> Self {
        Self {
            intervals,
            counter: LogCounter::default(),
            health: LineHealth::new(LogTransport::File),
            plausible_us: plausible_us(),
            out_of_order: 0,
            lateness_max: Duration::ZERO,
            notices: Vec::new(),
        }
    }

    /// Reads the log to its end and closes the run.
    ///
    /// # Errors
    /// When the log cannot be read, has nothing to tell, or its records cannot be written.
    pub fn run(mut self, parser: &mut LogParser, log: &mut impl Read) -> Result<ReplayedLog<S>, ReplayError> {
        let mut lines = LineReader::default();
        while lines.read(log, |line| self.line(parser, line))? > 0 {
            self.intervals.check()?;
        }
        lines.finish(|line| self.line(parser, line));
        self.finish()
    }

    fn finish(mut self) -> Result<ReplayedLog<S>, ReplayError> {
        if self.out_of_order > 0 {
            let text = format!(
                "{} lines are up to {} minutes earlier than a line before them, and count in the time of that: read the oldest log first, such as `zcat -f access.log.2.gz access.log.1 access.log | tlsdash observe … --file -`",
                self.out_of_order,
                self.lateness_max.as_secs().div_ceil(60)
            );
            self.health.warn("log-order", &text);
        }
        close_lines(
            &mut self.health,
            &mut self.notices,
            true,
            &mut self.intervals,
            &mut self.counter.counted,
        );
        let Self { intervals, mut counter, health, notices, .. } = self;
        let (lines, bad, lost) = (health.lines, health.bad, health.lost());
        if !intervals.is_begun() {
            let about_lines = notices.iter().find(|notice| notice.topic == "log-line");
            let sample = about_lines.map(|notice| notice.text.clone());
            return Err(ReplayError::Empty { lines, sample });
        }
        let sink = intervals.finish(&mut counter.counted)?;
        Ok(ReplayedLog { sink, lines, bad, lost, notices })
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
        let lateness = self.intervals.lateness(time_us);
        if lateness > DISORDER_MAX {
            self.lateness_max = self.lateness_max.max(lateness);
            self.out_of_order += 1;
            self.counter.counted.add(ProxyCounter::LinesOutOfOrder, 1);
        }
        let Self { intervals, counter, health, notices, .. } = self;
        intervals.advance(time_us, &mut counter.counted, |intervals, counted| {
            close_lines(health, notices, false, intervals, counted);
        });
        Ok(())
    }
}

/// The time from the first lines of a log to its last ones, by bytes at both ends; zero if these have no times. The log is
/// then at its begin.
///
/// # Errors
/// When it cannot be read, or has no end.
pub fn log_span(kind: LogKind, log: &mut (impl Read + Seek)) -> io::Result<Duration> {
    let bytes = log.seek(SeekFrom::End(0))?;
    let (plausible_us, mut times) = (plausible_us(), Vec::new());
    for at in [0, bytes.saturating_sub(SPAN_BYTES)] {
        log.seek(SeekFrom::Start(at))?;
        let mut part = log.take(SPAN_BYTES);
        let (mut parser, mut lines) = (kind.parser(), LineReader::default());
        // What is no line, such as the rest of one that is cut, has no time.
        let mut note = |line: &[u8]| {
            let time = parser.parse(line, |event| event.and_then(|event| event.time_us));
            times.extend(time.ok().flatten().filter(|time| plausible_us.contains(time)));
        };
        while lines.read(&mut part, &mut note)? > 0 {}
        lines.finish(&mut note);
    }
    log.rewind()?;
    let (first, last) = (times.iter().min(), times.iter().max());
    Ok(Duration::from_micros(last.zip(first).map_or(0, |(last, first)| last - first)))
}

/// Counts what is known of the lines. Of those that are lost or cannot be read there is one notice at the end.
fn close_lines<S: Sink>(
    health: &mut LineHealth,
    notices: &mut Vec<NoticeRecord>,
    is_last: bool,
    intervals: &mut Intervals<S>,
    counted: &mut ObservedCounter,
) {
    let since_start = intervals.since_start();
    health.expect(since_start, is_last);
    if is_last {
        health.tell(since_start, is_last);
    }
    health.count_into(&mut counted.delta);
    for notice in health.take_notices() {
        intervals.notice(notice.clone());
        notices.push(notice);
    }
}
