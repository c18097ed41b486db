//! The list of columns or panes to choose from.
//!
//! ```text
//! +- columns of the clients ---------------------------------+
//! | ▶[x] out       plaintext bytes a second to the client    |
//! |  [ ] resumed   share of resumed handshakes               |
//! +----------------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::input::intent::Choice;
use crate::state::State;
use crate::table::ChoiceLine;
use crate::theme::format;
use crate::widgets::overlay;

const LINE_CELLS: usize = 72;
/// The cells of a name, with the sign before it.
const NAME_CELLS: usize = 17;

fn place(state: &State, of: Choice) -> Option<(Rect, usize)> {
    let (columns, rows) = state.size();
    let lines = state.choices(of).len();
    overlay::place(Rect::new(0, 0, columns, rows), (LINE_CELLS, lines)).map(|area| (area, lines))
}

fn first_line(area: Rect, selected: usize) -> usize {
    (selected + 1).saturating_sub(usize::from(area.height) - 2)
}

/// Returns the line at a cell of the screen.
pub(crate) fn line_at(state: &State, of: Choice, selected: usize, (x, y): (u16, u16)) -> Option<usize> {
    let (area, lines) = place(state, of)?;
    let inside = Rect { x: area.x + 1, y: area.y + 1, width: area.width - 2, height: area.height - 2 };
    let line = first_line(area, selected) + usize::from(y.checked_sub(inside.y)?);
    (inside.contains((x, y).into()) && line < lines).then_some(line)
}

/// Draws the list around the selected line.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, of: Choice, selected: usize) {
    let Some((area, _)) = place(state, of) else { return };
    let cells = usize::from(area.width - overlay::SIDES);
    let choices = state.choices(of);
    let shown = choices.iter().enumerate().skip(first_line(area, selected));
    let lines: Vec<Line<'_>> = shown.map(|(at, choice)| line(state, choice, at == selected, cells)).collect();
    let title = match of {
        Choice::Columns(list) => format!("columns of the {}", list.name()),
        Choice::Panes => "panes".to_owned(),
    };
    overlay::render(state, frame, area, &title, &lines);
}

fn line(state: &State, choice: &ChoiceLine, is_selected: bool, cells: usize) -> Line<'static> {
    let theme = state.theme;
    let pointer = if is_selected { theme.glyphs.pointer() } else { ' ' };
    let sign = if choice.is_chosen { 'x' } else { ' ' };
    let name = format!("{pointer}[{sign}] {}", choice.name);
    let room = if choice.is_chosen && !choice.has_room { "no room now: " } else { "" };
    let meaning = format!("{room}{}", format::phrase(choice.meaning));
    let meaning = format::cut(&meaning, cells.saturating_sub(NAME_CELLS + 1), theme.glyphs);
    let style = if choice.is_chosen { theme.figure() } else { theme.label() };
    let line = Line::from(vec![
        Span::styled(format!("{name:<NAME_CELLS$} "), style),
        Span::styled(meaning, theme.label()),
    ]);
    if is_selected { line.style(theme.selected()) } else { line }
}
