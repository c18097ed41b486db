//! The table of routes, in HTTP mode.
//!
//! ```text
//! ─ routes 1-2/2, 10 s ──────── req/s▼  p50 ms  p99 ms   2xx  4xx  5xx  failed  in MB/s  out MB/s
//! ▶/api                          4,998    0.31    0.90  49,900   80    2       0    0.512      31.2
//!  shop.example/static             210    0.12    0.44   2,100    0    0       0    0.010      12.0
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::detail_view::details;
use super::state::arrange;
use crate::input::intent::{Intent, List};
use crate::input::keymap::hints::hint_if;
use crate::input::requirement::KeyRequirement as Needs;
use crate::panes::{Pane, PaneRows};
use crate::state::State;
use crate::widgets::parts::put;
use crate::widgets::table::{self, Columns, extent, filter_title};

/// The rows, with the heading, that routes get first.
const HEIGHT_MIN: u16 = 3;
/// The rows that routes get before less important panes.
const HEIGHT_ENOUGH: u16 = 7;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        let requests = state.figures().and_then(|figures| figures.http.as_ref()).map(|http| http.requests);
        // What is observed has requests without routes.
        if requests.is_none_or(|requests| requests > 0 && state.all_routes().is_empty()) {
            return PaneRows::default();
        }
        let rows = PaneRows::listed(state.all_routes().len() + 1, 2, HEIGHT_ENOUGH);
        PaneRows { min: rows.wanted.min(HEIGHT_MIN), ..rows }
    },
    ranks: [0, 5, 8],
    render,
    target: |state, area, at| table::target(List::Routes, &state.routes, area, at),
    hints: &[
        hint_if(Needs::Http, &[Intent::SortNext], "sort"),
        hint_if(Needs::Http, &[Intent::Filter], "filter"),
        hint_if(Needs::Http, &[Intent::Open], "details"),
        hint_if(Needs::Http, &[Intent::Requests], "requests"),
    ],
    arrange,
    names: |state| state.all_routes().iter().map(|row| row.name.to_string()).collect(),
    open: |state| state.open_details(List::Routes),
    details,
    ..Pane::PLAIN
};

fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let table = &state.routes;
    let mut lines = table::lines(state, table, area, titles, table::no_graph);
    if table.counts().1 == 0 {
        lines.push(Line::styled(" no requests yet", state.theme.quiet()));
    }
    put(frame, area, &lines);
}

/// Returns the titles, longest first: the visible routes, the window of their figures, and their order if no column
/// shows it.
fn titles(state: &State, columns: &Columns<super::model::RouteRow>, shown: usize) -> Vec<String> {
    let table = &state.routes;
    let (passing, all) = table.counts();
    if all == 0 {
        return vec!["routes".to_owned()];
    }
    let by =
        columns.hidden_order(state.theme, table).map_or_else(String::new, |order| format!(" by {order}"));
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
