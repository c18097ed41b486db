//! `--record`: a second copy of all records of a run, in a file of its own.

use std::path::Path;

use anyhow::Context;
use journal::{EntryBuf, FileWriter, Timestamps, WriteError};
use telemetry::model::Level;
use telemetry::{Record, Update};
use tui::{Event, Sender};

use crate::args::usage;
use crate::state_directory;

/// A recording that is being made. What befalls it is told, and the run goes on without it.
#[derive(Debug)]
pub(crate) struct Recording {
    writer: FileWriter,
    entry: EntryBuf,
    events: Sender,
    /// Records that it lacks.
    missing: u64,
    /// Whether the last attempt to write failed.
    is_failing: bool,
}

impl Recording {
    /// Finds out, before anything is started, whether a recording may be called so.
    ///
    /// # Errors
    /// If the file exists, or is not called so that journalctl reads it.
    pub(crate) fn check(path: &Path) -> anyhow::Result<()> {
        Self::check_as("--record", path)
    }

    /// The same for another file that is to hold records; `what` names the word that asked for it.
    ///
    /// # Errors
    /// As those of [`Self::check`].
    pub(crate) fn check_as(what: &str, path: &Path) -> anyhow::Result<()> {
        if path.extension().is_none_or(|extension| extension != "journal") {
            let reason = "the file's name must end in .journal, so that journalctl reads it";
            return Err(usage(format!("{what} {}: {reason}", path.display())));
        }
        if path.exists() {
            let reason = "it exists, and a recording is not to be lost; name another file";
            return Err(usage(format!("{what} {}: {reason}", path.display())));
        }
        Ok(())
    }

    /// Begins a recording.
    ///
    /// # Errors
    /// If the file exists by now, or cannot be begun.
    pub(crate) fn create(path: &Path, events: Sender) -> anyhow::Result<Self> {
        Self::check(path)?;
        let writer =
            state_directory::create_named(path).with_context(|| format!("--record {}", path.display()))?;
        Ok(Self { writer, entry: EntryBuf::new(), events, missing: 0, is_failing: false })
    }

    pub(crate) fn append(&mut self, record: &Record) {
        telemetry::encode(record, &mut self.entry);
        let at = Timestamps { realtime_us: record.stamp.realtime_us, monotonic_us: record.stamp.mono_us };
        let written = self.writer.append(&self.entry, at);
        self.missing += u64::from(written.is_err());
        self.note(&written);
    }

    pub(crate) fn flush(&mut self) {
        let flushed = self.writer.flush();
        self.note(&flushed);
    }

    /// Says once an episode that it fails, and when it goes on.
    fn note(&mut self, result: &Result<(), WriteError>) {
        let path = self.writer.path().display();
        let (level, text) = match result {
            Err(error) if !self.is_failing => (Level::Warning, format!("not recording: {error}")),
            Ok(()) if self.is_failing => {
                (Level::Notice, format!("recording again; {path} lacks {} records", self.missing))
            }
            _ => return,
        };
        self.is_failing = result.is_err();
        // Only fails once nobody watches any more.
        let _ = self.events.send(Event::Update(Update::Notice(level, text)));
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// In words, if something is missing in it.
    pub(crate) fn close(self) -> Result<(), String> {
        let Self { writer, missing, .. } = self;
        let path = writer.path().display().to_string();
        writer.close().map_err(|error| format!("--record {path}: {error}"))?;
        if missing > 0 { Err(format!("--record {path}: {missing} records are not in it")) } else { Ok(()) }
    }
}
