//! One class of latencies over time: a heat map, its percentiles, and below them what people did.
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

use super::parts::{heading, put};
use crate::format;
use crate::state::{State, TimelineMode};

/// Cells at the left for what a row is.
const LABEL_CELLS: u16 = 12;
/// Rows of the heading and of the marks.
const FRAME_ROWS: u16 = 2;
/// Rows of the heat map below which it says nothing.
const HEAT_ROWS_MIN: u16 = 3;

/// The fewest rows that say something, with heading and marks.
pub(super) const HEIGHT_MIN: u16 = FRAME_ROWS + HEAT_ROWS_MIN;
/// Rows for the percentiles and a heat map that tells powers of two apart.
pub(super) const HEIGHT_WANTED: u16 = FRAME_ROWS + 6 + percentiles::ROWS;

/// Columns of time in a pane of this width.
pub(super) fn columns(width: u16) -> usize {
    usize::from(width.saturating_sub(LABEL_CELLS + 1))
}

/// Where the parts stand.
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

/// Draws what fits.
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

/// The cell of a column in a part of the pane; the newest stands at the right edge.
fn column_x(state: &State, area: Rect, place: usize) -> Option<u16> {
    let behind = state.timeline.columns().len().checked_sub(place + 1)?;
    let x = area.right().checked_sub(u16::try_from(behind).ok()? + 1)?;
    (x >= area.x + LABEL_CELLS).then_some(x)
}

/// The column in a cell of the pane.
pub(super) fn place_at(state: &State, area: Rect, x: u16) -> Option<usize> {
    let behind = usize::from(area.right().checked_sub(x + 1)?);
    let place = state.timeline.columns().len().checked_sub(behind + 1)?;
    (x >= area.x + LABEL_CELLS).then_some(place)
}

/// The place of the column at the moment that a person went back to.
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
