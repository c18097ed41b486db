//! A run as it stood at a past moment, read from the journal again, and the records that follow.

use std::collections::VecDeque;
use std::sync::Arc;

use telemetry::model::Run;
use telemetry::{Model, Record, RunId, Writer};

use crate::state::snapshot::Snapshot;
use crate::view_model::Span;

/// A run that was read again.
#[derive(Debug)]
pub(in crate::state) struct RereadRun {
    /// That of the reading.
    pub(super) ticket: u64,
    run: RunId,
    model: Model,
    /// The moment at which the model stands.
    pub(super) at_us: u64,
    /// From when on it has series.
    pub(super) from_us: u64,
    /// What follows, as far as it has been read.
    ahead: VecDeque<(Arc<Writer>, Record)>,
    /// No record up to this moment is missing.
    pub(super) read_until_us: u64,
}

impl RereadRun {
    pub(super) fn new(ticket: u64, run: RunId, model: Model, from_us: u64, at_us: u64) -> Self {
        Self { ticket, run, model, at_us, from_us, ahead: VecDeque::new(), read_until_us: at_us }
    }

    /// The run; `None` if none of its records was made by then.
    pub(in crate::state) fn run(&self) -> Option<&Run> {
        self.model.run(self.run)
    }

    /// True if it can go on to this moment without going back.
    pub(super) fn can_reach(&self, run: RunId, us: u64) -> bool {
        self.run == run && self.at_us <= us
    }

    /// Takes what follows what was read so far.
    pub(super) fn extend(&mut self, records: Vec<(Arc<Writer>, Record)>, until_us: Option<u64>) {
        self.ahead.extend(records);
        self.read_until_us = until_us.unwrap_or(self.read_until_us).max(self.read_until_us);
    }

    /// Goes on to a moment, if everything up to it has been read; false if not.
    pub(super) fn go_on_to(&mut self, us: u64) -> bool {
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

    /// Shows the moment at which it stands.
    pub(super) fn show(&self, snapshot: &mut Snapshot, span: Span) {
        let Some(run) = self.run() else { return };
        // What was before it was joined is not in it.
        let span = if run.is_joined() && span == Span::WholeRun { Span::default() } else { span };
        snapshot.take(Some(self.ticket), (&self.model, run), self.at_us, span);
    }
}
