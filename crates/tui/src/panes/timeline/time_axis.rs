//! The cells of the screen that the columns of the timeline have.

use std::ops::Range;

use ratatui::layout::Rect;

use crate::state::State;

/// The cells of the row labels at the left.
pub(crate) const LABEL_CELLS: u16 = 8;

/// How often the columns move to the left while as many pass as fit. Between that the newest ones fill blank cells: each
/// move changes most cells of the plot, which a terminal is sent.
const STEPS: usize = 16;

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
    /// Blank cells at the right, for the next columns.
    ahead: usize,
    /// The cells of all columns.
    width: usize,
    /// Columns at the left that do not fit.
    pub(crate) hidden: usize,
    pub(crate) shown: usize,
}

impl TimeAxis {
    pub(crate) fn of(state: &State, area: Rect) -> Self {
        let (cells, known) = (columns(area.width), state.timeline.columns().len());
        let x = area.x + LABEL_CELLS.min(area.width);
        if known == 0 || state.is_fitted() {
            let width = if known == 0 { 0 } else { cells };
            return Self {
                x,
                cells,
                ahead: 0,
                width,
                hidden: known - known.min(cells),
                shown: known.min(cells),
            };
        }
        let step = (cells / STEPS).max(1);
        let newest = state.timeline.end_us(known - 1) / state.timeline.column_us().max(1);
        let ahead = step - 1 - (newest % step as u64) as usize;
        let times = young_cells(cells, known + step);
        let shown = known.min((cells / times).saturating_sub(ahead));
        Self { x, cells, ahead: ahead * times, width: shown * times, hidden: known - shown, shown }
    }

    /// Returns the cells of all columns.
    pub(crate) fn width(self) -> u16 {
        self.width as u16
    }

    /// Returns the cell after the last column.
    pub(crate) fn end(self) -> u16 {
        self.right() - self.ahead as u16
    }

    /// Returns the cell after all that columns may have.
    pub(crate) fn right(self) -> u16 {
        self.x + self.cells as u16
    }

    /// Returns the columns that there is room for; those of a young run are wider than a cell.
    pub(crate) fn columns_in_width(self) -> usize {
        (self.cells * self.shown).checked_div(self.width).unwrap_or(self.cells)
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

    /// Returns the column at a cell; at the blank ones behind it, the newest.
    pub(crate) fn place_at(self, x: u16) -> Option<usize> {
        let cell = usize::from(x.checked_sub(self.start())?);
        let cell = if x < self.right() { cell.min(self.width.saturating_sub(1)) } else { cell };
        (cell < self.width).then(|| self.hidden + ((cell + 1) * self.shown - 1) / self.width)
    }
}

/// Returns the index of the column at the past moment.
pub(crate) fn cursor(state: &State) -> Option<usize> {
    state.earlier().and_then(|(us, _)| state.timeline.place(us))
}
