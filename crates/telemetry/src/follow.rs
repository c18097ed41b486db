//! Follows a journal on a thread of its own and hands on what it says.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use journal::{Entry, ReadError, Tail, Timestamps};

use crate::codec;
use crate::model::Level;
use crate::origin::{Origin, Suppressed, Writer};
use crate::update::{BATCH_RECORDS_MAX, Batch, Update};
use crate::wire::DecodeError;

/// How often the journal is looked at. `journalctl -f` may be told of news only every 250 ms; polling is sooner.
const POLL: Duration = Duration::from_millis(20);

/// A thread that follows a journal.
#[derive(Debug)]
pub struct Follower {
    ending: Arc<AtomicBool>,
    suppressed_total: Arc<AtomicU64>,
    walked_bytes: Arc<AtomicU64>,
    thread: JoinHandle<()>,
}

/// Why a journal cannot be followed.
#[derive(Debug, thiserror::Error)]
pub enum FollowError {
    /// The journal cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The thread cannot be started.
    #[error("cannot start the thread that follows the journal: {0}")]
    Thread(#[from] io::Error),
}

impl Follower {
    /// Follows the journal that `open` opens. Both run on the follower's thread, since a tail cannot leave the one
    /// that it was opened on. `deliver` may block; it returns false to end the follower.
    ///
    /// # Errors
    /// When the journal cannot be opened.
    pub fn start(
        open: impl FnOnce() -> Result<Tail, ReadError> + Send + 'static,
        deliver: impl FnMut(Update) -> bool + Send + 'static,
    ) -> Result<Self, FollowError> {
        let ending = Arc::new(AtomicBool::new(false));
        let suppressed_total = Arc::new(AtomicU64::new(0));
        let (opened, result) = sync_channel(1);
        let stop = Arc::clone(&ending);
        let desk = Desk::new(deliver, Arc::clone(&suppressed_total));
        let walked_bytes = Arc::clone(&desk.walked_bytes);
        let thread = std::thread::Builder::new()
            .name("dashboard-tail".into())
            .spawn(move || run(open, &opened, &stop, desk))?;
        match result.recv() {
            Ok(Ok(())) => Ok(Self { ending, suppressed_total, walked_bytes, thread }),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(io::Error::other("it ended before it began").into()),
        }
    }

    /// Messages of this very process, or its unit, that journald says it dropped: for
    /// [`Publisher::note_suppressed`](crate::Publisher::note_suppressed). It stays readable after the end.
    ///
    /// The process is known by its number, so in a PID namespace other than journald's this stays at nothing; a reader
    /// still counts them by the run.
    pub fn suppressed_total(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.suppressed_total)
    }

    /// How far it has come through the files of the journal, in bytes.
    pub fn walked_bytes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.walked_bytes)
    }

    /// Reads what the journal holds now, delivers it, and ends.
    pub fn finish(self) {
        self.ending.store(true, Ordering::Release);
        // A panic there has been reported by the panic hook; here it only means that nothing more is delivered.
        let _ = self.thread.join();
    }

    /// True once the follower has ended by itself.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

fn run(
    open: impl FnOnce() -> Result<Tail, ReadError>,
    opened: &SyncSender<Result<(), ReadError>>,
    ending: &AtomicBool,
    mut desk: Desk<impl FnMut(Update) -> bool>,
) {
    let mut tail = match open() {
        Ok(tail) => tail,
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    let _ = opened.send(Ok(()));
    let mut failing = false;
    while desk.is_listening {
        // Read before polling: what was written before the end was asked for must still be delivered.
        let last = ending.load(Ordering::Acquire);
        let error = desk.drain(&mut tail).err();
        if let Some(error) = &error
            && !failing
        {
            desk.deliver(Update::Notice(Level::Warning, error.to_string()));
        }
        failing = error.is_some();
        if !desk.is_live && !failing {
            desk.is_live = true;
            desk.deliver(Update::CaughtUp);
        }
        if last {
            return;
        }
        std::thread::sleep(POLL);
    }
}

/// Whether records of a later version were met: that they are malformed would be no help.
enum Newer {
    NotMet,
    Met(DecodeError),
    Told,
}

/// Sorts entries into batches and hands these over.
struct Desk<F> {
    deliver: F,
    /// False once nobody wants to be told anything.
    is_listening: bool,
    /// True once all that was there at first has been read.
    is_live: bool,
    batch: Batch,
    newer: Newer,
    own: Origin,
    /// The unit of this process, once one of its records was read.
    own_unit: String,
    suppressed_total: Arc<AtomicU64>,
    walked_bytes: Arc<AtomicU64>,
}

impl<F: FnMut(Update) -> bool> Desk<F> {
    fn new(deliver: F, suppressed_total: Arc<AtomicU64>) -> Self {
        Self {
            deliver,
            is_listening: true,
            is_live: false,
            batch: Batch::default(),
            newer: Newer::NotMet,
            own: Origin::own(),
            own_unit: String::new(),
            suppressed_total,
            walked_bytes: Arc::default(),
        }
    }

    /// Reads all there is, and delivers it.
    fn drain(&mut self, tail: &mut Tail) -> Result<(), ReadError> {
        let mut more = true;
        while more && self.is_listening {
            let progress = tail.poll(|entry| self.take(entry))?;
            more = progress.more;
            self.batch.skipped_bytes += progress.skipped_bytes;
            self.walked_bytes.fetch_add(progress.walked_bytes, Ordering::Relaxed);
            self.hand_over();
            if let Newer::Met(error) = &self.newer {
                let text = format!("the journal was {error}");
                self.newer = Newer::Told;
                self.deliver(Update::Notice(Level::Warning, text));
            }
        }
        Ok(())
    }

    /// Sorts an entry in. Most entries of a system's journal are not ours: those cost two look-ups.
    fn take(&mut self, entry: &Entry) {
        match codec::decode(entry) {
            Ok(Some(record)) => {
                if !self.batch.writer.wrote(entry) {
                    self.hand_over();
                    self.change_writer(Writer::of(entry));
                }
                self.batch.records.push(record);
            }
            Ok(None) => {
                if let Some(notice) = Suppressed::of(entry) {
                    self.take_notice(notice);
                }
            }
            Err(error) => {
                self.batch.malformed += 1;
                if matches!((&error, &self.newer), (DecodeError::Newer(_), Newer::NotMet)) {
                    self.newer = Newer::Met(error);
                }
            }
        }
        if self.batch.records.len().max(self.batch.suppressed.len()) == BATCH_RECORDS_MAX {
            self.hand_over();
        }
    }

    fn change_writer(&mut self, writer: Writer) {
        if writer.origin == self.own {
            self.own_unit.clone_from(&writer.unit);
        }
        self.batch.writer = Arc::new(writer);
    }

    fn take_notice(&mut self, notice: Suppressed) {
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
        // The monotonic clock of another boot says nothing here.
        let is_comparable = full.writer.origin.boot.is_some() && full.writer.origin.boot == self.own.boot;
        full.read_mono_us = (self.is_live && is_comparable).then(|| Timestamps::now().monotonic_us);
        self.deliver(Update::Batch(full));
    }

    fn deliver(&mut self, update: Update) {
        self.is_listening = self.is_listening && (self.deliver)(update);
    }
}
