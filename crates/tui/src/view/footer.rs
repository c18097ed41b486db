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
use crate::keymap::{HINTS, Hint, key_of};
use crate::state::State;

/// Draws as many hints as fit.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let theme = state.theme;
    let mut spans = Vec::new();
    let mut used = 0;
    for hint in HINTS.iter().filter(|hint| !(hint.changes_the_run && state.options.read_only)) {
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
    frame.render_widget(Paragraph::new(Line::from(spans)), area);
}

fn keys(hint: &Hint) -> String {
    hint.intents.iter().filter_map(|&intent| key_of(intent)).map(crate::keymap::Key::name).collect()
}
