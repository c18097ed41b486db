//! The dimensions of usage besides the chosen one, a small table each, where there is room for them.

use std::cmp::Reverse;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use records::metrics::Dimension;

use super::model::{UsageRow, name_of, usage_rows};
use crate::state::State;
use crate::theme::Theme;
use crate::theme::format;
use crate::widgets::parts::{longest_fitting, put, share};

const TABLE_CELLS_MIN: u16 = 38;
/// Cells from which on a table has the number of handshakes, too.
const COUNTED_CELLS_MIN: usize = 50;
/// Cells of the columns of figures: the number of handshakes, and the shares.
const COUNT_CELLS: usize = 11;
const SHARES_CELLS: usize = 8 + 11;
/// The cells before the value, and between two tables.
const MARGIN_CELLS: usize = 1;
const GAP_CELLS: u16 = 2;
/// Rows of a table at least, if it has as many: an empty one, the heading and two values.
const TABLE_ROWS_MIN: u16 = 4;

type Values = (Dimension, Vec<UsageRow>);

/// Draws the tables that fit, in the order of the dimensions.
pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(usage) = state.shown_usage() else { return };
    let others = Dimension::ALL.iter().copied().filter(|&it| it != state.usage.dimension);
    let tables = others.map(|it| (it, usage_rows(usage, it))).filter(|(_, rows)| !rows.is_empty());
    let tables: Vec<Values> = tables.collect();
    let beside = tables_beside(&tables, area);
    if beside == 0 {
        return;
    }
    let width = area.width / beside;
    let ranks: Vec<&[Values]> = tables.chunks(usize::from(beside)).collect();
    let ranks = &ranks[..ranks_fitting(&ranks, area.height)];
    let mut rest = area;
    for (at, rank) in ranks.iter().enumerate() {
        // An even share of what is left, or less if all values are shown.
        let even = rest.height / (ranks.len() - at) as u16;
        let height = even.max(rows_min(rank)).min(rows_wanted(rank)).min(rest.height);
        for (at, (dimension, rows)) in (0..).zip(*rank) {
            let width = if at + 1 == beside { rest.width - at * width } else { width - GAP_CELLS };
            let place =
                Rect { x: rest.x + at * (area.width / beside), y: rest.y + 1, width, height: height - 1 };
            put(frame, place, &table(state.theme, *dimension, rows.clone(), place));
        }
        rest = Rect { y: rest.y + height, height: rest.height - height, ..rest };
    }
}

/// Returns how many tables are beside each other: so few that names and values are not cut, if all tables find room then;
/// else as few as that takes, and else as many as fit.
fn tables_beside(tables: &[Values], area: Rect) -> u16 {
    let longest = |(dimension, rows): &Values| {
        let values = rows.iter().map(|row| format::width(&row.value));
        values.chain([format::width(name_of(*dimension))]).max().unwrap_or(0)
    };
    let most = area.width / TABLE_CELLS_MIN;
    let cells = tables.iter().map(longest).max().unwrap_or(0) + COUNT_CELLS + SHARES_CELLS + MARGIN_CELLS;
    let cells = cells + usize::from(GAP_CELLS);
    let uncut = area.width / u16::try_from(cells).unwrap_or(u16::MAX);
    let has_room_for_all = |beside: &u16| {
        let ranks: Vec<&[Values]> = tables.chunks(usize::from(*beside)).collect();
        ranks_fitting(&ranks, area.height) == ranks.len()
    };
    (uncut.max(1)..=most).find(has_room_for_all).unwrap_or(most)
}

/// Returns how many rows of tables fit below each other.
fn ranks_fitting(ranks: &[&[Values]], height: u16) -> usize {
    let mut used = 0;
    let fits = |rank: &&&[Values]| {
        used += rows_min(rank);
        used <= height
    };
    ranks.iter().take_while(fits).count()
}

/// Returns the rows of the longest of these tables, with its heading and an empty row.
fn rows_wanted(rank: &[Values]) -> u16 {
    let longest = rank.iter().map(|(_, rows)| rows.len()).max().unwrap_or(0);
    u16::try_from(longest).unwrap_or(u16::MAX).saturating_add(2)
}

fn rows_min(rank: &[Values]) -> u16 {
    rows_wanted(rank).min(TABLE_ROWS_MIN)
}

fn table(theme: Theme, dimension: Dimension, mut rows: Vec<UsageRow>, place: Rect) -> Vec<Line<'static>> {
    let width = usize::from(place.width);
    let count_cells = if width < COUNTED_CELLS_MIN { 0 } else { COUNT_CELLS };
    let cells = width.saturating_sub(count_cells + SHARES_CELLS + MARGIN_CELLS);
    let line = |value: &str, [handshakes, share, cpu]: [&str; 3], [name, figure]: [Style; 2]| {
        let value = format::cut(value, cells, theme.glyphs);
        let gap = cells.saturating_sub(format::width(&value));
        let handshakes = if count_cells > 0 { handshakes } else { "" };
        Line::from(vec![
            Span::styled(format!(" {value}{:gap$}", ""), name),
            Span::styled(format!("{handshakes:>count_cells$}{share:>8}{cpu:>11}"), figure),
        ])
    };
    let room = usize::from(place.height).saturating_sub(1);
    let extent = if rows.len() > room { format!(" 1-{room}/{}", rows.len()) } else { String::new() };
    let names = [name_of(dimension), dimension.word()].map(|name| format!("{name}{extent}"));
    let name = longest_fitting(theme, &names.each_ref().map(String::as_str), cells);
    let mut lines = vec![line(&name, ["handshakes", "share", "CPU share"], [theme.heading(), theme.label()])];
    rows.sort_by_key(|row| Reverse(row.counters.handshakes()));
    lines.extend(rows.iter().take(room).map(|row| {
        let figures = [
            format::count(row.counters.handshakes()),
            share(theme, row.share()),
            share(theme, row.compute_share()),
        ];
        line(&row.value, figures.each_ref().map(String::as_str), [theme.figure(), theme.figure()])
    }));
    lines
}
