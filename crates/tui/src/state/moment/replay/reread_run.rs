//! A run at a past moment, read from the journal again, and the records that follow.

use std::collections::VecDeque;
use std::sync::Arc;

use model::runs::{Model, Run};
use records::codec::Writer;
use records::ids::RunId;
use records::kinds::Record;

use crate::state::moment::snapshot::Snapshot;
use crate::view_model::span::Span;

#[derive(Debug)]
pub(crate) struct RereadRun {
    pub(crate) ticket: u64,
    run: RunId,
    model: Model,
    /// The moment of the model.
    pub(crate) at_us: u64,
    /// The start of its series.
    pub(crate) from_us: u64,
    /// The records that follow, as far as they have been read.
    ahead: VecDeque<(Arc<Writer>, Record)>,
    /// No record up to this moment is missing.
    pub(crate) read_until_us: u64,
}

impl RereadRun {
    pub(crate) fn new(ticket: u64, run: RunId, model: Model, from_us: u64, at_us: u64) -> Self {
        Self { ticket, run, model, at_us, from_us, ahead: VecDeque::new(), read_until_us: at_us }
    }

    /// Returns the run; `None` if it had no records by then.
    pub(crate) fn run(&self) -> Option<&Run> {
        self.model.run(self.run)
    }

    /// Returns whether it can advance to this moment without going back.
    pub(crate) fn can_reach(&self, run: RunId, us: u64) -> bool {
        self.run == run && self.at_us <= us
    }

    pub(crate) fn extend(&mut self, records: Vec<(Arc<Writer>, Record)>, until_us: Option<u64>) {
        self.ahead.extend(records);
        self.read_until_us = until_us.unwrap_or(self.read_until_us).max(self.read_until_us);
    }

    /// Advances to a moment, if everything up to it has been read; returns false if not.
    pub(crate) fn go_on_to(&mut self, us: u64) -> bool {
        if us < self.at_us || us > self.read_until_us {
            return false;
        }
        let passed = self.ahead.partition_point(|(_, record)| record.stamp.mono_us <= us);
        for (writer, record) in self.ahead.drain(..passed) {
            self.model.apply_from(&writer, record, None);
        }
        self.at_us = us;
        true
    }

    /// Shows the moment of the model.
    pub(crate) fn show(&self, snapshot: &mut Snapshot, span: Span) {
        let Some(run) = self.run() else { return };
        // Records before it was joined are missing.
        let span = if run.is_joined() && span == Span::WholeRun { Span::default() } else { span };
        snapshot.take(Some(self.ticket), (&self.model, run), self.at_us, span);
    }
}
