//! The table of clients: order, selection and visible part.

use telemetry::ClientId;

use crate::view_model::{ClientRow, ClientTable, Order};

/// The table's state. It selects a client, not a row, so the selection survives a new order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientList {
    pub(crate) order: Order,
    pub(crate) selected: Option<ClientId>,
    /// The text that an address must contain; empty for all.
    pub(crate) filter: String,
    offset: usize,
    /// The visible rows.
    page: Vec<ClientRow>,
}

/// A movement of the selection.
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
    pub(super) fn from(self, at: usize, last: usize) -> usize {
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

impl ClientList {
    /// Sorts the visible rows. Drops the selection of a client that is gone; keeps any other selection
    /// visible.
    pub(super) fn arrange(&mut self, table: &mut ClientTable, rows: usize) {
        table.put_in(self.order, &self.filter);
        let at = self.selected.and_then(|selected| table.place(selected));
        if at.is_none() {
            self.selected = None;
        }
        self.show(at, table.len(), rows);
        self.page.clear();
        self.page.extend(table.page(self.offset..self.offset + rows).copied());
    }

    /// Selects another client; the first step selects the first or last visible row.
    pub(super) fn go(&mut self, to: ListMove, table: &mut ClientTable, rows: usize) {
        let Some(last) = table.len().checked_sub(1) else { return };
        let stride = rows.max(1);
        let at = match (to, self.selected.and_then(|selected| table.place(selected))) {
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
        self.selected = table.page(at..at + 1).next().map(|row| row.id);
    }

    /// The rows in sight.
    pub(crate) fn page(&self) -> &[ClientRow] {
        &self.page
    }

    /// Returns the number of clients before the visible rows.
    pub(crate) fn offset(&self) -> usize {
        self.offset
    }

    fn show(&mut self, selected: Option<usize>, clients: usize, rows: usize) {
        if let Some(at) = selected {
            self.offset = self.offset.clamp((at + 1).saturating_sub(rows.max(1)), at);
        }
        self.offset = self.offset.min(clients.saturating_sub(rows));
    }
}
