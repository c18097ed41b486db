//! The values of one dimension at a time.

use model::runs::Usage;
use records::metrics::Dimension;

use super::model::{UsageRow, usage_rows};
use crate::panes::model::PaneLayout;
use crate::table::RowList;

#[derive(Clone, Debug)]
pub(crate) struct UsageList {
    pub(crate) rows: RowList<UsageRow>,
    pub(crate) dimension: Dimension,
    /// The panes as they were before usage took their place.
    pub(crate) before: PaneLayout,
}

impl Default for UsageList {
    fn default() -> Self {
        let rows = RowList::by(UsageRow::HANDSHAKES);
        Self { rows, dimension: Dimension::default(), before: PaneLayout::default() }
    }
}

impl UsageList {
    /// Takes the values of the dimension.
    pub(crate) fn refresh(&mut self, usage: Option<&Usage>) {
        self.rows.set(usage.map_or_else(Vec::new, |usage| usage_rows(usage, self.dimension)));
        self.rows.arrange();
    }

    /// Goes to the next dimension. Only packets are counted by service.
    pub(crate) fn next_dimension(&mut self, usage: Option<&Usage>) {
        let at = Dimension::ALL.iter().position(|known| *known == self.dimension).unwrap_or(0);
        let next = Dimension::ALL[(at + 1) % Dimension::ALL.len()];
        let has_next = usage.is_some_and(|usage| usage.of(next).next().is_some());
        let is_left_out = next == Dimension::Service && !has_next;
        self.dimension = if is_left_out { Dimension::ALL[0] } else { next };
        self.rows.table.selected = None;
    }
}
