//! Follows a journal on a thread of its own and hands on what it says.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;

use journal::{ReadError, Start, Tail, Timestamps};

use crate::codec;
use crate::model::Level;
use crate::update::{BATCH_RECORDS_MAX, Batch, Update};
use crate::wire::DecodeError;

/// How often the journal is looked at. `journalctl -f` may be told of news only every 250 ms; polling is sooner.
const POLL: Duration = Duration::from_millis(20);

/// A thread that follows a journal.
#[derive(Debug)]
pub struct Follower {
    ending: Arc<AtomicBool>,
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
    /// Follows the journal at `path`. `deliver` runs on the follower's thread and may block; it returns false to
    /// end it.
    ///
    /// # Errors
    /// When the journal cannot be opened.
    pub fn start(
        path: &Path,
        start: Start,
        deliver: impl FnMut(Update) -> bool + Send + 'static,
    ) -> Result<Self, FollowError> {
        let ending = Arc::new(AtomicBool::new(false));
        let (opened, result) = sync_channel(1);
        let (path, stop) = (path.to_owned(), Arc::clone(&ending));
        // The reader is not `Send`: it is made on the thread that uses it.
        let thread = std::thread::Builder::new()
            .name("dashboard-tail".into())
            .spawn(move || run(&path, start, &stop, &opened, deliver))?;
        match result.recv() {
            Ok(Ok(())) => Ok(Self { ending, thread }),
            Ok(Err(error)) => Err(error.into()),
            Err(_) => Err(io::Error::other("it ended before it began").into()),
        }
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
    path: &Path,
    start: Start,
    ending: &AtomicBool,
    opened: &SyncSender<Result<(), ReadError>>,
    mut deliver: impl FnMut(Update) -> bool,
) {
    let mut tail = match Tail::open(path, start) {
        Ok(tail) => tail,
        Err(error) => {
            let _ = opened.send(Err(error));
            return;
        }
    };
    let _ = opened.send(Ok(()));
    let mut live = false;
    let mut failing = false;
    let mut newer = Newer::NotMet;
    loop {
        // Read before polling: what was written before the end was asked for must still be delivered.
        let last = ending.load(Ordering::Acquire);
        let (idle, error) = match drain(&mut tail, live, &mut newer, &mut deliver) {
            Ok(Drained::Gone) => return,
            Ok(Drained::Idle) => (true, None),
            Err(error) => (true, Some(error)),
        };
        if let Some(error) = &error
            && !failing
            && !deliver(Update::Notice(Level::Warning, error.to_string()))
        {
            return;
        }
        failing = error.is_some();
        if idle && !live && !failing {
            live = true;
            if !deliver(Update::CaughtUp) {
                return;
            }
        }
        if last {
            return;
        }
        std::thread::sleep(POLL);
    }
}

enum Drained {
    /// Nothing more to read now.
    Idle,
    /// Nobody listens any more.
    Gone,
}

/// Whether records of a later version were met: that they are malformed would be no help.
enum Newer {
    NotMet,
    Met(DecodeError),
    Told,
}

fn drain(
    tail: &mut Tail,
    live: bool,
    newer: &mut Newer,
    deliver: &mut impl FnMut(Update) -> bool,
) -> Result<Drained, ReadError> {
    loop {
        let mut batch = Batch::default();
        let mut listening = true;
        let progress = tail.poll(|entry| {
            match codec::decode(entry) {
                Ok(Some(record)) => batch.records.push(record),
                Ok(None) => {}
                Err(error) => {
                    batch.malformed += 1;
                    if matches!((&error, &*newer), (DecodeError::Newer(_), Newer::NotMet)) {
                        *newer = Newer::Met(error);
                    }
                }
            }
            if listening && batch.records.len() == BATCH_RECORDS_MAX {
                listening = hand_over(&mut batch, live, deliver);
            }
        })?;
        batch.skipped_bytes = progress.skipped_bytes;
        if !listening || !(batch.is_empty() || hand_over(&mut batch, live, deliver)) {
            return Ok(Drained::Gone);
        }
        if let Newer::Met(error) = newer {
            let told = deliver(Update::Notice(Level::Warning, format!("the journal was {error}")));
            *newer = Newer::Told;
            if !told {
                return Ok(Drained::Gone);
            }
        }
        if !progress.more {
            return Ok(Drained::Idle);
        }
    }
}

fn hand_over(batch: &mut Batch, live: bool, deliver: &mut impl FnMut(Update) -> bool) -> bool {
    let mut full = std::mem::take(batch);
    full.read_mono_us = live.then(|| Timestamps::now().monotonic_us);
    deliver(Update::Batch(full))
}
