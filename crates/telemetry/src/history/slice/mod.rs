//! A stretch of runs, cut out of their records.
//!
//! Records carry totals since the run began, so a part of a run cannot be read by itself. Here they become records of a
//! run that began with the stretch: totals are counted from there, sequence numbers begin anew, and in front stands
//! the run's first record, with the settings as they stood then. Whatever reads records reads a stretch of them as well.

mod baseline;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::recorded as simulated;

use foldhash::HashMap;

use crate::history::update::Batch;
use crate::record::ids::RunId;
use crate::record::origin::{Origin, Writer};
use crate::record::{Body, Phase, Record, RunRecord, Stamp};
pub use baseline::Baseline;

/// Runs that are told apart; one that turns up when there are so many is left out.
const RUNS_MAX: usize = 1_024;
/// Clients of all runs together whose totals before the stretch are known; a run with more of them is left out.
const CLIENTS_MAX: usize = 200_000;

/// A stretch of time, by `CLOCK_REALTIME` in microseconds: what is later than `from_us`, up to `until_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Its beginning.
    pub from_us: u64,
    /// Its end.
    pub until_us: u64,
}

impl TimeRange {
    /// All there is.
    pub const ALL: Self = Self { from_us: 0, until_us: u64::MAX };

    /// True for a moment of it.
    pub fn holds(&self, realtime_us: u64) -> bool {
        self == &Self::ALL || (realtime_us > self.from_us && realtime_us <= self.until_us)
    }
}

/// Cuts a stretch out of the records of runs, as they come.
#[derive(Clone, Debug)]
pub struct RunSlice {
    range: TimeRange,
    runs: HashMap<(Origin, RunId), RunPosition>,
    /// Clients of all of them before the stretch.
    clients: usize,
}

/// How far one run has come.
#[derive(Clone, Debug, Default)]
struct RunPosition {
    /// How it stood when the stretch began.
    base: Baseline,
    stage: Stage,
    /// The last record that was let through, as it was then.
    last: Option<Stamp>,
    /// It was the run's own last one.
    has_ended: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Before,
    Within,
    After,
}

impl RunSlice {
    /// Of nothing yet.
    pub fn new(range: TimeRange) -> Self {
        Self { range, runs: HashMap::default(), clients: 0 }
    }

    /// What follows of a run that stands so, as records that come straight from their making.
    pub fn following(base: Baseline) -> Self {
        let (run, clients) = (base.run(), base.clients());
        let cut = |run| ((Origin::default(), run), RunPosition { base, ..RunPosition::default() });
        Self { range: TimeRange::ALL, runs: run.map(cut).into_iter().collect(), clients }
    }

    /// Closes the runs that have not ended: what comes later is left out, not missing.
    pub fn close(&mut self, out: &mut Vec<Record>) {
        for ((_, run), cut) in &mut self.runs {
            cut.end(*run, out);
        }
    }

    /// The records that take the place of those of a batch.
    pub fn cut(&mut self, batch: Batch) -> Batch {
        if self.range == TimeRange::ALL {
            return batch;
        }
        let mut records = Vec::with_capacity(batch.records.len());
        for record in batch.records {
            self.take(&batch.writer, record, &mut records);
        }
        Batch { records, ..batch }
    }

    /// Adds what takes the place of a record.
    pub fn take(&mut self, writer: &Writer, record: Record, out: &mut Vec<Record>) {
        let key = (writer.origin, record.stamp.run);
        if !self.runs.contains_key(&key) && self.runs.len() == RUNS_MAX {
            return;
        }
        let cut = self.runs.entry(key).or_default();
        let at_us = record.stamp.realtime_us;
        match cut.stage {
            Stage::Before if at_us <= self.range.from_us => cut.note(&record, &mut self.clients),
            Stage::Before | Stage::Within if at_us <= self.range.until_us => cut.pass(record, out),
            Stage::Before => cut.note(&record, &mut self.clients),
            Stage::Within => cut.end(record.stamp.run, out),
            Stage::After => {}
        }
    }
}

impl RunPosition {
    /// Takes in a record from before, unless it is of one client too many of all.
    fn note(&mut self, record: &Record, clients: &mut usize) {
        if self.stage == Stage::After {
            return;
        }
        let others = *clients - self.base.clients();
        self.base.note(record);
        *clients = others + self.base.clients();
        if *clients > CLIENTS_MAX {
            *clients = others;
            *self = Self { stage: Stage::After, ..Self::default() };
        }
    }

    fn pass(&mut self, mut record: Record, out: &mut Vec<Record>) {
        if self.stage == Stage::Before {
            self.stage = Stage::Within;
            out.extend(self.base.header(record.stamp.run));
        }
        self.base.rebase(&mut record);
        self.last = Some(record.stamp);
        self.has_ended = matches!(&record.body, Body::Run(run) if run.phase == Phase::Stop);
        out.push(record);
    }

    /// Closes the run, unless it has ended within the stretch: what comes later is left out, not missing.
    fn end(&mut self, run: RunId, out: &mut Vec<Record>) {
        let has_begun = std::mem::replace(&mut self.stage, Stage::After) == Stage::Within;
        let Some(last) = self.last.filter(|_| has_begun && !self.has_ended) else { return };
        let began = self.base.began().cloned().unwrap_or_default();
        let stamp = Stamp { run, seq: last.seq + 1, interval_us: 0, ..last };
        let body = Body::Run(Box::new(RunRecord { phase: Phase::Stop, runs_on: true, ..began }));
        out.push(Record { stamp, body });
    }
}
