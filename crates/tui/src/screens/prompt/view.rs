//! The prompt at the bottom of the screen. The line below says why the text is refused, or what it would do.
//!
//! ```text
//! proxy.handshake-timeout: 8d
//! proxy.handshake-timeout cannot be 8d: expected a time from 1ms to 24h, such as 10s
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Clear;

use super::completion::Completion;
use super::state::{Prompt, PromptPurpose, is_page, recording_path};
use crate::input::intent::List;
use crate::state::State;
use crate::theme::Theme;
use crate::theme::format;
use crate::widgets::parts::put;

/// The maximum number of lines beneath the text, and on a narrow screen.
const NOTE_LINES_MAX: usize = 3;
const NARROW_NOTE_LINES_MAX: usize = 5;
/// The most columns of a narrow screen.
const NARROW_MAX: usize = 60;

/// Draws the lines over the lowest ones of the screen, with the cursor where the next character goes.
pub(crate) fn render(state: &State, prompt: &Prompt, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let note = note(state, prompt, usize::from(area.width));
    let height = (1 + note.len() as u16).min(area.bottom());
    let area = Rect { y: area.bottom() - height, height, ..area };
    frame.render_widget(Clear, area);
    put(frame, Rect { y: area.y + 1, height: height - 1, ..area }, &note);
    text(state, prompt, frame, Rect { height: 1, ..area });
}

fn text(state: &State, prompt: &Prompt, frame: &mut Frame<'_>, area: Rect) {
    let theme = state.theme;
    let name = match &prompt.purpose {
        PromptPurpose::Filter(list) => format!("filter {}: ", list.name()),
        PromptPurpose::Help => "search the help (Esc shows all): ".to_owned(),
        PromptPurpose::Value(name) => format!("{name}: "),
        PromptPurpose::Experiment(form) => format!("A/B {}: ", form.field().label()),
        PromptPurpose::Moment => "go to: ".to_owned(),
        PromptPurpose::FileName => "write to files: ".to_owned(),
        PromptPurpose::Recording => "record into: ".to_owned(),
        PromptPurpose::Palette { .. } => "find: ".to_owned(),
    };
    let room = usize::from(area.width).saturating_sub(format::width(&name) + 1);
    let before: String = prompt.text().chars().take(prompt.cursor()).collect();
    let shown_before = format::cut_front(&before, room, theme.glyphs);
    let after: String = prompt.text().chars().skip(prompt.cursor()).collect();
    let after = format::cut(&after, room.saturating_sub(format::width(&shown_before)), theme.glyphs);
    let x = area.x + (format::width(&name) + format::width(&shown_before)) as u16;
    let style = if prompt.is_selected { theme.figure().patch(theme.selected()) } else { theme.figure() };
    let line = Line::from(vec![
        Span::styled(name, theme.heading()),
        Span::styled(format!("{shown_before}{after}"), style),
    ]);
    put(frame, area, &[line]);
    if x < area.right() {
        frame.set_cursor_position((x, area.y));
    }
}

/// Returns the lines beneath the text.
fn note(state: &State, prompt: &Prompt, cells: usize) -> Vec<Line<'static>> {
    let theme = state.theme;
    let wrapped = |text: &str, style: Style| {
        let lines_max = if cells < NARROW_MAX { NARROW_NOTE_LINES_MAX } else { NOTE_LINES_MAX };
        let lines = format::wrapped(text, cells).into_iter().take(lines_max);
        lines.map(|line| Line::styled(format::cut(&line, cells, theme.glyphs), style)).collect()
    };
    if let Some(why) = &prompt.error {
        return wrapped(why, theme.warning());
    }
    let mut lines: Vec<_> =
        prompt.completion.iter().map(|completion| offered(theme, completion, cells)).collect();
    lines.extend(match effect(state, prompt) {
        Ok(what) => wrapped(&what, theme.quiet()),
        Err(why) => wrapped(&why, theme.warning()),
    });
    lines
}

/// Lists the completions around the selected one.
fn offered(theme: Theme, completion: &Completion, cells: usize) -> Line<'static> {
    let mut spans = Vec::new();
    let mut used = 0;
    for (at, text) in completion.texts.iter().enumerate().skip(completion.at) {
        let style = if at == completion.at { theme.selected() } else { theme.label() };
        let text = format::cut(text, cells, theme.glyphs);
        used += format::width(&text) + 2;
        if used > cells + 2 {
            break;
        }
        spans.extend([Span::styled(text, style), Span::raw("  ")]);
    }
    Line::from(spans)
}

/// Says how many rows of a list pass its filter.
///
/// # Errors
/// With what is wrong with the filter.
fn matches(state: &State, list: List) -> Result<String, String> {
    let rows = if list == List::Usage { "values" } else { list.name() };
    let (passing, all) = state.table(list).matches()?;
    Ok(format!("{passing} of {all} {rows}; Tab completes, Up repeats, Esc shows all"))
}

/// Says what Enter would do with the text.
///
/// # Errors
/// With what can be typed instead.
fn effect(state: &State, prompt: &Prompt) -> Result<String, String> {
    let text = prompt.text().trim();
    match &prompt.purpose {
        PromptPurpose::Filter(list) => matches(state, *list),
        PromptPurpose::Value(name) => {
            let (setting, value) = state.parse_value(name, text)?;
            let change = format!("{} > {}", setting.shown(&setting.value), setting.shown(&value));
            let allowed = setting.allowed(state.info(name)).unwrap_or_default();
            Ok(format!("Enter stages {change}; {allowed}").trim_end_matches("; ").to_owned())
        }
        // What is not typed yet is no mistake.
        PromptPurpose::Experiment(form) => state.missing(form).map_or_else(
            || {
                let time = state.check_form(form)?;
                let keys =
                    if form.field().is_last() { "Enter starts" } else { "Ctrl-s starts, Enter goes on" };
                Ok(format!("{keys}: {time}"))
            },
            Ok,
        ),
        PromptPurpose::Moment if text.is_empty() => {
            Ok("13:05:20, +01:20 or +5m into the run, -30s before its end, mark:2".to_owned())
        }
        PromptPurpose::Moment => {
            let us = state.typed_moment(text)?;
            Ok(state.moment_words(us))
        }
        PromptPurpose::FileName if is_page(text) => {
            Ok(format!("Enter writes the report page of what is in memory to {text}"))
        }
        PromptPurpose::FileName => Ok(format!(
            "Enter writes {text}.txt and {text}.json; a name that ends in .html gets the report page"
        )),
        PromptPurpose::Recording => {
            let path = recording_path(text)?;
            Ok(format!("Enter records from now on into {}, Esc gives up", path.display()))
        }
        PromptPurpose::Help | PromptPurpose::Palette { .. } => Ok(String::new()),
    }
}
