//! Writes frames to the terminal on a thread of its own, each in one write.
//!
//! A terminal may read slowly, or not at all: over a slow line, or after Ctrl-S. Then frames are dropped,
//! while reading, keys and the exit of the program continue.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use crate::options::channel::Message;

/// Asks the terminal to show a frame only when it is complete; others ignore it. See "Terminal Spec:
/// Synchronized Output", contour-terminal.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
/// The maximum number of queued pieces: a frame, and what ratatui writes around it.
const PIECES_MAX: usize = 32;

/// Whether the dashboard holds the terminal. It is global, like the terminal.
///
/// A mutex, since a panic on any thread restores the terminal while the dashboard may be writing a frame: a
/// thread that writes to the terminal holds it.
pub(super) static TAKEN: Mutex<bool> = Mutex::new(false);

pub(super) fn lock_taken() -> MutexGuard<'static, bool> {
    TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The state shared by both ends.
#[derive(Debug, Default)]
struct OutputState {
    pending: AtomicUsize,
    /// If set, all output is discarded.
    closed: AtomicBool,
    /// The error of the last write. A mutex, since an error cannot be atomic; it is held only briefly.
    failure: Mutex<Option<io::Error>>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<OutputState>);

impl Progress {
    /// Returns whether the last output is still being written.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.pending.load(Ordering::Acquire) > 0
    }

    /// Returns the last write error, once.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Discards all output from now on.
    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::Relaxed);
    }
}

/// Collects a frame and queues it on flush. Output that is not flushed is never written: half a frame must
/// not follow the restoration of the terminal.
#[derive(Debug)]
pub(crate) struct Output {
    frame: Vec<u8>,
    pieces: SyncSender<Vec<u8>>,
    progress: Progress,
}

impl Output {
    /// Writes to standard output; sends an event to `messages` if it is closed.
    pub(crate) fn open(progress: Progress, messages: SyncSender<Message>) -> io::Result<Self> {
        // `Stdout` has a line buffer of a kilobyte, which would split every frame into many writes.
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let (pieces, handed) = sync_channel(PIECES_MAX);
        let writer = TerminalWriter { file, progress: progress.clone(), messages };
        thread::Builder::new().name("dashboard-out".to_owned()).spawn(move || writer.run(&handed))?;
        Ok(Self { frame: BEGIN.to_vec(), pieces, progress })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.frame.len() == BEGIN.len() {
            return Ok(());
        }
        self.frame.extend_from_slice(END);
        let piece = std::mem::replace(&mut self.frame, BEGIN.to_vec());
        self.progress.0.pending.fetch_add(1, Ordering::AcqRel);
        if self.pieces.send(piece).is_err() {
            self.progress.0.pending.fetch_sub(1, Ordering::AcqRel);
        }
        Ok(())
    }
}

struct TerminalWriter {
    file: File,
    progress: Progress,
    messages: SyncSender<Message>,
}

impl TerminalWriter {
    fn run(mut self, handed: &Receiver<Vec<u8>>) {
        while let Ok(piece) = handed.recv() {
            let shared = &self.progress.0;
            // A writer holds the lock, so that the terminal is not restored within a frame.
            let taken = lock_taken();
            let written = if *taken && !shared.closed.load(Ordering::Relaxed) {
                self.file.write_all(&piece)
            } else {
                Ok(())
            };
            drop(taken);
            if let Err(error) = written {
                *shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                // If the queue is full, the next frame reports the error.
                let _ = self.messages.try_send(Message::NotWritten);
            }
            shared.pending.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
