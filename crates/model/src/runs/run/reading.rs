//! The result of reading: gaps in the sequence, repetitions, lag.

use std::collections::VecDeque;

use super::aligned::AlignedRun;
use records::histogram::Histogram;
use records::kinds::Stamp;

/// Gaps that are kept by name; further ones are only counted.
const GAPS_MAX: usize = 256;

/// A gap in the measured or read time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last record before the hole.
    pub after_seq: u64,
    /// Records missing; 0 where the process that writes them did not run.
    pub missing: u64,
    /// `CLOCK_MONOTONIC` of the first record after it, in microseconds.
    pub mono_us: u64,
}

/// The span of the least delay, in microseconds; older records are forgotten after one or two spans.
const DELAY_SPAN_US: u64 = 60_000_000;

/// When the latest record of a run was read, by the clock of the host that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// `CLOCK_REALTIME` there when it was read, in microseconds.
    pub realtime_us: u64,
    /// How much later that was than the record's own `CLOCK_REALTIME`, in microseconds. It is negative if the clock of
    /// the host that wrote it is ahead.
    pub delay_us: i64,
    /// The least such delay of one to two minutes. A slow clock and a slow transfer have the same effect on it.
    pub least_delay_us: i64,
    /// The least delay of the span before, and when the present one began.
    before: (i64, u64),
}

impl Arrival {
    fn after(last: Option<Self>, stamp: &Stamp, realtime_us: u64) -> Self {
        let delay_us =
            i64::try_from(realtime_us).unwrap_or(i64::MAX).saturating_sub_unsigned(stamp.realtime_us);
        let Some(last) = last else {
            return Self { realtime_us, delay_us, least_delay_us: delay_us, before: (delay_us, realtime_us) };
        };
        let (before, since_us) = last.before;
        if realtime_us.abs_diff(since_us) > DELAY_SPAN_US {
            return Self {
                realtime_us,
                delay_us,
                least_delay_us: before.min(delay_us),
                before: (delay_us, realtime_us),
            };
        }
        let before = (before.min(delay_us), since_us);
        Self { realtime_us, delay_us, least_delay_us: last.least_delay_us.min(delay_us), before }
    }
}

/// Counts of records read and lost of one run.
#[derive(Debug, Default)]
pub struct Reading {
    read: u64,
    last_seq: u64,
    last_mono_us: u64,
    lost: u64,
    /// The hole in front of the first record read.
    before: Option<Gap>,
    repeated: u64,
    foreign: u64,
    suppressed: u64,
    gaps: VecDeque<Gap>,
    gaps_total: u64,
    lag: Histogram,
    lag_last_us: Option<u64>,
    arrival: Option<Arrival>,
}

impl Reading {
    /// Records when a record was read, by the clock of the reading host.
    pub(in crate::runs) fn record_arrival(&mut self, stamp: &Stamp, realtime_us: u64) {
        self.arrival = Some(Arrival::after(self.arrival, stamp, realtime_us));
    }

    /// Notes one record; false if it was read before and must not count again.
    pub(in crate::runs) fn note(&mut self, stamp: &Stamp, read_mono_us: Option<u64>) -> bool {
        self.doubt_the_newest_gap(stamp);
        if stamp.seq <= self.last_seq {
            self.repeated += 1;
            return false;
        }
        let missing = stamp.seq - self.last_seq - 1;
        if missing > 0 && self.last_seq == 0 {
            self.before = Some(Gap { after_seq: 0, missing, mono_us: stamp.mono_us });
        } else if missing > 0 {
            self.lost += missing;
            self.push_gap(Gap { after_seq: self.last_seq, missing, mono_us: stamp.mono_us });
        }
        self.read += 1;
        self.last_seq = stamp.seq;
        self.last_mono_us = stamp.mono_us;
        if let Some(read_us) = read_mono_us {
            let lag_us = read_us.saturating_sub(stamp.mono_us);
            self.lag.record_ns(lag_us.saturating_mul(1_000));
            self.lag_last_us = Some(lag_us);
        }
        true
    }

