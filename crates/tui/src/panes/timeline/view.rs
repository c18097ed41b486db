//! One class of latencies over time: a heat map, lines of percentiles, and the time below them with marks and
//! changes.
//!
//! ```text
//! ─ over time: response, ms ──────────── ·any ░1% ▒5% ▓20% █50% of samples ─ 02:16, 1 s a column
//!     5                ·    ·         ░
//!     2  ····░░·····░░▒▒░···░···░·░··▒▒░···░··░░·····░░··░·····░░···
//!   0.5  ████▓▓██████▓▓▓▓███▓███▓█▓▓█▓▓▓███▓█▓▓▓█████▓▓█▓█████▓▓████
//! ─ percentiles, ms ─────────────────────────────────────── ─max 5.16  ─p99 1.78  ─p50 0.222
//!     5  ⠉⠑⠒⠤⠔⠊⠉⠉⠒⠒⠤⠤⠔⠒⠉⠉⠑⠒⠤⠤⠔⠒⠉⠉⠑⠒⠤⠤⠔⠒⠉⠉⠑⠒⠤⠤⠔⠒⠉⠉⠑⠒⠤⠤⠔⠒⠉⠉⠑⠒
//!   0.5  ⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒⠒
//!        ┴00:00───────────────┴00:30───▲rate 5000>6250────┴01:00────────
//! ```
//!
//! The columns fill the width: while there are fewer than cells, each has several. A column without records is blank,
//! down to the line at the bottom.

use super::{axis, heat, lines};
use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;

use crate::format;
use crate::input::click::ClickTarget;
use crate::input::keymap::TIMELINE_HINTS;
use crate::panes::PaneId;
use crate::panes::pane::{Pane, PaneRows};
use crate::state::State;
use crate::state::moment::zoom::TimelineMode;
use crate::widgets::parts::{heading, put};

/// The cells of the row labels at the left.
pub(crate) const LABEL_CELLS: u16 = 8;
/// The rows of the heading and of the time.
pub(crate) const FRAME_ROWS: u16 = 2;
pub(crate) const HEAT_ROWS_MIN: u16 = 3;
/// The minimum rows of the lines beside a heat map, with their heading.
pub(crate) const LINES_ROWS_MIN: u16 = 5;

/// The minimum rows, with heading and time.
pub(crate) const HEIGHT_MIN: u16 = FRAME_ROWS + HEAT_ROWS_MIN;
/// The rows for the lines and a heat map that tells seven levels apart.
pub(crate) const HEIGHT_WANTED: u16 = FRAME_ROWS + 7 + LINES_ROWS_MIN + 1;

pub(crate) const PANE: Pane = Pane {
    id: PaneId::Timeline,
    rows: |state| match state.figures() {
        None => PaneRows::default(),
        Some(_) => PaneRows { min: HEIGHT_MIN, enough: HEIGHT_MIN + 1, wanted: HEIGHT_WANTED, grows: false },
    },
    ranks: [5, 8, 8],
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
    usize::from(width.saturating_sub(LABEL_CELLS))
}

/// The position of the columns on the screen.
#[derive(Clone, Copy)]
pub(crate) struct TimeAxis {
    pub(crate) x: u16,
    pub(crate) cells: usize,
    /// Columns at the left that do not fit.
    pub(crate) hidden: usize,
    pub(crate) shown: usize,
}

impl TimeAxis {
    pub(crate) fn of(state: &State, area: Rect) -> Self {
        let (cells, known) = (columns(area.width), state.timeline.columns().len());
        let hidden = known.saturating_sub(cells);
        Self { x: area.x + LABEL_CELLS.min(area.width), cells, hidden, shown: known - hidden }
    }

    pub(crate) fn cells_of(self, place: usize) -> Option<Range<u16>> {
        let at = place.checked_sub(self.hidden).filter(|at| *at < self.shown)?;
        let from = |at: usize| self.x + (at * self.cells / self.shown) as u16;
        Some(from(at)..from(at + 1))
    }

    pub(crate) fn place_at(self, x: u16) -> Option<usize> {
        let cell = usize::from(x.checked_sub(self.x)?);
        (cell < self.cells && self.shown > 0)
            .then(|| self.hidden + ((cell + 1) * self.shown - 1) / self.cells)
    }
}

