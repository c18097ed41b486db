//! The state at a past moment: exact counts, and the settings then in force.
//!
//! ```text
//! at 12:04:10Z, 2 s  n 9996  p50 0.41  p90 0.83  p99 1.90  p99.9 4.03  max 19.8 ms
//! ms <0.25: 12  0.25: 5020  0.5: 4100  1: 800  2: 60  4: 3  16: 1
//! then load.rate 5000/s (now 6250/s)  load.resume 80%  proxy.workers 2
//! ```

use ratatui::text::Line;
use records::metrics::Percentile;
use records::text::quantity;

use crate::panes::timeline::levels;
use crate::panes::timeline::model::TimelineColumn;
use crate::state::State;
use crate::state::sight;
use crate::theme::Theme;
use crate::theme::format;
use crate::view_model::past::PastSetting;
use crate::widgets::parts::{StatusItem, fit};

/// Returns the number of lines.
pub(crate) fn height(state: &State) -> usize {
    match state.earlier() {
        None => 0,
        Some(_) if state.is_replay() && !sight::has_spare_room(state.size) => 1,
        Some(_) => 3,
    }
}

/// Returns the lines; none in the present.
pub(crate) fn lines(state: &State, width: u16) -> Vec<Line<'static>> {
    let Some((us, settings)) = state.earlier() else { return Vec::new() };
    let column = state.timeline.place(us).and_then(|place| state.timeline.columns().get(place));
    let cells = usize::from(width);
    let settings = Line::from(fit(then(state, settings), cells));
    // In a replay, the playback line shows the time and the log the events.
    if state.is_replay() && !sight::has_spare_room(state.size) {
        return vec![settings];
    }
    let summary = Line::from(fit(summary(state, us, column), cells));
    vec![summary, counts(state.theme, column, cells), settings]
}

fn summary(state: &State, us: u64, column: Option<&TimelineColumn>) -> Vec<StatusItem> {
    let theme = state.theme;
    let at = format!("at {}", state.time_of_day(state.realtime_at(us)));
    let mut segments = vec![StatusItem::text(0, at, theme.heading())];
    let share = state.read_share();
    if let Some(share) = share {
        let text = format!("reading the journal {}", format::percent(share));
        segments.push(StatusItem::text(0, text, theme.notice()));
    }
    let Some(column) = column.filter(|column| column.is_covered) else {
        // The count is unknown until the moment has been read.
        let none = StatusItem::text(0, "no records of this time", theme.warning());
        segments.extend(share.is_none().then_some(none));
        return segments;
    };
    let figure = |rank, name: &str, text: String| StatusItem::figure(theme, rank, name, text);
    let ms = |ns| format::latency(ns, column.resolution, theme.glyphs);
    let n = format!("{} in {}", format::count(column.n), format::span(column.span_us));
    segments.push(figure(1, "n", n));
    for (at, percentile) in Percentile::TIMELINE.iter().enumerate() {
        segments.extend(column.quantiles[at].map(|ns| figure(2, percentile.label, ms(ns))));
    }
    if column.n > 0 {
        segments.push(figure(1, "max", format!("{} ms", ms(column.max_ns))));
    }
    segments
}

/// Returns the samples of each row of the heat map; without room for all, those of the highest latencies.
fn counts(theme: Theme, column: Option<&TimelineColumn>, cells: usize) -> Line<'static> {
    let mut segments = vec![StatusItem::text(0, "ms from", theme.label())];
    let counted =
        column.into_iter().flat_map(|column| column.levels.iter().enumerate()).filter(|(_, n)| **n > 0);
    segments.extend(counted.map(|(level, n)| {
        let from = format!("{}:", format::plain(levels::beginning_ms(level)));
        StatusItem::figure(theme, (levels::LEVELS - level) as u8, &from, format::count(*n))
    }));
    let all = Line::from(fit(segments.clone(), usize::MAX));
    if all.width() <= cells {
        return all;
    }
    segments.insert(1, StatusItem::text(0, theme.glyphs.ellipsis(), theme.label()));
    Line::from(fit(segments, cells))
}

fn then(state: &State, settings: &[PastSetting]) -> Vec<StatusItem> {
    let theme = state.theme;
    let mut segments = vec![StatusItem::text(0, "then", theme.label())];
    segments.extend(settings.iter().zip(1..).map(|(then, rank)| {
        let shown = |value: &String| {
            value.parse().map_or_else(|_| value.clone(), |number| quantity::shown(number, &then.unit))
        };
        let now = then.now.as_ref().map_or_else(String::new, |now| format!(" (now {})", shown(now)));
        StatusItem::figure(theme, rank, &then.name, format!("{}{now}", shown(&then.value)))
    }));
    segments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::testing::{TestDashboard, options};

    #[test]
    fn counts_of_the_highest_latencies_are_kept_without_room_for_all() {
        let theme = TestDashboard::empty(options()).state.theme;
        let mut column = TimelineColumn::default();
        column.levels[6..14].fill(1_340);
        let text = |cells| counts(theme, Some(&column), cells).to_string();
        assert_eq!(text(80), "ms from  …  0.5: 1,340  1: 1,340  2: 1,340  5: 1,340  10: 1,340  20: 1,340");
        assert_eq!(text(30), "ms from  …  20: 1,340");
        assert!(text(160).starts_with("ms from  0.1: 1,340  0.2: 1,340  0.5: "), "{}", text(160));
    }
}
