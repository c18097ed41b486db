//! A graph in one row of cells. It shows how a rate moved, not how high it is; the figure beside it shows that.

use crate::theme::Theme;

/// The least range that fills the height, as a share of the highest value: below it, changes are noise.
const RANGE_MIN: f64 = 0.5;

/// Returns a sparkline of the latest slots, right-aligned in `cells`.
///
/// The lowest value above zero is at the bottom and the highest on top, so that a constant rate is a flat line.
/// Zero is a dotted line, and a slot without records is blank.
pub(crate) fn sparkline(theme: Theme, history: &[Option<f64>], cells: usize) -> String {
    let shown = &history[history.len().saturating_sub(cells)..];
    let above_zero = || shown.iter().flatten().copied().filter(|&value| value > 0.0);
    let (lowest, highest) =
        above_zero().fold((f64::MAX, 0.0), |(low, high): (f64, f64), v| (low.min(v), high.max(v)));
    let range = (highest - lowest).max(highest * RANGE_MIN);
    let levels = theme.glyphs.levels();
    let level = |value: f64| ((value - lowest) / range * (levels.len() - 1) as f64).round() as usize;
    let slot = |slot: &Option<f64>| match *slot {
        None => ' ',
        Some(value) if value > 0.0 => levels[level(value)],
        Some(_) => theme.glyphs.zero(),
    };
    let graph: String = shown.iter().map(slot).collect();
    format!("{graph:>cells$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::theme::{Glyphs, Palette};

    fn drawn(values: &[Option<f64>]) -> String {
        sparkline(Theme::new(Glyphs::Unicode, Palette::Monochrome), values, values.len())
    }

    #[test]
    fn a_constant_rate_is_a_flat_line_and_zero_a_dotted_one() {
        assert_eq!(drawn(&[Some(7.0); 4]), "▁▁▁▁");
        assert_eq!(drawn(&[Some(0.0); 4]), "⡀⡀⡀⡀");
        // A few percent are noise.
        assert_eq!(drawn(&[Some(1.0), Some(1.01), Some(0.98), Some(1.0)]), "▁▁▁▁");
    }

    #[test]
    fn a_rate_is_scaled_to_its_own_range_and_gaps_are_blank() {
        assert_eq!(drawn(&[Some(100.0), Some(150.0), None, Some(200.0), Some(0.0)]), "▁▅ █⡀");
        assert_eq!(sparkline(Theme::new(Glyphs::Ascii, Palette::Monochrome), &[Some(1.0)], 3), "  _");
    }
}
