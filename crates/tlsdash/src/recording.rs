//! A second copy of all records of a run, in a file of its own: `--record`, and the key `R`.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use journal::WriteError;
use telemetry::model::Level;
use telemetry::{Baseline, Record, RecordWriter, RunSlice, Update, Writer};
use tui::{Event, Sender};

use crate::args::usage;
use crate::state_directory;

/// A recording that is being made. What befalls it is told, and the run goes on without it.
#[derive(Debug)]
pub(crate) struct Recording {
    writer: RecordWriter,
    events: Sender,
    /// What makes a run of its own of one that is recorded from its middle on.
    slice: Option<RunSlice>,
    /// Records that it lacks.
    missing: u64,
    /// Records that the writer holds, and the disk does not yet.
    waiting: u64,
    /// Whether a record was refused since the last attempt to write what waits.
    has_refused: bool,
    /// Whether the last attempt to write failed.
    is_failing: bool,
}

/// What is wanted of the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    path: PathBuf,
    /// What is there already goes beside it as an archive, of which it is the continuation.
    appends: bool,
}

impl Place {
    /// Finds out, before anything is started, whether a recording may be called so.
    ///
    /// # Errors
    /// If the file exists and is not to be continued, or is not called so that journalctl reads it.
    pub(crate) fn check(path: &Path, appends: bool) -> anyhow::Result<Self> {
        let place = Self { path: path.to_owned(), appends };
        place.look()?;
        Ok(place)
    }

    fn look(&self) -> anyhow::Result<()> {
        if self.appends { check_name("--record", &self.path) } else { check_new("--record", &self.path) }
    }

    /// One in the working directory, named after the time.
    pub(crate) fn of_now() -> Self {
        let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
        let path = format!("tlsdash-{}.journal", now.replace(['-', ':'], ""));
        let path = std::env::current_dir().unwrap_or_default().join(path);
        Self { path, appends: false }
    }
}

/// Refuses a file that exists, or is not called so that journalctl reads it; `what` names the word that asked for it.
pub(crate) fn check_new(what: &str, path: &Path) -> anyhow::Result<()> {
    check_name(what, path)?;
    if path.exists() {
        let reason = "it exists, and a recording is not to be lost; name another file";
        return Err(usage(format!("{what} {}: {reason}", path.display())));
    }
    Ok(())
}

fn check_name(what: &str, path: &Path) -> anyhow::Result<()> {
    if path.extension().is_none_or(|extension| extension != "journal") {
        let reason = "the file's name must end in .journal, so that journalctl reads it";
        return Err(usage(format!("{what} {}: {reason}", path.display())));
    }
    Ok(())
}

impl Recording {
    /// Begins a recording.
    ///
    /// # Errors
    /// If the file exists by now, or cannot be begun.
    pub(crate) fn create(place: &Place, events: Sender) -> anyhow::Result<Self> {
        place.look()?;
        let path = &place.path;
        let file =
            state_directory::create_named(path).with_context(|| format!("--record {}", path.display()))?;
        let recording = Self {
            writer: RecordWriter::new(file),
            events,
            slice: None,
            missing: 0,
            waiting: 0,
            has_refused: false,
            is_failing: false,
        };
        recording.tell(telemetry::Recording::Written);
        Ok(recording)
    }

    /// Makes it begin with a run that stands so.
    pub(crate) fn following(self, baseline: Baseline) -> Self {
        Self { slice: Some(RunSlice::following(baseline)), ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        self.writer.path()
    }

    pub(crate) fn append(&mut self, record: &Record) {
        let Some(slice) = &mut self.slice else { return self.write(record) };
        let mut records = Vec::new();
        slice.take(&Writer::default(), record.clone(), &mut records);
        for record in &records {
            self.write(record);
        }
    }

    fn write(&mut self, record: &Record) {
        match self.writer.append(record) {
            Ok(()) => self.waiting += 1,
            Err(error) => {
                self.missing += 1;
                self.has_refused = true;
                self.fails(&error);
            }
        }
    }

    pub(crate) fn flush(&mut self) {
        match self.writer.flush() {
            Ok(()) => self.waiting = 0,
            Err(error) => return self.fails(&error),
        }
        // What the writer took while it refused something else says nothing yet.
        if !std::mem::take(&mut self.has_refused) {
            self.goes_on();
        }
    }

    /// Says it once an episode.
    fn fails(&mut self, error: &WriteError) {
        if !std::mem::replace(&mut self.is_failing, true) {
            self.tell(telemetry::Recording::Failing);
            self.notice(Level::Warning, format!("not recording: {error}"));
        }
    }

    fn goes_on(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            self.tell(telemetry::Recording::Written);
            let lacks = match self.missing {
                0 => "nothing is missing".to_owned(),
                missing => format!("{missing} records are missing"),
            };
            self.notice(
                Level::Notice,
                format!("recording again into {}; {lacks}", self.writer.path().display()),
            );
        }
    }

    fn notice(&self, level: Level, text: String) {
        // Only fails once nobody watches any more.
        let _ = self.events.send(Event::Update(Update::Notice(level, text)));
    }

    fn tell(&self, how: telemetry::Recording) {
        let _ = self.events.send(Event::Update(Update::Recording(how)));
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// In words, if something is missing in it.
    pub(crate) fn close(mut self) -> Result<(), String> {
        if let Some(mut slice) = self.slice.take() {
            let mut last = Vec::new();
            slice.close(&mut last);
            for record in &last {
                self.write(record);
            }
        }
        self.tell(telemetry::Recording::Ended);
        let Self { writer, missing, waiting, .. } = self;
        let path = writer.path().display().to_string();
        let lacks = |records: u64| format!("--record {path}: {records} records are not in it");
        match writer.close() {
            Ok(()) if missing == 0 => Ok(()),
            Ok(()) => Err(lacks(missing)),
            Err(error) => Err(format!("{}: {error}", lacks(missing + waiting))),
        }
    }
}
