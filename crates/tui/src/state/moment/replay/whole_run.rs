//! Reads the whole run again if the model keeps only a part of the shown run.

use std::sync::Arc;

use model::history::HistoryRequest;
use records::codec::Writer;
use records::kinds::Record;

use super::reads::WholeRun;
use crate::state::{State, shown_run};

impl State {
    /// Returns whether the shown run must still be read completely.
    pub(crate) fn is_run_being_read(&self) -> bool {
        self.options.history.is_some() && self.run().is_some_and(model::runs::Run::is_brief)
    }

    /// Requests the whole shown run, if the model keeps only a part, or the records since it was read.
    pub(crate) fn request_whole_run(&mut self) -> Option<HistoryRequest> {
        let run = shown_run(&self.model, &self.options).filter(|run| run.is_brief())?;
        let (id, began_us) = (run.id(), run.began_us());
        let is_requested =
            self.reads.in_flight.is_some_and(|read| read.run == id && read.until_us == u64::MAX);
        if is_requested || self.reads.failed_us == Some(u64::MAX) {
            return None;
        }
        match self.reads.pending.as_ref().filter(|whole| whole.run == id).map(|whole| whole.ticket) {
            Some(ticket) => self.continue_request(ticket, u64::MAX),
            None => self.seek_request(u64::MAX, began_us),
        }
    }

    /// Replaces the run in the model, unless more records have arrived meanwhile.
    pub(crate) fn restore(&mut self, whole: WholeRun) {
        let WholeRun { ticket, run, model } = whole;
        self.model.hold(Some(run));
        self.reads.pending = match self.model.restore(run, model) {
            Ok(()) => None,
            Err(model) => Some(WholeRun { ticket, run, model }),
        };
        self.stale = true;
    }

    /// Returns whether the completely read run lacks records before this number.
    pub(crate) fn is_pending(&self, ticket: u64) -> bool {
        self.reads.pending.as_ref().is_some_and(|whole| whole.ticket == ticket)
    }

    /// Adds the records since; returns whether these were all.
    pub(crate) fn complete(&mut self, records: Vec<(Arc<Writer>, Record)>, is_all: bool) -> bool {
        let Some(whole) = &mut self.reads.pending else { return false };
        for (writer, record) in records {
            whole.model.apply_from(&writer, record, None);
        }
        if is_all {
            self.reads.in_flight = None;
            self.reads.pending.take().into_iter().for_each(|whole| self.restore(whole));
        }
        is_all
    }
}
