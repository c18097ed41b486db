//! Frames on their way to the terminal, each in one piece, written by a thread of their own.
//!
//! A terminal may take a frame slowly, or not at all: behind a slow line, or stopped by Ctrl-S. Then frames are left out,
//! and reading, keys and the end of the program go on.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use crate::channel::Message;
use crate::terminal::lock_taken;

/// Asks the terminal to show nothing until the frame is whole; one that does not know it ignores it. See "Terminal
/// Spec: Synchronized Output", contour-terminal.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";
/// Pieces that wait to be written at the most: a frame, and what ratatui writes around it.
const PIECES_MAX: usize = 32;

/// What both ends know.
#[derive(Debug, Default)]
struct Shared {
    /// Pieces handed over and not written yet.
    pending: AtomicUsize,
    /// Once set, everything is swallowed.
    closed: AtomicBool,
    /// Why the last piece was not written. A mutex, since an error is no atomic; it is held for a moment only.
    failure: Mutex<Option<io::Error>>,
}

/// How the terminal gets along.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress(Arc<Shared>);

impl Progress {
    /// True while it has not taken what was written last.
    pub(crate) fn is_busy(&self) -> bool {
        self.0.pending.load(Ordering::Acquire) > 0
    }

    /// Why it could not be written to, once.
    pub(crate) fn failure(&self) -> Option<io::Error> {
        self.0.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Swallows everything from now on.
    pub(crate) fn close(&self) {
        self.0.closed.store(true, Ordering::Relaxed);
    }
}

/// Gathers a frame and hands it over when it is flushed. What was never flushed is never written: half a frame must not
/// follow the terminal's restoration.
#[derive(Debug)]
pub(crate) struct Output {
    frame: Vec<u8>,
    pieces: SyncSender<Vec<u8>>,
    progress: Progress,
}

impl Output {
    /// Writes to standard output, and tells `messages` if that is gone.
    pub(crate) fn open(progress: Progress, messages: SyncSender<Message>) -> io::Result<Self> {
        // Not `Stdout`: its line buffer of a kilobyte would cut every frame into many writes.
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        let (pieces, handed) = sync_channel(PIECES_MAX);
        let writer = Writer { file, progress: progress.clone(), messages };
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

/// The thread's end.
struct Writer {
    file: File,
    progress: Progress,
    messages: SyncSender<Message>,
}

impl Writer {
    fn run(mut self, handed: &Receiver<Vec<u8>>) {
        while let Ok(piece) = handed.recv() {
            let shared = &self.progress.0;
            // Whoever writes to the terminal holds it, so that it is not given back within a frame.
            let taken = lock_taken();
            let written = if *taken && !shared.closed.load(Ordering::Relaxed) {
                self.file.write_all(&piece)
            } else {
                Ok(())
            };
            drop(taken);
            if let Err(error) = written {
                *shared.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                // The next frame finds it too, should the queue be full.
                let _ = self.messages.try_send(Message::NotWritten);
            }
            shared.pending.fetch_sub(1, Ordering::AcqRel);
        }
    }
}
