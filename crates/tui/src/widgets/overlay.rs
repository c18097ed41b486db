//! A box over the panes.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear};

use super::parts::put;
use crate::state::State;
use crate::theme::Glyphs;

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

pub(crate) fn border(glyphs: Glyphs) -> border::Set<'static> {
    match glyphs {
        Glyphs::Unicode => border::PLAIN,
        Glyphs::Ascii => ASCII_BORDER,
    }
}

/// The cells of border and blanks on both sides.
pub(crate) const SIDES: u16 = 4;

/// Returns an area in the middle of the screen, above the keys; `None` without room for a border and a line.
pub(crate) fn place(screen: Rect, (columns, rows): (usize, usize)) -> Option<Rect> {
    let area = Rect { height: screen.height.saturating_sub(1), ..screen };
    let width = area.width.min(u16::try_from(columns).unwrap_or(u16::MAX).saturating_add(SIDES));
    let height = area.height.min(u16::try_from(rows).unwrap_or(u16::MAX).saturating_add(2));
    let (x, y) = (area.x + (area.width - width) / 2, area.y + (area.height - height) / 2);
    (width > SIDES && height > 2).then_some(Rect { x, y, width, height })
}

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect, title: &str, lines: &[Line<'_>]) {
    let theme = state.theme;
    let title = Span::styled(format!(" {title} "), theme.heading());
    let block = Block::bordered().border_set(border(theme.glyphs)).title(title);
    let inside = Rect { x: area.x + 2, y: area.y + 1, width: area.width - SIDES, height: area.height - 2 };
    frame.render_widget(Clear, area);
    frame.render_widget(block, area);
    put(frame, inside, lines);
}
