//! Reads past moments of a run from the journal, on a thread of its own.
//!
//! A [`Model`] keeps the latest few hours of a run, and less of its clients; the journal still holds the rest. For a
//! [`SeekRequest`], the [`HistoryReader`] reads the run up to a moment into a new model, and delivers that model. It keeps its
//! position in the journal, so that [`HistoryRequest::Continue`] can deliver the records that follow, to be played. It
//! holds one model during a seek, and at most two polls of records.

mod run_cursor;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use journal::{EntrySource, ReadError, Start};

use crate::runs::Model;
use records::codec::{Origin, Writer};
use records::ids::RunId;
use records::kinds::Record;
use records::slice::TimeRange;
use run_cursor::{ReadProgress, RunCursor};

/// Most records in one reply.
const RECORDS_MAX: usize = 256;

/// A read request. A newer request replaces one still queued, and cancels a [`SeekRequest`] that is being read. A cancelled
/// request gets no further reply.
#[derive(Debug)]
pub enum HistoryRequest {
    /// Read a run up to a moment.
    Seek(Box<SeekRequest>),
    /// Deliver the records after the last delivered ones, up to a moment. Nothing cancels this request once it has
    /// begun. It is ignored without a reply unless its ticket is that of the last [`SeekRequest`], and that seek has
    /// reached its moment.
    Continue {
        ticket: u64,
        /// Up to this moment of the run's monotonic clock, in microseconds.
        until_us: u64,
        /// The highest sequence number known of the run.
        last_seq: u64,
    },
}

/// The run and moment to read up to.
#[derive(Debug)]
pub struct SeekRequest {
    /// Identifies the replies.
    pub ticket: u64,
    pub run: RunId,
    /// The process that wrote the run; records of others are skipped.
    pub origin: Origin,
    /// The model to read into: empty, or prepared by [`Model::joining`] if reading starts within the run.
    pub model: Model,
    /// Records before this moment of `CLOCK_REALTIME`, in microseconds, may be skipped; 0 skips none.
    pub since_us: u64,
    /// The moment to reach, on the run's monotonic clock in microseconds.
    pub until_us: u64,
    /// The highest sequence number known of the run: reading stops there.
    pub last_seq: u64,
}

#[derive(Debug)]
pub enum HistoryReply {
    /// How far a [`SeekRequest`] has read.
    Progress {
        ticket: u64,
        /// The moment read up to, on the run's monotonic clock in microseconds.
        mono_us: u64,
    },
    /// The run at the requested moment.
    Reached {
        ticket: u64,
        /// A model of this run only, without any record after the moment.
        model: Box<Model>,
        /// The requested moment.
        until_us: u64,
    },
    /// Records for a [`HistoryRequest::Continue`].
    Records {
        ticket: u64,
        /// In journal order, each with its writer.
        records: Vec<(Arc<Writer>, Record)>,
        /// All records up to this moment have been delivered; `None` while more follow.
        until_us: Option<u64>,
    },
    Failed {
        ticket: u64,
        why: String,
    },
}

/// A handle to the reader thread, which ends when the last handle is dropped.
#[derive(Clone, Debug)]
pub struct HistoryReader {
    slot: Arc<SlotCloser>,
}

/// Closes the slot when the last handle is dropped.
#[derive(Debug)]
struct SlotCloser(Arc<RequestSlot>);

impl Drop for SlotCloser {
    fn drop(&mut self) {
        self.0.put(SlotState::Closed);
    }
}

/// The queued request. Both threads hold the lock only briefly, so neither waits for the other's reading or drawing.
#[derive(Debug, Default)]
struct RequestSlot {
    state: Mutex<SlotState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
enum SlotState {
    #[default]
    Empty,
    Request(HistoryRequest),
    /// All handles are dropped.
    Closed,
}

impl RequestSlot {
    fn put(&self, state: SlotState) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.changed.notify_one();
    }

    /// Waits for a request; `None` once all handles are dropped.
    fn take(&self) -> Option<HistoryRequest> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_empty = |state: &mut SlotState| matches!(state, SlotState::Empty);
        let mut state = self.changed.wait_while(state, is_empty).unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut *state) {
            SlotState::Request(request) => Some(request),
            SlotState::Empty | SlotState::Closed => None,
        }
    }

    /// True if a newer request waits, or all handles are gone.
    fn is_superseded(&self) -> bool {
        !matches!(*self.state.lock().unwrap_or_else(PoisonError::into_inner), SlotState::Empty)
    }
}

