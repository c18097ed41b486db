//! The latest events, below active warnings. The heading is left out if there is
//! little room.
//!
//! ```text
//! ─ log, UTC ─────────────────────────────────────────────────────────────────
//! ! proxy at 88% of its cores: latency now includes waiting for CPU (+1 more)
//! 12:04:31Z warn connection 17 from 10.0.0.9 not-tls
//! ```

use model::runs::Level;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::past;
use crate::input::intent::{Intent, PaneAction, Preset};
use crate::panes::{Pane, PaneRows};
use crate::state::log::RepeatedLine;
use crate::state::{State, sight};
use crate::theme::format;
use crate::widgets::parts::{heading, put};

const LEVEL_CELLS: usize = 5;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        let (size, heading) = (state.size(), u16::from(sight::has_spare_room(state.size)));
        let urgent = past::height(state);
        let lines = if size.1 < TALL_MIN { 1 } else { LINES.min(usize::from(size.1 / LOG_SHARE)) };
        let rows = |lines: usize| (urgent + lines).max(1) as u16 + heading;
        let min = if size.1 < TALL_MIN { 1 } else { rows(1) };
        PaneRows { min, enough: min, wanted: rows(lines), grows: false }
    },
    ranks: [1, 8, 8],
    render,
    ..Pane::PLAIN
};

/// The lines of the log beside other panes, and the rows of the screen for each.
const LINES: usize = 3;
const LOG_SHARE: u16 = 12;
/// The minimum rows of a screen for more than one line.
const TALL_MIN: u16 = 20;

/// Draws the warnings, and as many lines as fit.
fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let mut lines: Vec<Line<'_>> = Vec::new();
    if sight::has_spare_room(state.size) && area.height > 1 {
        let title = format!("log, {}", state.options.zone.name(state.last_realtime_us()));
        lines.push(heading(state.theme, &[&title, "log"], &hidden_panes(state), area.width));
    }
    lines.extend(past::lines(state, area.width));
    lines.truncate(usize::from(area.height));
    let room = usize::from(area.height).saturating_sub(lines.len());
    lines.extend(state.log(room).into_iter().map(|line| log_line(state, line, area.width)));
    put(frame, area, &lines);
}

/// Says that panes are hidden, perhaps since an earlier run, and which key shows them; empty if none are.
fn hidden_panes(state: &State) -> String {
    let keys = state.options.keymap.names(Intent::Pane(PaneAction::Preset(Preset::Overview)));
    let hidden = state.choosable_panes().iter().filter(|id| state.panes.hidden.contains(id)).count();
    match (hidden, keys.into_iter().next()) {
        (0, _) | (_, None) => String::new(),
        (1, Some(key)) => format!("{key}: show the hidden pane"),
        (hidden, Some(key)) => format!("{key}: show the {hidden} hidden panes"),
    }
}

fn log_line(state: &State, repeated: RepeatedLine<'_>, width: u16) -> Line<'static> {
    let (theme, line) = (state.theme, repeated.line);
    let (word, style) = match line.level {
        Level::Info => ("info", theme.quiet()),
        Level::Notice => ("note", theme.label()),
        Level::Warning => ("warn", theme.warning()),
    };
    let time = state.time_of_day(line.realtime_us);
    let used = format::width(&time) + 1 + LEVEL_CELLS;
    let times = match repeated.times {
        1 => String::new(),
        times => {
            let span = format::span(line.realtime_us.saturating_sub(repeated.first_us).max(1_000_000));
            let more = if repeated.is_at_least { "+" } else { "" };
            format!("  {}{times}{more} in {span}", theme.glyphs.times())
        }
    };
    let room = usize::from(width).saturating_sub(used + format::width(&times));
    let text = format::cut(&line.text, room, theme.glyphs);
    Line::from(vec![
        Span::styled(format!("{time} "), theme.quiet()),
        Span::styled(format!("{word:<LEVEL_CELLS$}"), style),
        Span::styled(text, theme.label()),
        Span::styled(times, theme.quiet()),
    ])
}
