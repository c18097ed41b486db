//! The cells of the screen that the columns of the timeline have.

use std::ops::Range;

use ratatui::layout::Rect;

use crate::state::State;

/// The cells of the row labels at the left.
pub(crate) const LABEL_CELLS: u16 = 8;

/// Returns the number of columns in a pane of this width.
pub(crate) fn columns(width: u16) -> usize {
    usize::from(width.saturating_sub(LABEL_CELLS + value_cells(width)))
}

/// Returns the cells of the values at the right; the heading of a narrow pane has them.
pub(super) fn value_cells(width: u16) -> u16 {
    match width {
        100.. => 14,
        70.. => 11,
        _ => 0,
    }
}

/// Returns the cells of a column of a run that goes on: a young run gets four, then two, so that it is seen.
fn young_cells(cells: usize, known: usize) -> usize {
    [4, 2].into_iter().find(|times| known * times <= cells).unwrap_or(1)
}

/// The position of the columns on the screen.
#[derive(Clone, Copy)]
pub(crate) struct TimeAxis {
    pub(crate) x: u16,
    pub(crate) cells: usize,
    /// The cells of all columns.
    width: usize,
    /// Columns at the left that do not fit.
    pub(crate) hidden: usize,
    pub(crate) shown: usize,
}

impl TimeAxis {
    pub(crate) fn of(state: &State, area: Rect) -> Self {
        let (cells, known) = (columns(area.width), state.timeline.columns().len());
        let shown = known.min(cells);
        let width = if state.is_fitted() { cells } else { shown * young_cells(cells, known) };
        let x = area.x + LABEL_CELLS.min(area.width);
        Self { x, cells, width: if shown == 0 { 0 } else { width }, hidden: known - shown, shown }
    }

    /// Returns the cells of all columns.
    pub(crate) fn width(self) -> u16 {
        self.width as u16
    }

    /// Returns the cell after the last column.
    pub(crate) fn end(self) -> u16 {
        self.x + self.cells as u16
    }

    pub(crate) fn column_cells(self) -> u16 {
        (self.width / self.shown.max(1)) as u16
    }

    /// Returns the first cell of the first column.
    pub(crate) fn start(self) -> u16 {
        self.end() - self.width()
    }

    pub(crate) fn cells_of(self, place: usize) -> Option<Range<u16>> {
        let at = place.checked_sub(self.hidden).filter(|at| *at < self.shown)?;
        let from = |at: usize| self.start() + (at * self.width / self.shown) as u16;
        Some(from(at)..from(at + 1))
    }

    pub(crate) fn place_at(self, x: u16) -> Option<usize> {
        let cell = usize::from(x.checked_sub(self.start())?);
        (cell < self.width).then(|| self.hidden + ((cell + 1) * self.shown - 1) / self.width)
    }
}

/// Returns the index of the column at the past moment.
pub(crate) fn cursor(state: &State) -> Option<usize> {
    state.earlier().and_then(|(us, _)| state.timeline.place(us))
}
