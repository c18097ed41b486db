//! Placeholder of the writer: the shape of its interface.
use std::path::{Path, PathBuf};

use crate::{EntryBuf, Timestamps, WriteError, process_fields};

/// How a journal file is written.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// The size in bytes above which a file is archived and the next begun.
    pub size_max: u64,
    /// Fields that are added to every entry.
    pub common: EntryBuf,
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { size_max: 128 << 20, common: process_fields() }
    }
}

/// Writes one journal file, and archives it when it is full.
#[derive(Debug)]
pub struct FileWriter {
    path: PathBuf,
}

impl FileWriter {
    /// Creates the file; one that exists is archived beside.
    pub fn create(path: &Path, _options: FileOptions) -> Result<Self, WriteError> {
        Ok(Self { path: path.to_owned() })
    }

    /// Appends an entry to the batch. On an error the entry was not taken.
    pub fn append(&mut self, _entry: &EntryBuf, _at: Timestamps) -> Result<(), WriteError> {
        Ok(())
    }

    /// Writes the batch: afterwards every reader sees it, and waiting ones are woken.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    /// Flushes, marks the file as complete and syncs it to the disk.
    pub fn close(self) -> Result<(), WriteError> {
        Ok(())
    }

    /// Gives the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives the size of the current file in bytes, what is not flushed yet included.
    pub fn size_bytes(&self) -> u64 {
        0
    }
}
