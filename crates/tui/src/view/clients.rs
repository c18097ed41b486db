//! The table of clients, sorted, with current rates and totals.
//!
//! ```text
//! ─ clients 1-4/20, 10 s ────    out▼       in  exch/s  p99 ms  open   full  errors   total
//! ▶10.0.0.12               41.2 MB/s 1.2 MB/s    1210    0.31      8   3.0%       0  4.1 GB
//!  10.0.0.31               18.7 MB/s 640 kB/s     640  (0.57)      8  22.0%       0  1.9 GB
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::parts::{heading, longest_fitting, put, quantile};
use super::sparkline::sparkline;
use crate::format;
use crate::state::State;
use crate::theme::Theme;
use crate::view_model::{ClientRow, Order, SortKey, ViewModel};

/// The minimum and maximum cells of an address.
const ADDRESS_CELLS: (usize, usize) = (15, 39);
/// The minimum cells of a sparkline.
const SPARKLINE_CELLS_MIN: usize = 12;
/// The intervals of a sparkline.
const SPARKLINE_CELLS_MAX: usize = 60;

/// The columns of figures, in order.
const COLUMNS: [SortKey; 9] = [
    SortKey::Out,
    SortKey::In,
    SortKey::Exchanges,
    SortKey::P99,
    SortKey::Open,
    SortKey::Connections,
    SortKey::Full,
    SortKey::Errors,
    SortKey::Total,
];
/// The columns in the order in which they are left out.
const DISPENSABLE: [SortKey; 8] = [
    SortKey::Connections,
    SortKey::Total,
    SortKey::Open,
    SortKey::Errors,
    SortKey::Full,
    SortKey::P99,
    SortKey::Exchanges,
    SortKey::In,
];

fn cells(column: SortKey) -> usize {
    match column {
        SortKey::Out | SortKey::In => 11,
        SortKey::Exchanges | SortKey::P99 | SortKey::Connections | SortKey::Errors => 8,
        SortKey::Open | SortKey::Full => 7,
        SortKey::Total => 9,
        SortKey::Client => 0,
    }
}

/// The widths of the columns.
struct ClientWidths {
    address: usize,
    columns: Vec<SortKey>,
    sparkline: usize,
}

impl ClientWidths {
    fn of(width: usize, longest_address: usize) -> Self {
        let mut columns = COLUMNS.to_vec();
        let needed = |columns: &[SortKey]| 2 + columns.iter().map(|&column| cells(column)).sum::<usize>();
        for dispensable in DISPENSABLE {
            if ADDRESS_CELLS.0 + needed(&columns) > width {
                columns.retain(|&column| column != dispensable);
            }
        }
        let room = width.saturating_sub(needed(&columns));
        let address = longest_address.clamp(ADDRESS_CELLS.0, ADDRESS_CELLS.1).min(room);
        let left = room.saturating_sub(address + 2);
        let sparkline = if left < SPARKLINE_CELLS_MIN { 0 } else { left.min(SPARKLINE_CELLS_MAX) };
        // Without a sparkline, the figures are aligned right.
        let address = if sparkline == 0 { room.min(ADDRESS_CELLS.1) } else { address };
        Self { address, columns, sparkline }
    }
}

/// Returns how many clients fit below the heading.
pub(super) fn rows(area: Rect) -> usize {
    usize::from(area.height.saturating_sub(1))
}

/// Draws the visible part of the table.
pub(super) fn render(state: &State, figures: &ViewModel, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let theme = state.theme;
    let page = state.clients.page();
    let shown = &page[..page.len().min(rows(area))];
    let longest = shown.iter().map(|row| format::width(&row.id.to_string())).max().unwrap_or(0);
    let widths = ClientWidths::of(usize::from(area.width), longest);
    let order = state.clients.order;
    let titles = titles(state, figures, shown.len(), &widths);
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let mut lines = vec![heading(theme, &titles, &names(theme, figures, &widths, order), area.width)];
    lines.extend(shown.iter().map(|row| client_line(state, row, &widths)));
    if shown.is_empty() && !state.clients.filter.is_empty() {
        let why = format!(" none of them holds {}", state.clients.filter);
        lines.push(Line::styled(format::cut(&why, usize::from(area.width), theme.glyphs), theme.quiet()));
    }
    put(frame, area, &lines);
}

