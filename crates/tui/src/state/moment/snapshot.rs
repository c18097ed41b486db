//! The contents of the panes for a run at one moment.

use model::runs::{Model, Run};

use crate::panes::tables::clients::rows::ClientRows;
use crate::panes::tables::routes::model::RouteRows;
use crate::view_model::ViewModel;
use crate::view_model::mark_comparison::MarkComparison;
use crate::view_model::span::{Span, SpanWindows};

/// The figures, the clients and the routes of a run at one moment, with the windows they were taken over. A snapshot is moved along
/// its run, so that only what changes is worked on.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    /// The ticket of the journal read that it was taken from; `None` for the model in memory.
    pub(crate) ticket: Option<u64>,
    /// `None` before there is a run.
    pub(crate) figures: Option<ViewModel>,
    pub(crate) table: ClientRows,
    pub(crate) routes: RouteRows,
    windows: SpanWindows,
    baseline: MarkComparison,
}

impl Snapshot {
    /// A copy of the figures and clients, to be moved to other moments.
    pub(crate) fn copy(&self) -> Self {
        let (figures, table, routes) = (self.figures.clone(), self.table.clone(), self.routes.copy());
        Self { figures, table, routes, ..Self::default() }
    }

    /// Takes a snapshot of a run from a model that holds nothing later than `us`.
    pub(crate) fn take(&mut self, ticket: Option<u64>, (model, run): (&Model, &Run), us: u64, span: Span) {
        if self.ticket != ticket {
            *self = Self { ticket, ..Self::default() };
        }
        let figures = self.figures_at((model, run), us, span);
        self.table.refresh(run, figures.clients_span);
        self.figures = Some(figures);
    }

    /// Takes an earlier moment as far as the model in memory holds it. The rows are those of `clients`.
    pub(crate) fn take_earlier(
        &mut self,
        (model, run): (&Model, &Run),
        us: u64,
        span_us: u64,
        clients: &ClientRows,
    ) {
        self.ticket = None;
        let figures = self.figures_at((model, run), us, Span::Last(span_us));
        self.table = clients.clone();
        if let Span::Last(span_us) = figures.clients_span {
            self.table.change_rows(|row| crate::view_model::past::client_at(run, row.id, us, span_us));
        }
        self.figures = Some(figures);
    }

    fn figures_at(&mut self, (model, run): (&Model, &Run), us: u64, span: Span) -> ViewModel {
        self.windows.slide_to(run, span, us);
        self.routes.refresh(run, us, span);
        let mut figures = ViewModel::at(model, run, us, span, &self.windows);
        self.baseline.compare(run, us, &mut figures);
        figures
    }

    /// The usual time between the records of the run, in microseconds; 0 while unknown.
    pub(crate) fn interval_us(&self) -> u64 {
        self.figures.as_ref().map_or(0, |figures| figures.interval_us)
    }
}
