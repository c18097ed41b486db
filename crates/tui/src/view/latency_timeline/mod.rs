//! One class of latencies over time: a heat map, percentiles, and marks and changes below them.
//!
//! ```text
//! ─ over time: response, ms ──────────────────────────── 2 min 16 s, 2 s a column ─
//!        32             .    .         :         .                     .
//!         8   . ..:  .  . : ..:. .  . -=-  .  . .. .  .   ..  .    ..   ..
//!      <0.5 |#*##**#*##*#*#*#*##*#*##**=*#*##**#*####*##*####*##*####*##*##
//!  p99  6.11  ▁▁▂▁▁▂▁▁▁▁▂▁▂▁▁▂▁▁▁▂▁▃▅▇▅▂▁▁▂▁▁▁▁▂▁▁▁▂▁▁▁▂▁▁▁▂▁▁
//!             ────────────────────────┴ load.rate 5000 > 6250 ─────────────
//! ```
//!
//! A column without records is blank, down to the line at the bottom.

mod heat;
mod marks;
mod percentiles;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;

use super::layout::Target;
use super::pane::{Pane, PaneRows};
use super::parts::{heading, put};
use crate::format;
use crate::input::keymap::TIMELINE_HINTS;
use crate::state::{PaneId, State, TimelineMode};

/// The cells of the row labels at the left.
const LABEL_CELLS: u16 = 12;
/// The rows of the heading and of the marks.
const FRAME_ROWS: u16 = 2;
/// The minimum rows of the heat map.
const HEAT_ROWS_MIN: u16 = 3;

/// The minimum rows, with heading and marks.
pub(super) const HEIGHT_MIN: u16 = FRAME_ROWS + HEAT_ROWS_MIN;
/// The rows for the percentiles and a heat map that separates powers of two.
pub(super) const HEIGHT_WANTED: u16 = FRAME_ROWS + 6 + percentiles::ROWS;

/// The pane.
pub(super) const PANE: Pane = Pane {
    id: PaneId::Timeline,
    meaning: "one latency class over time, with marks and changes",
    rows: |state| match state.figures() {
        None => PaneRows::default(),
        Some(_) => PaneRows { min: HEIGHT_MIN, enough: HEIGHT_MIN + 1, wanted: HEIGHT_WANTED, grows: false },
    },
    ranks: [5, 8, 8],
    render,
    target: |state, area, (x, y)| {
        if y == area.y { Some(Target::Timeline) } else { place_at(state, area, x).map(Target::Column) }
    },
    hints: TIMELINE_HINTS,
};

/// Returns the number of columns in a pane of this width.
pub(super) fn columns(width: u16) -> usize {
    usize::from(width.saturating_sub(LABEL_CELLS + 1))
}

/// The areas of the parts.
struct Parts {
    heat: Rect,
    percentiles: Rect,
    marks: Rect,
}

impl Parts {
    fn of(body: Rect, wanted: TimelineMode) -> Self {
        let rows = body.height.saturating_sub(1);
        let (heat, percentiles) = if rows >= HEAT_ROWS_MIN + percentiles::ROWS {
            (rows - percentiles::ROWS, percentiles::ROWS)
        } else if wanted == TimelineMode::Heat {
            (rows, 0)
        } else {
            (0, rows)
        };
        let at = |y, height| Rect { y: body.y + y, height, ..body };
        Self { heat: at(0, heat), percentiles: at(heat, percentiles), marks: at(rows, body.height - rows) }
    }
}

/// Draws the parts that fit.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.height < HEIGHT_MIN || columns(area.width) == 0 {
        return;
    }
    let theme = state.theme;
    let class = state.timeline.class().map_or("", |class| class.title());
    let column_us = state.timeline.column_us();
    let whole = format::span(column_us.saturating_mul(columns(area.width) as u64));
    let right = format!("{whole}, {} a column", format::span(column_us));
    let titles = [format!("over time: {class}, ms"), class.to_owned()];
    let titles = titles.each_ref().map(String::as_str);
    put(frame, area, &[heading(theme, &titles, &right, area.width)]);
    let body = Rect { y: area.y + 1, height: area.height - 1, ..area };
    let parts = Parts::of(body, state.time.mode);
    heat::render(state, frame, parts.heat);
    percentiles::render(state, frame, parts.percentiles);
    marks::render(state, frame, parts.marks);
    highlight_cursor(state, frame, body);
}

/// Returns the cell of a column; the newest is at the right edge.
fn column_x(state: &State, area: Rect, place: usize) -> Option<u16> {
    let behind = state.timeline.columns().len().checked_sub(place + 1)?;
    let x = area.right().checked_sub(u16::try_from(behind).ok()? + 1)?;
    (x >= area.x + LABEL_CELLS).then_some(x)
}

/// Returns the column at a cell of the pane.
pub(super) fn place_at(state: &State, area: Rect, x: u16) -> Option<usize> {
    let behind = usize::from(area.right().checked_sub(x + 1)?);
    let place = state.timeline.columns().len().checked_sub(behind + 1)?;
    (x >= area.x + LABEL_CELLS).then_some(place)
}

/// Returns the index of the column at the past moment.
fn cursor(state: &State) -> Option<usize> {
    state.earlier().and_then(|(us, _)| state.timeline.place(us))
}

fn highlight_cursor(state: &State, frame: &mut Frame<'_>, body: Rect) {
    let Some(x) = cursor(state).and_then(|place| column_x(state, body, place)) else { return };
    for y in body.y..body.bottom() {
        let cell = &mut frame.buffer_mut()[(x, y)];
        let style = cell.style().add_modifier(Modifier::REVERSED);
        cell.set_style(style);
    }
}
