//! A run of which little is kept, read again as a whole because it is shown.

use std::sync::Arc;

use telemetry::{HistoryRequest, Model, Record, RunId, Writer};

use super::shown_run;
use crate::state::State;

/// A run that was read as a whole.
#[derive(Debug)]
pub(super) struct WholeRun {
    pub(super) ticket: u64,
    pub(super) run: RunId,
    pub(super) model: Model,
}

impl State {
    /// True if the run that is shown has still to be read as a whole.
    pub(crate) fn is_run_being_read(&self) -> bool {
        self.options.history.is_some() && self.run().is_some_and(telemetry::model::Run::is_brief)
    }

    /// Asks for the whole of the run that is shown, if little of it is kept, or for what has come since it was read.
    pub(super) fn request_whole_run(&mut self) -> Option<HistoryRequest> {
        let run = shown_run(&self.model, &self.options).filter(|run| run.is_brief())?;
        let (id, began_us) = (run.id(), run.began_us());
        let is_asked =
            self.reads.in_flight.is_some_and(|asked| asked.run == id && asked.until_us == u64::MAX);
        if is_asked || self.reads.failed_us == Some(u64::MAX) {
            return None;
        }
        match self.reads.pending.as_ref().filter(|whole| whole.run == id).map(|whole| whole.ticket) {
            Some(ticket) => self.continue_request(ticket, u64::MAX),
            None => self.seek_request(u64::MAX, began_us),
        }
    }

    /// Puts it in its place, unless more has come while it was read.
    pub(super) fn restore(&mut self, whole: WholeRun) {
        let WholeRun { ticket, run, model } = whole;
        self.model.hold(Some(run));
        self.reads.pending = match self.model.restore(run, model) {
            Ok(()) => None,
            Err(model) => Some(WholeRun { ticket, run, model }),
        };
        self.stale = true;
    }

    /// True if a run that was read as a whole lacks what comes with this number.
    pub(super) fn is_pending(&self, ticket: u64) -> bool {
        self.reads.pending.as_ref().is_some_and(|whole| whole.ticket == ticket)
    }

    /// Adds what has come since; true if that was all.
    pub(super) fn complete(&mut self, records: Vec<(Arc<Writer>, Record)>, is_all: bool) -> bool {
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
