//! The intervals of a log or a capture that is counted in its own time.

use std::ops::RangeInclusive;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use journal::Timestamps;
use records::delta::Delta as _;
use records::kinds::{NoticeRecord, RunRecord};

use super::ObservedCounter;
use crate::publish::{Publisher, Sink};

/// The earliest plausible time, in microseconds since 1970: 2000-01-01. A clock that was never set shows less.
const EARLIEST_US: u64 = 946_684_800_000_000;
/// How far the clock of a log or a capture may be ahead of ours.
pub const AHEAD: Duration = Duration::from_secs(24 * 3_600);

/// The records could not be written.
#[derive(Debug, thiserror::Error)]
#[error("the journal takes no records: {0}")]
pub struct PublishError(pub String);

/// Publishes the intervals of a run whose times are those of what is counted.
#[derive(Debug)]
pub struct Intervals<S> {
    publisher: Publisher<S>,
    interval_us: u64,
    header: RunRecord,
    /// When the first event was, rounded down to an interval, in microseconds since 1970.
    began_us: u64,
    /// The end of the interval that is counted, in the same way; 0 before the first event.
    end_us: u64,
}

impl<S: Sink> Intervals<S> {
    /// Publishes with this publisher, which must be new. `header` opens the run, at the time of the first event.
    pub fn new(publisher: Publisher<S>, interval: Duration, header: RunRecord) -> Self {
        let interval_us = (interval.as_micros() as u64).max(1);
        Self { publisher, interval_us, header, began_us: 0, end_us: 0 }
    }

    /// Whether there was an event yet.
    pub fn is_begun(&self) -> bool {
        self.end_us > 0
    }

    /// The time from the first event's interval to the end of the present one.
    pub fn since_start(&self) -> Duration {
        Duration::from_micros(self.end_us - self.began_us)
    }

    /// How far an event at this time, in microseconds since 1970, is before the interval that is counted.
    pub fn lateness(&self, time_us: u64) -> Duration {
        Duration::from_micros(self.end_us.saturating_sub(self.interval_us).saturating_sub(time_us))
    }

    /// Begins with an event at this time, in microseconds since 1970, or ends the intervals before it. Before the present
    /// interval is published, `close` adds what belongs to its end. Late events count in the present interval.
    pub fn advance(
        &mut self,
        time_us: u64,
        counter: &mut ObservedCounter,
        close: impl FnOnce(&mut Self, &mut ObservedCounter),
    ) {
        let end_us = (time_us / self.interval_us).saturating_add(1).saturating_mul(self.interval_us);
        if self.end_us == 0 {
            (self.began_us, self.end_us) = (end_us - self.interval_us, end_us);
            self.publisher.start(self.header.clone(), timestamps(self.began_us));
        }
        if time_us < self.end_us {
            return;
        }
        close(self, counter);
        self.publish(counter);
        // A time without events is one interval.
        if end_us - self.interval_us > self.end_us {
            self.end_us = end_us - self.interval_us;
            self.publish(counter);
        }
        self.end_us = end_us;
    }

    fn publish(&mut self, counter: &mut ObservedCounter) {
        counter.seal();
        self.publisher.interval(Some(&counter.delta), None, None, timestamps(self.end_us));
        counter.delta.clear();
    }

    pub fn notice(&mut self, notice: NoticeRecord) {
        self.publisher.notice(notice, timestamps(self.end_us));
    }

    /// # Errors
    /// If records are refused.
    pub fn check(&self) -> Result<(), PublishError> {
        match self.publisher.refusal().or_else(|| self.publisher.stalled()) {
            Some(reason) => Err(PublishError(reason.to_owned())),
            None => Ok(()),
        }
    }

    /// Closes the run, and gives back the sink, which has the records.
    ///
    /// # Errors
    /// If the last records are refused.
    pub fn finish(mut self, counter: &mut ObservedCounter) -> Result<S, PublishError> {
        counter.seal();
        self.publisher.stop(self.header, Some(&counter.delta), None, None, timestamps(self.end_us));
        for _ in 0..2 {
            self.publisher.retry();
        }
        match self.publisher.refusal() {
            Some(reason) if self.publisher.pending() > 0 => Err(PublishError(reason.to_owned())),
            _ => Ok(self.publisher.into_sink()),
        }
    }
}

/// Times that events may have, in microseconds since 1970.
pub fn plausible_us() -> RangeInclusive<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    EARLIEST_US..=(now + AHEAD).as_micros() as u64
}

/// Both clocks of a moment: there is no monotonic one, so the times of the log or capture are both.
fn timestamps(us: u64) -> Timestamps {
    Timestamps { realtime_us: us, monotonic_us: us }
}
