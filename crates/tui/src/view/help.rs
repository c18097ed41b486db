//! All keys, and the meaning of the figures, over the panes.
//!
//! ```text
//! +- help --------------------------------------------+
//! | q Ctrl-c    quit                                   |
//! | ? F1        show or leave this help                |
//! |                                                    |
//! | (1.23)      fewer than ten samples lie above it    |
//! +----------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::overlay;
use crate::format;
use crate::input::keymap::{BINDINGS, Context};
use crate::state::State;
use crate::theme::Theme;

/// The cells of the keys' names, and of the figures' names.
const NAME_CELLS: usize = 18;
/// The cells of the longest line.
const LINE_CELLS: usize = NAME_CELLS + 52;

/// The figures that are not plain from their labels.
const FIGURES: &[(&str, &str)] = &[
    ("(1.23)", "fewer than ten samples lie above this percentile"),
    ("p99 95 %", "its confidence interval, for independent samples"),
    ("vs mark 1", "p99 against that window; *: intervals do not overlap"),
    ("window", "the latest time, over which rates and latencies are"),
    ("handshake", "first byte of the ClientHello to handshake complete"),
    ("compute", "the part of a handshake spent in the TLS library"),
    ("exchange", "last byte of a request to first byte of its answer"),
    ("response", "from when a request was due: stalls count"),
    ("service", "from when it was sent: hides stalls"),
    ("send lag", "from when it was due to when it was sent"),
    ("over time", "darker: more samples of a column; blank: no records"),
    ("in, out", "plaintext from clients, and to clients; kB = 1000 B"),
    ("failed", "of the proxy: connections that served nothing"),
    ("reasons", "why handshakes failed, of those with a record"),
    ("full", "of a client: share of full handshakes in the window"),
    ("total", "of a client: bytes both ways since it came"),
    ("p99 ms", "of a client: its exchanges, to an eighth"),
    ("journal lag", "from making a record to reading it here"),
    ("gaps, lost", "holes in the records read, and records missing"),
    ("docs/figures.md", "defines every figure"),
];

/// Returns the number of lines: the keys, a blank line, the figures.
pub(crate) fn lines(state: &State) -> usize {
    texts(state).len()
}

/// Returns how many lines can be scrolled away.
pub(crate) fn offset_max(state: &State) -> usize {
    let (columns, rows) = state.size();
    let lines = lines(state);
    let placed = overlay::place(Rect::new(0, 0, columns, rows), (LINE_CELLS, lines));
    lines.saturating_sub(placed.map_or(0, |area| usize::from(area.height) - 2))
}

/// Draws the help from a line on.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, offset: usize) {
    let texts = texts(state);
    let Some(area) = overlay::place(frame.area(), (LINE_CELLS, texts.len())) else { return };
    let rows = usize::from(area.height) - 2;
    let offset = offset.min(texts.len().saturating_sub(rows));
    let title = if rows >= texts.len() {
        "help".to_owned()
    } else {
        format!("help {}-{}/{}, Up and Down", offset + 1, offset + rows, texts.len())
    };
    let cells = usize::from(area.width - overlay::SIDES);
    let shown = texts.iter().skip(offset).take(rows);
    let lines: Vec<Line<'_>> = shown.map(|(name, meaning)| line(state.theme, name, meaning, cells)).collect();
    overlay::render(state, frame, area, &title, &lines);
}

/// Returns names and meanings, line by line; keys without effect are left out.
fn texts(state: &State) -> Vec<(String, &'static str)> {
    let is_there = |binding: &&crate::input::keymap::Binding| state.can(binding.needs);
    let keys = |contexts: &[Context]| {
        let here = BINDINGS.iter().filter(is_there).filter(|binding| contexts.contains(&binding.context));
        here.map(|binding| (state.options.keymap.names(binding.intent).join(" "), binding.meaning))
            .collect::<Vec<_>>()
    };
    let under = |heading: &'static str, context| {
        let keys = keys(&[context]);
        let heading = (!keys.is_empty()).then(|| (String::new(), heading));
        heading.into_iter().chain(keys)
    };
    let main = keys(&[Context::Anywhere, Context::Panes]);
    let replay = under("while a run is played:", Context::Replay);
    let tuning = under("on the list of settings:", Context::Tuning);
    let experiments = under("on the experiments:", Context::Experiments);
    let runs = under("on the list of runs:", Context::Runs);
    let choice = under("on a list of columns or panes:", Context::Choice);
    let figures = FIGURES.iter().map(|&(name, meaning)| (name.to_owned(), meaning));
    let blank = [(String::new(), "")];
    main.into_iter()
        .chain(replay)
        .chain(tuning)
        .chain(experiments)
        .chain(runs)
        .chain(choice)
        .chain(blank)
        .chain(figures)
        .collect()
}

fn line(theme: Theme, name: &str, meaning: &str, cells: usize) -> Line<'static> {
    let name = format!("{name:<NAME_CELLS$} ");
    let meaning_cells = cells.saturating_sub(NAME_CELLS + 1);
    Line::from(vec![
        Span::styled(format::cut(&name, cells, theme.glyphs), theme.figure()),
        Span::styled(format::cut(meaning, meaning_cells, theme.glyphs), theme.label()),
    ])
}
