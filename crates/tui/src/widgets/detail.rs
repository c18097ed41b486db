//! The box of one row of a table: lines with names before them, on the screen and as text.

use ratatui::Frame;
use ratatui::text::{Line, Span};

use super::overlay;
use crate::state::State;
use crate::theme::format;

const NAME_CELLS: usize = 12;

/// A line and its name. The name is empty if the line continues the one above.
pub(crate) type NamedLine = (&'static str, String);

/// All about a row.
pub(crate) struct Details {
    /// The most cells of a line.
    pub(crate) cells: usize,
    pub(crate) title: String,
    /// Empty if the row is gone.
    pub(crate) lines: Vec<NamedLine>,
    /// Shown of a row that is gone.
    pub(crate) gone: &'static str,
}

impl Details {
    /// Draws the box.
    pub(crate) fn render(mut self, state: &State, frame: &mut Frame<'_>) {
        let theme = state.theme;
        if self.lines.is_empty() {
            self.lines.push(("", self.gone.to_owned()));
        }
        let Some(area) = overlay::place(frame.area(), (self.cells, self.lines.len())) else { return };
        let room = usize::from(area.width - overlay::SIDES).saturating_sub(NAME_CELLS);
        let line = |(name, text): NamedLine| {
            Line::from(vec![
                Span::styled(format!("{name:<NAME_CELLS$}"), theme.label()),
                Span::styled(format::cut(&text, room, theme.glyphs), theme.figure()),
            ])
        };
        let lines: Vec<Line<'_>> = self.lines.into_iter().map(line).collect();
        let title = format::cut(&self.title, room + NAME_CELLS - 2, theme.glyphs);
        overlay::render(state, frame, area, &title, &lines);
    }

    /// Returns the title and the lines as text.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{}\n", self.title);
        for (name, line) in &self.lines {
            text.push_str(format!("{name:<NAME_CELLS$}{line}").trim_end());
            text.push('\n');
        }
        text
    }
}
