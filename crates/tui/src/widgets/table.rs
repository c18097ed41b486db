//! Tables: the columns that fit, headings above their figures, and the rows in sight.
//!
//! ```text
//! ─ clients 1-4/20, 10 s ────    out MB/s▼  in MB/s  exch/s  p99 ms  failed   full
//! ▶10.0.0.12                          41.2    0.569   1,210    0.31        0   3.0%
//! ```

use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::parts::{heading, longest_fitting, quantile, selected};
use crate::input::click::ClickTarget;
use crate::input::intent::List;
use crate::state::State;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row, TableState};
use crate::theme::Theme;
use crate::theme::format::{self, ByteUnit};
use crate::widgets::parts::expiry_style;

/// The cells that a column of figures may grow by, so that few columns do not drift apart.
const GROWTH_MAX: usize = 4;
/// A graph that may be wider than this goes through time, which its heading says.
const GRAPH_OF_TIME_MIN: usize = 30;
/// The cells of a heading line around its title.
const TITLE_MARGIN: usize = 6;

/// The columns that fit, in order.
#[derive(Clone, Debug)]
pub(crate) struct Columns<R: Row> {
    columns: Vec<ShownColumn>,
    of: std::marker::PhantomData<R>,
}

#[derive(Clone, Copy, Debug)]
struct ShownColumn {
    at: usize,
    cells: usize,
    /// The unit of all its cells, if they are bytes.
    bytes: Option<ByteUnit>,
}

impl<R: Row> Columns<R> {
    /// Divides a width among the chosen columns; those of the highest rank are left out first.
    pub(crate) fn of(table: &TableState<R>, width: usize) -> Self {
        let column = |at: usize| &R::columns()[at];
        let mut chosen: Vec<usize> = table.columns.clone();
        chosen.retain(|&at| at == 0 || !table.is_blank(at));
        let needed =
            |chosen: &[usize]| (0..chosen.len()).map(|place| cells_min(table, chosen, place)).sum::<usize>();
        while needed(&chosen) > width {
            let last = chosen.iter().enumerate().skip(1).max_by_key(|(_, at)| column(**at).rank);
            let Some((place, _)) = last else { break };
            chosen.remove(place);
        }
        let mut left = width.saturating_sub(needed(&chosen));
        let shown = |(place, &at): (usize, &usize)| ShownColumn {
            at,
            cells: cells_min(table, &chosen, place),
            bytes: byte_unit(table, column(at)),
        };
        let mut columns: Vec<ShownColumn> = chosen.iter().enumerate().map(shown).collect();
        for ShownColumn { at, cells, .. } in &mut columns {
            let title = if *at == 0 { format::width(&filter_title(table)) + TITLE_MARGIN } else { 0 };
            let wanted = content(table, column(*at)).max(title).min(column(*at).cells.1).max(*cells);
            let given = (wanted - *cells).min(left);
            (*cells, left) = (*cells + given, left - given);
        }
        spread(&mut columns, left, |at| column(at).is_left());
        Self { columns, of: std::marker::PhantomData }
    }

    /// Returns whether a column is among those that fit.
    pub(crate) fn contains(&self, at: usize) -> bool {
        self.columns.iter().any(|column| column.at == at)
    }

    /// Returns the column whose heading is at a cell of the line.
    pub(crate) fn at(&self, x: usize) -> Option<usize> {
        let mut end = 0;
        let found = self.columns.iter().find(|column| {
            end += column.cells;
            x < end
        });
        found.map(|column| column.at)
    }

    /// Returns the headings from the second column on, with the sort direction.
    pub(crate) fn headings(&self, theme: Theme, table: &TableState<R>, graph: &str) -> String {
        let mut text = String::new();
        for &ShownColumn { at, cells, bytes } in self.columns.iter().skip(1) {
            let column = &R::columns()[at];
            let per = if column.unit == ColumnUnit::BytesPerSecond { "/s" } else { "" };
            let name = match bytes {
                Some(unit) => sorted(theme, table, at, &format!("{} {}{per}", column.heading, unit.name)),
                None if column.unit == ColumnUnit::Graph
                    && !graph.is_empty()
                    && column.cells.1 > GRAPH_OF_TIME_MIN =>
                {
                    graph.to_owned()
                }
                None => Self::heading_of(theme, table, at),
            };
            let is_left = column.is_left();
            let room = cells.saturating_sub(usize::from(is_left || column.unit == ColumnUnit::Latency));
            let name = longest_fitting(theme, &[&name, column.heading], room);
            let fill = " ".repeat(room.saturating_sub(format::width(&name)));
            match column.unit {
                _ if is_left => text.extend([" ", &name, &fill]),
                ColumnUnit::Latency => text.extend([&*fill, &name, " "]),
                ColumnUnit::Graph => text.extend(["  ", &name, fill.get(2..).unwrap_or_default()]),
                _ => text.extend([&*fill, &name]),
            }
        }
        text
    }

    /// Returns the heading of a column, with the sort direction if rows are sorted by it.
    pub(crate) fn heading_of(theme: Theme, table: &TableState<R>, at: usize) -> String {
        sorted(theme, table, at, R::columns()[at].heading)
    }

