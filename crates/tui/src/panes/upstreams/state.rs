//! The list of upstreams at the shown moment.

use records::ids::RunId;

use super::model::UpstreamRow;
use crate::state::State;
use crate::table::{ListMove, Rows, TableState};
use crate::view_model::span::Span;

#[derive(Clone, Debug)]
pub(crate) struct UpstreamList {
    pub(crate) table: TableState<UpstreamRow>,
    rows: Rows<UpstreamRow>,
    /// The run, the moment and the span of the rows, and whether the moment is in the past.
    of: Option<(RunId, u64, Span, bool)>,
}

impl Default for UpstreamList {
    fn default() -> Self {
        Self { table: TableState::by(0), rows: Rows::default(), of: None }
    }
}

impl State {
    /// Returns whether upstreams deserve a table: there are several, or one is not up.
    pub(crate) fn has_upstreams(&self) -> bool {
        let rows = self.upstreams.rows.all();
        rows.len() > 1 || rows.iter().any(|row| !row.is_up())
    }

    /// Updates the upstreams in sight.
    pub(crate) fn arrange_upstreams(&mut self) {
        let is_past = self.view.past().is_some();
        let span = self.figures().map_or_else(Span::default, |figures| figures.span);
        let Some((run, us)) = self.shown_moment() else { return };
        let of = Some((run.id(), us, span, is_past));
        if of != self.upstreams.of {
            let row = |upstream| UpstreamRow::at(run, upstream, (us, is_past), span);
            let listed: Vec<UpstreamRow> = run.upstreams().iter().filter_map(row).collect();
            self.upstreams.rows.change(|rows| *rows = listed);
            self.upstreams.of = of;
        }
        let sight = self.sight.upstreams;
        let UpstreamList { table, rows, .. } = &mut self.upstreams;
        table.arrange(rows, sight);
    }

    /// Selects another upstream.
    pub(crate) fn scroll_upstreams(&mut self, to: ListMove) {
        let sight = self.sight.upstreams;
        let UpstreamList { table, rows, .. } = &mut self.upstreams;
        table.go(to, rows, sight);
    }

    pub(crate) fn upstream_names(&self) -> Vec<String> {
        self.upstreams.rows.all().iter().map(|row| row.name.to_string()).collect()
    }
}
