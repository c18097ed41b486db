//! Follows a journal on a thread of its own and delivers its records.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use foldhash::HashSet;
use journal::{Entry, EntrySource, ReadError, Timestamps};

use crate::history::{
    Admission, BATCH_BYTES_MAX, BATCH_RECORDS_MAX, Batch, EntryFilter, RunFilter, SeenRecords, Update,
    WriterFilter,
};
use crate::runs::ForeignRecords;
use crate::runs::Level;
use records::codec;
use records::codec::{Origin, SuppressedMessages, Writer};
use records::ids::RunId;
use records::kinds::Body;
use records::kinds::heap_size::HeapSize as _;
use records::wire::{DecodeError, field};

/// How often the journal is polled. `journalctl -f` may learn of new entries only every 250 ms; polling is faster.
const POLL: Duration = Duration::from_millis(20);

/// Runs that are reported as ignored, at most.
const IGNORED_MAX: usize = 1_024;

/// A thread that follows a journal.
#[derive(Debug)]
pub struct Follower {
    ending: Arc<AtomicBool>,
    suppressed_total: Arc<AtomicU64>,
    bytes_read: Arc<AtomicU64>,
    thread: JoinHandle<Result<(), ReadError>>,
}

#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("cannot start the thread that follows the journal: {0}")]
    Thread(#[from] io::Error),
}

impl Follower {
    /// Follows the journal that `open` opens, and delivers the records of runs that pass the filter; other records are
    /// not decoded. Both closures run on the follower's thread, because a source need not be able to leave the thread
    /// that opened it. `deliver` may block; it returns false to end the follower.
    ///
    /// # Errors
    /// When the journal cannot be opened.
    pub fn start(
        open: impl FnOnce() -> Result<Box<dyn EntrySource>, ReadError> + Send + 'static,
        filter: RunFilter,
        deliver: impl FnMut(Update) -> bool + Send + 'static,
    ) -> Result<Self, FollowError> {
        let ending = Arc::new(AtomicBool::new(false));
        let suppressed_total = Arc::new(AtomicU64::new(0));
        let (opened, result) = sync_channel(1);
        let stop = Arc::clone(&ending);
        let batches = BatchBuilder::new(filter, deliver, Arc::clone(&suppressed_total));
        let bytes_read = Arc::clone(&batches.bytes_read);
        let thread = std::thread::Builder::new()
            .name("dashboard-tail".into())
            .spawn(move || run(open, &opened, &stop, batches))?;
        match result.recv() {
            Ok(Ok(())) => Ok(Self { ending, suppressed_total, bytes_read, thread }),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(io::Error::other("it ended before it began").into()),
        }
    }

    /// Messages of the followed process, or of its unit, that journald dropped by its own account: for
    /// `recorder::publish::Publisher::set_suppressed`. Stays readable after the end.
    pub fn suppressed_total(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.suppressed_total)
    }

    /// Bytes of the journal's files that have been read.
    pub fn bytes_read(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.bytes_read)
    }

    /// Reads and delivers the journal's present entries, and ends.
    ///
    /// # Errors
    /// When they could not all be read. It was delivered as a notice too.
    pub fn finish(self) -> Result<(), ReadError> {
        self.ending.store(true, Ordering::Release);
        // A panic there has been reported by the panic hook; here it only means that nothing more is delivered.
        self.thread.join().unwrap_or(Ok(()))
    }

    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

