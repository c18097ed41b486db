//! Usage at the shown moment: the values of one dimension at a time.

use model::runs::Usage;
use records::metrics::Dimension;

use super::model::{UsageId, UsageRow, usage_rows};
use crate::input::intent::{PaneAction, Preset};
use crate::panes::{PaneId, PaneLayout};
use crate::state::State;
use crate::state::moment::View;
use crate::state::screen::Screen;
use crate::table::{ListMove, Row as _, Rows, TableState};

#[derive(Clone, Debug)]
pub(crate) struct UsageList {
    pub(crate) table: TableState<UsageRow>,
    pub(crate) dimension: Dimension,
    rows: Rows<UsageRow>,
    /// The panes as they were before usage took their place.
    pub(crate) before: PaneLayout,
}

impl Default for UsageList {
    fn default() -> Self {
        let table = TableState::by(UsageRow::HANDSHAKES);
        Self { table, dimension: Dimension::default(), rows: Rows::default(), before: PaneLayout::default() }
    }
}

impl State {
    /// Returns what is known at the shown moment; `None` at an earlier one that was not read from the journal.
    pub(crate) fn shown_usage(&self) -> Option<&Usage> {
        match &self.view {
            View::Frozen(past) | View::Replay(past, _) if past.snapshot.ticket.is_none() => {
                past.cursor_us.is_none_or(|us| us >= past.end_us).then_some(&past.usage)
            }
            View::Live | View::Frozen(_) | View::Replay(..) => Some(self.snapshot_run()?.usage()),
        }
    }

    pub(crate) fn usage_row(&self, id: UsageId) -> Option<&UsageRow> {
        self.usage.rows.all().iter().find(|row| row.id() == id)
    }

    /// Updates the values in sight.
    pub(crate) fn arrange_usage(&mut self) {
        let sight = self.sight.usage;
        if sight == 0 && !matches!(self.screen, Screen::Usage(_)) {
            return;
        }
        let listed =
            self.shown_usage().map_or_else(Vec::new, |usage| usage_rows(usage, self.usage.dimension));
        let UsageList { table, rows, .. } = &mut self.usage;
        rows.change(|rows| *rows = listed);
        table.arrange(rows, sight);
    }

    /// Shows who uses what; if that is shown, of the next dimension.
    pub(crate) fn next_dimension(&mut self) {
        if self.sight.usage == 0 {
            return self.arrange_panes(PaneAction::Preset(Preset::Only(PaneId::Usage)));
        }
        let at = Dimension::ALL.iter().position(|known| *known == self.usage.dimension).unwrap_or(0);
        let next = Dimension::ALL[(at + 1) % Dimension::ALL.len()];
        // Only packets are counted by service.
        let has_next = self.shown_usage().is_some_and(|usage| usage.of(next).next().is_some());
        let is_left_out = next == Dimension::Service && !has_next;
        let UsageList { dimension, table, .. } = &mut self.usage;
        *dimension = if is_left_out { Dimension::ALL[0] } else { next };
        table.selected = None;
        self.panes.focus = Some(PaneId::Usage);
        self.screen = Screen::Dashboard;
    }

    /// Goes back from usage alone to the panes before it, or releases its focus; false if usage is neither alone nor focused.
    pub(crate) fn leave_usage(&mut self) -> bool {
        if self.panes.hidden == Preset::Only(PaneId::Usage).hidden() {
            self.panes = std::mem::take(&mut self.usage.before);
            return true;
        }
        self.panes.focus.take_if(|focus| *focus == PaneId::Usage).is_some()
    }

    /// Selects another value.
    pub(crate) fn scroll_usage(&mut self, to: ListMove) {
        let sight = self.sight.usage;
        let UsageList { table, rows, .. } = &mut self.usage;
        table.go(to, rows, sight);
        if let (Screen::Usage(_), Some(id)) = (self.screen, self.usage.table.selected) {
            self.screen = Screen::Usage(id);
        }
    }

    /// Opens the selected value, or the first in sight.
    pub(crate) fn open_usage(&mut self) {
        let first = || self.usage.table.page().first().map(UsageRow::id);
        if let Some(id) = self.usage.table.selected.or_else(first) {
            self.usage.table.selected = Some(id);
            self.screen =
                if self.screen == Screen::Usage(id) { Screen::Dashboard } else { Screen::Usage(id) };
        }
    }
}
