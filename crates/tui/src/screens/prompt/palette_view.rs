//! The matches for the typed letters: commands with their keys, settings, clients.

use ratatui::Frame;
use ratatui::text::{Line, Span};

use super::entry::PaletteEntry;
use crate::state::State;
use crate::theme::format;
use crate::widgets::{overlay, parts};

const LINE_CELLS: usize = 84;
/// The cells of a command's keys, or of a setting's value.
const KEY_CELLS: usize = 16;
/// The maximum number of visible lines.
const ROWS_MAX: usize = 16;

/// Draws the list around the selected entry.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, found: &[PaletteEntry], selected: usize) {
    let theme = state.theme;
    let Some(area) = overlay::place(frame.area(), (LINE_CELLS, ROWS_MAX)) else { return };
    let (cells, rows) = (usize::from(area.width - overlay::SIDES), usize::from(area.height) - 2);
    let first = (selected + 1).saturating_sub(rows);
    let mut lines: Vec<Line<'_>> = found
        .iter()
        .enumerate()
        .skip(first)
        .take(rows)
        .map(|(at, entry)| {
            let keys = match entry {
                PaletteEntry::Command(binding) => state.options.keymap.names(binding.intent).join(" "),
                PaletteEntry::Setting(name) => {
                    let setting = state.settings().iter().find(|setting| setting.name == *name);
                    setting.map_or_else(String::new, |setting| {
                        setting.in_words(&setting.value, state.info(&setting.name))
                    })
                }
                PaletteEntry::SortBy { .. }
                | PaletteEntry::Pane(_)
                | PaletteEntry::Client(_)
                | PaletteEntry::Route(..)
                | PaletteEntry::Run(..) => String::new(),
            };
            let pointer = if at == selected { theme.glyphs.pointer() } else { ' ' };
            let room = cells.saturating_sub(KEY_CELLS + 1);
            let words = format::cut(&entry.words(), room, theme.glyphs);
            let line = Line::from(vec![
                Span::styled(format!("{pointer}{words:<room$}"), theme.label()),
                Span::styled(
                    format!("{:>KEY_CELLS$}", format::cut(&keys, KEY_CELLS, theme.glyphs)),
                    theme.quiet(),
                ),
            ]);
            if at == selected { parts::selected(theme, line) } else { line }
        })
        .collect();
    if lines.is_empty() {
        lines.push(Line::styled("nothing of that name", theme.quiet()));
    }
    overlay::render(
        state,
        frame,
        area,
        &format!("find: {} found, Enter does it, Esc leaves", found.len()),
        &lines,
    );
}
