//! What is being typed, at the bottom of the screen.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::parts::put;
use crate::format;
use crate::state::{Prompt, Purpose, State};

/// Draws the line, with the cursor where the next character goes.
pub(super) fn render(state: &State, prompt: &Prompt, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let theme = state.theme;
    let name = match &prompt.purpose {
        Purpose::Filter => "filter clients: ".to_owned(),
        Purpose::Hosts => "filter hosts: ".to_owned(),
        Purpose::Value(name) => format!("{name}: "),
        Purpose::Experiment => "A/B: ".to_owned(),
        Purpose::Moment => "go to (13:05, 5m, -10m, mark:2): ".to_owned(),
        Purpose::FileName => "write to files: ".to_owned(),
        Purpose::Palette { .. } => "find: ".to_owned(),
    };
    let room = usize::from(area.width).saturating_sub(format::width(&name) + 1);
    let before: String = prompt.text().chars().take(prompt.cursor()).collect();
    let shown_before = format::cut_front(&before, room, theme.glyphs);
    let after: String = prompt.text().chars().skip(prompt.cursor()).collect();
    let after = format::cut(&after, room.saturating_sub(format::width(&shown_before)), theme.glyphs);
    let x = area.x + (format::width(&name) + format::width(&shown_before)) as u16;
    let line = Line::from(vec![
        Span::styled(name, theme.heading()),
        Span::styled(format!("{shown_before}{after}"), theme.figure()),
    ]);
    put(frame, area, &[line]);
    if x < area.right() {
        frame.set_cursor_position((x, area.y));
    }
}
