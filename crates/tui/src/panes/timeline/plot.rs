//! The plot: lines of p99 and p50 over a heat map, on one logarithmic scale, with the limit of an alert and the last
//! values at the right.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::levels::{self, LEVELS};
use super::model::TimelineColumn;
use super::raster::{Raster, TimelineLine};
use super::time_axis::{LABEL_CELLS, TimeAxis, cursor};
use crate::state::State;
use crate::theme::Glyphs;
use crate::theme::format;
use crate::view_model::classes::LatencyRow;

/// A limit further above all values than this factor is named at the top instead of drawn, as one below the scale is at
/// the bottom.
const LIMIT_FACTOR_MAX: f64 = 100.0;
/// By how much of a power of ten values may be above the top.
const SLACK: f64 = 0.05;
/// The shares of a column's samples from which a cell is drawn in the next stronger way; a single sample is drawn in
/// the first.
const SHARES: [f64; 4] = [0.01, 0.05, 0.2, 0.5];

/// A scale of whole powers of ten, so that it stays while values move within them.
#[derive(Clone, Copy)]
pub(crate) struct LogScale {
    /// Decimal logarithms of milliseconds.
    bottom: i32,
    top: i32,
}

impl LogScale {
    /// Covers p50 and p99 of all columns, and a limit near them; `None` without samples.
    pub(crate) fn of(state: &State) -> Option<Self> {
        let columns = || state.timeline.columns().iter();
        let low = columns().filter_map(|column| TimelineLine::P50.ns(column)).chain(before(state)).min()?;
        let high = columns().filter_map(|column| TimelineLine::P99.ns(column)).chain(before(state)).max()?;
        let near = |limit: &f64| *limit <= high as f64 * LIMIT_FACTOR_MAX;
        let high = limit_ns(state).filter(near).map_or(high as f64, |limit| limit.max(high as f64));
        let power = |ns: f64| (ns.max(1.0) / 1e6).log10();
        let bottom = power(low as f64).floor() as i32;
        // What is a little above a power of ten is drawn at the top.
        let top = (power(high) - SLACK).ceil() as i32;
        Some(Self { bottom, top: top.max(bottom + 1) })
    }

    /// Returns the height from 0 to 1.
    fn height(self, ns: f64) -> f64 {
        ((ns.max(1.0) / 1e6).log10() - f64::from(self.bottom)) / f64::from(self.top - self.bottom)
    }

    /// Returns the latency at a height, in milliseconds.
    fn ms(self, height: f64) -> f64 {
        10_f64.powf(f64::from(self.bottom) + height * f64::from(self.top - self.bottom))
    }

    /// Returns the round values on the scale, in milliseconds: powers of ten, and what is between on a scale of one.
    fn steps(self) -> impl Iterator<Item = f64> {
        let factors: &[f64] = if self.top - self.bottom == 1 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let powers = self.bottom..=self.top;
        let all = powers.flat_map(move |power| factors.iter().map(move |factor| factor * 10_f64.powi(power)));
        // Above the top is nothing.
        all.filter(move |ms| self.height(ms * 1e6) <= 1.0 + 1e-9)
    }
}

/// Returns the row of a height from 0 to 1, from the top of an area.
fn row(height: f64, area: Rect) -> u16 {
    let from_bottom = (height.clamp(0.0, 1.0) * f64::from(area.height)) as u16;
    area.bottom() - 1 - from_bottom.min(area.height - 1)
}

/// Returns p99 of the window that the class is compared with, in nanoseconds.
fn before(state: &State) -> Option<u64> {
    shown_row(state)?.change.map(|change| change.before_ns)
}

/// Returns the row of the class that the plot shows.
pub(crate) fn shown_row(state: &State) -> Option<&LatencyRow> {
    let class = state.timeline.class()?;
    state.figures()?.latency(class)
}

/// Returns the lowest limit that an alert sets to a percentile of the class, in nanoseconds.
fn limit_ns(state: &State) -> Option<f64> {
    let class = state.timeline.class()?;
    let limits = state.figures()?.limits.iter().filter(|limit| limit.class == class);
    limits.map(|limit| limit.ns).min_by(f64::total_cmp)
}

