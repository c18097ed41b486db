//! Where the publisher's records go: a journal file, journald, or straight to the model; and into a recording besides.

use std::time::{Duration, Instant};

use journal::{EntryBuf, SendError};
use telemetry::{Baseline, Batch, Record, RecordWriter, Refusal, Sink, Update};
use tui::{Event, Sender};

use crate::journal_choice::Journal;
use crate::recording::{self, Recording};

/// So long may the records of one interval wait, in all, for room in journald's queue: that holds as few as ten, and
/// sixty records go through it in some 2 ms.
const PATIENCE: Duration = Duration::from_millis(50);

/// Where records go, and where they are recorded besides.
#[derive(Debug)]
pub(crate) struct RecordSink {
    journal: Place,
    recording: Option<Recording>,
    events: Sender,
}

/// Where records go.
#[derive(Debug)]
enum Place {
    /// Into a journal file, to be read back.
    File(Box<RecordWriter>),
    /// To journald, to be read back.
    Daemon(DaemonSink),
    /// Straight to the model, when no journal is wanted. Records of an interval travel together.
    Direct(Sender, Batch),
}

/// Sends records to journald.
#[derive(Debug)]
pub(crate) struct DaemonSink {
    sender: journal::Sender,
    entry: EntryBuf,
    /// What is left of the patience with this interval.
    patience: Duration,
}

impl RecordSink {
    pub(crate) fn new(journal: Journal, recording: Option<Recording>, events: Sender) -> Self {
        let told = events.clone();
        let journal = match journal {
            Journal::File(file) => Place::File(Box::new(RecordWriter::new(*file))),
            Journal::Daemon(_, sender, _) => {
                Place::Daemon(DaemonSink { sender, entry: EntryBuf::new(), patience: PATIENCE })
            }
            Journal::Off => Place::Direct(events, Batch::default()),
        };
        Self { journal, recording, events: told }
    }

    /// Begins to record a run that stands so, or ends what is being recorded; what came of it, in words.
    ///
    /// # Errors
    /// In words, if there is no recording, or something is missing in it.
    pub(crate) fn toggle_recording(&mut self, baseline: Baseline) -> Result<String, String> {
        if let Some(recording) = self.recording.take() {
            let path = recording.path().display().to_string();
            recording.close()?;
            return Ok(format!("recorded {path}"));
        }
        let recording = Recording::create(&recording::Place::of_now(), self.events.clone());
        let recording = recording.map_err(|error| format!("not recording: {error:#}"))?;
        let text = format!("recording from now on into {}", recording.path().display());
        self.recording = Some(recording.following(baseline));
        Ok(text)
    }

    /// Ends the journal in order, and the recording.
    pub(crate) fn close(self) -> Result<(), String> {
        let closed = match self.journal {
            Place::File(writer) => writer.close().map_err(|error| error.to_string()),
            Place::Daemon(_) | Place::Direct(..) => Ok(()),
        };
        // Closed whatever became of the journal.
        let recorded = self.recording.map_or(Ok(()), Recording::close);
        closed.and(recorded)
    }
}

impl DaemonSink {
    fn send(&mut self, record: &Record) -> Result<(), SendError> {
        telemetry::encode(record, &mut self.entry);
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
    fn accept(&mut self, record: &Record) -> Result<(), Refusal> {
        self.journal.accept(record)?;
        // Only what the journal has taken has its number for good.
        if let Some(recording) = &mut self.recording {
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

impl Sink for Place {
    fn accept(&mut self, record: &Record) -> Result<(), Refusal> {
        match self {
            Self::File(writer) => writer.accept(record),
            Self::Daemon(daemon) => daemon.send(record).map_err(|error| match error {
                SendError::Entry { .. } => Refusal::Never(error.to_string()),
                error => Refusal::Later(error.to_string()),
            }),
            Self::Direct(_, batch) => {
                batch.records.push(record.clone());
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
