//! The message line: what the last key has changed, in the footer until the next key or for some seconds.

use std::time::{Duration, Instant};

use model::runs::Level;

use crate::clock::ClockReading;

/// How long a message is shown if no key follows.
const SHOWN_FOR: Duration = Duration::from_secs(10);

/// A message, and when it was said.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) level: Level,
    pub(crate) text: String,
    at: Instant,
}

impl Message {
    pub(super) fn new(level: Level, text: String, now: ClockReading) -> Self {
        Self { level, text, at: now.instant }
    }

    /// Returns whether it has been shown for long enough.
    pub(super) fn is_old(&self, now: ClockReading) -> bool {
        now.instant.saturating_duration_since(self.at) >= SHOWN_FOR
    }
}