    /// Returns the heading that the rows are sorted by, if no column shows it.
    pub(crate) fn hidden_order(&self, theme: Theme, table: &TableState<R>) -> Option<String> {
        let order = table.order.column;
        (order == 0 || !self.contains(order)).then(|| Self::heading_of(theme, table, order))
    }

    /// Returns the order for a title, if no column shows it; nothing if the first column orders the rows.
    pub(crate) fn sorted(&self, theme: Theme, table: &TableState<R>) -> String {
        let order = self.hidden_order(theme, table).filter(|_| table.order.column != 0);
        order.map_or_else(String::new, |by| format!(", by {by}"))
    }

    /// Draws a row. `graph` draws the cells of a graph.
    pub(crate) fn line(
        &self,
        theme: Theme,
        table: &TableState<R>,
        row: &R,
        graph: impl Fn(&'static str, &R, usize) -> Span<'static>,
    ) -> Line<'static> {
        let is_selected = table.selected == Some(row.id());
        let pointer = if is_selected { theme.glyphs.pointer() } else { ' ' };
        let mut spans = Vec::with_capacity(self.columns.len());
        for &ShownColumn { at, cells, bytes } in &self.columns {
            let column = &R::columns()[at];
            let value = column.cell(row);
            spans.push(match column.unit {
                // Reversed, the blanks of a graph would be a block.
                ColumnUnit::Graph => graph(column.name, row, cells).patch_style(Style::new().not_reversed()),
                ColumnUnit::Text | ColumnUnit::Address => {
                    let room = cells.saturating_sub(1);
                    let text = value.shown(column.unit, theme.glyphs);
                    let text = if text.is_empty() { theme.glyphs.none().to_string() } else { text };
                    let text = if at == 0 {
                        format::cut_middle(&text, room, theme.glyphs)
                    } else {
                        format::cut(&text, room, theme.glyphs)
                    };
                    let before = if at == 0 { pointer } else { ' ' };
                    let style =
                        if column.emphasis == Emphasis::Quiet { theme.quiet() } else { theme.label() };
                    Span::styled(format!("{before}{text}{}", " ".repeat(room - format::width(&text))), style)
                }
                _ => figure(theme, column, &value, (cells, bytes)),
            });
        }
        let line = Line::from(spans);
        if is_selected { selected(theme, line) } else { line }
    }
}

/// Returns the cells that a column needs at least: those of its figures, or of its heading with unit and sort direction.
fn cells_min<R: Row>(table: &TableState<R>, chosen: &[usize], place: usize) -> usize {
    let column = &R::columns()[chosen[place]];
    let unit = match column.unit {
        ColumnUnit::Text | ColumnUnit::Address | ColumnUnit::Graph => return column.cells.0,
        ColumnUnit::Bytes => " MB",
        ColumnUnit::BytesPerSecond => " MB/s",
        // A cell for the bracket of a percentile.
        ColumnUnit::Latency => " ",
        ColumnUnit::Count | ColumnUnit::PerSecond | ColumnUnit::Ratio => "",
    };
    let sign = usize::from(chosen[place] == table.order.column);
    // A blank parts it from the heading before it, unless that ends with one as texts do.
    let gap = usize::from(place > 0 && !R::columns()[chosen[place - 1]].is_left());
    column.cells.0.max(format::width(column.heading) + unit.len() + sign + gap)
}

/// Gives columns of figures what is left, evenly, and the first column the rest.
fn spread(columns: &mut [ShownColumn], mut left: usize, is_text: impl Fn(usize) -> bool) {
    let figures = columns.iter().filter(|column| !is_text(column.at)).count();
    let growth = (left / figures.max(1)).min(GROWTH_MAX);
    for column in columns.iter_mut().filter(|column| !is_text(column.at)) {
        column.cells += growth;
        left -= growth;
    }
    if let Some(first) = columns.first_mut() {
        first.cells += left;
    }
}

/// Returns a heading, with the sort direction if rows are sorted by the column.
fn sorted<R: Row>(theme: Theme, table: &TableState<R>, at: usize, heading: &str) -> String {
    if at == table.order.column {
        theme.glyphs.sorted(heading, table.order.is_descending)
    } else {
        heading.to_owned()
    }
}

/// Returns the unit of a column of bytes: that of the largest amount in sight.
fn byte_unit<R: Row>(table: &TableState<R>, column: &Column<R>) -> Option<ByteUnit> {
    if !matches!(column.unit, ColumnUnit::Bytes | ColumnUnit::BytesPerSecond) {
        return None;
    }
    let amounts = table.page().iter().filter_map(|row| column.cell(row).number());
    amounts.reduce(f64::max).map(ByteUnit::of)
}

/// Returns the cells that a column can use.
fn content<R: Row>(table: &TableState<R>, column: &Column<R>) -> usize {
    match column.unit {
        ColumnUnit::Text | ColumnUnit::Address => {
            let cells =
                |row| format::width(&column.cell(row).shown(column.unit, crate::theme::Glyphs::Ascii)) + 1;
            table.page().iter().map(cells).max().unwrap_or(0)
        }
        ColumnUnit::Graph => column.cells.1,
        _ => column.cells.0,
    }
}

