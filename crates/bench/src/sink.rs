//! A journal file as a place for records, as the program's own sink makes one.

use std::path::Path;

use journal::{EntryBuf, FileOptions, FileWriter, Timestamps};
use telemetry::{Record, Refusal, Sink};

use crate::Result;

/// As the program's own files are bounded.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Writes records to a journal file.
#[derive(Debug)]
pub struct FileSink {
    writer: Box<FileWriter>,
    entry: EntryBuf,
}

impl FileSink {
    /// Begins a file, as the program does.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn create(path: &Path) -> Result<Self> {
        let options = FileOptions { size_max: FILE_BYTES_MAX, ..FileOptions::default() };
        Ok(Self { writer: Box::new(FileWriter::create(path, options)?), entry: EntryBuf::new() })
    }

    /// Ends the file in order.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn close(self) -> Result<()> {
        Ok(self.writer.close()?)
    }
}

impl Sink for FileSink {
    fn accept(&mut self, record: &Record) -> std::result::Result<(), Refusal> {
        telemetry::encode(record, &mut self.entry);
        let at = Timestamps { realtime_us: record.stamp.realtime_us, monotonic_us: record.stamp.mono_us };
        self.writer.append(&self.entry, at).map_err(|error| Refusal::Never(error.to_string()))
    }

    fn flush(&mut self) -> std::result::Result<(), String> {
        self.writer.flush().map_err(|error| error.to_string())
    }
}