/// Returns the titles, longest first: the visible clients, the window of their rates, and their order if no
/// column shows it.
fn titles(state: &State, figures: &ViewModel, shown: usize, widths: &ClientWidths) -> Vec<String> {
    let order = state.clients.order;
    let word = if order.key == SortKey::Client {
        state.theme.glyphs.sorted("clients", order.is_descending())
    } else {
        "clients".to_owned()
    };
    let filter = &state.clients.filter;
    if shown == 0 && filter.is_empty() {
        return vec!["clients: none yet".to_owned(), word];
    }
    if shown == 0 {
        return vec![word];
    }
    let word = if filter.is_empty() { word } else { format!("{word} with {filter}") };
    let before = state.clients.offset();
    let part = format!("{word} {}-{}/{}", before + 1, before + shown, state.client_count());
    let is_hidden = order.key != SortKey::Client && !widths.columns.contains(&order.key);
    let by = if is_hidden { format!(" by {}", marked(state.theme, order.key, order)) } else { String::new() };
    let with_span = format!("{part}, {}{by}", figures.clients_span.words());
    vec![with_span, format!("{part}{by}"), if is_hidden { format!("{word}{by}") } else { part }]
}

/// Returns the name of a column, with the sort direction if it is the sort key.
fn marked(theme: Theme, column: SortKey, order: Order) -> String {
    if column == order.key {
        theme.glyphs.sorted(column.heading(), order.is_descending())
    } else {
        column.heading().to_owned()
    }
}

fn names(theme: Theme, figures: &ViewModel, widths: &ClientWidths, order: Order) -> String {
    let mut names = String::new();
    for &column in &widths.columns {
        let name = marked(theme, column, order);
        names.push_str(&" ".repeat(cells(column).saturating_sub(format::width(&name))));
        names.push_str(&name);
    }
    if widths.sparkline > 0 {
        let span = format::span(figures.interval_us.saturating_mul(widths.sparkline as u64));
        let titles = [format!("bytes/s, last {span}"), format!("last {span}"), span];
        let titles = titles.each_ref().map(String::as_str);
        let title = longest_fitting(theme, &titles, widths.sparkline);
        let fill = " ".repeat(widths.sparkline - format::width(&title));
        names.extend(["  ", &title, &fill]);
    }
    names
}

fn client_line(state: &State, row: &ClientRow, widths: &ClientWidths) -> Line<'static> {
    let theme = state.theme;
    let is_selected = state.clients.selected == Some(row.id);
    let pointer = if is_selected { theme.glyphs.pointer() } else { ' ' };
    let address = format::cut_middle(&row.id.to_string(), widths.address, theme.glyphs);
    let mut spans = vec![Span::styled(format!("{pointer}{address:<0$} ", widths.address), theme.label())];
    spans.extend(widths.columns.iter().map(|&column| cell(theme, row, column)));
    if widths.sparkline > 0 {
        let history = state.history(row.id);
        spans
            .push(Span::styled(format!("  {}", sparkline(theme, &history, widths.sparkline)), theme.graph()));
    }
    let line = Line::from(spans);
    if is_selected { line.style(theme.selected()) } else { line }
}

fn cell(theme: Theme, row: &ClientRow, column: SortKey) -> Span<'static> {
    let none = || theme.glyphs.none().to_string();
    let text = match column {
        SortKey::Out => row.out_per_second.map_or_else(none, format::bytes_per_second),
        SortKey::In => row.in_per_second.map_or_else(none, format::bytes_per_second),
        SortKey::Exchanges => row.exchanges_per_second.map_or_else(none, format::per_second),
        SortKey::P99 => return latency_cell(theme, row, cells(column)),
        SortKey::Open => format::count(row.open),
        SortKey::Connections => row.connections.map_or_else(none, format::count),
        SortKey::Full => row.full_share.map_or_else(none, format::percent),
        SortKey::Errors => row.errors.map_or_else(none, format::count),
        SortKey::Total => format::bytes(row.bytes() as f64),
        SortKey::Client => String::new(),
    };
    let style = match column {
        SortKey::Errors if row.errors.is_some_and(|n| n > 0) => theme.warning(),
        SortKey::Out | SortKey::In => theme.figure(),
        _ => theme.label(),
    };
    Span::styled(format!("{text:>0$}", cells(column)), style)
}

/// Formats a percentile, in brackets if fewer than ten samples lie above it, as in the latency table.
fn latency_cell(theme: Theme, row: &ClientRow, cells: usize) -> Span<'static> {
    match row.latency.map(|latency| latency.p99) {
        None => Span::styled(format!("{:>1$} ", theme.glyphs.none(), cells - 1), theme.quiet()),
        Some(p99) => quantile(theme, p99, cells),
    }
}
