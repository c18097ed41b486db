//! One class of latencies over time: a plot, the rates and the failures below it, and the time with marks and changes.
//!
//! ```text
//! ─ exchange over time, ms ─────────────────── f class  v heat  i o zoom ── 2.4 min, 1 s a column
//!   100                                                           ⢀⠤⠤⠄ p99 103
//!       ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌ ╌⢀⠎╌ ╌  limit 50
//!    10 ⠉⠉⠉⠉⠉⠈⠉⠉⠒⠊⠉⠉⠉⠈⠉⠉⠉⠒⠊⠉⠈⠉⠉⠈⠊⠉⠉⠉⠉⠉⠉⠉⠑⠔⠉⠉⠈⠉⠈⠉⠉⠉⠊⠉⠈⠉⠉⠉⠊⠉⠈⠉
//!     1 ⠤⠤⠤⠢⠤⠢⠤⠤⠤⠤⠤⠤⠤⠤⠒⠢⠤⠢⠤⠤⠤⠤⠤⠒⠢⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠤⠒⠒⠢⠤⠤⠤⠢⠤⠤⠤⠤⠤⠤⠤ p50 1.07
//! rate/s ▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅▅███ 292
//! failed ▄▄▄▄▃▄▃▃▄▄▃▄▄▄▄▄▃▄▄▄▄▄▄▃▄▃▄▃▄▄▄▄▃▃▄▄▄▄▃▄▄▄▃▄▃▄▄▄▄▄▄▄▃▃▃▃▃▄▂▂▂▂ 1.9
//!   time ┴+00:00─────────────────┴+01:00───▲alert.1────────────────!───└10 s┘
//! ```
//!
//! The newest column is at the right, of a second or as long as the zoom has it; the others only shift. A column
//! without records is blank, down to the line at the bottom.

use super::{axis, plot, rates, ribbon, welcome};
use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;

use crate::format;
use crate::input::click::ClickTarget;
use crate::input::intent::Intent;
use crate::input::keymap::TIMELINE_HINTS;
use crate::panes::{Pane, PaneId, PaneRows};
use crate::state::State;
use crate::widgets::parts::{heading, put, quiet_heading};

/// The cells of the row labels at the left.
pub(crate) const LABEL_CELLS: u16 = 8;
/// The rows of the heading and of the time.
const FRAME_ROWS: u16 = 2;
/// The fewest rows of the plot.
const PLOT_ROWS_MIN: u16 = 3;
/// The fewest rows of the plot with failures, and with rates and failures below it.
const PLOT_ROWS_WITH_RATES: [u16; 2] = [5, 7];

/// The minimum rows, with heading and time.
pub(crate) const HEIGHT_MIN: u16 = FRAME_ROWS + PLOT_ROWS_MIN;
const HEIGHT_ENOUGH: u16 = FRAME_ROWS + PLOT_ROWS_WITH_RATES[0] + 1;
/// The rows of a plot that tells values a tenth apart.
const HEIGHT_WANTED: u16 = FRAME_ROWS + 14 + 2;

pub(crate) const PANE: Pane = Pane {
    id: PaneId::Timeline,
    rows: |state| match state.figures() {
        None => PaneRows::default(),
        Some(_) if state.awaits_clients() => PaneRows { min: 1, enough: 7, wanted: 7, grows: true },
        Some(_) => PaneRows { min: HEIGHT_MIN, enough: HEIGHT_ENOUGH, wanted: HEIGHT_WANTED, grows: false },
    },
    ranks: [1, 5, 8],
    render,
    target: |state, area, (x, y)| {
        if y == area.y {
            Some(ClickTarget::Timeline)
        } else {
            place_at(state, area, x).map(ClickTarget::Column)
        }
    },
    hints: TIMELINE_HINTS,
};

/// Returns the number of columns in a pane of this width.
pub(crate) fn columns(width: u16) -> usize {
    usize::from(width.saturating_sub(LABEL_CELLS + value_cells(width)))
}

