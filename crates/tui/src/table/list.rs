//! Rows, with the table that shows them.

use records::ids::RunId;

use super::{ListMove, Row, Rows, TableState};
use crate::view_model::span::Span;

/// The rows of a pane, and how it shows them.
#[derive(Clone, Debug)]
pub(crate) struct RowList<R: Row> {
    pub(crate) table: TableState<R>,
    rows: Rows<R>,
    moment: Option<RowMoment>,
}

/// The run and the moment that rows are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowMoment {
    pub(crate) run: RunId,
    /// On the run's monotonic clock.
    pub(crate) us: u64,
    pub(crate) is_past: bool,
    pub(crate) span: Span,
}

impl<R: Row> Default for RowList<R> {
    fn default() -> Self {
        Self::by(0)
    }
}

impl<R: Row> RowList<R> {
    /// An empty list in the usual order by a column.
    pub(crate) fn by(column: usize) -> Self {
        Self { table: TableState::by(column), rows: Rows::default(), moment: None }
    }

    /// An empty list, the lowest figures of a column first.
    pub(crate) fn ascending_by(column: usize) -> Self {
        let mut list = Self::by(column);
        list.table.order.is_descending = false;
        list
    }

    /// All rows, unordered.
    pub(crate) fn all(&self) -> &[R] {
        self.rows.all()
    }

    pub(crate) fn row(&self, id: R::Id) -> Option<&R> {
        self.all().iter().find(|row| row.id() == id)
    }

    /// Replaces all rows.
    pub(crate) fn set(&mut self, rows: Vec<R>) {
        self.rows.change(|all| *all = rows);
    }

    /// Replaces all rows unless they are of this moment already; returns whether they were not.
    pub(crate) fn renew(&mut self, moment: RowMoment, rows: impl FnOnce() -> Vec<R>) -> bool {
        let is_new = self.moment.replace(moment) != Some(moment);
        if is_new {
            self.set(rows());
        }
        is_new
    }

    /// Sorts the rows in sight.
    pub(crate) fn arrange(&mut self) {
        self.table.arrange(&mut self.rows);
    }

    /// Selects another row.
    pub(crate) fn go(&mut self, to: ListMove) {
        self.table.go(to, &mut self.rows);
    }

    /// Selects a row if none is selected and the filter lets it pass.
    pub(crate) fn preselect(&mut self, id: Option<R::Id>) {
        if self.table.selected.is_none() {
            self.table.selected = id.filter(|&id| self.rows.place(id).is_some());
        }
    }
}
