//! The table of clients, sorted, with current rates and totals.
//!
//! ```text
//! ─ clients 1-4/20, 10 s ─── out MB/s▼  in MB/s  exch/s  p99 ms  failed   full  open  total GB
//! ▶10.0.0.12                      41.2     1.21   1,210    0.31        0   3.0%     8      4.10
//!  10.0.0.31                      18.7    0.640     640  (0.57)        0  22.0%     8      1.90
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::detail_view::details;
use super::model::ClientRow;
use super::state::arrange;
use crate::input::intent::{Intent, List};
use crate::input::keymap::hints::hint_if;
use crate::input::requirement::KeyRequirement as Needs;
use crate::panes::{Pane, PaneRows};
use crate::state::State;
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::widgets::parts::{bar, put};
use crate::widgets::sparkline::sparkline;
use crate::widgets::table::{self, Columns, complaint, extent, filter_title, heading_line};

/// The rows, with the heading, that clients get first.
const HEIGHT_MIN: u16 = 4;
/// The rows that clients get before less important panes.
const HEIGHT_ENOUGH: u16 = 7;

pub(crate) const PANE: Pane = Pane {
    rows: |state| match state.figures() {
        Some(figures) if figures.proxy.is_some() => {
            let all = u16::try_from(state.client_count()).unwrap_or(u16::MAX).saturating_add(1);
            // Rows are reserved for clients to come, so that the panes do not move for each of them.
            // In HTTP mode routes come first.
            let min = HEIGHT_MIN - u16::from(figures.http.is_some());
            PaneRows { min, enough: HEIGHT_ENOUGH, wanted: all.max(HEIGHT_ENOUGH), grows: true }
        }
        _ => PaneRows::default(),
    },
    ranks: [0, 6, 9],
    render,
    target: |state, area, at| table::target(List::Clients, &state.clients, area, at),
    hints: &[
        hint_if(Needs::Clients, &[Intent::SortNext], "sort"),
        hint_if(Needs::Clients, &[Intent::Filter], "filter"),
        hint_if(Needs::Clients, &[Intent::Open], "details"),
    ],
    arrange,
    names: |state| {
        let mut clients: Vec<_> = state.client_ids().collect();
        clients.sort_unstable();
        clients.iter().map(ToString::to_string).collect()
    },
    open: |state| state.open_details(List::Clients),
    details,
    ..Pane::PLAIN
};

fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(figures) = state.figures() else { return };
    let (theme, table) = (state.theme, &state.clients);
    let page = table.page();
    let columns = Columns::of(table, usize::from(area.width));
    let cells = usize::from(area.width);
    let not_kept = || {
        let text = format!(" {}: {}", theme.glyphs.none(), state.missing_client_history()?);
        Some(Line::styled(format::cut(&text, cells, theme.glyphs), theme.notice()))
    };
    let complaint = complaint(state, table, cells).or_else(not_kept);
    let shown = &page[..page.len().min(table::rows(area).saturating_sub(usize::from(complaint.is_some())))];
    let titles = titles(state, figures, &columns, shown.len());
    let slots = area.width.min(GRAPH_SLOTS);
    let graph = format!("bytes/s, {}", format::span(figures.interval_us.saturating_mul(u64::from(slots))));
    let mut lines = vec![heading_line(theme, table, &columns, &titles, (&graph, area.width))];
    lines.extend(complaint);
    lines.extend(
        shown.iter().map(|row| {
            columns.line(theme, table, row, |name, row, cells| graph_cells(state, name, row, cells))
        }),
    );
    put(frame, area, &lines);
}

/// The intervals of a sparkline.
const GRAPH_SLOTS: u16 = 60;

fn graph_cells(state: &State, name: &str, row: &ClientRow, cells: usize) -> Span<'static> {
    if name == "share" {
        let all = state.figures().and_then(|figures| figures.proxy.as_ref()?.out_per_second);
        let share = row.out_per_second.zip(all).map_or(0.0, |(out, all)| out / all.max(f64::MIN_POSITIVE));
        return bar(state.theme, share, cells);
    }
    let cells = cells.saturating_sub(2);
    let graph = sparkline(state.theme, &state.history(row.id), cells);
    Span::styled(format!("  {graph}"), state.theme.graph())
}

/// Returns the titles, longest first: the visible clients, the window of their rates, and their order if no
/// column shows it.
fn titles(state: &State, figures: &ViewModel, columns: &Columns<ClientRow>, shown: usize) -> Vec<String> {
    let table = &state.clients;
    if shown == 0 && table.filter.is_empty() {
        return vec!["clients: none yet".to_owned(), "clients".to_owned()];
    }
    let by =
        columns.hidden_order(state.theme, table).map_or_else(String::new, |order| format!(" by {order}"));
    let extent = extent(table, shown);
    let (passing, all) = table.counts();
    let span = figures.clients_span.words();
    if !table.filter.is_empty() {
        let found = filter_title(table);
        let short = format!("{passing}/{all} {}", table.filter.text().trim());
        return vec![format!("clients {extent}{by}, {span}"), format!("clients {found}"), found, short];
    }
    let short = match by.trim() {
        "" => format!("clients {all}"),
        by => by.to_owned(),
    };
    let long = [format!("clients {extent}{by}, {span}"), format!("clients {extent}{by}")];
    let medium = (!by.is_empty()).then(|| format!("clients{by}"));
    long.into_iter().chain(medium).chain([short]).collect()
}
