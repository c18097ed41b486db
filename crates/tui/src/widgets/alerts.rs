//! Signs of the alerts that fire: a badge, and a mark on the figures concerned.

use model::figures::Statistic;
use ratatui::style::Style;
use ratatui::text::Span;

use crate::state::State;
use crate::theme::Theme;
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::view_model::classes::LatencyRow;

/// Returns the number of alerts that fire; empty if none does.
pub(crate) fn badge(state: &State) -> (String, Style) {
    let text = match state.figures().map_or(0, |figures| figures.alerts.len()) {
        0 => String::new(),
        1 => "[ALERT] ".to_owned(),
        n => format!("[{n} ALERTS] "),
    };
    (text, state.theme.critical())
}

/// Marks the cell of a statistic that an alert is about.
pub(crate) fn mark(
    theme: Theme,
    figures: &ViewModel,
    row: &LatencyRow,
    statistic: Option<Statistic>,
    cell: Span<'static>,
) -> Span<'static> {
    let is_about = |statistic| figures.alerts.iter().any(|alert| alert.is_about(row.class, statistic));
    if !statistic.is_some_and(is_about) {
        return cell;
    }
    let cells = format::width(&cell.content).saturating_sub(1);
    Span::styled(format!("{:>cells$}!", cell.content.trim()), theme.critical())
}
