//! The order of the clients, which one is selected, and which part of them is in sight.

use telemetry::ClientId;

use crate::view_model::{ClientRow, ClientTable, Order};

/// The table's state. The selection is a client and not a row, so that it stays on it when the order changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClientList {
    pub(crate) order: Order,
    pub(crate) selected: Option<ClientId>,
    /// What an address must hold for its client to be shown; empty for all.
    pub(crate) filter: String,
    offset: usize,
    /// The rows in sight.
    page: Vec<ClientRow>,
}

/// Where a person wants to go in the table.
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
    /// Goes from line `at` of a list whose last line is `last`.
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
    /// Puts so many rows in sight in order, lets go of a selected client that is no more, and keeps it in sight
    /// otherwise.
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

    /// Selects another client; the first step selects the one at the top or the bottom of the rows in sight.
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

    /// Clients that come before the rows in sight.
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
