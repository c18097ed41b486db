//! The recording of the run, and the question before an exit.

use std::time::{Duration, Instant};

use model::history::RecordingStatus;

use crate::clock::ClockReading;

/// The time within which a second request to leave confirms the first.
const MEANT: Duration = Duration::from_secs(10);

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecordingState {
    /// Its start, and whether it is failing; `None` without one.
    since: Option<(Instant, bool)>,
    /// Its duration when the screen was last drawn.
    seconds: u64,
    /// When a person wanted to leave and was asked whether that is meant, with the question.
    leaving: Option<(Instant, &'static str)>,
}

impl RecordingState {
    pub(crate) fn update(&mut self, recording: RecordingStatus, now: ClockReading) {
        let since = self.since.map_or(now.instant, |(since, _)| since);
        self.since = match recording {
            RecordingStatus::Written => Some((since, false)),
            RecordingStatus::Failing => Some((since, true)),
            RecordingStatus::Ended => None,
        };
    }

    /// Updates the duration of the recording, and drops a question that nobody answers.
    pub(crate) fn tick(&mut self, now: ClockReading) {
        let since = self.since.map_or(now.instant, |(since, _)| since);
        self.seconds = now.instant.saturating_duration_since(since).as_secs();
        self.leaving.take_if(|(asked, _)| now.instant.saturating_duration_since(*asked) >= MEANT);
    }

    /// Asks a person who wants to leave whether that is meant.
    pub(super) fn ask(&mut self, question: &'static str, now: ClockReading) {
        self.leaving = Some((now.instant, question));
    }

    /// Drops the question.
    pub(crate) fn stay(&mut self) {
        self.leaving = None;
    }

    /// Returns what a person who wants to leave is asked at the moment.
    pub(crate) fn question(&self) -> Option<&'static str> {
        self.leaving.map(|(_, question)| question)
    }

    /// Returns the seconds recorded so far, and whether recording fails; `None` without a recording.
    pub(crate) fn progress(&self) -> Option<(u64, bool)> {
        self.since.map(|(_, is_failing)| (self.seconds, is_failing))
    }
}
