//! All keys, over the panes.
//!
//! ```text
//! +- keys --------------------------------+
//! | q Ctrl-C   quit                       |
//! | ? F1       show or leave this help    |
//! +---------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use crate::format;
use crate::keymap::{BINDINGS, Binding, Key};
use crate::state::State;
use crate::theme::Glyphs;

/// Cells below which no key can be named.
const WIDTH_MIN: u16 = 8;
/// Cells of the keys' names.
const KEYS_CELLS: usize = 11;

const ASCII_BORDER: border::Set<'_> = border::Set {
    top_left: "+",
    top_right: "+",
    bottom_left: "+",
    bottom_right: "+",
    vertical_left: "|",
    vertical_right: "|",
    horizontal_top: "-",
    horizontal_bottom: "-",
};

/// Lines that can be scrolled away.
pub(super) fn offset_max(area: Rect) -> usize {
    BINDINGS.len().saturating_sub(usize::from(placed(area).height.saturating_sub(2)))
}

/// Draws the help from a line on.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, offset: usize) {
    let area = placed(frame.area());
    if area.width < WIDTH_MIN || area.height < 3 {
        return;
    }
    let theme = state.theme;
    let set = match theme.glyphs {
        Glyphs::Unicode => border::PLAIN,
        Glyphs::Ascii => ASCII_BORDER,
    };
    let rows = usize::from(area.height) - 2;
    let offset = offset.min(offset_max(frame.area()));
    let rest = BINDINGS.len().saturating_sub(offset + rows);
    let title = match (offset, rest) {
        (0, 0) => " keys ".to_owned(),
        _ => format!(" keys {}-{}/{} ", offset + 1, offset + rows.min(BINDINGS.len()), BINDINGS.len()),
    };
    let block = Block::bordered().border_set(set).title(Span::styled(title, theme.heading()));
    let cells = usize::from(area.width) - 4;
    let lines: Vec<Line<'_>> =
        BINDINGS.iter().skip(offset).take(rows).map(|binding| line(state, binding, cells)).collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

fn line(state: &State, binding: &Binding, cells: usize) -> Line<'static> {
    let theme = state.theme;
    let names: Vec<String> = binding.keys.iter().map(|&key| Key::name(key)).collect();
    let keys = format!(" {:<KEYS_CELLS$} ", names.join(" "));
    let meaning_cells = cells.saturating_sub(KEYS_CELLS + 1);
    let meaning = format::cut(binding.meaning, meaning_cells, theme.glyphs);
    Line::from(vec![
        Span::styled(format::cut(&keys, cells, theme.glyphs), theme.figure()),
        Span::styled(meaning, theme.label()),
    ])
}

/// In the middle, as large as it must be.
fn placed(area: Rect) -> Rect {
    let longest = BINDINGS.iter().map(|binding| format::width(binding.meaning)).max().unwrap_or(0);
    let width = area.width.min((longest + KEYS_CELLS + 5) as u16);
    let height = area.height.min(BINDINGS.len() as u16 + 2);
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
