//! The list of upstreams at the shown moment.

use records::ids::RunId;
use records::kinds::UpstreamState;

use super::model::UpstreamRow;
use crate::input::intent::List;
use crate::state::State;
use crate::table::{ListMove, NameId, Rows, TableState};
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

    /// The upstream that is selected in the pane in focus, and whether it is drained at present, whatever moment is shown.
    pub(crate) fn selected_upstream(&self) -> Option<(String, bool)> {
        let id = self.upstreams.table.selected.filter(|_| self.list() == List::Upstreams)?;
        let (run, _) = self.shown_moment()?;
        let selected = run.upstreams().iter().find(|upstream| NameId::of(upstream.name()) == id)?;
        Some((selected.name().to_owned(), selected.record().state == UpstreamState::Drained))
    }

    pub(crate) fn upstream_names(&self) -> Vec<String> {
        self.upstreams.rows.all().iter().map(|row| row.name.to_string()).collect()
    }
}
