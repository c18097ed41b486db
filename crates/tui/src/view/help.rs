//! All keys and what the figures mean, over the panes.
//!
//! ```text
//! +- help --------------------------------------------+
//! | q Ctrl-C    quit                                   |
//! | ? F1        show or leave this help                |
//! |                                                    |
//! | (1.23)      fewer than ten samples lie above it    |
//! +----------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::symbols::border;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

use crate::format;
use crate::keymap::{BINDINGS, Key};
use crate::state::State;
use crate::theme::{Glyphs, Theme};

/// Cells below which no key can be named.
const WIDTH_MIN: u16 = 8;
/// Cells of the keys' names, and of the figures'.
const NAME_CELLS: usize = 11;

/// What a person may not know of the figures.
const FIGURES: &[(&str, &str)] = &[
    ("(1.23)", "fewer than ten samples lie above this percentile"),
    ("window", "rates and latencies are of so long, up to now"),
    ("handshake", "first byte of the ClientHello to handshake done"),
    ("compute", "the part of it spent inside the TLS library"),
    ("exchange", "last byte asked to first byte answered"),
    ("response", "from when a request was due: stalls count"),
    ("service", "from when it was sent: hides stalls"),
    ("send lag", "from when it was due to when it was sent"),
    ("in, out", "plaintext from clients, and to clients; kB = 1000 B"),
    ("failed", "of the proxy: connections that served nothing"),
    ("full", "of a client: its share of full handshakes, ever"),
    ("total", "of a client: bytes both ways, ever"),
    ("journal lag", "from a record's making to its reading here"),
    ("gaps, lost", "holes in the records read, and records missing"),
];

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

/// Lines of the help: the keys, a blank one, the figures.
pub(crate) const LINES: usize = BINDINGS.len() + 1 + FIGURES.len();

/// Lines that can be scrolled away.
pub(super) fn offset_max(area: Rect) -> usize {
    LINES.saturating_sub(usize::from(placed(area).height.saturating_sub(2)))
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
    let title = if rows >= LINES {
        " help ".to_owned()
    } else {
        format!(" help {}-{}/{LINES}, Up and Down ", offset + 1, offset + rows)
    };
    let block = Block::bordered().border_set(set).title(Span::styled(title, theme.heading()));
    let cells = usize::from(area.width) - 4;
    let texts = texts();
    let lines: Vec<Line<'_>> = texts
        .iter()
        .skip(offset)
        .take(rows)
        .map(|(name, meaning)| line(theme, name, meaning, cells))
        .collect();
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Names and meanings, line by line.
fn texts() -> Vec<(String, &'static str)> {
    let keys = BINDINGS.iter().map(|binding| {
        let names: Vec<String> = binding.keys.iter().map(|&key| Key::name(key)).collect();
        (names.join(" "), binding.meaning)
    });
    let figures = FIGURES.iter().map(|&(name, meaning)| (name.to_owned(), meaning));
    keys.chain([(String::new(), "")]).chain(figures).collect()
}

fn line(theme: Theme, name: &str, meaning: &str, cells: usize) -> Line<'static> {
    let name = format!(" {name:<NAME_CELLS$} ");
    let meaning_cells = cells.saturating_sub(NAME_CELLS + 1);
    Line::from(vec![
        Span::styled(format::cut(&name, cells, theme.glyphs), theme.figure()),
        Span::styled(format::cut(meaning, meaning_cells, theme.glyphs), theme.label()),
    ])
}

/// In the middle, as large as it must be.
fn placed(area: Rect) -> Rect {
    let longest = texts().iter().map(|(_, meaning)| format::width(meaning)).max().unwrap_or(0);
    let width = area.width.min((longest + NAME_CELLS + 5) as u16);
    let height = area.height.min(LINES as u16 + 2);
    Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height }
}
