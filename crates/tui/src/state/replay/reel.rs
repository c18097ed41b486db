//! A run as it stood at a moment, read again, and what followed.

use std::collections::VecDeque;
use std::sync::Arc;

use telemetry::model::Run;
use telemetry::{ClientId, Model, Record, RunId, Writer};

use crate::figures::{self, ClientTable, Figures, History, Marked, Span, Windows};

/// A run that was read again.
#[derive(Debug)]
pub(in crate::state) struct Reel {
    /// That of the reading.
    pub(super) ticket: u64,
    run: RunId,
    model: Model,
    /// The moment at which the model stands.
    at_us: u64,
    /// From when on it has series.
    pub(super) from_us: u64,
    /// What follows, as far as it has been read.
    ahead: VecDeque<(Arc<Writer>, Record)>,
    /// No record up to this moment is missing.
    pub(super) read_until_us: u64,
    figures: Option<Figures>,
    windows: Windows,
    marked: Marked,
    table: ClientTable,
}

impl Reel {
    pub(super) fn new(ticket: u64, run: RunId, model: Model, from_us: u64, at_us: u64) -> Self {
        Self {
            ticket,
            run,
            model,
            at_us,
            from_us,
            ahead: VecDeque::new(),
            read_until_us: at_us,
            figures: None,
            windows: Windows::default(),
            marked: Marked::default(),
            table: ClientTable::default(),
        }
    }

    /// The run; `None` if none of its records was made by then.
    pub(in crate::state) fn run(&self) -> Option<&Run> {
        self.model.run(self.run)
    }

    /// True if it is of this run, and stands at this moment.
    pub(in crate::state) fn stands_at(&self, run: RunId, us: u64) -> bool {
        self.run == run && self.at_us == us && self.figures.is_some()
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

    /// Takes the figures of the moment at which it stands.
    pub(super) fn take_figures(&mut self, span: Span) {
        let Some(run) = self.model.run(self.run) else { return };
        // What was before it was joined is not in it.
        let span = if run.is_joined() && span == Span::WholeRun { Span::default() } else { span };
        self.windows.slide(run, span);
        let mut figures = Figures::of(&self.model, run, span, &self.windows);
        figures.duration_us = self.at_us.saturating_sub(run.began_us());
        self.marked.compare(run, run.last_us(), &mut figures);
        self.table.refresh(run, figures.clients_span);
        self.figures = Some(figures);
    }

    pub(in crate::state) fn figures(&self) -> Option<&Figures> {
        self.figures.as_ref()
    }

    pub(in crate::state) fn table(&self) -> &ClientTable {
        &self.table
    }

    pub(in crate::state) fn table_mut(&mut self) -> &mut ClientTable {
        &mut self.table
    }

    /// What a client did over the last intervals.
    pub(in crate::state) fn history(&self, id: ClientId) -> History {
        let interval_us = self.figures.as_ref().map_or(0, |figures| figures.interval_us);
        self.run().map(|run| figures::history(run, id, interval_us)).unwrap_or_default()
    }
}
