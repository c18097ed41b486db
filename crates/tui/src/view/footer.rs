//! The most important keys, or the text that is being typed.
//!
//! ```text
//! q quit  ? help  space freeze  -+ window  s sort  l load  [] rate  {} resume  m mark
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::parts::put;
use crate::format;
use crate::input::keymap::{EXPERIMENT_HINTS, HINTS, Hint, Keymap, REPLAY_HINTS, RUN_HINTS, TUNING_HINTS};
use crate::state::{Screen, State};

/// Shown at the right if keys that change anything are missing.
const READ_ONLY: &str = "read-only";

/// Draws as many hints as fit.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    if let Some(prompt) = &state.prompt {
        return super::prompt::render(state, prompt, frame, area);
    }
    let theme = state.theme;
    let mut spans = Vec::new();
    let mut used = 0;
    let hints = match state.screen {
        Screen::Tuning => TUNING_HINTS,
        Screen::Experiments => EXPERIMENT_HINTS,
        Screen::Runs => RUN_HINTS,
        _ if state.is_replay() => REPLAY_HINTS,
        _ => HINTS,
    };
    for hint in hints.iter().filter(|hint| state.can(hint.needs)) {
        let keys = keys(&state.options.keymap, hint);
        if keys.is_empty() {
            continue;
        }
        let word = format!(" {}  ", hint.word);
        let cells = format::width(&keys) + format::width(&word);
        // The two trailing blanks may lie beyond the edge.
        if used + cells > usize::from(area.width) + 2 {
            break;
        }
        used += cells;
        spans.extend([Span::styled(keys, theme.heading()), Span::styled(word, theme.quiet())]);
    }
    let room = usize::from(area.width).saturating_sub(used);
    if state.options.read_only && room >= READ_ONLY.len() {
        spans.push(Span::styled(format!("{READ_ONLY:>room$}"), theme.quiet()));
    }
    put(frame, area, &[Line::from(spans)]);
}

/// Returns the keys of a hint, the first of each intent.
fn keys(keymap: &Keymap, hint: &Hint) -> String {
    let keys: Vec<String> =
        hint.intents.iter().filter_map(|&intent| keymap.names(intent).into_iter().next()).collect();
    let joint = if keys.iter().all(|key| key.chars().count() == 1) { "" } else { " " };
    keys.join(joint)
}
