//! Cuts a time range out of the records of runs.
//!
//! Records carry totals since the run began, so a part of a run needs a baseline. A slice rebases its records: totals
//! and sequence numbers count from its beginning, and its first record is the run's, with the settings in force then.
//! Any reader of records can read a slice.

mod baseline;
mod rebase;

use foldhash::HashMap;

use crate::codec::{Origin, Writer};
use crate::ids::RunId;
use crate::kinds::{Body, Phase, Record, RunRecord, Stamp};
pub use baseline::SliceBaseline;

/// Most runs in a slice; further ones are left out.
const RUNS_MAX: usize = 1_024;
/// Most clients before the range, of all runs together; a run that exceeds it is left out.
const CLIENTS_MAX: usize = 200_000;

/// A range of `CLOCK_REALTIME`, in microseconds: later than `from_us`, up to `until_us`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    pub from_us: u64,
    pub until_us: u64,
}

impl TimeRange {
    pub const ALL: Self = Self { from_us: 0, until_us: u64::MAX };

    /// True for a moment within it.
    pub fn holds(&self, realtime_us: u64) -> bool {
        self == &Self::ALL || (realtime_us > self.from_us && realtime_us <= self.until_us)
    }
}

/// Cuts a time range out of the records of runs, as they come.
#[derive(Clone, Debug)]
pub struct RunSlice {
    range: TimeRange,
    runs: HashMap<(Origin, RunId), RunPosition>,
    /// Clients before the range, of all runs.
    clients: usize,
}

/// Where one run is, as seen from the range.
#[derive(Clone, Debug, Default)]
struct RunPosition {
    /// The state of the run when the range began.
    base: SliceBaseline,
    stage: SliceStage,
    /// The stamp of the last record of the slice.
    last: Option<Stamp>,
    /// True if that was the last record of the run.
    has_ended: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum SliceStage {
    #[default]
    Before,
    Within,
    After,
}

impl RunSlice {
    pub fn new(range: TimeRange) -> Self {
        Self { range, runs: HashMap::default(), clients: 0 }
    }

    /// A slice of runs that begins with their baselines. Their records come from a publisher, not from a journal.
    pub fn following(bases: Vec<SliceBaseline>) -> Self {
        let clients = bases.iter().map(SliceBaseline::clients).sum();
        let cut = |base: SliceBaseline| {
            let key = (Origin::default(), base.run()?);
            Some((key, RunPosition { base, ..RunPosition::default() }))
        };
        Self { range: TimeRange::ALL, runs: bases.into_iter().filter_map(cut).collect(), clients }
    }

    /// Ends the runs that continue after the range: their later records are left out, not missing.
    pub fn close(&mut self, out: &mut Vec<Record>) {
        for ((_, run), cut) in &mut self.runs {
            cut.end(*run, out);
        }
    }

    /// True if it is of all of time: records stay as they are.
    pub fn is_whole(&self) -> bool {
        self.range == TimeRange::ALL
    }

    /// Adds a record, and adds the records of the slice that come of it.
    pub fn take(&mut self, writer: &Writer, record: Record, out: &mut Vec<Record>) {
        let key = (writer.origin, record.stamp.run);
        if !self.runs.contains_key(&key) && self.runs.len() == RUNS_MAX {
            return;
        }
        let cut = self.runs.entry(key).or_default();
        let at_us = record.stamp.realtime_us;
        match cut.stage {
            SliceStage::Before if at_us <= self.range.from_us => cut.note(&record, &mut self.clients),
            SliceStage::Before | SliceStage::Within if at_us <= self.range.until_us => cut.pass(record, out),
            SliceStage::Before => cut.note(&record, &mut self.clients),
            SliceStage::Within => cut.end(record.stamp.run, out),
            SliceStage::After => {}
        }
    }
}

impl RunPosition {
    /// Adds a record from before the range. A run with too many clients is left out from then on.
    fn note(&mut self, record: &Record, clients: &mut usize) {
        if self.stage == SliceStage::After {
            return;
        }
        let others = *clients - self.base.clients();
        self.base.note(record);
        *clients = others + self.base.clients();
        if *clients > CLIENTS_MAX {
            *clients = others;
            *self = Self { stage: SliceStage::After, ..Self::default() };
        }
    }

    fn pass(&mut self, mut record: Record, out: &mut Vec<Record>) {
        if self.stage == SliceStage::Before {
            self.stage = SliceStage::Within;
            out.extend(self.base.header(record.stamp.run));
        }
        self.base.rebase(&mut record);
        self.last = Some(record.stamp);
        self.has_ended = matches!(&record.body, Body::Run(run) if run.phase == Phase::Stop);
        out.push(record);
    }

    /// Ends the run, unless it ended within the range: later records are left out, not missing.
    fn end(&mut self, run: RunId, out: &mut Vec<Record>) {
        let has_begun = std::mem::replace(&mut self.stage, SliceStage::After) == SliceStage::Within;
        let Some(last) = self.last.filter(|_| has_begun && !self.has_ended) else { return };
        let began = self.base.began().cloned().unwrap_or_default();
        let stamp = Stamp { run, seq: last.seq + 1, interval_us: 0, ..last };
        let body = Body::Run(Box::new(RunRecord { phase: Phase::Stop, runs_on: true, ..began }));
        out.push(Record { stamp, body });
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;
    use crate::histogram::Sketch;
    use crate::kinds::ClientRecord;
    use crate::metrics::Counters;

    #[test]
    fn clients_of_many_runs_before_a_stretch_are_bounded_together() {
        let mut slice = RunSlice::new(TimeRange { from_us: u64::MAX - 1, until_us: u64::MAX });
        let mut out = Vec::new();
        for run in 0..40_u128 {
            let writer = Writer::default();
            for client in 0..10_000_u32 {
                let stamp =
                    Stamp { run: RunId::from_bits(run), seq: 1, mono_us: 1, realtime_us: 1, interval_us: 1 };
                let client = IpAddr::from(client.to_be_bytes()).into();
                let body = Body::Client(ClientRecord {
                    client,
                    epoch: 1,
                    last: false,
                    open: 0,
                    counters: Counters::default(),
                    rtt_us: 0,
                    exchange: Sketch::default(),
                });
                slice.take(&writer, Record { stamp, body }, &mut out);
            }
        }
        let kept: usize = slice.runs.values().map(|cut| cut.base.clients()).sum();
        assert_eq!((kept, slice.clients), (CLIENTS_MAX, CLIENTS_MAX));
        let left_out = slice.runs.values().filter(|cut| cut.stage == SliceStage::After).count();
        assert_eq!((left_out, out.len()), (20, 0));
    }
}