impl HistoryReader {
    /// Starts the thread. `open` opens the journal to read a run, and may leave out others; only records within `range`
    /// are delivered. `deliver` may block. It returns false once nobody receives replies, which ends the current request.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn start(
        open: impl Fn(Start, RunId) -> Result<Box<dyn EntrySource>, ReadError> + Send + 'static,
        range: TimeRange,
        deliver: impl FnMut(HistoryReply) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let slot = Arc::new(RequestSlot::default());
        let thread_slot = Arc::clone(&slot);
        std::thread::Builder::new().name("dashboard-read".into()).spawn(move || {
            ReaderThread { slot: &thread_slot, open, range, deliver }.run();
        })?;
        Ok(Self { slot: Arc::new(SlotCloser(slot)) })
    }

    /// Queues a request in place of one still queued. Does not wait for the reader.
    pub fn request(&self, request: HistoryRequest) {
        self.slot.0.put(SlotState::Request(request));
    }
}

struct ReaderThread<'d, O, D> {
    slot: &'d RequestSlot,
    open: O,
    range: TimeRange,
    deliver: D,
}

impl<O, D> ReaderThread<'_, O, D>
where
    O: Fn(Start, RunId) -> Result<Box<dyn EntrySource>, ReadError>,
    D: FnMut(HistoryReply) -> bool,
{
    fn run(mut self) {
        let mut cursor: Option<(u64, RunCursor)> = None;
        while let Some(request) = self.slot.take() {
            let (ticket, result) = match request {
                HistoryRequest::Seek(seek) => {
                    // Dropped before the next one is created, so that only one is in memory.
                    cursor = None;
                    let ticket = seek.ticket;
                    (ticket, self.seek(*seek).map(|reached| cursor = reached.map(|cursor| (ticket, cursor))))
                }
                HistoryRequest::Continue { ticket, until_us, last_seq } => match &mut cursor {
                    Some((cursor_ticket, cursor)) if *cursor_ticket == ticket => {
                        (ticket, self.read_on(ticket, cursor, until_us, last_seq))
                    }
                    _ => continue,
                },
            };
            if let Err(error) = result {
                let is_delivered = (self.deliver)(HistoryReply::Failed { ticket, why: error.to_string() });
                if !is_delivered {
                    return;
                }
            }
        }
    }

    /// Reads up to a moment. Returns `None` if a newer request has arrived meanwhile, or nobody receives replies.
    fn seek(&mut self, seek: SeekRequest) -> Result<Option<RunCursor>, ReadError> {
        let SeekRequest { ticket, run, origin, mut model, since_us, until_us, last_seq } = seek;
        // Records carry totals. A limited range subtracts those before it, and so needs the records before it too.
        let is_unlimited = self.range == TimeRange::ALL;
        let start = if is_unlimited && since_us > 0 { Start::Since(since_us) } else { Start::Oldest };
        let mut cursor = RunCursor::new((self.open)(start, run)?, (run, origin), self.range);
        loop {
            let progress = cursor.read(until_us, last_seq, |writer, record| {
                model.apply_from(writer, record, None);
            })?;
            let reply = match progress {
                ReadProgress::Done => break,
                ReadProgress::At(mono_us) => HistoryReply::Progress { ticket, mono_us },
            };
            if self.slot.is_superseded() || !(self.deliver)(reply) {
                return Ok(None);
            }
        }
        let is_delivered = (self.deliver)(HistoryReply::Reached { ticket, model: Box::new(model), until_us });
        Ok(is_delivered.then_some(cursor))
    }

    /// Delivers the records after the cursor, up to a moment.
    fn read_on(
        &mut self,
        ticket: u64,
        cursor: &mut RunCursor,
        until_us: u64,
        last_seq: u64,
    ) -> Result<(), ReadError> {
        let mut records = Vec::new();
        loop {
            let progress = cursor.read(until_us, last_seq, |writer, record| {
                records.push((Arc::clone(writer), record));
            })?;
            while records.len() > RECORDS_MAX {
                let rest = records.split_off(RECORDS_MAX);
                let full = std::mem::replace(&mut records, rest);
                if !(self.deliver)(HistoryReply::Records { ticket, records: full, until_us: None }) {
                    return Ok(());
                }
            }
            if progress == ReadProgress::Done {
                (self.deliver)(HistoryReply::Records { ticket, records, until_us: Some(until_us) });
                return Ok(());
            }
        }
    }
}
