//! The state in the badge at the top: live, frozen, playing, silent or ended.

use std::time::Duration;

use model::history::Batch;
use model::runs::Model;
use records::ids::RunId;
use records::kinds::Record;

use crate::clock::ClockReading;

/// When the last record of the shown run was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastRecord {
    pub(crate) at: ClockReading,
    /// Its age when it was read; zero if it was read as it was written.
    pub(crate) age: Duration,
}

impl LastRecord {
    /// Returns what a batch, before it is folded, reveals about the shown run or a new one; `None` if it has
    /// no record of them. Records of another process with the same run id do not make it live.
    pub(crate) fn of(batch: &Batch, model: &Model, run: Option<RunId>, now: ClockReading) -> Option<Self> {
        let is_its = |id| model.run(id).is_none_or(|run| run.writer().origin == batch.writer.origin);
        let is_it = |id, other| id == other || model.run(other).is_none();
        let is_shown =
            |record: &&Record| run.is_none_or(|id| is_it(id, record.stamp.run)) && is_its(record.stamp.run);
        let latest = batch.records.iter().rev().find(is_shown)?;
        let age_us = match batch.read_mono_us {
            Some(_) => 0,
            None => now.realtime_us.saturating_sub(latest.stamp.realtime_us),
        };
        Some(Self { at: now, age: Duration::from_micros(age_us) })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ViewStatus {
    /// No record has been read.
    Waiting,
    /// The existing records are being read.
    Reading,
    /// Records are arriving.
    Live,
    /// No record for this many seconds.
    Silent(u64),
    /// The view has been frozen for this many seconds.
    Frozen(u64),
    Playing,
    Paused,
    Ended,
}
