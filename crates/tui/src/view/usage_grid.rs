//! The dimensions of usage besides the chosen one, a small table each, where there is room for them.

use std::cmp::Reverse;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use telemetry::Dimension;

use super::parts::{put, share};
use super::usage::name_of;
use crate::format;
use crate::state::State;
use crate::theme::Theme;
use crate::view_model::{UsageRow, usage_rows};

/// Cells of a table at least, with the gap behind it.
const TABLE_CELLS_MIN: u16 = 52;
/// Cells of its columns of figures.
const FIGURES_CELLS: usize = 11 + 8 + 8;
/// Rows of a table at least: an empty one, the heading and two values.
const TABLE_ROWS_MIN: u16 = 4;

/// Draws the tables, as many beside each other as fit; none unless all that have values find room.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(usage) = state.shown_usage() else { return };
    let others = Dimension::ALL.iter().copied().filter(|&it| it != state.usage.dimension);
    let tables = others.map(|it| (it, usage_rows(usage, it))).filter(|(_, rows)| !rows.is_empty());
    let tables: Vec<_> = tables.collect();
    let Some(beside) = tables_beside(&tables, area) else { return };
    let ranks = ranks(tables.len(), beside);
    let width = area.width / beside;
    let mut rest = area;
    for (i, rank) in tables.chunks(usize::from(beside)).enumerate() {
        let longest = rank.iter().map(|(_, rows)| rows.len()).max().unwrap_or(0);
        // An even share of what is left, or less if all values are shown.
        let even = rest.height / (ranks - i as u16);
        let height = even.min(u16::try_from(longest).unwrap_or(u16::MAX).saturating_add(2));
        for (at, (dimension, rows)) in (0..).zip(rank) {
            let place = Rect { x: rest.x + at * width, y: rest.y + 1, width, height: height - 1 };
            put(frame, place, &table(state.theme, *dimension, rows.clone(), place));
        }
        rest = Rect { y: rest.y + height, height: rest.height - height, ..rest };
    }
}

/// Returns how many tables are beside each other: fewer where names and values are long, if the rows suffice. `None`
/// if the area is too small.
fn tables_beside(tables: &[(Dimension, Vec<UsageRow>)], area: Rect) -> Option<u16> {
    let longest = |(dimension, rows): &(Dimension, Vec<UsageRow>)| {
        let values = rows.iter().map(|row| format::width(&row.value));
        values.chain([format::width(name_of(*dimension))]).max().unwrap_or(0)
    };
    let cells = tables.iter().map(longest).max()? + FIGURES_CELLS + 3;
    let most = area.width / TABLE_CELLS_MIN;
    let uncut = area.width / u16::try_from(cells).unwrap_or(u16::MAX);
    let has_room = |beside: &u16| *beside > 1 && area.height / ranks(tables.len(), *beside) >= TABLE_ROWS_MIN;
    [uncut.clamp(2, most.max(2)), most].into_iter().filter(|&beside| beside <= most).find(has_room)
}

/// Returns how many rows of tables there are.
fn ranks(tables: usize, beside: u16) -> u16 {
    u16::try_from(tables).unwrap_or(u16::MAX).div_ceil(beside)
}

fn table(theme: Theme, dimension: Dimension, mut rows: Vec<UsageRow>, place: Rect) -> Vec<Line<'static>> {
    let cells = usize::from(place.width).saturating_sub(FIGURES_CELLS + 3);
    let line =
        |value: &str, [handshakes, share, cpu]: [&str; 3], [name, figure]: [ratatui::style::Style; 2]| {
            let value = format::cut(value, cells, theme.glyphs);
            let gap = cells.saturating_sub(format::width(&value));
            Line::from(vec![
                Span::styled(format!(" {value}{:gap$}", ""), name),
                Span::styled(format!("{handshakes:>11}{share:>8}{cpu:>8}"), figure),
            ])
        };
    let heading = [theme.heading(), theme.label()];
    let mut lines = vec![line(name_of(dimension), ["handshakes", "share", "CPU"], heading)];
    rows.sort_by_key(|row| Reverse(row.counters.handshakes()));
    let room = usize::from(place.height).saturating_sub(1);
    let shown = if rows.len() > room { room.saturating_sub(1) } else { rows.len() };
    lines.extend(rows.iter().take(shown).map(|row| {
        let figures = [
            format::count(row.counters.handshakes()),
            share(theme, row.share()),
            share(theme, row.compute_share()),
        ];
        line(&row.value, figures.each_ref().map(String::as_str), [theme.figure(), theme.figure()])
    }));
    if rows.len() > shown {
        lines.push(Line::styled(format!(" and {} more", rows.len() - shown), theme.quiet()));
    }
    lines
}
