//! The view at one moment, kept while reading goes on; and moments before it.
//!
//! The figures are kept and not the model: a model cannot be copied cheaply, and collection must go on in it. What
//! the figures do not hold, the clients' sparklines, is taken at the moment of freezing. An earlier moment is computed
//! from the series that the model still has.

use std::collections::HashMap;

use telemetry::ClientId;
use telemetry::model::Run;

use crate::clock::Now;
use crate::figures::{self, ClientTable, Figures, History, Marked, Span, Then, Windows};

/// The moment of freezing, and the moment that is shown.
pub(super) struct Frozen {
    pub(super) since: Now,
    /// Last record read when the view was frozen, by the monotonic clock.
    pub(super) moment_us: u64,
    /// Right edge of the course.
    pub(super) edge_us: u64,
    figures: Figures,
    table: ClientTable,
    histories: HashMap<ClientId, History>,
    windows: Windows,
    marked: Marked,
    earlier: Option<Earlier>,
}

/// A moment before that of freezing, or the same with another window.
struct Earlier {
    us: u64,
    /// What the series tell of it; `None` where more is known, since it was read again.
    told: Option<(Figures, ClientTable)>,
    settings: Vec<Then>,
}

impl Frozen {
    /// Keeps what is shown now.
    pub(super) fn new(figures: Figures, table: ClientTable, run: &Run, now: Now) -> Self {
        let history = |id| figures::history(run, id, figures.interval_us);
        let histories = table.rows().iter().map(|row| (row.id, history(row.id))).collect();
        let moment_us = run.last_us();
        Self {
            since: now,
            moment_us,
            edge_us: moment_us,
            figures,
            table,
            histories,
            windows: Windows::default(),
            marked: Marked::default(),
            earlier: None,
        }
    }

    /// Shows another moment, not after that of freezing and not before the run's first record.
    pub(super) fn go_to(&mut self, run: &Run, us: u64, span: Span) {
        let us = us.clamp(run.began_us().min(self.moment_us), self.moment_us);
        // A window over the whole run has only one place.
        let span = if span == Span::WholeRun { Span::default() } else { span };
        self.windows.slide_to(run, span, us);
        let mut table = self.table.clone();
        let Span::Last(span_us) = figures::clients_span(span, self.figures.interval_us) else { return };
        table.change_rows(|row| figures::client_at(run, row, us, span_us));
        let mut figures = self.figures.at(run, us, span, &self.windows);
        self.marked.compare(run, us, &mut figures);
        let settings = figures::settings_at(run, us);
        self.earlier = Some(Earlier { us, told: Some((figures, table)), settings });
    }

    /// Shows another moment of which everything was read again, with the settings as the run knows them.
    pub(super) fn stand_at(&mut self, run: &Run, us: u64) {
        self.moment_us = run.last_us();
        self.earlier = Some(Earlier { us, told: None, settings: figures::settings_at(run, us) });
    }

    /// The moment that a person went to, by the monotonic clock.
    pub(super) fn earlier_us(&self) -> Option<u64> {
        self.earlier.as_ref().map(|earlier| earlier.us)
    }

    /// Settings as they stood then; nothing at the moment of freezing.
    pub(super) fn settings(&self) -> &[Then] {
        self.earlier.as_ref().map_or(&[], |earlier| &earlier.settings)
    }

    fn told(&self) -> Option<&(Figures, ClientTable)> {
        self.earlier.as_ref()?.told.as_ref()
    }

    pub(super) fn figures(&self) -> &Figures {
        self.told().map_or(&self.figures, |(figures, _)| figures)
    }

    pub(super) fn table(&self) -> &ClientTable {
        self.told().map_or(&self.table, |(_, table)| table)
    }

    pub(super) fn table_mut(&mut self) -> &mut ClientTable {
        let told = self.earlier.as_mut().and_then(|earlier| earlier.told.as_mut());
        told.map_or(&mut self.table, |(_, table)| table)
    }

    /// What the client had done when the view was frozen.
    pub(super) fn history(&self, id: ClientId) -> History {
        self.histories.get(&id).cloned().unwrap_or_default()
    }
}