/// Draws the plot into an area that begins with the labels of its scale.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let axis = TimeAxis::of(state, area);
    let Some(scale) = LogScale::of(state).filter(|_| !area.is_empty() && axis.shown > 0) else { return };
    let theme = state.theme;
    for ms in scale.steps() {
        let y = row(scale.height(ms * 1e6), area);
        let label = format!("{:>1$} ", axis_label(ms), usize::from(LABEL_CELLS) - 1);
        frame.buffer_mut().set_string(area.x, y, label, theme.quiet());
    }
    heat(state, frame, area, (axis, scale));
    let plot = Rect { x: axis.x, width: axis.cells as u16, ..area };
    if let Some(y) = limit_ns(state).map(|ns| scale.height(ns)).filter(|y| (0.0..=1.0).contains(y)) {
        let y = row(y, area);
        for x in (plot.x..plot.right()).step_by(2) {
            frame.buffer_mut()[(x, y)].set_char(theme.glyphs.dash()).set_style(theme.limit());
        }
    }
    let lines = Rect { x: axis.start(), width: axis.width(), ..area };
    let mut raster = Raster::new(lines, theme.glyphs);
    if let Some(ns) = before(state) {
        raster.dotted(TimelineLine::Before, scale.height(ns as f64));
    }
    let columns = || state.timeline.columns().iter().skip(axis.hidden);
    // p99 matters most, and is drawn over the other.
    for series in [TimelineLine::P50, TimelineLine::P99] {
        let height = |column| series.ns(column).map(|ns| scale.height(ns as f64));
        raster.line(series, &columns().map(height).collect::<Vec<_>>());
    }
    raster.draw(theme, frame);
    values(state, frame, area, scale);
}

fn axis_label(ms: f64) -> String {
    if ms < 1.0 { format::plain(ms) } else { format::count(ms as u64) }
}

/// Draws the shares of samples: more of them are stronger. What is above the scale is in the top row.
fn heat(state: &State, frame: &mut Frame<'_>, area: Rect, (axis, scale): (TimeAxis, LogScale)) {
    if !state.time.shows_heat {
        return;
    }
    let theme = state.theme;
    let cells = [0, 1, 2, 3, 4].map(|strength| theme.heat(strength));
    for from_bottom in 0..area.height {
        let edge = |row: u16| level_at(scale.ms(f64::from(row) / f64::from(area.height)));
        let lowest = if from_bottom == 0 { 0 } else { edge(from_bottom) };
        let end = if from_bottom + 1 == area.height { LEVELS } else { edge(from_bottom + 1).max(lowest + 1) };
        let y = area.bottom() - 1 - from_bottom;
        for (place, column) in state.timeline.columns().iter().enumerate() {
            let samples: u64 = column.levels[lowest..end].iter().sum();
            let Some(xs) = axis.cells_of(place).filter(|_| samples > 0) else { continue };
            let share = samples as f64 / column.n.max(1) as f64;
            let (character, style) = cells[SHARES.iter().filter(|&&from| from <= share).count()];
            for x in xs {
                frame.buffer_mut()[(x, y)].set_char(character).set_style(style);
            }
        }
    }
}

/// Returns the level that holds a latency.
fn level_at(ms: f64) -> usize {
    (0..LEVELS).rfind(|&level| levels::beginning_ms(level) <= ms * (1.0 + 1e-9)).unwrap_or(0)
}

/// The column whose values are named: that at the cursor, or the newest with samples.
fn named_column(state: &State) -> Option<&TimelineColumn> {
    let columns: &VecDeque<TimelineColumn> = state.timeline.columns();
    match cursor(state) {
        Some(place) => columns.get(place),
        None => columns.iter().rev().find(|column| column.n > 0),
    }
}

/// Returns whether the values are of an earlier column: beside the end of the lines they would be taken for the latest.
pub(crate) fn is_at_cursor(state: &State) -> bool {
    cursor(state).is_some_and(|place| place + 1 < state.timeline.columns().len())
}

/// Returns the values of the named column: each with its name, height and style, the most important first.
fn named_values(state: &State) -> Vec<(&'static str, f64, Style)> {
    let theme = state.theme;
    let column = named_column(state);
    let ns = |series: TimelineLine| column.and_then(|column| series.ns(column)).map(|ns| ns as f64);
    let alerted = |class| state.figures().is_some_and(|figures| figures.has_alert_on_p99(class));
    let fires = shown_row(state).is_some_and(|row| alerted(row.class));
    let p99 = if fires { theme.critical() } else { theme.p99() };
    let max = column.filter(|column| column.n > 0).map(|column| column.max_ns as f64);
    let known = [
        ("p99", ns(TimelineLine::P99), p99),
        ("p50", ns(TimelineLine::P50), theme.p50()),
        ("limit", limit_ns(state), theme.limit()),
        ("max", max, theme.quiet()),
        ("was", before(state).map(|ns| ns as f64), theme.quiet()),
    ];
    known.into_iter().filter_map(|(name, ns, style)| Some((name, ns?, style))).collect()
}

/// By how many rows a value's label may be off its row.
const OFF_ROWS_MAX: usize = 2;

