//! The settings of proxy and load: value, staged value, when a change takes effect, and the result of the
//! last one.
//!
//! ```text
//! +- settings, 2 staged ----------------------------------------------------------+
//! | proxy.workers                2         > 4        live                        |
//! |>proxy.handshake-timeout      10 s                 live         0.001 to 86400 |
//! | load.rate                    5000 1/s  > 5500     live         asked          |
//! | proxy.listen                 [::]:8443            restart                     |
//! +-------------------------------------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::text::{Line, Span};
use telemetry::{Applies, Setting};

use super::overlay;
use crate::format;
use crate::state::State;

const NAME_CELLS: usize = 30;
const VALUE_CELLS: usize = 16;
const STAGED_CELLS: usize = 14;
const APPLIES_CELLS: usize = 16;
/// The maximum cells of a note.
const NOTE_CELLS: usize = 50;

/// Draws the list around the selected line.
pub(super) fn render(state: &State, frame: &mut Frame<'_>) {
    let settings = state.settings();
    let wanted = NAME_CELLS + VALUE_CELLS + STAGED_CELLS + APPLIES_CELLS + NOTE_CELLS;
    let Some(area) = overlay::place(frame.area(), (wanted, settings.len().max(1) + 1)) else { return };
    let (cells, rows) = (usize::from(area.width - overlay::SIDES), usize::from(area.height) - 2);
    let listed = rows.saturating_sub(1).max(1);
    let first = (state.tuning.selected + 1).saturating_sub(listed).min(settings.len().saturating_sub(listed));
    let shown = settings.iter().enumerate().skip(first).take(listed);
    let mut lines: Vec<Line<'_>> = shown.map(|(at, setting)| line(state, setting, at, cells)).collect();
    if settings.is_empty() {
        lines.push(Line::styled("no settings have been read", state.theme.quiet()));
    }
    if rows > 1 {
        lines.push(below(state, cells));
    }
    let staged = match state.tuning.count() {
        0 => String::new(),
        n => format!(", {n} staged"),
    };
    let part = if listed < settings.len() {
        format!(" {}-{}/{}", first + 1, first + listed, settings.len())
    } else {
        String::new()
    };
    overlay::render(state, frame, area, &format!("settings{part}{staged}"), &lines);
}

fn line(state: &State, setting: &Setting, at: usize, cells: usize) -> Line<'static> {
    let theme = state.theme;
    let is_selected = at == state.tuning.selected;
    let pointer = if is_selected { theme.glyphs.pointer() } else { ' ' };
    let cut = |text: &str, cells: usize| format::cut(text, cells, theme.glyphs);
    let name = format!("{pointer}{:<NAME_CELLS$}", cut(&setting.name, NAME_CELLS - 1));
    let value = format!("{} {}", setting.value, setting.unit);
    let value = format!("{:<VALUE_CELLS$}", cut(value.trim_end(), VALUE_CELLS - 1));
    let staged = state.tuning.staged(&setting.name).map_or_else(String::new, |value| format!("> {value}"));
    let staged = format!("{:<STAGED_CELLS$}", cut(&staged, STAGED_CELLS - 1));
    let applies = format!("{:<APPLIES_CELLS$}", setting.applies.to_string());
    let applies_style = if setting.applies == Applies::Restart { theme.quiet() } else { theme.label() };
    let mut spans = vec![
        Span::styled(name, theme.label()),
        Span::styled(value, theme.figure()),
        Span::styled(staged, theme.notice()),
        Span::styled(applies, applies_style),
    ];
    let used: usize = spans.iter().map(|span| format::width(&span.content)).sum();
    let (note, style) = if state.control.asked(&setting.name).is_some() {
        ("asked".to_owned(), theme.notice())
    } else if let Some(why) = state.control.refusal(&setting.name) {
        (why.to_owned(), theme.warning())
    } else {
        (range(setting), theme.quiet())
    };
    spans.push(Span::styled(cut(&note, cells.saturating_sub(used)), style));
    let line = Line::from(spans);
    if is_selected { line.style(theme.selected()) } else { line }
}

fn range(setting: &Setting) -> String {
    setting
        .range
        .map_or_else(String::new, |(low, high)| format!("{} to {}", format::plain(low), format::plain(high)))
}

/// Returns why a value cannot be staged, else the whole text of the selected setting, in case its line was
/// truncated.
fn below(state: &State, cells: usize) -> Line<'static> {
    let theme = state.theme;
    if let Some(why) = &state.tuning.complaint {
        return Line::styled(format::cut(why, cells, theme.glyphs), theme.warning());
    }
    let selected = state.settings().get(state.tuning.selected);
    let text = selected.map_or_else(String::new, |setting| {
        let why = state.control.refusal(&setting.name).map_or_else(String::new, |why| format!("; {why}"));
        format!("{} {} {}, acts: {}{why}", setting.name, setting.value, setting.unit, setting.applies)
    });
    Line::styled(format::cut(&text, cells, theme.glyphs), theme.quiet())
}
