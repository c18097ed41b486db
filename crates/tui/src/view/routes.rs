//! The table of routes, in HTTP mode.
//!
//! ```text
//! ─ routes 1-2/2, 10 s ──────── req/s▼  p50 ms  p99 ms   2xx  4xx  5xx  failed  in MB/s  out MB/s
//! ▶/api                          4,998    0.31    0.90  49,900   80    2       0    0.512      31.2
//!  shop.example/static             210    0.12    0.44   2,100    0    0       0    0.010      12.0
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::clients::rows;
use super::layout::Target;
use super::pane::{Pane, PaneRows};
use super::parts::put;
use super::table::{Columns, complaint, extent, filter_title, heading_line};
use crate::input::keymap::ROUTE_HINTS;
use crate::state::{PaneId, State};

/// The rows, with the heading, that routes get first.
const HEIGHT_MIN: u16 = 3;
/// The rows that routes get before less important panes.
const HEIGHT_ENOUGH: u16 = 7;

/// The pane.
pub(super) const PANE: Pane = Pane {
    id: PaneId::Routes,
    meaning: "routes of HTTP mode, with rates, statuses and latencies",
    rows: |state| {
        if !state.has_http() {
            return PaneRows::default();
        }
        let all = u16::try_from(state.all_routes().len()).unwrap_or(u16::MAX).max(1).saturating_add(1);
        let (min, enough) = (all.min(HEIGHT_MIN), all.min(HEIGHT_ENOUGH));
        PaneRows { min, enough, wanted: all, grows: false }
    },
    ranks: [0, 5, 8],
    render,
    target: |state, area, (x, y)| match y.checked_sub(area.y + 1) {
        Some(row) => Some(Target::Route(usize::from(row))),
        None => column_at(state, area, x).map(Target::RouteColumn),
    },
    hints: ROUTE_HINTS,
};

/// Returns the column whose heading is at a cell of the pane.
fn column_at(state: &State, area: Rect, x: u16) -> Option<usize> {
    Columns::of(&state.routes, usize::from(area.width)).at(usize::from(x.checked_sub(area.x)?))
}

/// Draws the visible part of the table.
fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let (theme, table, cells) = (state.theme, &state.routes, usize::from(area.width));
    let columns = Columns::of(table, cells);
    let is_said = state.prompt.is_some() && table.filter.error().is_some();
    let complaint = complaint(theme, table, cells).filter(|_| !is_said);
    let room = rows(area).saturating_sub(usize::from(complaint.is_some()));
    let shown = &table.page()[..table.page().len().min(room)];
    let mut lines =
        vec![heading_line(theme, table, &columns, &titles(state, &columns, shown.len()), ("", area.width))];
    lines.extend(complaint);
    lines.extend(shown.iter().map(|row| columns.line(theme, table, row, |_, _| Span::raw(""))));
    if table.counts().1 == 0 {
        lines.push(Line::styled(" no requests yet", theme.quiet()));
    }
    put(frame, area, &lines);
}

/// Returns the titles, longest first: the visible routes, the window of their figures, and their order if no column
/// shows it.
fn titles(state: &State, columns: &Columns<crate::view_model::RouteRow>, shown: usize) -> Vec<String> {
    let table = &state.routes;
    let (passing, all) = table.counts();
    if all == 0 {
        return vec!["routes".to_owned()];
    }
    let order = table.order.column;
    let by = if order != 0 && columns.contains(order) {
        String::new()
    } else {
        format!(" by {}", Columns::heading_of(state.theme, table, order))
    };
    let (extent, span) = (extent(table, shown), state.figures().map(|figures| figures.span.words()));
    let span = span.unwrap_or_default();
    if !table.filter.is_empty() {
        let found = filter_title(table);
        let short = format!("{passing}/{all}, filter: {}", table.filter.text().trim());
        return vec![format!("routes {extent}{by}, {span}"), format!("routes {found}"), found, short];
    }
    let titles = [format!("routes {extent}{by}, {span}"), format!("routes {extent}{by}")];
    titles.into_iter().chain([format!("routes{by}"), format!("routes {all}")]).collect()
}
