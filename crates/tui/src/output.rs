//! Frames on their way to the terminal, each in one piece.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks the terminal to show nothing until the frame is whole; one that does not know it ignores it. See "Terminal
/// Spec: Synchronized Output", contour-terminal.
const BEGIN: &[u8] = b"\x1b[?2026h";
const END: &[u8] = b"\x1b[?2026l";

/// Gathers a frame and writes it when it is flushed. What was never flushed is never written: half a frame must not
/// follow the terminal's restoration.
#[derive(Debug)]
pub(crate) struct Output {
    // Not `Stdout`: its line buffer of a kilobyte would cut every frame into many writes.
    file: File,
    frame: Vec<u8>,
    /// Once set, everything is swallowed.
    closed: Arc<AtomicBool>,
}

impl Output {
    /// Writes to standard output.
    pub(crate) fn open(closed: Arc<AtomicBool>) -> io::Result<Self> {
        let file = File::from(io::stdout().as_fd().try_clone_to_owned()?);
        Ok(Self { file, frame: BEGIN.to_vec(), closed })
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.frame.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.closed.load(Ordering::Relaxed) || self.frame.len() == BEGIN.len() {
            return Ok(());
        }
        self.frame.extend_from_slice(END);
        let written = self.file.write_all(&self.frame);
        self.frame.truncate(BEGIN.len());
        written
    }
}
