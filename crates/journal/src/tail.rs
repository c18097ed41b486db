//! Placeholder of the tail: the shape of its interface.
use std::path::{Path, PathBuf};

use crate::ReadError;

/// One entry that was read.
#[derive(Debug)]
pub struct Entry {
    inner: systemd_journal_reader::Entry,
}

impl Entry {
    /// Gives the time of the entry by the realtime clock, in microseconds since 1970-01-01 UTC.
    pub fn realtime_us(&self) -> u64 {
        self.inner.realtime
    }

    /// Gives the value of a field.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.inner.fields.get(name).map(|value| &**value)
    }

    /// Gives the bytes of a field's value.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.text(name).map(str::as_bytes)
    }

    /// Iterates over all fields, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.inner.fields.iter().map(|(name, value)| (&**name, value.as_bytes()))
    }
}

/// Where a tail begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// With the oldest archive beside the file.
    Oldest,
    /// With the first entry of the file.
    File,
    /// With what is written from now on.
    End,
}

/// What the header of a journal file says of its writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Closed.
    Offline,
    /// Being written, or its writer was killed.
    Online,
    /// Closed for good: a later file continues it.
    Archived,
}

/// What one poll found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Entries that were handed out.
    pub entries: u64,
    /// There is more to read now; the poll ended because it had done enough.
    pub more: bool,
    /// How often the tail went on to a later file.
    pub rotations: u64,
    /// Bytes that could not be read, because they are damaged.
    pub skipped_bytes: u64,
    /// The state of the file that is being read.
    pub writer: FileState,
}

/// Follows a journal file.
#[derive(Debug)]
pub struct Tail {
    _path: PathBuf,
}

impl Tail {
    /// Opens the file.
    pub fn open(path: &Path, _start: Start) -> Result<Self, ReadError> {
        Ok(Self { _path: path.to_owned() })
    }

    /// Hands out what is complete now, and never waits for more.
    pub fn poll(&mut self, _each: impl FnMut(&Entry)) -> Result<Progress, ReadError> {
        Ok(Progress { entries: 0, more: false, rotations: 0, skipped_bytes: 0, writer: FileState::Online })
    }
}
