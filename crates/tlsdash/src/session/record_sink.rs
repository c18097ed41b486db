//! Where the publisher's records go: a journal file, journald, or directly the model; and a recording, if there is one.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Context;
use journal::{EntryBuf, FileLoss, SendError, WriteError};
use model::history::{Batch, Update};
use recorder::publish::{RecordWriter, Refusal, Sink};
use records::codec::Coverage;
use records::kinds::Record;
use records::slice::SliceBaseline;
use tui::{DashboardSender, Event};

use crate::journals::choice::OpenJournal;
use crate::session::recording::{self, ActiveRecording, RecordingError};

/// How long the records of one interval may wait, in all, for room in journald's queue. The queue holds as few as ten;
/// sixty records pass it in some 2 ms.
const PATIENCE: Duration = Duration::from_millis(50);

/// The journal of a run, and its recording.
#[derive(Debug)]
pub(crate) struct RecordSink {
    journal: RecordTarget,
    recording: Option<ActiveRecording>,
    events: DashboardSender,
}

#[derive(Debug)]
enum RecordTarget {
    /// Into a journal file, to be read back.
    File(Box<RecordWriter>),
    /// To journald, to be read back.
    Daemon(DaemonSink),
    /// Directly to the model, with `--journal off`. The records of an interval travel together.
    Direct(DashboardSender, Batch),
}

#[derive(Debug)]
pub(crate) struct DaemonSink {
    sender: journal::Sender,
    entry: EntryBuf,
    /// The rest of [`PATIENCE`] in this interval.
    patience: Duration,
}

/// The journal, or a recording, lacks records.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloseError {
    /// The journal's file could not be ended in order.
    #[error("the journal lacks the end of the run: {0}")]
    Journal(#[from] WriteError),
    /// The recording could not be ended in order.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// The journal did not take the last records in time.
    #[error("the journal lacks the end of the run: {records} records are not in it: {reason}")]
    Missing { records: usize, reason: String },
}

impl RecordSink {
    pub(crate) fn new(
        journal: OpenJournal,
        recording: Option<ActiveRecording>,
        events: DashboardSender,
    ) -> Self {
        let told = events.clone();
        let journal = match journal {
            OpenJournal::File(file) => RecordTarget::File(Box::new(RecordWriter::new(*file))),
            OpenJournal::Daemon(_, sender, _) => {
                RecordTarget::Daemon(DaemonSink { sender, entry: EntryBuf::new(), patience: PATIENCE })
            }
            OpenJournal::Off => RecordTarget::Direct(events, Batch::default()),
        };
        Self { journal, recording, events: told }
    }

    /// Starts a recording of a run and its parts with these baselines in a new file. Returns a message about it.
    ///
    /// # Errors
    /// When the recording cannot start.
    pub(crate) fn begin_recording(
        &mut self,
        path: &Path,
        baselines: Vec<SliceBaseline>,
    ) -> anyhow::Result<String> {
        if let Some(recording) = &self.recording {
            anyhow::bail!("already recording into {}", recording.path().display());
        }
        let recording = ActiveRecording::create(&recording::RecordingFile::new_at(path), self.events.clone());
        let recording = recording.context("not recording")?;
        let text = format!("recording from now on into {}", recording.path().display());
        self.recording = Some(recording.following(baselines));
        Ok(text)
    }

    /// Ends the recording in progress. Returns a message about it.
    ///
    /// # Errors
    /// When there is none, or it lacks records.
    pub(crate) fn end_recording(&mut self) -> anyhow::Result<String> {
        let recording = self.recording.take().context("nothing is being recorded")?;
        let path = recording.path().display().to_string();
        recording.close()?;
        Ok(format!("recorded {path}"))
    }

    /// The journal's file that was removed, moved or truncated since the last record, if it was.
    pub(crate) fn take_loss(&mut self) -> Option<FileLoss> {
        match &mut self.journal {
            RecordTarget::File(writer) => writer.take_loss(),
            RecordTarget::Daemon(_) | RecordTarget::Direct(..) => None,
        }
    }

    /// Closes the journal and the recording.
    ///
    /// # Errors
    /// If the end of one of them is missing.
    pub(crate) fn close(self) -> Result<(), CloseError> {
        let closed = match self.journal {
            RecordTarget::File(writer) => writer.close(),
            RecordTarget::Daemon(_) | RecordTarget::Direct(..) => Ok(()),
        };
        // Closed in any state of the journal.
        let recorded = self.recording.map_or(Ok(()), ActiveRecording::close);
        closed?;
        Ok(recorded?)
    }
}

impl DaemonSink {
    fn send(&mut self, record: &Record, coverage: Coverage) -> Result<(), SendError> {
        records::codec::encode_as(record, coverage, &mut self.entry);
        loop {
            match self.sender.send(&self.entry) {
                Err(SendError::Full { .. }) if !self.patience.is_zero() => {
                    let begun = Instant::now();
                    self.sender.wait(self.patience);
                    self.patience = self.patience.saturating_sub(begun.elapsed());
                }
                sent => return sent,
            }
        }
    }
}

impl Sink for RecordSink {
    fn accept(&mut self, record: &Record, coverage: Coverage) -> Result<(), Refusal> {
        self.journal.accept(record, coverage)?;
        // A record's number is final once the journal has taken it. A recording has no roll-ups.
        if let Some(recording) = self.recording.as_mut().filter(|_| coverage.is_interval()) {
            recording.append(record);
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), String> {
        if let Some(recording) = &mut self.recording {
            recording.flush();
        }
        self.journal.flush()
    }
}

impl Sink for RecordTarget {
    fn accept(&mut self, record: &Record, coverage: Coverage) -> Result<(), Refusal> {
        match self {
            Self::File(writer) => writer.accept(record, coverage),
            Self::Daemon(daemon) => daemon.send(record, coverage).map_err(|error| match error {
                SendError::Entry { .. } => Refusal::Never(error.to_string()),
                error => Refusal::Later(error.to_string()),
            }),
            Self::Direct(_, batch) => {
                // The model has all records.
                if coverage.is_interval() {
                    batch.records.push(record.clone());
                }
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> Result<(), String> {
        match self {
            Self::File(writer) => Sink::flush(writer.as_mut()),
            Self::Daemon(daemon) => {
                daemon.patience = PATIENCE;
                Ok(())
            }
            Self::Direct(events, batch) => {
                let full = Batch { read_mono_us: None, ..std::mem::take(batch) };
                events.send(Event::Update(Update::Batch(full))).map_err(|error| error.to_string())
            }
        }
    }
}