    fn push_gap(&mut self, gap: Gap) {
        self.gaps_total += 1;
        if self.gaps.len() == GAPS_MAX {
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
    }

    /// Records a gap if a record does not cover all the time since `from_us`. A known gap at that time is the same gap:
    /// records were lost, or the other series showed it.
    pub(super) fn record_gap(&mut self, from_us: Option<u64>, stamp: &Stamp) {
        let Some(from_us) = from_us else { return };
        if self.gaps.back().is_none_or(|gap| gap.mono_us <= from_us) {
            self.push_gap(Gap { after_seq: stamp.seq.saturating_sub(1), missing: 0, mono_us: stamp.mono_us });
        }
    }

    pub(super) fn merged(members: &[(AlignedRun<'_>, &Self)]) -> Self {
        let mut merged = Self::default();
        for (run, reading) in members {
            let Self {
                read,
                last_seq: _,
                last_mono_us: _,
                lost,
                before,
                repeated,
                foreign,
                suppressed,
                gaps,
                gaps_total,
                lag,
                lag_last_us: _,
                arrival: _,
            } = reading;
            merged.read += read;
            merged.lost += lost;
            merged.repeated += repeated;
            merged.foreign += foreign;
            merged.suppressed += suppressed;
            merged.gaps_total += gaps_total;
            merged.lag.add(lag);
            if let Some(before) = before {
                merged.before.get_or_insert(Gap { missing: 0, ..*before }).missing += before.missing;
            }
            merged.gaps.extend(gaps.iter().map(|gap| Gap { mono_us: run.shifted_us(gap.mono_us), ..*gap }));
        }
        merged.gaps.make_contiguous().sort_by_key(|gap| gap.mono_us);
        let too_many = merged.gaps.len().saturating_sub(GAPS_MAX);
        merged.gaps.drain(..too_many);
        merged
    }

    /// Takes back the newest gap if this record belongs into it and is not older than the record after the gap.
    /// Records come in order, so the number that made the gap was damaged; if it were believed, all further records
    /// would count as repeated.
    fn doubt_the_newest_gap(&mut self, stamp: &Stamp) {
        let Some(gap) = self.gaps.back().copied().or(self.before) else { return };
        let is_in_it = stamp.seq > gap.after_seq && stamp.seq - gap.after_seq <= gap.missing;
        if is_in_it && stamp.mono_us >= self.last_mono_us {
            if self.gaps.pop_back().is_some() {
                self.gaps_total -= 1;
                self.lost -= gap.missing;
            } else {
                self.before = None;
            }
            // The damaged record was the next, if not a later one.
            self.last_seq = (gap.after_seq + 1).min(stamp.seq - 1);
        }
    }

    pub(in crate::runs) fn count_foreign(&mut self, records: u64) {
        self.foreign = self.foreign.saturating_add(records);
    }

    pub(in crate::runs) fn count_suppressed(&mut self, messages: u64) {
        self.suppressed = self.suppressed.saturating_add(messages);
    }

    /// Its size in memory, in bytes.
    pub(in crate::runs) fn bytes(&self) -> usize {
        self.gaps.capacity() * size_of::<Gap>() + self.lag.bucket_bytes()
    }

    /// Records read, each once.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Records written, according to the last one read.
    pub fn made(&self) -> u64 {
        self.read.saturating_add(self.lost).saturating_add(self.before())
    }

    /// Records before the first one read: lost, removed, or not requested.
    pub fn before(&self) -> u64 {
        self.before.map_or(0, |gap| gap.missing)
    }

    /// The number of the last record read; 0 before there is one.
    pub fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Records made after the first one read, and never read.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Records that were read again, or out of order, and not counted.
    pub fn repeated(&self) -> u64 {
        self.repeated
    }

    /// Records under this run's id that another process wrote, and that did not count.
    pub fn foreign(&self) -> u64 {
        self.foreign
    }

    /// Messages of the run's unit that journald reports as dropped. Records among them also count as lost, now or
    /// later.
    pub fn suppressed(&self) -> u64 {
        self.suppressed
    }

    /// The latest holes, oldest first.
    pub fn gaps(&self) -> impl ExactSizeIterator<Item = &Gap> {
        self.gaps.iter()
    }

    /// Holes found in all.
    pub fn gaps_total(&self) -> u64 {
        self.gaps_total
    }

    /// Time from a record's making to its reading, for records that were read live.
    pub fn lag(&self) -> &Histogram {
        &self.lag
    }

    /// When its latest record was read; `None` unless read live.
    pub fn arrival(&self) -> Option<Arrival> {
        self.arrival
    }

    /// The [`lag`](Self::lag) of the last record, in microseconds; `None` unless read live.
    pub fn lag_last_us(&self) -> Option<u64> {
        self.lag_last_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use records::ids::RunId;

    /// Arrivals of records at their own seconds, each with its delay in milliseconds.
    fn arrived(all: &[(u64, i64)]) -> Arrival {
        let mut reading = Reading::default();
        for &(second, delay_ms) in all {
            let realtime_us = 1_700_000_000_000_000 + second * 1_000_000;
            let stamp = Stamp { run: RunId::from_bits(1), seq: 1, mono_us: 1, realtime_us, interval_us: 1 };
            reading.record_arrival(&stamp, realtime_us.saturating_add_signed(delay_ms * 1_000));
        }
        reading.arrival().unwrap()
    }

    #[test]
    fn a_clock_that_is_ahead_shows_as_a_negative_delay() {
        let arrival = arrived(&[(0, -4_000), (1, -5_000), (2, 3_000)]);
        assert_eq!((arrival.delay_us, arrival.least_delay_us), (3_000_000, -5_000_000));
    }

    #[test]
    fn the_least_delay_is_forgotten_after_two_minutes() {
        let delays: Vec<(u64, i64)> =
            (0..200).map(|second| (second, if second < 5 { -9_000 } else { 20 })).collect();
        assert_eq!(arrived(&delays[..50]).least_delay_us, -9_000_000);
        assert_eq!(arrived(&delays).least_delay_us, 20_000);
    }
}
