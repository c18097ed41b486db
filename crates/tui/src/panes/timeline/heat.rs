//! The heat map: latency upwards in steps of 1, 2, 5 and 10, time to the right, brighter for more samples.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::levels;
use super::model::TimelineColumn;
use super::view::{LABEL_CELLS, TimeAxis};
use crate::format;
use crate::state::State;
use crate::theme::Theme;

/// The shares of a column's samples from which a cell is drawn in the next stronger way; a single sample is drawn in
/// the first.
const SHARES: [f64; 4] = [0.01, 0.05, 0.2, 0.5];

/// The levels that each row shows.
struct HeatRows {
    /// The lowest level.
    first: usize,
    /// The levels per row.
    stride: usize,
    /// Rows with levels of their own.
    count: usize,
    /// How often each is drawn, to fill the height.
    times: usize,
}

impl HeatRows {
    /// Chooses as many levels per row as all levels with samples need.
    fn of(state: &State, height: u16) -> Option<Self> {
        let (lowest, highest) = state.timeline.levels()?;
        let levels = highest - lowest + 1;
        let stride = stride(levels, height);
        let count = levels.div_ceil(stride);
        Some(Self { first: lowest, stride, count, times: (usize::from(height) / count).max(1) })
    }

    /// Returns the samples of a column in a row, counted from the bottom.
    fn samples(&self, column: &TimelineColumn, row: usize) -> u64 {
        let from = self.first + row * self.stride;
        let to = (from + self.stride).min(column.levels.len());
        column.levels.get(from..to).map_or(0, |levels| levels.iter().sum())
    }

    /// Returns the latency at which a row begins, in milliseconds.
    fn label(&self, row: usize) -> String {
        format::plain(levels::beginning_ms(self.first + row * self.stride))
    }
}

/// Returns the levels per row with which all fit.
fn stride(levels: usize, height: u16) -> usize {
    levels.div_ceil(usize::from(height)).max(1)
}

/// Returns how many of the rows the levels fill.
pub(crate) fn filled(levels: usize, height: u16) -> u16 {
    let rows = u16::try_from(levels.div_ceil(stride(levels, height))).unwrap_or(height).max(1);
    height / rows * rows
}

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let Some(rows) = HeatRows::of(state, area.height) else { return };
    let (theme, axis, shades) = (state.theme, TimeAxis::of(state, area), state.theme.glyphs.shades());
    let styles = [0, 1, 2, 3, 4].map(|strength| theme.heat(strength));
    for row in 0..rows.count {
        let bottom = area.bottom() - 1 - (row * rows.times) as u16;
        let label = format!("{:>1$} ", rows.label(row), usize::from(LABEL_CELLS) - 1);
        frame.buffer_mut().set_string(area.x, bottom, label, theme.quiet());
        for (place, column) in state.timeline.columns().iter().enumerate() {
            let samples = rows.samples(column, row);
            let Some(cells) = axis.cells_of(place).filter(|_| samples > 0) else { continue };
            let share = samples as f64 / column.n.max(1) as f64;
            let strength = SHARES.partition_point(|&from| from <= share);
            for y in (bottom + 1 - rows.times as u16)..=bottom {
                for x in cells.clone() {
                    frame.buffer_mut()[(x, y)].set_char(shades[strength]).set_style(styles[strength]);
                }
            }
        }
    }
}

/// Returns what each way of drawing a cell means.
pub(crate) fn legend(theme: Theme, is_long: bool) -> Line<'static> {
    let from = |at: usize| format!("{:.0}%", SHARES[at] * 100.0);
    let mut spans = Vec::new();
    for (strength, shade) in theme.glyphs.shades().into_iter().enumerate() {
        let from = strength.checked_sub(1).map_or_else(|| "any".to_owned(), from);
        let gap = if strength > 0 { " " } else { "" };
        spans.push(Span::styled(format!("{gap}{shade}"), theme.heat(strength)));
        spans.push(Span::styled(from, theme.quiet()));
    }
    spans.extend(is_long.then(|| Span::styled(" of samples", theme.quiet())));
    Line::from(spans)
}
