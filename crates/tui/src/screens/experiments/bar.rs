//! The difference of a figure as a bar against zero, with a dot for each pair.
//!
//! ```text
//! interval      ├━━━━●━━━┤     │
//! pairs      •  2•  • •  •     │
//!          -20 %      lower    0    higher      +20 %
//! ```

use model::runs::ComparedFigure;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use records::kinds::Estimate;

use crate::panes::timeline::rates::nice_top;
use crate::theme::Theme;
use crate::theme::format;

/// The cells of the row labels, and the fewest of the bar.
const LABEL_CELLS: usize = 9;
const BAR_CELLS_MIN: usize = 24;
/// A pair further from zero than so many times the interval's farther end is drawn at the edge.
const PAIRS_BEYOND: f64 = 3.0;

/// Cells from `-top` to `top`, with zero in the middle.
#[derive(Clone, Copy)]
struct Scale {
    cells: usize,
    top: f64,
}

impl Scale {
    fn of(cells: usize, estimate: Option<&Estimate>, pairs: &[f64]) -> Self {
        let interval = estimate.map(|estimate| estimate.low.abs().max(estimate.high.abs()));
        let farthest = pairs.iter().map(|effect| effect.abs()).fold(0.0, f64::max);
        let highest = interval.map_or(farthest, |end| farthest.min(end * PAIRS_BEYOND).max(end));
        Self { cells: cells - (1 - cells % 2), top: nice_top(highest) }
    }

    fn middle(self) -> usize {
        self.cells / 2
    }

    fn cell(self, value: f64) -> usize {
        let share = (value / self.top).clamp(-1.0, 1.0);
        (self.middle() as f64 * (1.0 + share)).round() as usize
    }

    fn holds(self, value: f64) -> bool {
        value.abs() <= self.top
    }
}

/// Returns the rows of the bar in the style of its verdict; none without room, or before the first pair.
pub(crate) fn lines(
    theme: Theme,
    compared: &ComparedFigure,
    estimate: Option<&Estimate>,
    (unit, style, cells): (&str, Style, usize),
) -> Vec<Line<'static>> {
    let pairs = &compared.pair_effects;
    let room = cells.saturating_sub(LABEL_CELLS);
    if room < BAR_CELLS_MIN || (estimate.is_none() && pairs.is_empty()) {
        return Vec::new();
    }
    let scale = Scale::of(room, estimate, pairs);
    let row = |name: &str, text: String, style: Style| {
        Line::from(vec![
            Span::styled(format!("{name:<LABEL_CELLS$}"), theme.quiet()),
            Span::styled(text, style),
        ])
    };
    let interval = estimate.map(|estimate| row("interval", interval(theme, scale, estimate), style));
    let dots = (!pairs.is_empty()).then(|| row("pairs", dots(theme, scale, pairs), theme.label()));
    let axis = row("", axis(scale, unit), theme.quiet());
    interval.into_iter().chain(dots).chain([axis]).collect()
}

fn interval(theme: Theme, scale: Scale, estimate: &Estimate) -> String {
    let [low, effect, high] = [estimate.low, estimate.effect, estimate.high].map(|value| scale.cell(value));
    let ((left, right), [fill, point, _]) = (theme.glyphs.interval(), theme.glyphs.bar());
    let mut cells = blank(theme, scale);
    for (at, cell) in cells.iter_mut().enumerate().take(high + 1).skip(low) {
        *cell = match at {
            at if at == effect => point,
            at if at == low => left,
            at if at == high => right,
            at if at == scale.middle() => theme.glyphs.crossing(),
            _ => fill,
        };
    }
    cells.into_iter().collect()
}

/// Draws a dot for each pair; a digit counts the pairs of one cell.
fn dots(theme: Theme, scale: Scale, pairs: &[f64]) -> String {
    let mut counts = vec![0_u32; scale.cells];
    for effect in pairs.iter().filter(|effect| scale.holds(**effect)) {
        counts[scale.cell(*effect)] += 1;
    }
    let mut cells = blank(theme, scale);
    for (cell, count) in cells.iter_mut().zip(counts) {
        *cell = match count {
            0 => *cell,
            1 => theme.glyphs.dot(),
            2..=9 => char::from_digit(count, 10).unwrap_or('+'),
            _ => '+',
        };
    }
    for effect in pairs.iter().filter(|effect| !scale.holds(**effect)) {
        cells[scale.cell(*effect)] = if *effect < 0.0 { '<' } else { '>' };
    }
    cells.into_iter().collect()
}

/// A row with nothing but the line at zero.
fn blank(theme: Theme, scale: Scale) -> Vec<char> {
    (0..scale.cells).map(|at| if at == scale.middle() { theme.glyphs.upright() } else { ' ' }).collect()
}

fn axis(scale: Scale, unit: &str) -> String {
    let half = scale.middle();
    let top = format::plain(scale.top);
    let (left, right) = (format!("-{top} {unit}"), format!("+{top} {unit}"));
    let between = |text: &str| half.saturating_sub(format::width(text));
    format!("{left}{:^2$}0{:^3$}{right}", "lower", "higher", between(&left), between(&right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Glyphs, Palette};

    fn drawn(glyphs: Glyphs, estimate: Option<[f64; 3]>, pairs: &[f64]) -> String {
        let theme = Theme::new(glyphs, Palette::Monochrome);
        let compared = ComparedFigure { pair_effects: pairs.to_vec(), ..ComparedFigure::default() };
        let estimate =
            estimate.map(|[effect, low, high]| Estimate { effect, low, high, ..Estimate::default() });
        let lines = lines(theme, &compared, estimate.as_ref(), ("%", theme.label(), 50));
        let rows: Vec<String> = lines.iter().map(|line| line.to_string().trim_end().to_owned()).collect();
        rows.join("\n")
    }

    #[test]
    fn the_interval_and_each_pair_are_drawn_against_zero() {
        let pairs = [-5.0, -6.0, -6.1, -12.0, 3.0, 90.0];
        insta::assert_snapshot!(drawn(Glyphs::Unicode, Some([-5.2, -7.4, -3.1]), &pairs));
        insta::assert_snapshot!(drawn(Glyphs::Ascii, Some([-0.8, -9.3, 12.1]), &pairs));
    }

    #[test]
    fn pairs_are_drawn_before_there_is_an_interval() {
        assert_eq!(drawn(Glyphs::Ascii, None, &[]), "");
        let shown = drawn(Glyphs::Ascii, None, &[-1.0, 4.0]);
        assert!(
            shown.starts_with("pairs ") && shown.contains("-5 %") && !shown.contains("interval"),
            "{shown}"
        );
    }
}
