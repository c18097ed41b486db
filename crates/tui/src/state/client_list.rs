//! The order of the clients, which one is selected, and which part of them is in sight.

use std::ops::Range;

use telemetry::ClientId;

use crate::figures::{ClientRow, Order, SortKey, sort};

/// The table's state. The selection is a client and not a row, so that it stays on it when the order changes.
#[derive(Clone, Debug)]
pub(crate) struct ClientList {
    pub(crate) order: Order,
    pub(crate) selected: Option<ClientId>,
    offset: usize,
}

impl Default for ClientList {
    fn default() -> Self {
        Self { order: Order { key: SortKey::Out, reversed: false }, selected: None, offset: 0 }
    }
}

/// Where a person wants to go in the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Move {
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
}

impl ClientList {
    /// Sorts the rows, lets go of a selected client that is no more, and keeps it within the page otherwise.
    pub(super) fn arrange(&mut self, rows: &mut [ClientRow], page: usize) {
        sort(rows, self.order);
        let at = self.selected_row(rows);
        if at.is_none() {
            self.selected = None;
        }
        self.show(at, rows.len(), page);
    }

    /// Selects another client; the first step selects the one at the top or the bottom of the page.
    pub(super) fn go(&mut self, to: Move, rows: &[ClientRow], page: usize) {
        let Some(last) = rows.len().checked_sub(1) else { return };
        let stride = page.max(1);
        let at = match (to, self.selected_row(rows)) {
            (Move::First, _) => 0,
            (Move::Last, _) => last,
            (Move::Up | Move::PageUp, None) => (self.offset + stride).saturating_sub(1),
            (Move::Down | Move::PageDown, None) => self.offset,
            (Move::Up, Some(at)) => at.saturating_sub(1),
            (Move::Down, Some(at)) => at + 1,
            (Move::PageUp, Some(at)) => at.saturating_sub(stride),
            (Move::PageDown, Some(at)) => at + stride,
        };
        let at = at.min(last);
        self.selected = Some(rows[at].id);
        self.show(Some(at), rows.len(), page);
    }

    /// The rows in sight on a page of so many.
    pub(crate) fn visible(&self, rows: usize, page: usize) -> Range<usize> {
        let start = self.offset.min(rows.saturating_sub(page));
        start..(start + page).min(rows)
    }

    fn selected_row(&self, rows: &[ClientRow]) -> Option<usize> {
        let selected = self.selected?;
        rows.iter().position(|row| row.id == selected)
    }

    fn show(&mut self, selected: Option<usize>, rows: usize, page: usize) {
        if let Some(at) = selected {
            self.offset = self.offset.clamp((at + 1).saturating_sub(page.max(1)), at);
        }
        self.offset = self.offset.min(rows.saturating_sub(page));
    }
}
