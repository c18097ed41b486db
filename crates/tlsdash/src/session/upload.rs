//! `--upload`: the thread that sends the records of the journal's file, and what becomes known of it.

use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use log_store::{UploadState, UploadTarget, Uploader};
use records::kinds::{Level, NoticeRecord};
use records::text::clean;
use records::text::quantity::counted;

use crate::service::thread::spawn;

/// How often new records are looked for.
const POLL: Duration = Duration::from_millis(500);
/// The waits after failures: the first may be a connection that was idle for too long, and is no news.
const RETRY_MIN: Duration = Duration::from_millis(200);
const RETRY_MAX: Duration = Duration::from_secs(30);
/// How long the end of the program waits for the last records to be confirmed.
const END_PATIENCE: Duration = Duration::from_secs(5);
const END_POLL: Duration = Duration::from_millis(10);

/// The upload of a run's journal.
#[derive(Debug)]
pub(super) struct Upload {
    place: String,
    file: String,
    state: SharedState,
    /// The thread sends what is left and ends once this is dropped.
    until_end: Sender<()>,
    thread: JoinHandle<()>,
}

/// A mutex, since a state has several parts; each side holds it to copy one.
type SharedState = Arc<Mutex<UploadState>>;

/// What the records say of an upload.
#[derive(Debug)]
pub(crate) struct UploadMonitor {
    place: String,
    file: String,
    state: SharedState,
    /// As it was reported last.
    told: UploadState,
}

impl Upload {
    /// Starts the thread.
    ///
    /// # Errors
    /// If there is no thread.
    pub(super) fn start(target: UploadTarget, journal: &Path) -> anyhow::Result<Self> {
        let (place, file) = (target.url().to_string(), clean::text(&journal.to_string_lossy()));
        let (until_end, end) = channel();
        let (state, journal) = (SharedState::default(), journal.to_owned());
        let shared = Arc::clone(&state);
        // Accounted with the thread that writes the journal.
        let thread = spawn("journal-upload", move || upload(target, &journal, &end, &shared))?;
        Ok(Self { place, file, state, until_end, thread })
    }

    pub(super) fn monitor(&self) -> UploadMonitor {
        let Self { place, file, state, .. } = self;
        let told = UploadState::default();
        UploadMonitor { place: place.clone(), file: file.clone(), state: Arc::clone(state), told }
    }

    /// Waits until the last records are confirmed, for a bounded time. Prints a line if they are not.
    pub(super) fn finish(self) {
        drop(self.until_end);
        let deadline = Instant::now() + END_PATIENCE + END_PATIENCE / 4;
        while !self.thread.is_finished() && Instant::now() < deadline {
            std::thread::sleep(END_POLL);
        }
        let state = copy(&self.state);
        if state.failure.is_some() || !self.thread.is_finished() {
            let why = state
                .failure
                .unwrap_or_else(|| format!("not all were confirmed within {} s", END_PATIENCE.as_secs()));
            crate::say(format_args!(
                "the last records did not get to {}: {why}; they are in {}, and the next run there sends them",
                self.place, self.file
            ));
        }
    }
}

impl UploadMonitor {
    /// How the upload stands, and notices of what is news.
    pub(crate) fn poll(&mut self) -> (&UploadState, Vec<NoticeRecord>) {
        let Self { place, file, state, told } = self;
        let now = copy(state);
        let lost = now.lost_total.saturating_sub(told.lost_total);
        let lost = (lost > 0).then(|| {
            let lost = counted(lost, "record");
            (Level::Warning, format!("{lost} did not get to {place}: gone from {file}, or too large for it"))
        });
        let turn = match (&told.failure, &now.failure) {
            (None, Some(why)) => {
                Some((Level::Warning, format!("upload to {place}: {why}; records wait in {file}")))
            }
            (Some(_), None) => Some((Level::Notice, format!("the upload to {place} goes on"))),
            _ => None,
        };
        *told = now;
        let news = lost.into_iter().chain(turn);
        (told, news.map(|(level, text)| NoticeRecord::new(level, "upload", &text)).collect())
    }
}

fn copy(state: &SharedState) -> UploadState {
    state.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Sends until the end, and then what is left.
fn upload(target: UploadTarget, journal: &Path, end: &Receiver<()>, shared: &SharedState) {
    let share = |state| *shared.lock().unwrap_or_else(PoisonError::into_inner) = state;
    let mut uploader = match Uploader::open(target, journal) {
        Ok(uploader) => uploader,
        Err(error) => return share(UploadState { failure: Some(error), ..UploadState::default() }),
    };
    let (mut failures, mut ending_since) = (0_u32, None::<Instant>);
    loop {
        let wait = match uploader.step() {
            Ok(has_sent) => {
                // What was just written is not said to wait.
                let is_behind = has_sent && (failures > 0 || copy(shared).waiting > 0);
                failures = 0;
                share(if is_behind { uploader.state(None) } else { uploader.caught_up() });
                if has_sent {
                    continue;
                }
                if ending_since.is_some() {
                    break;
                }
                POLL
            }
            Err(error) => {
                failures = failures.saturating_add(1);
                if failures > 1 {
                    share(uploader.state(Some(&error)));
                }
                match ending_since {
                    Some(since) if since.elapsed() >= END_PATIENCE => break,
                    Some(_) => RETRY_MIN,
                    None => RETRY_MIN
                        .saturating_mul(1 << failures.min(10))
                        .min(RETRY_MAX)
                        .mul_f64(0.5 + fastrand::f64() / 2.0),
                }
            }
        };
        match ending_since {
            Some(_) => std::thread::sleep(wait),
            None if end.recv_timeout(wait) == Err(RecvTimeoutError::Disconnected) => {
                ending_since = Some(Instant::now());
            }
            None => {}
        }
    }
    if let Err(error) = uploader.save() {
        share(uploader.state(Some(&error)));
    }
}
