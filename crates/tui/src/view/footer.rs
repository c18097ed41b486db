//! The most wanted keys.
//!
//! ```text
//! q quit  ? help  space freeze  -+ window  s sort  l load  [] rate  {} resume  m mark
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use crate::format;
use crate::keymap::{HINTS, Hint, Needs, key_of};
use crate::state::State;

/// Says at the right why keys are missing.
const READ_ONLY: &str = "read-only";

/// Draws as many hints as fit.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let theme = state.theme;
    let mut spans = Vec::new();
    let mut used = 0;
    for hint in HINTS.iter().filter(|hint| is_there(state, hint.needs)) {
        let keys = keys(hint);
        let word = format!(" {}  ", hint.word);
        let cells = format::width(&keys) + format::width(&word);
        // The two blanks at the end may stand beyond the edge.
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
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

fn is_there(state: &State, needs: Needs) -> bool {
    let figures = state.figures();
    match needs {
        Needs::Nothing => true,
        Needs::Clients => figures.is_none_or(|figures| figures.proxy.is_some()),
        Needs::Control => !state.options.read_only,
        Needs::Load => !state.options.read_only && figures.is_none_or(|figures| figures.load.is_some()),
    }
}

fn keys(hint: &Hint) -> String {
    let keys: Vec<String> =
        hint.intents.iter().filter_map(|&intent| key_of(intent)).map(crate::keymap::Key::name).collect();
    let joint = if keys.iter().all(|key| key.chars().count() == 1) { "" } else { " " };
    keys.join(joint)
}
