//! Percentiles over time, each a graph on a common logarithmic scale, with its value at the cursor or at the
//! end.

use ratatui::Frame;
use ratatui::layout::Rect;
use telemetry::Percentile;

use super::{LABEL_CELLS, column_x, cursor};
use crate::format;
use crate::state::State;
use crate::view_model::Column;

/// The rows: the maximum and each percentile.
pub(super) const ROWS: u16 = 1 + Percentile::TIMELINE.len() as u16;

/// A row: its name, and its value in a column.
struct TimelineRow {
    name: &'static str,
    value: fn(&Column, usize) -> Option<u64>,
    at: usize,
}

impl TimelineRow {
    /// Returns the rows, highest first.
    fn all() -> impl Iterator<Item = Self> {
        let max = Self { name: "max", value: |column, _| (column.n > 0).then_some(column.max_ns), at: 0 };
        let quantile = |(at, percentile): (usize, &Percentile)| Self {
            name: percentile.label,
            value: |column, at| column.quantiles[at],
            at,
        };
        std::iter::once(max).chain(Percentile::TIMELINE.iter().enumerate().rev().map(quantile))
    }

    fn of(&self, column: &Column) -> Option<u64> {
        (self.value)(column, self.at)
    }
}

/// Draws as many as fit, from the top.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let theme = state.theme;
    let columns = state.timeline.columns();
    let levels = theme.glyphs.levels();
    let lowest = columns.iter().filter_map(|column| column.quantiles[0]).min().unwrap_or(1).max(1);
    let highest = columns.iter().map(|column| column.max_ns).max().unwrap_or(1).max(lowest);
    let scale = (highest as f64 / lowest as f64).ln().max(f64::MIN_POSITIVE);
    let looked_at = cursor(state).and_then(|place| columns.get(place)).or_else(|| {
        // The newest column may still be empty.
        columns.iter().rev().find(|column| column.n > 0)
    });
    for (row, y) in TimelineRow::all().zip(area.y..area.bottom()) {
        let value = looked_at.and_then(|column| row.of(column));
        let value = value.map_or_else(|| theme.glyphs.none().to_string(), format::millis);
        let label = format!("{:<5}{value:>1$} ", row.name, usize::from(LABEL_CELLS) - 6);
        frame.buffer_mut().set_string(area.x, y, label, theme.label());
        for (place, column) in columns.iter().enumerate() {
            let Some((x, ns)) = column_x(state, area, place).zip(row.of(column)) else { continue };
            let share = (ns.max(1) as f64 / lowest as f64).ln() / scale;
            let level = (share.clamp(0.0, 1.0) * (levels.len() - 1) as f64).round() as usize;
            frame.buffer_mut()[(x, y)].set_char(levels[level]).set_style(theme.graph());
        }
    }
}