pub(crate) struct PlotAreas {
    heat: Rect,
    lines: Rect,
    axis: Rect,
}

impl PlotAreas {
    /// Shows both if there is room. The heat map gets no more rows than it fills with its levels.
    fn of(body: Rect, wanted: TimelineMode, levels: usize) -> Self {
        let rows = body.height.saturating_sub(1);
        let heat = if rows >= HEAT_ROWS_MIN + LINES_ROWS_MIN {
            let most = (rows - LINES_ROWS_MIN).min(rows * 3 / 5).max(HEAT_ROWS_MIN);
            heat::filled(levels, u16::try_from(levels).unwrap_or(most).clamp(HEAT_ROWS_MIN, most))
        } else if wanted == TimelineMode::Heat {
            rows
        } else {
            0
        };
        let at = |y, height| Rect { y: body.y + y, height, ..body };
        Self { heat: at(0, heat), lines: at(heat, rows - heat), axis: at(rows, body.height - rows) }
    }
}

/// Draws the parts that fit.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.height < HEIGHT_MIN || columns(area.width) == 0 {
        return;
    }
    let theme = state.theme;
    let class = state.timeline.class().map_or("", |class| class.title());
    let titles = [format!("over time: {class}, ms"), class.to_owned()];
    let titles = titles.each_ref().map(String::as_str);
    let body = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let levels = state.timeline.levels().map_or(0, |(lowest, highest)| highest - lowest + 1);
    let PlotAreas { heat, lines, axis } = PlotAreas::of(body, state.time.mode, levels);
    let of_lines = || [true, false].map(|with_mark| lines::legend(state, with_mark));
    let legends =
        if heat.is_empty() { of_lines() } else { [true, false].map(|is_long| heat::legend(theme, is_long)) };
    titled(state, frame, Rect { height: 1, ..area }, &titles, legends, &scale(state));
    heat::render(state, frame, heat);
    if !heat.is_empty() && !lines.is_empty() {
        titled(state, frame, Rect { height: 1, ..lines }, &["percentiles, ms"], of_lines(), "");
    }
    let plot = Rect { y: lines.y + 1, height: lines.height.saturating_sub(1), ..lines };
    let plot = if heat.is_empty() { lines } else { plot };
    lines::render(state, frame, plot);
    for part in [heat, plot, axis] {
        highlight_cursor(state, frame, part);
    }
    axis::render(state, frame, axis);
}

/// Returns the time that is shown, and that of a column.
pub(crate) fn scale(state: &State) -> String {
    let column_us = state.timeline.column_us();
    let shown_us = column_us.saturating_mul(state.timeline.columns().len() as u64);
    let by_hand = if state.time.is_automatic() { "" } else { " (zoomed)" };
    format!("{}, {} a column{by_hand}", format::span(shown_us), format::span(column_us))
}

/// Draws a heading with the first legend that fits before the text at its right; without room, the last one replaces
/// that text.
pub(crate) fn titled(
    state: &State,
    frame: &mut Frame<'_>,
    area: Rect,
    titles: &[&str],
    [long, short]: [Line<'static>; 2],
    right: &str,
) {
    let title = titles.first().map_or(0, |title| format::width(title)) + 5;
    let room = |right: &str| {
        let right = if right.is_empty() { 0 } else { format::width(right) + 3 };
        usize::from(area.width).saturating_sub(title + right)
    };
    let mut choices = [(&long, right), (&short, right), (&short, "")].into_iter();
    let fitting = choices.find(|(legend, right)| legend.width() + 2 <= room(right));
    let right = fitting.map_or(right, |(_, right)| right);
    put(frame, area, &[heading(state.theme, titles, right, area.width)]);
    let Some((legend, _)) = fitting else { return };
    // At the right edge nothing follows.
    let cells = legend.width() + 1 + usize::from(!right.is_empty());
    let row = Rect { x: area.x + (title + room(right) - cells) as u16, width: cells as u16, ..area };
    // The style of the line is not that of the legend.
    row.positions().for_each(|place| frame.buffer_mut()[place].reset());
    put(frame, Rect { x: row.x + 1, width: row.width - 1, ..row }, std::slice::from_ref(legend));
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
