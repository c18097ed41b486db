//! A graph in one row of cells.

use crate::theme::Theme;

/// Returns a sparkline of the latest slots, scaled to their maximum; missing records are blank.
pub(super) fn sparkline(theme: Theme, history: &[Option<f64>], cells: usize) -> String {
    let shown = &history[history.len().saturating_sub(cells)..];
    let most = shown.iter().flatten().fold(0.0_f64, |most, &value| most.max(value));
    let levels = theme.glyphs.levels();
    let level = |value: f64| {
        let share = if most > 0.0 { value / most } else { 0.0 };
        // Only zero is drawn as an empty cell.
        (share * (levels.len() - 1) as f64).ceil() as usize
    };
    let graph: String = shown.iter().map(|slot| slot.map_or(' ', |value| levels[level(value)])).collect();
    format!("{graph:>cells$}")
}
