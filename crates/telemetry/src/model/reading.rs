//! What reading found: holes in the sequence, repetitions, lag.

use std::collections::VecDeque;

use crate::histogram::Histogram;
use crate::record::Stamp;

/// Gaps that are kept by name; further ones are only counted.
const GAPS_MAX: usize = 256;

/// A hole in the sequence of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The last record before the hole.
    pub after_seq: u64,
    /// Records missing.
    pub missing: u64,
    /// `CLOCK_MONOTONIC` of the first record after it, in microseconds.
    pub mono_us: u64,
}

/// How the reading of one run has gone.
#[derive(Debug, Default)]
pub struct Reading {
    read: u64,
    last_seq: u64,
    repeated: u64,
    gaps: VecDeque<Gap>,
    gaps_total: u64,
    lag: Histogram,
    lag_last_us: Option<u64>,
}

impl Reading {
    /// Notes one record; false if it was read before and must not count again.
    pub(super) fn note(&mut self, stamp: &Stamp, read_mono_us: Option<u64>) -> bool {
        if stamp.seq <= self.last_seq {
            self.repeated += 1;
            return false;
        }
        let missing = stamp.seq - self.last_seq - 1;
        if missing > 0 {
            self.gaps_total += 1;
            if self.gaps.len() == GAPS_MAX {
                self.gaps.pop_front();
            }
            self.gaps.push_back(Gap { after_seq: self.last_seq, missing, mono_us: stamp.mono_us });
        }
        self.read += 1;
        self.last_seq = stamp.seq;
        if let Some(read_us) = read_mono_us {
            let lag_us = read_us.saturating_sub(stamp.mono_us);
            self.lag.record_ns(lag_us.saturating_mul(1_000));
            self.lag_last_us = Some(lag_us);
        }
        true
    }

    /// Records read, each once.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Records made, as far as the last one read knows.
    pub fn made(&self) -> u64 {
        self.last_seq
    }

    /// Records made and never read.
    pub fn lost(&self) -> u64 {
        self.last_seq - self.read
    }

    /// Records that were read again, or out of order, and not counted.
    pub fn repeated(&self) -> u64 {
        self.repeated
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

    /// That time for the last record, in microseconds; `None` unless read live.
    pub fn lag_last_us(&self) -> Option<u64> {
        self.lag_last_us
    }
}
