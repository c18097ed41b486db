//! The table of upstreams.
//!
//! ```text
//! ─ upstreams 1-3/3, 10 s ─ state    for   open  conn/s  failed  cause    broken  exch/s  p50 ms  p99 ms  conn p99
//! ▶unix:/run/app-1.sock     up     12m 3s    4     1.2       0                 0   1,204    0.31    0.90      0.05
//!  unix:/run/app-2.sock     down      12s    0       0      31  refused        2       0
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;

use super::model::UpstreamRow;
use super::state::arrange;
use crate::input::intent::{Intent, List, PaneAction, Preset};
use crate::input::keymap::hints::hint_if;
use crate::input::requirement::KeyRequirement as Needs;
use crate::panes::{Pane, PaneId, PaneRows};
use crate::state::State;
use crate::widgets::parts::put;
use crate::widgets::table::{self, Columns, extent, filter_title};

/// The fewest rows: heading and one upstream.
const HEIGHT_MIN: u16 = 2;
/// The rows that upstreams get before less important panes.
const HEIGHT_ENOUGH: u16 = 5;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        if !state.has_upstreams() {
            return PaneRows::default();
        }
        let rows = PaneRows::listed(state.upstreams.table.counts().1 + 1, HEIGHT_MIN, HEIGHT_ENOUGH);
        PaneRows { min: rows.enough, ..rows }
    },
    ranks: [4, 6, 9],
    render,
    target: |state, area, at| table::target(List::Upstreams, &state.upstreams.table, area, at),
    hints: &[
        hint_if(Needs::Control, &[Intent::DrainUpstream], "drain, return"),
        hint_if(Needs::Upstreams, &[Intent::SortNext], "sort"),
        hint_if(Needs::Upstreams, &[Intent::Filter], "filter"),
        hint_if(
            Needs::Upstreams,
            &[Intent::Pane(PaneAction::Preset(Preset::Only(PaneId::Upstreams)))],
            "only upstreams",
        ),
    ],
    arrange,
    names: |state| state.upstreams.all().iter().map(|row| row.name.to_string()).collect(),
    ..Pane::PLAIN
};

fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    put(frame, area, &table::lines(state, &state.upstreams.table, area, titles, table::no_graph));
}

/// Returns the titles, longest first: the visible upstreams, the span of their figures, and the order if no column shows
/// it.
fn titles(state: &State, columns: &Columns<UpstreamRow>, shown: usize) -> Vec<String> {
    let table = &state.upstreams.table;
    let extent = extent(table, shown);
    if !table.filter.is_empty() {
        return vec![format!("upstreams {extent}"), filter_title(table)];
    }
    let sorted = columns.sorted(state.theme, table);
    let span = state.figures().map(|figures| figures.span.words()).unwrap_or_default();
    vec![format!("upstreams {extent}{sorted}, {span}"), format!("upstreams {extent}"), "upstreams".to_owned()]
}
