//! The pure fold of records into what a screen or a report shows.
//!
//! No clock, no I/O, and it cannot fail: live, replay and report feed it the same records and get the same figures.
//! Everything in it is bounded, however long or hostile the journal is.

mod clients;
mod load_summary;
mod reading;
mod run;
mod summary;
#[cfg(test)]
mod tests;
mod track;

use crate::ids::RunId;
use crate::record::Record;

pub use clients::{Client, ClientRate, Clients};
pub use load_summary::{
    Generator, INSECURE, LoadSummary, Parts, Rates, RequestCounts, Resumptions, Spans, TRUST,
};
pub use reading::{Gap, Reading};
pub use run::{CpuUse, Level, LogLine, Run};
pub use summary::{
    ByteCounts, ClientSummary, ConnectionCounts, HandshakeCounts, JournalSummary, Label, Observed,
    Percentiles, ProxySummary, SUMMARY_SCHEMA, Summary,
};
pub use track::{Interval, Track, Window};

/// Runs that a model keeps; the one that has been silent longest makes room.
pub const RUNS_MAX: usize = 16;

/// Intervals that a model keeps of each series for a screen, the latest: a quarter of an hour at one a second.
pub const HISTORY: usize = 900;

/// All runs that have been read.
#[derive(Debug)]
pub struct Model {
    history: usize,
    runs: Vec<Run>,
    malformed: u64,
    skipped_bytes: u64,
}

impl Default for Model {
    fn default() -> Self {
        Self::new(HISTORY)
    }
}

impl Model {
    /// A model that keeps the latest `history` intervals of each series; totals and whole-run histograms need none.
    pub fn new(history: usize) -> Self {
        Self { history: history.max(1), runs: Vec::new(), malformed: 0, skipped_bytes: 0 }
    }

    /// Takes in one record. `read_mono_us` is `CLOCK_MONOTONIC` of this boot when it was read, for live journals:
    /// it only serves to show how far reading lags behind writing.
    pub fn apply(&mut self, record: Record, read_mono_us: Option<u64>) {
        let at = self.place(record.stamp.run);
        self.runs[at].apply(record, read_mono_us);
    }

    /// Counts entries that claim to be ours and cannot be decoded.
    pub fn note_malformed(&mut self, entries: u64) {
        self.malformed = self.malformed.saturating_add(entries);
    }

    /// Counts bytes of a journal that could not be read.
    pub fn note_skipped(&mut self, bytes: u64) {
        self.skipped_bytes = self.skipped_bytes.saturating_add(bytes);
    }

    /// The run that began last, which is what a screen shows unless told otherwise.
    pub fn current(&self) -> Option<&Run> {
        self.runs.iter().max_by_key(|run| run.began_realtime_us())
    }

    /// The run of this id.
    pub fn run(&self, id: RunId) -> Option<&Run> {
        self.runs.iter().find(|run| run.id() == id)
    }

    /// All runs, in the order in which they appeared.
    pub fn runs(&self) -> &[Run] {
        &self.runs
    }

    /// Entries that claimed to be ours and could not be decoded.
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    /// Bytes of the journal that could not be read.
    pub fn skipped_bytes(&self) -> u64 {
        self.skipped_bytes
    }

    fn place(&mut self, id: RunId) -> usize {
        if let Some(at) = self.runs.iter().position(|run| run.id() == id) {
            return at;
        }
        if self.runs.len() == RUNS_MAX {
            let silent = (0..RUNS_MAX).min_by_key(|&at| self.runs[at].last_realtime_us()).unwrap_or(0);
            self.runs.remove(silent);
        }
        self.runs.push(Run::new(id, self.history));
        self.runs.len() - 1
    }
}
