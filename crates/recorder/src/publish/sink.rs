//! Sinks of records: the trait, and a journal file.

use std::path::Path;

use journal::{EntryBuf, FileLoss, FileWriter, WriteError};

use records::codec::{Coverage, encode_as};
use records::kinds::Record;

/// The destination of records.
pub trait Sink {
    /// Accepts one record, or returns why not. It must not wait.
    ///
    /// # Errors
    /// If the record is not in the journal; the same record may be offered again after [`Refusal::Later`].
    fn accept(&mut self, record: &Record, coverage: Coverage) -> Result<(), Refusal>;

    /// Called when there are no further records for now.
    ///
    /// # Errors
    /// If accepted records may not be readable.
    fn flush(&mut self) -> Result<(), String>;
}

/// Keeps all records in memory, without roll-ups.
impl Sink for Vec<Record> {
    fn accept(&mut self, record: &Record, coverage: Coverage) -> Result<(), Refusal> {
        if coverage.is_interval() {
            self.push(record.clone());
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        Ok(())
    }
}

/// Writes records to a journal file.
#[derive(Debug)]
pub struct RecordWriter {
    file: FileWriter,
    entry: EntryBuf,
}

impl RecordWriter {
    /// Returns a writer that appends to this file.
    pub fn new(file: FileWriter) -> Self {
        Self { file, entry: EntryBuf::new() }
    }

    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Appends a record; readers see it after the next [`flush`](Self::flush).
    ///
    /// # Errors
    /// As those of [`FileWriter::append`]: the record was not appended.
    pub fn append(&mut self, record: &Record) -> Result<(), WriteError> {
        self.append_as(record, Coverage::default())
    }

    fn append_as(&mut self, record: &Record, coverage: Coverage) -> Result<(), WriteError> {
        encode_as(record, coverage, &mut self.entry);
        self.file.append(&self.entry, record.stamp.timestamps())
    }

    /// As [`FileWriter::take_loss`].
    pub fn take_loss(&mut self) -> Option<FileLoss> {
        self.file.take_loss()
    }

    /// Writes all appended records.
    ///
    /// # Errors
    /// As those of [`FileWriter::flush`]: the records are kept, and the next flush retries.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.file.flush()
    }

    /// Flushes and closes the file.
    ///
    /// # Errors
    /// As those of [`FileWriter::close`].
    pub fn close(self) -> Result<(), WriteError> {
        self.file.close()
    }
}

impl Sink for RecordWriter {
    fn accept(&mut self, record: &Record, coverage: Coverage) -> Result<(), Refusal> {
        self.append_as(record, coverage).map_err(|error| match error {
            WriteError::Entry { .. } => Refusal::Never(error.to_string()),
            error => Refusal::Later(error.to_string()),
        })
    }

    fn flush(&mut self) -> Result<(), String> {
        self.file.flush().map_err(|error| error.to_string())
    }
}

/// Why a journal does not accept a record, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// It may take the record, or any other, later: a full disk, a journald that is busy or away.
    #[error("{0}")]
    Later(String),
    /// It will never take this record; others it may.
    #[error("{0}")]
    Never(String),
}
