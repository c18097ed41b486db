//! The message line and the most important keys, or the text that is being typed.
//!
//! ```text
//! staged, not applied: load.rate 5500/s  Enter apply  Backspace drop  Esc drop all  …
//! q quit  ? help  Space freeze  t tune  u undo  a A/B  s sort  / filter  : find  [] rate
//! ```

use model::runs::Level;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::details;
use crate::input::intent::Intent;
use crate::input::keymap::Keymap;
use crate::input::keymap::hints::{FROZEN_HINTS, HINTS, Hint, REPLAY_HINTS, SCREEN_HINTS};
use crate::screens::own_hints;
use crate::state::State;
use crate::state::screen::Screen;
use crate::theme::format;
use crate::widgets::parts::put;

/// Shown at the right if keys that change anything are missing.
const NO_CONTROL: &str = "no control";

/// Draws as many hints as fit.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if let Some(prompt) = &state.prompt {
        return crate::screens::prompt::view::render(state, prompt, frame, area);
    }
    let theme = state.theme;
    // A narrow header has no room for it.
    if let Some(text) = details::unseen_change(state).filter(|_| area.width < details::NARROW_MAX) {
        return put(frame, area, &[Line::styled(text, theme.notice())]);
    }
    let message = message(state, area.width);
    let mut used = format::width(&message);
    let is_warning = state.message.as_ref().is_some_and(|message| message.level == Level::Warning);
    let style = if is_warning { theme.warning() } else { theme.figure() };
    let mut spans = vec![Span::styled(message, style)];
    for (hint, keys) in fitting(state, area.width) {
        used += cells(hint, &keys);
        let word = format!(" {}  ", hint.word);
        spans.extend([Span::styled(keys, theme.heading()), Span::styled(word, theme.quiet())]);
    }
    let room = usize::from(area.width).saturating_sub(used);
    if state.options.watches && state.obstacle().is_some() && room >= NO_CONTROL.len() {
        spans.push(Span::styled(format!("{NO_CONTROL:>room$}"), theme.quiet()));
    }
    put(frame, area, &[Line::from(spans)]);
}

/// Returns the request whose key is named at a column of the line; of a hint for several keys, the first.
pub(crate) fn intent_at(state: &State, area: Rect, x: u16) -> Option<Intent> {
    let mut end = area.x + format::width(&message(state, area.width)) as u16;
    let mut hints = fitting(state, area.width).into_iter();
    let found = hints.find(|(hint, keys)| {
        end += cells(hint, keys) as u16;
        x < end
    });
    found.and_then(|(hint, _)| hint.intents.first().copied())
}

/// Returns what the last key has changed, or what is staged, with two blanks behind it; empty if there is neither.
fn message(state: &State, width: u16) -> String {
    let staged = || match state.tuning.count() {
        n if n > 0 && width < details::NARROW_MAX => Some(format!("{n} staged")),
        _ => state.staged_words().map(|words| format!("staged, not applied: {words}")),
    };
    let question = state.recorded.question().map(str::to_owned);
    let said = || state.message.as_ref().map(|message| message.text.clone());
    let text = question.or_else(said).or_else(staged);
    let text = text.map(|text| format!("{text}  "));
    text.map_or_else(String::new, |text| format::cut(&text, usize::from(width), state.theme.glyphs))
}

/// Returns the cells of a hint with two blanks behind it.
fn cells(hint: &Hint, keys: &str) -> usize {
    format::width(keys) + format::width(hint.word) + 3
}

/// Returns the hints that fit, each with its keys.
fn fitting(state: &State, width: u16) -> Vec<(&'static Hint, String)> {
    let own = own_hints(state, state.screen);
    let general = match state.screen {
        Screen::Dashboard if state.is_replay() => REPLAY_HINTS,
        Screen::Dashboard if state.past_us().is_some() => FROZEN_HINTS,
        Screen::Dashboard => HINTS,
        _ => SCREEN_HINTS,
    };
    // The keys of a pane with the focus precede those of the dashboard, after quit and help.
    let is_of_pane = state.screen == Screen::Dashboard && !own.is_empty();
    let (first, rest) = general.split_at(if is_of_pane { 2 } else { 0 });
    let is_new =
        |hint: &&Hint| own.iter().all(|own| hint.intents.iter().all(|intent| !own.intents.contains(intent)));
    let hints = first.iter().chain(own.iter().copied()).chain(rest.iter().filter(is_new));
    let named = hints
        .filter(|hint| state.can(hint.needs))
        .map(|hint| (hint, keys(&state.options.keymap, hint, state.screen == Screen::Tuning)));
    let mut used = format::width(&message(state, width));
    let fits = |(hint, keys): &(&Hint, String)| {
        used += cells(hint, keys);
        // The two trailing blanks may lie beyond the edge.
        used <= usize::from(width) + 2
    };
    named.filter(|(_, keys)| !keys.is_empty()).take_while(fits).collect()
}

/// Returns the keys of a hint, the first of each intent. On the list of settings, a digit begins a value instead.
fn keys(keymap: &Keymap, hint: &Hint, is_tuning: bool) -> String {
    let acts = |key: &String| !is_tuning || !key.chars().all(|c| c.is_ascii_digit());
    let keys: Vec<String> =
        hint.intents.iter().filter_map(|&intent| keymap.names(intent).into_iter().find(acts)).collect();
    let joint = if keys.iter().all(|key| key.chars().count() == 1) { "" } else { " " };
    keys.join(joint)
}
