//! Records runs of other processes from their journal: the key `R` of `tlsdash watch`.

use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use anyhow::Context;
use journal::{Start, Timestamps};
use model::history::{Follower, RunFilter, Update, WriterFilter};
use model::runs::Level;
use records::ids::RunId;
use records::slice::TimeRange;
use tui::{DashboardSender, Event, RecordingRequest};

use super::{ActiveRecording, RecordingFile};
use crate::journals::source::JournalSource;
use crate::service::thread::spawn;
use crate::session::read_back::stops;

/// Keys that wait.
const KEYS_MAX: usize = 4;
/// Updates that wait to be written.
const UPDATES_MAX: usize = 4;

/// Where runs are recorded from.
#[derive(Debug)]
pub(crate) struct RunRecorder {
    pub(crate) place: JournalSource,
    pub(crate) writers: WriterFilter,
    pub(crate) events: DashboardSender,
}

struct RecordedFollower {
    follower: Follower,
    writing: JoinHandle<()>,
}

impl RunRecorder {
    /// Starts the thread that begins and ends recordings. It ends with its channel, and its recording too.
    ///
    /// # Errors
    /// If there can be no thread for it.
    pub(crate) fn start(self) -> anyhow::Result<(SyncSender<RecordingRequest>, JoinHandle<()>)> {
        let (sender, keys) = sync_channel(KEYS_MAX);
        Ok((sender, spawn("dashboard-record", move || self.serve(&keys))?))
    }

    fn serve(&self, requests: &Receiver<RecordingRequest>) {
        let mut active: Option<RecordedFollower> = None;
        for request in requests {
            // A recording that ended with its run has said so.
            active.take().into_iter().for_each(RecordedFollower::end);
            if let RecordingRequest::Begin(run, path) = request {
                active = self.begin(run, &path);
            }
        }
        active.into_iter().for_each(RecordedFollower::end);
    }

    /// Begins a recording, and reports it.
    fn begin(&self, run: RunId, path: &Path) -> Option<RecordedFollower> {
        let begun = self.follow(run, path);
        let (level, text) = match &begun {
            Ok((_, path)) => (Level::Notice, format!("recording from now on into {path}")),
            Err(error) => (Level::Warning, format!("not recording: {}", crate::error::line(error))),
        };
        tell(&self.events, level, text);
        begun.ok().map(|(active, _)| active)
    }

    fn follow(&self, run: RunId, path: &Path) -> anyhow::Result<(RecordedFollower, String)> {
        let range = TimeRange { from_us: Timestamps::now().realtime_us, ..TimeRange::ALL };
        let filter = RunFilter {
            writers: self.writers.clone(),
            id_prefix: run.family(),
            range,
            records_max: u64::MAX,
        };
        let recording =
            ActiveRecording::create(&RecordingFile::new_at(path), self.events.clone())?.within(range);
        let path = recording.path().display().to_string();
        let (updates, read) = sync_channel(UPDATES_MAX);
        // From the oldest record on, so totals count from the beginning of the recording.
        let open = self.place.opener(Start::Oldest, &filter.id_prefix);
        let follower = Follower::start(open, filter, move |update| updates.send(update).is_ok())
            .context("cannot read the journal a second time")?;
        let events = self.events.clone();
        let writing = spawn("dashboard-record", move || write(recording, &read, &events))?;
        Ok((RecordedFollower { follower, writing }, path))
    }
}

/// Writes the records until no more come, or the run has ended. Reports the result.
fn write(mut recording: ActiveRecording, read: &Receiver<Update>, events: &DashboardSender) {
    for update in read {
        let Update::Batch(batch) = update else { continue };
        batch.records.iter().for_each(|record| recording.append(record));
        recording.flush();
        if stops(&batch) {
            break;
        }
    }
    let path = recording.path().display().to_string();
    match recording.close() {
        Ok(()) => tell(events, Level::Notice, format!("recorded {path}")),
        Err(error) => tell(events, Level::Warning, error.to_string()),
    }
}

impl RecordedFollower {
    /// Reads the present contents of the journal, and ends.
    fn end(self) {
        // An error of its reading has been delivered as a notice.
        let _ = self.follower.finish();
        // A panic there has been reported by the panic hook.
        let _ = self.writing.join();
    }
}

fn tell(events: &DashboardSender, level: Level, text: String) {
    // Only fails once the front end has ended.
    let _ = events.send(Event::Update(Update::Notice(level, text)));
}
