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

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::time_axis::{TimeAxis, columns, cursor, value_cells};
use super::{axis, plot, rates, ribbon, welcome};
use crate::input::click::ClickTarget;
use crate::input::intent::Intent;
use crate::input::keymap::hints::{TIME, hint};
use crate::panes::{Pane, PaneRows};
use crate::state::State;
use crate::theme::format;
use crate::widgets::parts::{heading, put, quiet_heading};

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
            TimeAxis::of(state, area).place_at(x).map(ClickTarget::Column)
        }
    },
    hints: &[hint(&[Intent::NextClass], "figure"), hint(&[Intent::ZoomIn, Intent::ZoomOut], "zoom"), TIME],
    ..Pane::PLAIN
};

/// Draws the parts that fit.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if state.awaits_clients() {
        return welcome::render(state, frame, area);
    }
    if area.height < HEIGHT_MIN || columns(area.width) == 0 {
        return;
    }
    let class = state.timeline.class().map_or("", |class| class.title());
    let has_legend = value_cells(area.width) == 0 || plot::is_at_cursor(state);
    let legend = if has_legend { plot::legend(state) } else { Line::default() };
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

/// Returns the time that the plot has room for, and that of a column.
fn scale(state: &State, area: Rect) -> String {
    let column_us = state.timeline.column_us();
    let shown_us = column_us.saturating_mul(TimeAxis::of(state, area).columns_in_width() as u64);
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
    let mut legend = legend;
    if legend.width() > 0 {
        let scale = format!("   {}", scale(state, area));
        if legend.width() + format::width(&scale) <= room {
            legend.spans.push(Span::styled(scale, state.theme.quiet()));
        }
        put(frame, area, &[heading(state.theme, &titles[1..], "", area.width)]);
        let cells = (legend.width() as u16).min(area.width);
        let row = Rect { x: area.right() - cells, width: cells, ..area };
        row.positions().for_each(|place| frame.buffer_mut()[place].reset());
        return put(frame, row, &[legend]);
    }
    let scale = scale(state, area);
    let right = format!("{}   {scale}", keys(state));
    let right = if format::width(&right) <= room { right } else { scale };
    put(frame, area, &[quiet_heading(state.theme, titles, &right, area.width)]);
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
