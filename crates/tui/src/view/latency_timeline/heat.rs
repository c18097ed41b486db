//! The heat map: latency in powers of two upwards, time to the right, darker for more samples.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::{LABEL_CELLS, column_x};
use crate::format;
use crate::state::State;
use crate::view_model::{Column, levels};

/// The shares of a column's samples from which a cell gets the next stronger glyph; a single sample gets the
/// first.
const SHARES: [f64; 4] = [0.01, 0.05, 0.2, 0.5];

/// The levels that each row shows.
struct HeatRows {
    /// The lowest level.
    first: usize,
    /// The levels per row.
    stride: usize,
    count: usize,
}

impl HeatRows {
    /// Chooses as many levels per row as all levels with samples need.
    fn of(state: &State, height: u16) -> Option<Self> {
        let (lowest, highest) = state.timeline.levels()?;
        let stride = (highest - lowest + 1).div_ceil(usize::from(height)).max(1);
        let count = (highest - lowest + 1).div_ceil(stride);
        Some(Self { first: lowest, stride, count })
    }

    /// Returns the samples of a column in a row, counted from the bottom.
    fn samples(&self, column: &Column, row: usize) -> u64 {
        let from = self.first + row * self.stride;
        let to = (from + self.stride).min(column.levels.len());
        column.levels.get(from..to).map_or(0, |levels| levels.iter().sum())
    }

    fn label(&self, row: usize) -> String {
        let ms = |level| format::plain(levels::beginning_ms(level));
        if row == 0 {
            format!("<{}", ms(self.first + self.stride))
        } else {
            ms(self.first + row * self.stride)
        }
    }
}

/// Draws the heat map.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let Some(rows) = HeatRows::of(state, area.height) else { return };
    let theme = state.theme;
    for row in 0..rows.count.min(usize::from(area.height)) {
        let y = area.bottom() - 1 - row as u16;
        let label = format!("{:>1$} ", rows.label(row), usize::from(LABEL_CELLS) - 1);
        frame.buffer_mut().set_string(area.x, y, label, theme.quiet());
        for (place, column) in state.timeline.columns().iter().enumerate() {
            let samples = rows.samples(column, row);
            let Some(x) = column_x(state, area, place).filter(|_| samples > 0) else { continue };
            let share = samples as f64 / column.n.max(1) as f64;
            let strength = SHARES.partition_point(|&from| from <= share);
            frame.buffer_mut()[(x, y)]
                .set_char(theme.glyphs.shades()[strength])
                .set_style(theme.heat(strength));
        }
    }
}
