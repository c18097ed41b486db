//! The time line at the bottom, with marks and changes. It is blank where records are missing.

use ratatui::Frame;
use ratatui::layout::Rect;
use telemetry::AlertState;
use telemetry::model::{Marker, TimelineEvent};

use super::{LABEL_CELLS, column_x, cursor};
use crate::format;
use crate::state::State;

/// Draws the line.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let theme = state.theme;
    let at = cursor(state).map(|place| state.realtime_at(state.timeline.end_us(place)));
    let label = at.map_or_else(|| "marks".to_owned(), format::time_of_day);
    let label = format!("{label:<0$}", usize::from(LABEL_CELLS));
    frame.buffer_mut().set_string(area.x, area.y, label, theme.quiet());
    let columns = state.timeline.columns().iter().enumerate();
    for (place, _) in columns.filter(|(_, column)| column.is_covered) {
        if let Some(x) = column_x(state, area, place) {
            frame.buffer_mut()[(x, area.y)].set_char(theme.glyphs.rule()).set_style(theme.quiet());
        }
    }
    let places: Vec<(u16, &Marker)> = state
        .markers
        .iter()
        .filter_map(|(place, marker)| Some((column_x(state, area, *place)?, marker)))
        .collect();
    for (i, (x, marker)) in places.iter().enumerate() {
        // As much of its text as fits before the next one.
        let end =
            places[i + 1..].iter().map(|(x, _)| *x).find(|next| next > x).unwrap_or_else(|| area.right());
        let text = words(marker, theme.glyphs.marker());
        // A sign alone is better than a truncated number.
        let text = match usize::from(end - x) {
            1 => text.chars().take(1).collect(),
            cells => format::cut(&text, cells, theme.glyphs),
        };
        frame.buffer_mut().set_string(*x, area.y, text, theme.notice());
    }
}

/// Returns the number of a mark, or a sign for a change or an alert, and its text.
fn words(marker: &Marker, sign: char) -> String {
    match &marker.event {
        TimelineEvent::Mark { number, text } => format!("{number} {text}").trim_end().to_owned(),
        TimelineEvent::Change { before, after } => {
            let name = after.name.split_once('.').map_or(&*after.name, |(_, name)| name);
            format!("{sign}{name} {before}>{}", after.value)
        }
        TimelineEvent::Alert { state: AlertState::Fired, name, .. } => format!("!{name}"),
        TimelineEvent::Alert { state, name, .. } => format!("{sign}{name} {state}"),
    }
}