fn figure<R>(
    theme: Theme,
    column: &Column<R>,
    value: &CellValue<'_>,
    (cells, bytes): (usize, Option<ByteUnit>),
) -> Span<'static> {
    if let CellValue::Quantile(Some(value)) = value {
        return quantile(theme, *value, cells);
    }
    let text = match (bytes, value.number()) {
        (Some(unit), Some(number)) => unit.shown(number),
        _ => value.shown(column.unit, theme.glyphs),
    };
    let is_warning = column.emphasis == Emphasis::Failures && value.number().is_some_and(|n| n > 0.0);
    let style = match column.emphasis {
        _ if let CellValue::Expiry(expiry) = value => expiry_style(theme, *expiry),
        _ if is_warning => theme.warning(),
        Emphasis::Figure => theme.figure(),
        Emphasis::Quiet => theme.quiet(),
        Emphasis::None | Emphasis::Failures => theme.label(),
    };
    // A latency leaves a cell for the bracket of one that rests on few samples.
    let after = if column.unit == ColumnUnit::Latency { " " } else { "" };
    Span::styled(format!("{text:>0$}{after}", cells.saturating_sub(after.len())), style)
}

/// Returns how many rows fit below the heading.
pub(crate) fn rows(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(1))
}

/// Returns the row or the heading at a cell of the screen.
pub(crate) fn target<R: Row>(
    list: List,
    table: &TableState<R>,
    area: Rect,
    (x, y): (u16, u16),
) -> Option<ClickTarget> {
    if let Some(row) = y.checked_sub(area.y + 1) {
        return Some(ClickTarget::Row(list, usize::from(row)));
    }
    let column = Columns::of(table, usize::from(area.width)).at(usize::from(x.checked_sub(area.x)?))?;
    Some(ClickTarget::Heading(list, column))
}

/// Returns the heading and the rows in sight of a table. `titles` gives the titles for the columns and the number of rows
/// in sight, longest first; `graph` draws the cells of a graph.
pub(crate) fn lines<R: Row>(
    state: &State,
    table: &TableState<R>,
    area: Rect,
    titles: impl FnOnce(&State, &Columns<R>, usize) -> Vec<String>,
    graph: impl Fn(&'static str, &R, usize) -> Span<'static>,
) -> Vec<Line<'static>> {
    let theme = state.theme;
    let columns = Columns::of(table, usize::from(area.width));
    let complaint = complaint(state, table, usize::from(area.width));
    let room = rows(area).saturating_sub(usize::from(complaint.is_some()));
    let shown = &table.page()[..table.page().len().min(room)];
    let mut lines =
        vec![heading_line(theme, table, &columns, &titles(state, &columns, shown.len()), ("", area.width))];
    lines.extend(complaint);
    lines.extend(shown.iter().map(|row| columns.line(theme, table, row, &graph)));
    lines
}

/// Draws nothing, in a table without a graph.
pub(crate) fn no_graph<R: Row>(_: &'static str, _: &R, _: usize) -> Span<'static> {
    Span::raw("")
}

/// Returns a heading line: the longest title that fits, and the names of the columns.
pub(crate) fn heading_line<R: Row>(
    theme: Theme,
    table: &TableState<R>,
    columns: &Columns<R>,
    titles: &[String],
    (graph, width): (&str, u16),
) -> Line<'static> {
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    heading(theme, &titles, &columns.headings(theme, table, graph), width)
}

/// Returns the filter and how many rows pass it; empty without a filter.
pub(crate) fn filter_title<R: Row>(table: &TableState<R>) -> String {
    let (passing, all) = table.counts();
    match table.filter.text().trim() {
        "" => String::new(),
        text => format!("filter: {text} {passing}/{all}"),
    }
}

/// Returns the visible rows for a title: `1-9/16`, or `filter: 10.0 1-7 of 9/16` with the number that passes the
/// filter.
pub(crate) fn extent<R: Row>(table: &TableState<R>, shown: usize) -> String {
    let (passing, all) = table.counts();
    let part = format!("{}-{}", (table.offset() + 1).min(passing), table.offset() + shown);
    match table.filter.text().trim() {
        "" => format!("{part}/{all}"),
        _ if shown == passing => filter_title(table),
        text => format!("filter: {text} {part} of {passing}/{all}"),
    }
}

/// Returns what is wrong with the filter, or that nothing passes it.
pub(crate) fn complaint<R: Row>(state: &State, table: &TableState<R>, cells: usize) -> Option<Line<'static>> {
    let theme = state.theme;
    let cut = |text: String| format::cut(&text, cells, theme.glyphs);
    if let Some(error) = table.filter.error() {
        // While a filter is typed, the prompt says what is wrong with it.
        if state.prompt.is_some() {
            return None;
        }
        return Some(Line::styled(cut(format!(" filter: {error}")), theme.warning()));
    }
    let is_none = table.counts().0 == 0 && !table.filter.is_empty();
    is_none.then(|| Line::styled(cut(format!(" none matches {}", table.filter.text().trim())), theme.quiet()))
}