/// Draws the values right of the plot in their order, each in its row or near it. Those without room are left out, the
/// least important first.
fn values(state: &State, frame: &mut Frame<'_>, area: Rect, scale: LogScale) {
    let axis = TimeAxis::of(state, area);
    let x = axis.right() + 1;
    let room = usize::from(area.right().saturating_sub(x));
    if room == 0 || is_at_cursor(state) {
        return;
    }
    let own_row = |ns| usize::from(row(scale.height(ns), area) - area.y);
    let mut shown: Vec<((&str, f64, Style), usize)> = Vec::new();
    for value in named_values(state) {
        let mut values: Vec<_> = shown.iter().map(|(value, _)| *value).chain([value]).collect();
        // Of equal values the less important is above, as the maximum is.
        values.sort_by(|(_, a, _), (_, b, _)| a.total_cmp(b));
        values.reverse();
        let own_rows: Vec<usize> = values.iter().map(|(_, ns, _)| own_row(*ns)).collect();
        if let Some(rows) = label_rows(&own_rows, usize::from(area.height)) {
            shown = values.into_iter().zip(rows).collect();
        }
    }
    for ((name, ns, style), y) in shown {
        let text = format!("{name} {}", value(name, ns));
        let text = format::cut(&text, room, state.theme.glyphs);
        frame.buffer_mut().set_string(x, area.y + y as u16, text, style);
        let [above, below] = state.theme.glyphs.beyond();
        let beyond = match scale.height(ns) {
            height if height > 1.0 => above,
            height if height < 0.0 => below,
            _ => continue,
        };
        if name == "limit" {
            frame.buffer_mut()[(x - 1, area.y + y as u16)].set_char(beyond).set_style(style);
        }
    }
}

/// Returns a row of its own for each label, in the same order and near the wanted rows, which ascend; `None` without room.
fn label_rows(wanted: &[usize], height: usize) -> Option<Vec<usize>> {
    let mut rows = Vec::with_capacity(wanted.len());
    for &row in wanted {
        rows.push(rows.last().map_or(row, |last: &usize| row.max(last + 1)));
    }
    let mut end = height;
    for row in rows.iter_mut().rev() {
        end = end.checked_sub(1)?.min(*row);
        *row = end;
    }
    let is_near = |(row, wanted): (&usize, &usize)| row.abs_diff(*wanted) <= OFF_ROWS_MAX;
    rows.iter().zip(wanted).all(is_near).then_some(rows)
}

fn value(name: &str, ns: f64) -> String {
    if name == "limit" { axis_label(ns / 1e6) } else { format::millis(ns as u64) }
}

/// Returns each line's name and its value, for a plot without room at its right, or whose cursor is not at the end.
pub(crate) fn legend(state: &State) -> Line<'static> {
    let theme = state.theme;
    let mut spans = Vec::new();
    if is_at_cursor(state) {
        spans.push(Span::styled(" at the cursor", theme.quiet()));
    }
    for (name, ns, style) in named_values(state) {
        let gap = if spans.is_empty() { " " } else { "  " };
        let sign = match (name, theme.glyphs) {
            ("p99", Glyphs::Ascii) => format!("{} ", TimelineLine::P99.sign()),
            ("p50", Glyphs::Ascii) => format!("{} ", TimelineLine::P50.sign()),
            _ => String::new(),
        };
        spans.push(Span::styled(format!("{gap}{sign}{name} "), theme.quiet()));
        spans.push(Span::styled(value(name, ns), style));
    }
    if let Some(column) = named_column(state).filter(|_| is_at_cursor(state)) {
        for (name, of) in [("rate/s", column.rate()), ("failed/s", column.failed_rate())] {
            spans.extend(
                of.map(|of| Span::styled(format!("  {name} {}", format::per_second(of)), theme.quiet())),
            );
        }
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_has_no_value_above_its_top() {
        let labels = |bottom, top| LogScale { bottom, top }.steps().map(axis_label).collect::<Vec<_>>();
        assert_eq!(labels(0, 1), ["1", "2", "5", "10"]);
        assert_eq!(labels(-1, 0), ["0.1", "0.2", "0.5", "1"]);
        assert_eq!(labels(-1, 2), ["0.1", "1", "10", "100"]);
    }

    #[test]
    fn labels_have_rows_of_their_own_in_the_order_of_their_values() {
        assert_eq!(label_rows(&[0, 0, 4], 6), Some(vec![0, 1, 4]));
        assert_eq!(label_rows(&[4, 5, 5], 6), Some(vec![3, 4, 5]));
        assert_eq!(label_rows(&[0, 1, 1, 1], 3), None, "more labels than rows");
        assert_eq!(label_rows(&[2, 2, 2, 2], 9), None, "too far off its row");
    }

    #[test]
    fn the_lines_are_no_shades_of_the_heat_behind_them() {
        for line in [TimelineLine::P99, TimelineLine::P50, TimelineLine::Before] {
            assert!(!Glyphs::Ascii.shades().contains(&line.sign()), "{line:?}");
        }
    }
}
