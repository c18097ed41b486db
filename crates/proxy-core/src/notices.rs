//! What the proxy has to say to the person on the box, once an episode.

use std::sync::{Mutex, PoisonError};

use telemetry::model::Level;

/// Notices that wait to be taken; more than these would not be read.
const NOTICES_MAX: usize = 16;

/// Notices that wait to be taken. The mutex is only taken at the beginning and the end of an episode, and once an
/// interval by who shows them.
#[derive(Debug, Default)]
pub(crate) struct Notices(Mutex<Vec<(Level, String)>>);

impl Notices {
    pub(crate) fn add(&self, level: Level, text: String) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < NOTICES_MAX {
            waiting.push((level, text));
        }
    }

    pub(crate) fn take(&self) -> Vec<(Level, String)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
