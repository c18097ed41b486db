//! A copy of a run's records, in a separate file: `--record`, and the key `R`.

pub(crate) mod run_recorder;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Context;
use journal::WriteError;
use model::history::Update;
use model::runs::Level;
use recorder::publish::RecordWriter;
use records::codec::Writer;
use records::kinds::Record;
use records::slice::{RunSlice, SliceBaseline, TimeRange};
use tui::{DashboardSender, Event};

use crate::error::usage;
use crate::journals::state_directory;

/// A recording in progress. If it fails, the run continues, and a notice reports it.
#[derive(Debug)]
pub(crate) struct ActiveRecording {
    writer: RecordWriter,
    events: DashboardSender,
    /// For a recording that begins in mid-run: rebases the records.
    slice: Option<RunSlice>,
    /// Records that could not be written.
    missing: u64,
    /// Records that the writer has buffered.
    waiting: u64,
    /// Whether a record was refused since the last flush.
    has_refused: bool,
    is_failing: bool,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordingError {
    #[error("--record {}: {records} records are not in it", path.display())]
    Incomplete { path: PathBuf, records: u64 },
    /// It could not be ended in order.
    #[error("--record {}: {records} records are not in it: {error}", path.display())]
    Close { path: PathBuf, records: u64, error: WriteError },
}

/// The file to record into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingFile {
    path: PathBuf,
    /// An existing file becomes an archive beside it, and the recording continues that.
    appends: bool,
}

impl RecordingFile {
    /// Checks the path before anything is started.
    ///
    /// # Errors
    /// When the file exists without `--append`, its name does not end in `.journal`, or its folder cannot be used.
    pub(crate) fn check(path: &Path, appends: bool) -> anyhow::Result<Self> {
        let place = Self { path: path.to_owned(), appends };
        place.look()?;
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let found = folder.map(std::fs::metadata).transpose();
        found.with_context(|| format!("--record {}: cannot use its folder", path.display()))?;
        Ok(place)
    }

    fn look(&self) -> anyhow::Result<()> {
        if self.appends { check_name("--record", &self.path) } else { check_new("--record", &self.path) }
    }

    /// A file that must not exist; a relative path begins in the working directory.
    pub(crate) fn new_at(path: &Path) -> Self {
        Self { path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()), appends: false }
    }
}

/// A path in the working directory, named after the present time.
pub(crate) fn file_of_now(extension: &str) -> PathBuf {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let name = format!("tlsdash-{}.{extension}", now.replace(['-', ':'], ""));
    std::env::current_dir().unwrap_or_default().join(name)
}

/// Refuses a file that exists, or whose name does not end in `.journal`. `what` is the flag or command that asked.
pub(crate) fn check_new(what: &str, path: &Path) -> anyhow::Result<()> {
    check_name(what, path)?;
    if path.exists() {
        let reason = "it exists, and recordings are never overwritten; name another file";
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

impl ActiveRecording {
    /// Begins a recording.
    ///
    /// # Errors
    /// If the file now exists, or cannot be created.
    pub(crate) fn create(place: &RecordingFile, events: DashboardSender) -> anyhow::Result<Self> {
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
        recording.tell(model::history::RecordingStatus::Written);
        Ok(recording)
    }

    /// Begins the recording with the present state of the run and its parts.
    pub(crate) fn following(self, baselines: Vec<SliceBaseline>) -> Self {
        Self { slice: Some(RunSlice::following(baselines)), ..self }
    }

    /// Records a time range of a run that is read from a journal.
    pub(crate) fn within(self, range: TimeRange) -> Self {
        Self { slice: Some(RunSlice::new(range)), ..self }
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
        let appended = self.writer.append(record);
        if let Some(loss) = self.writer.take_loss() {
            self.missing += loss.entries_lost();
            self.notice(Level::Warning, format!("{loss}; the recording goes on in a new file"));
        }
        match appended {
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
        // The writer may accept one record and refuse the next: only a flush without a refusal is a recovery.
        if !std::mem::take(&mut self.has_refused) {
            self.goes_on();
        }
    }

    /// Reports a failure of writing once, until it works again.
    fn fails(&mut self, error: &WriteError) {
        if !std::mem::replace(&mut self.is_failing, true) {
            self.tell(model::history::RecordingStatus::Failing);
            self.notice(Level::Warning, format!("not recording: {error}"));
        }
    }

    fn goes_on(&mut self) {
        if std::mem::take(&mut self.is_failing) {
            self.tell(model::history::RecordingStatus::Written);
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
        // Only fails once the front end has ended.
        let _ = self.events.send(Event::Update(Update::Notice(level, text)));
    }

    fn tell(&self, how: model::history::RecordingStatus) {
        let _ = self.events.send(Event::Update(Update::Recording(how)));
    }

    /// Ends it in order.
    ///
    /// # Errors
    /// When records are missing.
    pub(crate) fn close(mut self) -> Result<(), RecordingError> {
        if let Some(mut slice) = self.slice.take() {
            let mut last = Vec::new();
            slice.close(&mut last);
            for record in &last {
                self.write(record);
            }
        }
        self.tell(model::history::RecordingStatus::Ended);
        let Self { writer, missing, waiting, .. } = self;
        let path = writer.path().to_owned();
        match writer.close() {
            Ok(()) if missing == 0 => Ok(()),
            Ok(()) => Err(RecordingError::Incomplete { path, records: missing }),
            Err(error) => Err(RecordingError::Close { path, records: missing + waiting, error }),
        }
    }
}
