//! The message line: what the last key has changed, in the footer until the next key or for some seconds.

use std::time::{Duration, Instant};

use super::State;
use crate::clock::ClockReading;

/// How long a message is shown if no key follows.
const SHOWN_FOR: Duration = Duration::from_secs(10);

/// A message, and when it was said.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    pub(crate) text: String,
    at: Instant,
}

impl State {
    pub(crate) fn say(&mut self, text: impl Into<String>, now: ClockReading) {
        self.message = Some(Message { text: text.into(), at: now.instant });
    }

    /// Removes a message that has been shown for long enough; false if there is none.
    pub(crate) fn drop_old_message(&mut self, now: ClockReading) -> bool {
        let is_old = |message: &mut Message| now.instant.saturating_duration_since(message.at) >= SHOWN_FOR;
        self.message.take_if(is_old).is_some()
    }
}
