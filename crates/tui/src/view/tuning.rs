//! The settings of proxy and load, docked beside the panes: values, staged values, and the selected setting in words.
//!
//! ```text
//! ─ settings 1-20/43, 2 staged ────────────────────────────────────
//!  proxy.workers                2 > 4                           now
//! ▶proxy.handshake-timeout      10 s                            now
//!  load.rate                    5000 1/s > 5500  asked          now
//!  proxy.listen                 [::]:8443                   restart
//! proxy.handshake-timeout  10 s
//! from 0.001 s to 86400 s, applies now
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use telemetry::{Applies, Setting};

use super::parts::{heading, put};
use crate::format;
use crate::state::State;
use crate::theme::Theme;

/// The cells of the longest name with the pointer; less where the values would get less than half.
const NAME_CELLS: usize = 31;
/// The rows that describe the selected setting, in a low and in a high dock.
const ABOUT_ROWS: (usize, usize) = (3, 6);
/// The rows of a high dock.
const HIGH: usize = 14;

/// Draws the list around the selected line, and the selected setting below it.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let settings = state.settings();
    let (cells, rows) = (usize::from(area.width), usize::from(area.height));
    let about_rows = if rows < HIGH { ABOUT_ROWS.0 } else { ABOUT_ROWS.1 };
    let listed = rows.saturating_sub(1 + about_rows).max(1);
    let first = (state.tuning.selected + 1).saturating_sub(listed).min(settings.len().saturating_sub(listed));
    let mut lines = vec![title(state, (first, listed), area.width)];
    let shown = settings.iter().enumerate().skip(first).take(listed);
    lines.extend(shown.map(|(at, setting)| line(state, setting, at, cells)));
    if settings.is_empty() {
        lines.push(Line::styled("no settings have been read", state.theme.quiet()));
    }
    put(frame, area, &lines);
    let used = (1 + listed.min(settings.len().max(1))).min(rows) as u16;
    let below = Rect { y: area.y + used, height: area.height - used, ..area };
    put(frame, below, &about(state, cells));
}

fn title(state: &State, (first, listed): (usize, usize), width: u16) -> Line<'static> {
    let all = state.settings().len();
    let part = if listed < all { format!(" {}-{}/{all}", first + 1, first + listed) } else { String::new() };
    let staged = match state.tuning.count() {
        0 => String::new(),
        n => format!(", {n} staged"),
    };
    heading(state.theme, &[&format!("settings{part}{staged}"), "settings"], "", width)
}

fn line(state: &State, setting: &Setting, at: usize, cells: usize) -> Line<'static> {
    let theme = state.theme;
    let is_selected = at == state.tuning.selected;
    let is_fixed = setting.applies == Applies::Restart;
    let pointer = if is_selected { theme.glyphs.pointer() } else { ' ' };
    let name_cells = NAME_CELLS.min(cells / 2);
    let name = format::cut(&setting.name, name_cells - 2, theme.glyphs);
    let name = format!("{pointer}{name:<0$}", name_cells - 1);
    let name_style = if is_fixed { theme.quiet() } else { theme.label() };
    let mut room = cells.saturating_sub(name_cells);
    let mut spans = vec![Span::styled(name, name_style)];
    for (text, style) in values(state, setting) {
        let text = format::cut(&text, room, theme.glyphs);
        room -= format::width(&text);
        spans.push(Span::styled(text, style));
    }
    // The column is left out of a row whose values need its room.
    let applies = Some(applies(setting)).filter(|text| text.len() + 2 <= room).unwrap_or_default();
    spans.push(Span::styled(format!("{applies:>room$}"), theme.quiet()));
    let line = Line::from(spans);
    if is_selected { line.style(theme.selected()) } else { line }
}

/// Returns the value, the staged one, and what became of the last change.
fn values(state: &State, setting: &Setting) -> Vec<(String, Style)> {
    let theme = state.theme;
    let value = with_unit(&setting.value.to_string(), &setting.unit);
    let mut values = vec![(value, theme.figure())];
    if let Some(staged) = state.tuning.staged(&setting.name) {
        values.push((format!(" > {}", with_unit(&staged.to_string(), &setting.unit)), theme.notice()));
    }
    if let Some(asked) = state.control.asked(&setting.name) {
        values.push((format!(" > {asked}, asked"), theme.notice()));
    } else if state.control.refusal(&setting.name).is_some() {
        values.push(("  refused".to_owned(), theme.warning()));
    }
    values
}

fn with_unit(value: &str, unit: &str) -> String {
    format!("{value} {unit}").trim_end().to_owned()
}

/// Says when a change of a setting has its effect.
fn applies(setting: &Setting) -> &'static str {
    match setting.applies {
        Applies::Live => "now",
        Applies::NewConnections => "new connections",
        Applies::Restart => "restart",
    }
}

/// Describes the selected setting: why its value was refused, its whole value, its range, and when it applies.
fn about(state: &State, cells: usize) -> Vec<Line<'static>> {
    let theme = state.theme;
    let Some(setting) = state.settings().get(state.tuning.selected) else { return Vec::new() };
    let refusal = || state.control.refusal(&setting.name).map(str::to_owned);
    let problem = state.tuning.complaint.clone().or_else(refusal);
    let value = format!("{}  {}", setting.name, with_unit(&setting.value.to_string(), &setting.unit));
    let mut lines = paragraph(theme, &value, theme.figure(), cells);
    lines.extend(problem.iter().flat_map(|why| paragraph(theme, why, theme.warning(), cells)));
    let range = setting.range.map_or_else(String::new, |(low, high)| {
        let bound = |number| with_unit(&format::plain(number), &setting.unit);
        format!("from {} to {}, ", bound(low), bound(high))
    });
    let applies = format!("{range}applies: {}", applies(setting));
    lines.extend(paragraph(theme, &applies, theme.quiet(), cells));
    lines
}

fn paragraph(theme: Theme, text: &str, style: Style, cells: usize) -> Vec<Line<'static>> {
    let lines = format::wrapped(text, cells).into_iter();
    lines.map(|line| Line::styled(format::cut(&line, cells, theme.glyphs), style)).collect()
}
