//! The state of a table: order, columns, filter, selection, and the visible rows.

use super::Row;
use super::filter::RowFilter;
use super::order::Order;
use super::rows::Rows;

/// A table's state. It selects a row by its id, so the selection survives a new order.
#[derive(Clone, Debug)]
pub(crate) struct TableState<R: Row> {
    pub(crate) order: Order,
    pub(crate) selected: Option<R::Id>,
    /// The row whose details were opened last.
    pub(crate) opened: Option<R::Id>,
    pub(crate) filter: RowFilter<R>,
    /// The shown columns, by their index; the first names the row.
    pub(crate) columns: Vec<usize>,
    /// The rows that it has room for.
    pub(crate) sight: usize,
    offset: usize,
    /// The rows that pass the filter.
    len: usize,
    all: usize,
    /// The rows in sight.
    page: Vec<R>,
    /// The usual columns that may be blank, and are so in every row.
    blank: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMove {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

impl ListMove {
    /// Returns the new line, from line `at` of a list whose last line is `last`.
    pub(crate) fn from(self, at: usize, last: usize) -> usize {
        const PAGE: usize = 10;
        let to = match self {
            Self::Up => at.saturating_sub(1),
            Self::Down => at + 1,
            Self::PageUp => at.saturating_sub(PAGE),
            Self::PageDown => at + PAGE,
            Self::First => 0,
            Self::Last => last,
        };
        to.min(last)
    }
}

impl<R: Row> TableState<R> {
    /// A table in the usual order by a column, with the usual columns.
    pub(crate) fn by(column: usize) -> Self {
        Self {
            order: Order::by::<R>(column),
            selected: None,
            opened: None,
            filter: RowFilter::default(),
            columns: usual_columns::<R>(),
            sight: 0,
            offset: 0,
            len: 0,
            all: 0,
            page: Vec::new(),
            blank: Vec::new(),
        }
    }

    /// Sorts the rows in sight. Drops the selection of a row that is gone; keeps any other in sight.
    pub(crate) fn arrange(&mut self, rows: &mut Rows<R>) {
        let sight = self.sight;
        rows.put_in(self.order, &self.filter);
        let at = self.selected.and_then(|selected| rows.place(selected));
        if at.is_none() {
            self.selected = None;
        }
        (self.len, self.all) = (rows.len(), rows.all().len());
        if let Some(at) = at {
            self.offset = self.offset.clamp((at + 1).saturating_sub(sight.max(1)), at);
        }
        self.offset = self.offset.min(self.len.saturating_sub(sight));
        self.page.clear();
        self.page.extend(rows.page(self.offset..self.offset + sight).cloned());
        self.blank.clear();
        self.blank.extend((0..R::columns().len()).filter(|at| rows.is_blank(*at)));
    }

    /// Selects another row, and opens it; the first step selects the first or last in sight.
    pub(crate) fn go(&mut self, to: ListMove, rows: &mut Rows<R>) {
        let Some(last) = rows.len().checked_sub(1) else { return };
        let stride = self.sight.max(1);
        let at = match (to, self.selected.and_then(|selected| rows.place(selected))) {
            (ListMove::First, _) => 0,
            (ListMove::Last, _) => last,
            (ListMove::Up | ListMove::PageUp, None) => (self.offset + stride).saturating_sub(1),
            (ListMove::Down | ListMove::PageDown, None) => self.offset,
            (ListMove::Up, Some(at)) => at.saturating_sub(1),
            (ListMove::Down, Some(at)) => at + 1,
            (ListMove::PageUp, Some(at)) => at.saturating_sub(stride),
            (ListMove::PageDown, Some(at)) => at + stride,
        };
        let at = at.min(last);
        self.selected = rows.page(at..at + 1).next().map(R::id);
        self.opened = self.selected.or(self.opened);
    }

    /// Returns whether a usual column that may be blank is so in every row, in sight or not.
    pub(crate) fn is_blank(&self, column: usize) -> bool {
        self.blank.contains(&column)
    }

    pub(crate) fn page(&self) -> &[R] {
        &self.page
    }

    /// The number of rows before those in sight.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    /// Selects and opens the selected row, or else the first in sight; `None` without any.
    pub(crate) fn open_selected(&mut self) -> Option<R::Id> {
        self.selected = self.selected.or_else(|| self.page.first().map(R::id));
        self.opened = self.selected.or(self.opened);
        self.selected
    }

    /// The rows that pass the filter, and all.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.len, self.all)
    }
}

/// Returns the columns that are shown unless others are chosen.
pub(crate) fn usual_columns<R: Row>() -> Vec<usize> {
    (0..R::columns().len()).filter(|&at| at == 0 || R::columns()[at].is_usual).collect()
}
