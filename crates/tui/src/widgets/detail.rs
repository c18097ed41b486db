//! The box of one row of a table: lines with names before them, on the screen and as text.

use ratatui::Frame;
use ratatui::text::{Line, Span};

use super::overlay;
use crate::format;
use crate::state::State;

const NAME_CELLS: usize = 12;

/// A line and its name. The name is empty if the line continues the one above.
pub(crate) type NamedLine = (&'static str, String);

/// Draws the box, with lines of at most `width` cells.
pub(crate) fn render(
    state: &State,
    frame: &mut Frame<'_>,
    line_cells: usize,
    title: &str,
    lines: Vec<NamedLine>,
) {
    let theme = state.theme;
    let Some(area) = overlay::place(frame.area(), (line_cells, lines.len())) else { return };
    let room = usize::from(area.width - overlay::SIDES).saturating_sub(NAME_CELLS);
    let line = |(name, text): NamedLine| {
        Line::from(vec![
            Span::styled(format!("{name:<NAME_CELLS$}"), theme.label()),
            Span::styled(format::cut(&text, room, theme.glyphs), theme.figure()),
        ])
    };
    let lines: Vec<Line<'_>> = lines.into_iter().map(line).collect();
    let title = format::cut(title, room + NAME_CELLS - 2, theme.glyphs);
    overlay::render(state, frame, area, &title, &lines);
}

/// Returns the title and the lines as text.
pub(crate) fn text(title: &str, lines: Vec<NamedLine>) -> String {
    let mut text = format!("{title}\n");
    for (name, line) in lines {
        text.push_str(format!("{name:<NAME_CELLS$}{line}").trim_end());
        text.push('\n');
    }
    text
}
