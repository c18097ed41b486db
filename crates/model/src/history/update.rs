//! Messages to the owner of a model: batches of records, and news of their journal.

use std::sync::Arc;

use crate::runs::{ForeignRecords, Level, Model};
use records::codec::{SuppressedMessages, Writer};
use records::ids::RunId;
use records::kinds::Record;
use records::slice::RunSlice;

/// Most records of one batch, so that queues of batches stay small.
pub const BATCH_RECORDS_MAX: usize = 256;
/// Most bytes that its records take, without the last one: a short text may hold large histograms.
pub const BATCH_BYTES_MAX: usize = 1 << 20;

/// Records of one writer that were read together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Who wrote them, as the journal knows; default for records that come straight from the publisher.
    pub writer: Arc<Writer>,
    /// In the order of the journal.
    pub records: Vec<Record>,
    /// `CLOCK_MONOTONIC` when they were read, in microseconds; `None` if they are history, or of another boot, whose
    /// clock cannot be compared.
    pub read_mono_us: Option<u64>,
    /// `CLOCK_REALTIME` when they were read, in microseconds; `None` if they are history.
    pub read_realtime_us: Option<u64>,
    /// Entries that claimed to be ours and could not be decoded.
    pub malformed: u64,
    /// Bytes that could not be read.
    pub skipped_bytes: u64,
    /// Messages that journald dropped, of this writer or of others.
    pub suppressed: Vec<SuppressedMessages>,
    /// Records that others wrote under the id of the run that is read.
    pub foreign: Option<ForeignRecords>,
}

impl Batch {
    /// The records of a slice that this batch holds.
    #[must_use]
    pub fn within(self, slice: &mut RunSlice) -> Self {
        if slice.is_whole() {
            return self;
        }
        let mut records = Vec::with_capacity(self.records.len());
        for record in self.records {
            slice.take(&self.writer, record, &mut records);
        }
        Self { records, ..self }
    }

    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
            && self.malformed == 0
            && self.skipped_bytes == 0
            && self.suppressed.is_empty()
            && self.foreign.is_none()
    }
}

/// A message to the owner of a model.
#[derive(Clone, Debug, PartialEq)]
pub enum Update {
    Batch(Batch),
    /// All entries that the journal had at the opening have been read; later ones are live.
    CaughtUp,
    /// A message of the program that is not in the journal, such as a refused setting or a journal that cannot be
    /// written.
    Notice(Level, String),
    /// How the recording of the run goes.
    Recording(RecordingStatus),
    /// A run is not read, because of who wrote it. Sent once for each run, for at most 1,024 runs.
    Ignored(RunId, Writer),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordingStatus {
    /// Records are written, possibly again after a failure.
    Written,
    /// Records cannot be written at present.
    Failing,
    /// There is no recording, or it has ended.
    Ended,
}

impl Model {
    pub fn apply_batch(&mut self, batch: Batch) {
        let last = batch.records.last().map(|record| record.stamp);
        for record in batch.records {
            self.apply_from(&batch.writer, record, batch.read_mono_us);
        }
        if let Some((stamp, read_us)) = last.zip(batch.read_realtime_us) {
            self.record_arrival(&batch.writer, &stamp, read_us);
        }
        batch.suppressed.iter().for_each(|notice| self.count_suppressed(notice));
        batch.foreign.iter().for_each(|foreign| self.count_foreign(foreign));
        self.count_malformed(batch.malformed);
        self.count_skipped(batch.skipped_bytes);
    }
}