/// Returns the cells of the values at the right; the heading of a narrow pane has them.
fn value_cells(width: u16) -> u16 {
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

/// Draws the parts that fit.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if state.awaits_clients() {
        return welcome::render(state, frame, area);
    }
    if area.height < HEIGHT_MIN || columns(area.width) == 0 {
        return;
    }
    let class = state.timeline.class().map_or("", |class| class.title());
    let legend = if value_cells(area.width) == 0 { plot::legend(state) } else { Line::default() };
    let titles = [format!("{class} over time, ms"), format!("{class}, ms"), class.to_owned()];
    let titles = titles.each_ref().map(String::as_str);
    titled(state, frame, Rect { height: 1, ..area }, &titles, legend);
    let ribbon = u16::from(!state.arms.is_empty() && area.height > HEIGHT_MIN);
    let rows = area.height - FRAME_ROWS - ribbon;
    let below =
        PLOT_ROWS_WITH_RATES.into_iter().zip(1..).filter(|(plot, below)| rows >= plot + below).count() as u16;
    let part = |y, height| Rect { y: area.y + 1 + y, height, ..area };
    let (plot, rates) = (part(0, rows - below), part(rows - below, below));
    let (ribbon, axis) = (part(rows, ribbon), part(rows + ribbon, 1));
    plot::render(state, frame, plot);
    rates::render(state, frame, rates);
    ribbon::render(state, frame, ribbon);
    for part in [plot, rates, ribbon, axis] {
        highlight_cursor(state, frame, part);
    }
    axis::render(state, frame, axis);
}

/// Returns the time that is shown, and that of a column.
fn scale(state: &State) -> String {
    let column_us = state.timeline.column_us();
    let fit = if state.is_fitted() { 0 } else { state.sight.timeline_columns };
    let shown = state.timeline.columns().len().max(fit) as u64;
    let shown_us = column_us.saturating_mul(shown);
    format!("{}, {} a column", format::span(shown_us), format::span(column_us))
}

/// Names the keys of the pane.
fn keys(state: &State) -> String {
    let named = [
        ("class", &[Intent::NextClass][..]),
        ("heat", &[Intent::ToggleTimeline]),
        ("zoom", &[Intent::ZoomIn, Intent::ZoomOut]),
    ];
    let keys = |intents: &[Intent]| {
        let first = |intent: &Intent| state.options.keymap.names(*intent).into_iter().next();
        intents.iter().filter_map(first).collect::<Vec<_>>().join(" ")
    };
    named.map(|(word, intents)| format!("{} {word}", keys(intents))).join("  ")
}

/// Draws a heading with what fits at its right: the legend, or keys and scale.
fn titled(state: &State, frame: &mut Frame<'_>, area: Rect, titles: &[&str], legend: Line<'static>) {
    let title = titles.first().map_or(0, |title| format::width(title)) + 8;
    let room = usize::from(area.width).saturating_sub(title);
    if legend.width() > 0 {
        put(frame, area, &[heading(state.theme, &titles[1..], "", area.width)]);
        let cells = (legend.width() as u16).min(area.width);
        let row = Rect { x: area.right() - cells, width: cells, ..area };
        row.positions().for_each(|place| frame.buffer_mut()[place].reset());
        return put(frame, row, &[legend]);
    }
    let scale = scale(state);
    let right = format!("{}   {scale}", keys(state));
    let right = if format::width(&right) <= room { right } else { scale };
    put(frame, area, &[quiet_heading(state.theme, titles, &right, area.width)]);
}

/// Returns the column at a cell of the pane.
pub(crate) fn place_at(state: &State, area: Rect, x: u16) -> Option<usize> {
    TimeAxis::of(state, area).place_at(x)
}

/// Returns the index of the column at the past moment.
pub(crate) fn cursor(state: &State) -> Option<usize> {
    state.earlier().and_then(|(us, _)| state.timeline.place(us))
}

/// Reverses the middle cell of the column at the past moment, in each row of a part.
pub(crate) fn highlight_cursor(state: &State, frame: &mut Frame<'_>, part: Rect) {
    let cells = cursor(state).and_then(|place| TimeAxis::of(state, part).cells_of(place));
    let Some(x) = cells.map(|cells| cells.start + (cells.len() as u16).saturating_sub(1) / 2) else { return };
    for y in part.y..part.bottom() {
        let cell = &mut frame.buffer_mut()[(x, y)];
        let style = cell.style().add_modifier(Modifier::REVERSED);
        cell.set_style(style);
    }
}
