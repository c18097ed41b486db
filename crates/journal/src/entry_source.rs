//! Where entries are read from.

use crate::{Entry, PollProgress, ReadError, Tail};

/// A place that entries are read from and followed in: files, or a store of logs.
pub trait EntrySource {
    /// Passes the entries that can be read now to `each`. One call does a bounded amount of work. If
    /// [`PollProgress::more`] is set, call it again at once.
    ///
    /// # Errors
    ///
    /// If the place cannot be read. A later poll retries.
    fn poll(&mut self, each: &mut dyn FnMut(&Entry)) -> Result<PollProgress, ReadError>;

    /// Passes on entries that wait for earlier ones, as nothing more will be asked for.
    fn finish(&mut self, each: &mut dyn FnMut(&Entry)) {
        let _ = each;
    }

    /// Returns what a person should know of how the place is read.
    fn note(&self) -> Option<String> {
        None
    }

    /// Returns why a part of the place cannot be read.
    fn refusal(&self) -> Option<&ReadError> {
        None
    }
}

impl EntrySource for Tail {
    fn poll(&mut self, each: &mut dyn FnMut(&Entry)) -> Result<PollProgress, ReadError> {
        Self::poll(self, each)
    }

    fn refusal(&self) -> Option<&ReadError> {
        Self::refusal(self)
    }
}
