//! The latest events, below active warnings. The heading is left out if there is
//! little room.
//!
//! ```text
//! ─ log, UTC ─────────────────────────────────────────────────────────────────
//! ! proxy at 88% of its cores: latency now includes waiting for CPU (+1 more)
//! 12:04:31Z warn connection 17 from 10.0.0.9 not-tls
//! ```

use model::runs::{Level, LogLine};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::past;
use crate::format;
use crate::input::intent::{Intent, PaneAction, Preset};
use crate::panes::PaneId;
use crate::panes::pane::{Pane, PaneRows};
use crate::state::State;
use crate::state::status::ViewStatus;
use crate::view_model::health::Warning;
use crate::widgets::parts::{heading, put};

const LEVEL_CELLS: usize = 5;

pub(crate) const PANE: Pane = Pane {
    id: PaneId::Log,
    rows: |state| {
        let (size, heading) = (state.size(), u16::from(state.has_spare_room()));
        let urgent =
            usize::from(silence(state).is_some() || warnings(state).next().is_some()) + past::height(state);
        let lines = state.log_len().min(usize::from(size.1 / LOG_SHARE).max(1));
        let rows = |lines: usize| (urgent + lines).max(1) as u16 + heading;
        let min = if size.1 < TALL_MIN { 1 } else { rows(lines.min(if heading > 0 { 2 } else { 1 })) };
        PaneRows { min, enough: min, wanted: rows(lines), grows: false }
    },
    ranks: [1, 8, 8],
    render,
    target: |_, _, _| None,
    hints: &[],
};

/// The log gets one n-th of the screen's rows, and more if rows are left.
const LOG_SHARE: u16 = 6;
/// The minimum rows of a screen for more than one line.
const TALL_MIN: u16 = 20;

/// Draws the warnings, and as many lines as fit.
fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let mut lines: Vec<Line<'_>> = Vec::new();
    if state.has_spare_room() && area.height > 1 {
        let title = format!("log, {}", state.options.zone.name(state.last_realtime_us()));
        lines.push(heading(state.theme, &[&title, "log"], &hidden_panes(state), area.width));
    }
    lines.extend(banner(state, area.width));
    lines.extend(past::lines(state, area.width));
    lines.truncate(usize::from(area.height));
    let room = usize::from(area.height).saturating_sub(lines.len());
    lines.extend(state.log(room).into_iter().map(|line| log_line(state, line, area.width)));
    put(frame, area, &lines);
}

/// Says that panes are hidden, perhaps since an earlier run, and which key shows them; empty if none are.
fn hidden_panes(state: &State) -> String {
    let keys = state.options.keymap.names(Intent::Pane(PaneAction::Preset(Preset::Overview)));
    match (state.panes.hidden.len(), keys.into_iter().next()) {
        (0, _) | (_, None) => String::new(),
        (1, Some(key)) => format!("{key}: show the hidden pane"),
        (hidden, Some(key)) => format!("{key}: show the {hidden} hidden panes"),
    }
}

/// Returns the active warnings of the run, the most severe first.
fn warnings(state: &State) -> impl Iterator<Item = &Warning> {
    state.figures().into_iter().flat_map(|figures| &figures.warnings)
}

/// Returns the warning that no record has arrived for some time.
fn silence(state: &State) -> Option<Warning> {
    match state.status {
        ViewStatus::Silent(seconds) if state.figures().is_some() => Some(Warning(format!(
            "no record for {}: the program that writes them hangs or was killed",
            records::text::quantity::elapsed_text(seconds)
        ))),
        _ => None,
    }
}

/// Returns the most severe warning, and the number of others.
fn banner(state: &State, width: u16) -> Option<Line<'static>> {
    let silence = silence(state);
    let warnings: Vec<&Warning> = silence.iter().chain(warnings(state)).collect();
    let more = match warnings.len() {
        0 | 1 => String::new(),
        n => format!(" (+{} more)", n - 1),
    };
    let room = usize::from(width).saturating_sub(format::width(&more) + 3);
    let text = format::cut(&warnings.first()?.0, room, state.theme.glyphs);
    let fill = " ".repeat(room - format::width(&text));
    let style = state.theme.badge(state.theme.warning());
    Some(Line::styled(format!(" ! {text}{more}{fill}"), style))
}

fn log_line(state: &State, line: &LogLine, width: u16) -> Line<'static> {
    let theme = state.theme;
    let (word, style) = match line.level {
        Level::Info => ("info", theme.quiet()),
        Level::Notice => ("note", theme.label()),
        Level::Warning => ("warn", theme.warning()),
    };
    let time = state.time_of_day(line.realtime_us);
    let used = format::width(&time) + 1 + LEVEL_CELLS;
    let text = format::cut(&line.text, usize::from(width).saturating_sub(used), theme.glyphs);
    Line::from(vec![
        Span::styled(format!("{time} "), theme.quiet()),
        Span::styled(format!("{word:<LEVEL_CELLS$}"), style),
        Span::styled(text, theme.label()),
    ])
}
