//! What was read from the journal again, and what is being read.

use model::runs::{Model, Run};
use records::ids::RunId;

use super::reread_run::RereadRun;

/// The run that was reread from the journal, and the read in flight.
#[derive(Debug, Default)]
pub(crate) struct JournalReads {
    /// The ticket of the latest seek; the next one gets the next number.
    pub(super) ticket: u64,
    pub(super) in_flight: Option<ReadInFlight>,
    pub(super) run: Option<RereadRun>,
    /// A run reread completely that lacks the records written meanwhile.
    pub(super) pending: Option<WholeRun>,
    /// The moment up to which the last read failed; only a new seek reads again.
    pub(super) failed_us: Option<u64>,
}

/// A read that was requested and is not complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadInFlight {
    pub(super) ticket: u64,
    pub(super) run: RunId,
    pub(super) from_us: u64,
    /// The moment to reach; `u64::MAX` for a whole run.
    pub(super) until_us: u64,
    pub(super) reached_us: u64,
    /// True for a continued read, false for a seek.
    pub(super) is_continue: bool,
}

impl JournalReads {
    /// Returns the reread copy of a run, with its ticket.
    pub(crate) fn series(&self, run: &Run) -> Option<(u64, &Run)> {
        let reread = self.run.as_ref()?;
        Some((reread.ticket, reread.run().filter(|again| again.id() == run.id())?))
    }

    /// Drops the reread run and the read in flight, when the present is shown again.
    pub(crate) fn forget(&mut self) {
        (self.run, self.in_flight, self.failed_us) = (None, None, None);
    }
}

/// A run that was reread completely.
#[derive(Debug)]
pub(crate) struct WholeRun {
    pub(crate) ticket: u64,
    pub(crate) run: RunId,
    pub(crate) model: Box<Model>,
}
