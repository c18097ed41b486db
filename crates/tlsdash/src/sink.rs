//! Where the publisher's records go: a journal file, or straight to the model.

use journal::{EntryBuf, FileWriter, Timestamps, WriteError};
use telemetry::{Batch, Record, Refusal, Sink, Update};
use tui::{Event, Sender};

/// Where records go.
#[derive(Debug)]
pub(crate) enum RecordSink {
    /// Into a journal file, to be read back.
    File(Box<FileWriter>, EntryBuf),
    /// Straight to the model, when no journal is wanted. Records of an interval travel together.
    Direct(Sender, Batch),
}

impl RecordSink {
    pub(crate) fn file(writer: FileWriter) -> Self {
        Self::File(Box::new(writer), EntryBuf::new())
    }

    pub(crate) fn direct(events: Sender) -> Self {
        Self::Direct(events, Batch::default())
    }

    /// Ends the journal in order.
    pub(crate) fn close(self) -> Result<(), String> {
        match self {
            Self::File(writer, _) => writer.close().map_err(|error| error.to_string()),
            Self::Direct(..) => Ok(()),
        }
    }
}

impl Sink for RecordSink {
    fn accept(&mut self, record: &Record) -> Result<(), Refusal> {
        match self {
            Self::File(writer, entry) => {
                telemetry::encode(record, entry);
                let at =
                    Timestamps { realtime_us: record.stamp.realtime_us, monotonic_us: record.stamp.mono_us };
                writer.append(entry, at).map_err(|error| refusal(&error))
            }
            Self::Direct(_, batch) => {
                batch.records.push(record.clone());
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> Result<(), String> {
        match self {
            Self::File(writer, _) => writer.flush().map_err(|error| error.to_string()),
            Self::Direct(events, batch) => {
                let full = Batch { read_mono_us: None, ..std::mem::take(batch) };
                events.send(Event::Update(Update::Batch(full))).map_err(|error| error.to_string())
            }
        }
    }
}

/// What is wrong with an entry stays wrong; a disk may get room again.
fn refusal(error: &WriteError) -> Refusal {
    let reason = error.to_string();
    if matches!(error, WriteError::Entry { .. }) { Refusal::Never(reason) } else { Refusal::Later(reason) }
}
