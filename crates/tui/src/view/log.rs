//! The latest events, below active warnings. The heading is left out if there is little room.
//!
//! ```text
//! ─ log, UTC ─────────────────────────────────────────────────────────────────
//! ! proxy at 88% of its cores: latency now includes waiting for CPU (+1 more)
//! 12:04:31Z warn connection 17 from 10.0.0.9 not-tls
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use telemetry::model::{Level, LogLine};

use super::parts::{heading, put};
use crate::format;
use crate::state::{State, ViewStatus};
use crate::view_model::Warning;

/// The minimum rows for a heading.
const HEADING_HEIGHT_MIN: u16 = 5;

/// The cells of a line's level.
const LEVEL_CELLS: usize = 5;

/// Draws the warnings, and as many lines as fit.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let mut lines: Vec<Line<'_>> = Vec::new();
    if area.height >= HEADING_HEIGHT_MIN {
        lines.push(heading(
            state.theme,
            &[&format!("log, {}", state.options.zone.name(state.last_realtime_us())), "log"],
            "",
            area.width,
        ));
    }
    lines.extend(banner(state, area.width));
    lines.extend(super::past::lines(state, area.width));
    lines.truncate(usize::from(area.height));
    let room = usize::from(area.height).saturating_sub(lines.len());
    lines.extend(state.log(room).into_iter().map(|line| log_line(state, line, area.width)));
    put(frame, area, &lines);
}

/// Returns the most severe warning, and the number of others.
fn banner(state: &State, width: u16) -> Option<Line<'static>> {
    let silence = match state.status {
        ViewStatus::Silent(seconds) => Some(Warning(format!(
            "no record for {}: the program that writes them hangs or was killed",
            format::clock(seconds)
        ))),
        _ => None,
    };
    let warnings: Vec<&Warning> = silence.iter().chain(&state.figures()?.warnings).collect();
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
