//! The state in the badge at the top: live, frozen, playing, silent or ended.

use std::time::Duration;

use model::history::Batch;
use model::runs::Model;
use records::ids::RunId;
use records::kinds::Record;

use super::State;
use super::moment::View;
use crate::clock::ClockReading;

/// Silence up to this long is not shown, however short the interval.
const SILENCE_MIN: Duration = Duration::from_secs(3);
/// Intervals without a record after which a run counts as silent.
const SILENT_INTERVALS: u32 = 3;

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

impl ViewStatus {
    pub(crate) fn of(state: &State, now: ClockReading) -> Self {
        match &state.view {
            View::Live => Self::of_present(state, now),
            View::Frozen(past) => Self::Frozen(since(past.since, now).as_secs()),
            View::Replay(_, playback) if playback.is_playing() => Self::Playing,
            View::Replay(..) => Self::Paused,
        }
    }

    /// The status of the present, whether or not it is shown.
    pub(crate) fn of_present(state: &State, now: ClockReading) -> Self {
        let (Some(figures), Some(last_record)) = (&state.live.figures, state.last_record) else {
            return Self::Waiting;
        };
        // How old the newest record is matters once it is the newest.
        let age = if state.caught_up { last_record.age } else { Duration::ZERO };
        let silence = since(last_record.at, now) + age;
        let patience = SILENCE_MIN.max(Duration::from_micros(figures.interval_us) * SILENT_INTERVALS);
        if state.is_run_being_read() {
            return Self::Reading;
        }
        match (figures.ended, silence > patience) {
            (true, _) => Self::Ended,
            (false, true) => Self::Silent(silence.as_secs()),
            (false, false) if state.caught_up => Self::Live,
            (false, false) => Self::Reading,
        }
    }
}

fn since(then: ClockReading, now: ClockReading) -> Duration {
    now.instant.saturating_duration_since(then.instant)
}