fn run(
    open: impl FnOnce() -> Result<Box<dyn EntrySource>, ReadError>,
    opened: &SyncSender<Result<(), ReadError>>,
    ending: &AtomicBool,
    mut batches: BatchBuilder<impl FnMut(Update) -> bool>,
) -> Result<(), ReadError> {
    let mut source = match open() {
        Ok(source) => source,
        Err(error) => {
            let _ = opened.send(Err(error));
            return Ok(());
        }
    };
    let _ = opened.send(Ok(()));
    let mut failing = false;
    while batches.is_listening {
        // Read before polling: entries written before the request to end must still be delivered.
        let last = ending.load(Ordering::Acquire);
        let drained = batches.drain(&mut *source);
        if let Err(error) = &drained
            && !failing
        {
            batches.deliver(Update::Notice(Level::Warning, error.to_string()));
        }
        failing = drained.is_err();
        if !batches.is_live && !failing {
            batches.is_live = true;
            if let Some(note) = source.note() {
                batches.deliver(Update::Notice(Level::Notice, note));
            }
            batches.deliver(Update::CaughtUp);
        }
        if last {
            if drained.is_ok() {
                batches.finish(&mut *source);
            }
            return drained;
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}

/// Whether records of a later version were seen, with a message about them.
enum NewerRecords {
    NotSeen,
    Seen(String),
    Reported,
}

/// Sorts entries into batches and delivers them.
struct BatchBuilder<F> {
    deliver: F,
    /// False once the receiver is dropped.
    is_listening: bool,
    /// True once all entries that were there at first have been read.
    is_live: bool,
    batch: Batch,
    /// Memory that its records take.
    batch_bytes: usize,
    newer: NewerRecords,
    filter: EntryFilter,
    /// Records that were read; copies of them are left out.
    seen: SeenRecords,
    /// Runs that were reported as ignored.
    ignored: HashSet<RunId>,
    /// This process. If one run is followed, its identity comes from the journal.
    own: Origin,
    /// The unit of this process, once one of its records was read.
    own_unit: String,
    suppressed_total: Arc<AtomicU64>,
    bytes_read: Arc<AtomicU64>,
}

impl<F: FnMut(Update) -> bool> BatchBuilder<F> {
    fn new(filter: RunFilter, deliver: F, suppressed_total: Arc<AtomicU64>) -> Self {
        let own = match filter.writers {
            WriterFilter::Process(process) => process,
            WriterFilter::Any | WriterFilter::Trusted(_) | WriterFilter::Named { .. } => Origin::own(),
        };
        Self {
            deliver,
            is_listening: true,
            is_live: false,
            batch: Batch::default(),
            batch_bytes: 0,
            newer: NewerRecords::NotSeen,
            filter: EntryFilter::new(filter),
            seen: SeenRecords::default(),
            ignored: HashSet::default(),
            own,
            own_unit: String::new(),
            suppressed_total,
            bytes_read: Arc::default(),
        }
    }

    /// Delivers what waits in the source.
    fn finish(&mut self, source: &mut dyn EntrySource) {
        source.finish(&mut |entry| self.take(entry));
        self.hand_over();
    }

    /// Reads all entries there are, and delivers them.
    fn drain(&mut self, source: &mut dyn EntrySource) -> Result<(), ReadError> {
        let mut more = true;
        while more && self.is_listening {
            let progress = source.poll(&mut |entry| self.take(entry))?;
            more = progress.more;
            self.batch.skipped_bytes += progress.skipped_bytes;
            self.bytes_read.fetch_add(progress.walked_bytes, Ordering::Relaxed);
            self.hand_over();
            if let NewerRecords::Seen(text) = &mut self.newer {
                let text = std::mem::take(text);
                self.newer = NewerRecords::Reported;
                self.deliver(Update::Notice(Level::Warning, text));
            }
        }
        Ok(())
    }

    /// Adds an entry. Most entries of a system's journal are not ours; they cost two look-ups.
    fn take(&mut self, entry: &Entry) {
        if entry.text(&field::KIND.name).is_some() {
            self.add_entry(entry);
        } else if let Some(notice) = SuppressedMessages::of(entry) {
            let at = (entry.boot_id(), entry.realtime_us());
            if self.seen.insert_notice(at, &notice) {
                self.add_suppressed(notice);
            }
        }
        let is_full = self.batch.records.len().max(self.batch.suppressed.len()) == BATCH_RECORDS_MAX;
        if is_full || self.batch_bytes >= BATCH_BYTES_MAX {
            self.hand_over();
        }
    }

    fn add_entry(&mut self, entry: &Entry) {
        let origin = Origin::of(entry);
        match self.filter.admit(&origin, entry) {
            Admission::Admitted => {}
            Admission::OtherRun => return,
            Admission::OtherWriter => return self.ignore(entry),
        }
        match codec::decode(entry) {
            Ok(Some(record)) => {
                if !self.seen.insert(&origin, &record.stamp) {
                    return;
                }
                if record.body == Body::Unknown {
                    self.batch.malformed += 1;
                    let text = "the journal has records that only a newer tlsdash knows; update this one";
                    self.note_newer(text.to_owned());
                }
                if self.batch.writer.origin != origin {
                    self.change_writer(&origin, entry);
                }
                self.batch_bytes += size_of_val(&record) + record.heap_bytes();
                self.batch.records.push(record);
            }
            Ok(None) => {}
            Err(error) => {
                self.batch.malformed += 1;
                if matches!(error, DecodeError::Newer(_)) {
                    self.note_newer(format!("the journal was {error}"));
                }
            }
        }
    }

    fn note_newer(&mut self, message: String) {
        if matches!(self.newer, NewerRecords::NotSeen) {
            self.newer = NewerRecords::Seen(message);
        }
    }

    /// Notes a record of a writer who is not admitted.
    fn ignore(&mut self, entry: &Entry) {
        let RunFilter { writers, range, .. } = self.filter.settings();
        let Some(run) = entry.text(&field::RUN.name).and_then(|id| id.parse().ok()) else { return };
        let realtime_us = entry.realtime_us();
        if matches!(writers, WriterFilter::Process(_)) {
            self.batch.foreign.get_or_insert(ForeignRecords { run, records: 0, realtime_us }).records += 1;
        } else if range.holds(realtime_us) && self.ignored.len() < IGNORED_MAX && self.ignored.insert(run) {
            let writer =
                Writer { is_remote: self.own.is_on_other_machine(&Origin::of(entry)), ..Writer::of(entry) };
            self.deliver(Update::Ignored(run, writer));
        }
    }

    fn change_writer(&mut self, origin: &Origin, entry: &Entry) {
        if !self.batch.records.is_empty() {
            self.hand_over();
        }
        let writer = Writer { is_remote: self.own.is_on_other_machine(origin), ..Writer::of(entry) };
        if writer.origin == self.own {
            self.own_unit.clone_from(&writer.unit);
        }
        self.batch.writer = Arc::new(writer);
    }

    fn add_suppressed(&mut self, notice: SuppressedMessages) {
        if notice.concerns(&self.own, &self.own_unit) {
            self.suppressed_total.fetch_add(notice.dropped, Ordering::Relaxed);
        }
        self.batch.suppressed.push(notice);
    }

    fn hand_over(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let next = Batch { writer: Arc::clone(&self.batch.writer), ..Batch::default() };
        let mut full = std::mem::replace(&mut self.batch, next);
        self.batch_bytes = 0;
        // Monotonic clocks of different boots cannot be compared.
        let is_comparable = full.writer.origin.boot.is_some() && full.writer.origin.boot == self.own.boot;
        let now = self.is_live.then(Timestamps::now);
        full.read_mono_us = now.filter(|_| is_comparable).map(|now| now.monotonic_us);
        full.read_realtime_us = now.map(|now| now.realtime_us);
        self.deliver(Update::Batch(full));
    }

    fn deliver(&mut self, update: Update) {
        self.is_listening = self.is_listening && (self.deliver)(update);
    }
}
