//! The rows below the plot: requests or exchanges a second, and failures a second.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::model::TimelineColumn;
use super::plot;
use super::time_axis::{LABEL_CELLS, TimeAxis};
use crate::state::State;
use crate::theme::format;

/// Returns a figure of a column; `None` where nothing is known.
type ColumnFigure = fn(&TimelineColumn) -> Option<f64>;

/// Draws failures, and with room for two rows rates above them.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let theme = state.theme;
    let rows: [(&str, ColumnFigure, Style); 2] = [
        ("rate/s", TimelineColumn::rate, theme.graph()),
        ("failed", TimelineColumn::failed_rate, theme.critical()),
    ];
    let shown = rows.into_iter().skip(rows.len().saturating_sub(usize::from(area.height)));
    for ((name, of, style), y) in shown.zip(area.y..) {
        let row = Rect { y, height: 1, ..area };
        draw(state, frame, row, name, of, style);
    }
}

fn draw(state: &State, frame: &mut Frame<'_>, row: Rect, name: &str, of: ColumnFigure, style: Style) {
    let (theme, axis) = (state.theme, TimeAxis::of(state, row));
    let label = format!("{name:>0$} ", usize::from(LABEL_CELLS) - 1);
    frame.buffer_mut().set_string(row.x, row.y, label, theme.quiet());
    let columns = || state.timeline.columns().iter().enumerate().skip(axis.hidden);
    let top = nice_top(columns().filter_map(|(_, column)| of(column)).fold(0.0, f64::max));
    let levels = theme.glyphs.levels();
    for (place, column) in columns() {
        let (Some(value), Some(xs)) = (of(column), axis.cells_of(place)) else { continue };
        let (character, style) = if value > 0.0 {
            let level = (value / top * levels.len() as f64).ceil() as usize;
            (levels[level.clamp(1, levels.len()) - 1], style)
        } else {
            (theme.glyphs.zero(), theme.quiet())
        };
        for x in xs {
            frame.buffer_mut()[(x, row.y)].set_char(character).set_style(style);
        }
    }
    let x = axis.right() + 1;
    let latest = columns().filter_map(|(_, column)| of(column)).next_back();
    // The values of an earlier moment are in the heading.
    let latest = latest.filter(|_| !plot::is_at_cursor(state));
    if let Some(latest) = latest.filter(|_| x < row.right()) {
        let style = if latest > 0.0 { style } else { theme.quiet() };
        frame.buffer_mut().set_string(x, row.y, format::per_second(latest), style);
    }
}

/// Returns the next of 1, 2 and 5 times a power of ten, so that bars keep their height while values move a little.
pub(crate) fn nice_top(highest: f64) -> f64 {
    if highest <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(highest.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|top| *top >= highest)
        .unwrap_or(highest)
}

#[cfg(test)]
mod tests {
    use super::nice_top;

    #[test]
    fn the_top_of_a_row_is_a_round_number_at_or_above_its_values() {
        let tops =
            [0.0, 0.3, 1.0, 1.1, 4_998.0, 5_000.0, 5_001.0].map(|highest| nice_top(highest).to_string());
        assert_eq!(tops, ["1", "0.5", "1", "2", "5000", "5000", "10000"]);
    }
}
