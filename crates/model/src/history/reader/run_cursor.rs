//! Reads the records of one run from a journal, up to a given moment.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use journal::{Entry, EntrySource, ReadError};

use crate::history::SeenRecords;
use records::codec;
use records::codec::{Origin, Writer};
use records::ids::RunId;
use records::kinds::{Body, Phase, Record};
use records::slice::{RunSlice, TimeRange};
use records::wire::field;

/// Retries after a read error: one unreadable file must not hide the others.
const TRIES: u32 = 3;
/// Between two of them.
const RETRY: Duration = Duration::from_millis(400);

/// How far a cursor has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadProgress {
    /// Every record up to the moment has been delivered.
    Done,
    /// More remains; the last record read has this time on the run's monotonic clock.
    At(u64),
}

/// A position in the journal, delivering one run's records.
pub(super) struct RunCursor {
    source: Box<dyn EntrySource>,
    filter: RecordSelector,
}

/// Selects the run's records and holds those not yet delivered.
struct RecordSelector {
    run: RunId,
    run_text: String,
    /// The process whose records count.
    origin: Origin,
    seen: SeenRecords,
    slice: RunSlice,
    writer: Arc<Writer>,
    /// Not yet delivered, in order.
    ahead: VecDeque<(Arc<Writer>, Record)>,
    cut: Vec<Record>,
    last_seq: u64,
    last_us: u64,
    has_stopped: bool,
}

impl RunCursor {
    pub(super) fn new(
        source: Box<dyn EntrySource>,
        (run, origin): (RunId, Origin),
        range: TimeRange,
    ) -> Self {
        let filter = RecordSelector {
            run,
            run_text: run.to_string(),
            origin,
            seen: SeenRecords::default(),
            slice: RunSlice::new(range),
            writer: Arc::default(),
            ahead: VecDeque::new(),
            cut: Vec::new(),
            last_seq: 0,
            last_us: 0,
            has_stopped: false,
        };
        Self { source, filter }
    }

    /// Reads one poll towards a moment. `last_seq` is the highest sequence number known of the run: reading stops there.
    pub(super) fn read(
        &mut self,
        until_us: u64,
        last_seq: u64,
        mut each: impl FnMut(&Arc<Writer>, Record),
    ) -> Result<ReadProgress, ReadError> {
        let is_later = |record: &Record| record.stamp.mono_us > until_us;
        let has_later = self.filter.ahead.back().is_some_and(|(_, record)| is_later(record));
        let mut is_end = self.filter.is_at_end(last_seq);
        if !has_later && !is_end {
            let has_more = self.poll()?;
            is_end = !has_more || self.filter.is_at_end(last_seq);
        }
        while self.filter.ahead.front().is_some_and(|(_, record)| !is_later(record)) {
            let Some((writer, record)) = self.filter.ahead.pop_front() else { break };
            each(&writer, record);
        }
        let is_done = is_end || !self.filter.ahead.is_empty();
        Ok(if is_done { ReadProgress::Done } else { ReadProgress::At(self.filter.last_us) })
    }

    /// True if the journal holds more.
    fn poll(&mut self) -> Result<bool, ReadError> {
        let Self { source, filter } = self;
        let mut tries = 0;
        loop {
            match source.poll(&mut |entry| filter.take(entry)) {
                Ok(progress) => {
                    if !progress.more {
                        source.finish(&mut |entry| filter.take(entry));
                    }
                    return Ok(progress.more);
                }
                Err(_) if tries < TRIES => {
                    tries += 1;
                    std::thread::sleep(RETRY);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl RecordSelector {
    fn is_at_end(&self, last_seq: u64) -> bool {
        self.has_stopped || (last_seq > 0 && self.last_seq >= last_seq)
    }

    fn take(&mut self, entry: &Entry) {
        if entry.text(&field::RUN.name) != Some(&*self.run_text) {
            return;
        }
        if Origin::of(entry) != self.origin {
            return;
        }
        // A malformed record was counted when it was first read.
        let Ok(Some(record)) = codec::decode(entry) else { return };
        if !self.seen.insert(&self.origin, &record.stamp) {
            return;
        }
        if self.writer.origin != self.origin {
            self.writer = Arc::new(Writer::of(entry));
        }
        self.slice.take(&self.writer, record, &mut self.cut);
        for record in self.cut.drain(..).filter(|record| record.stamp.run == self.run) {
            self.last_seq = self.last_seq.max(record.stamp.seq);
            self.last_us = self.last_us.max(record.stamp.mono_us);
            self.has_stopped |= matches!(&record.body, Body::Run(run) if run.phase == Phase::Stop);
            self.ahead.push_back((Arc::clone(&self.writer), record));
        }
    }
}
