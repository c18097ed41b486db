//! The table of services.
//!
//! ```text
//! ─ services 1-3/3, 10 s ──── conns  full/s  res/s  resumed  fail/s  p50 ms  p99 ms  srv p50  srv p99  bytes/s  TLS 1.3
//! ▶:443 nginx                    64     120    878    88.0%       0    0.41    1.20     0.38     1.10   2.1 MB    91.0%
//!  :5432 postgres                12       2      0     0.0%     0.1    4.10   (6.00)    4.00    (5.90)   38 kB     100%
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;

use super::model::ServiceRow;
use super::state::arrange;
use crate::input::intent::{Intent, List, PaneAction, Preset};
use crate::input::keymap::hints::hint_if;
use crate::input::requirement::KeyRequirement as Needs;
use crate::panes::{Pane, PaneId, PaneRows};
use crate::state::State;
use crate::widgets::parts::put;
use crate::widgets::table::{self, Columns, extent, filter_title};

/// The fewest rows: heading and one service.
const HEIGHT_MIN: u16 = 2;
/// The rows that services get before less important panes.
const HEIGHT_ENOUGH: u16 = 5;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        if !state.has_services() {
            return PaneRows::default();
        }
        PaneRows::listed(state.services.table.counts().1 + 1, HEIGHT_MIN, HEIGHT_ENOUGH)
    },
    ranks: [0, 4, 9],
    render,
    target: |state, area, at| table::target(List::Services, &state.services.table, area, at),
    hints: &[
        hint_if(Needs::Services, &[Intent::Open], "show service"),
        hint_if(Needs::Services, &[Intent::Back], "all services"),
        hint_if(Needs::Services, &[Intent::SortNext], "sort"),
        hint_if(Needs::Services, &[Intent::Filter], "filter"),
        hint_if(
            Needs::Services,
            &[Intent::Pane(PaneAction::Preset(Preset::Only(PaneId::Services)))],
            "only services",
        ),
    ],
    arrange,
    names: |state| state.services.all().iter().map(|row| row.name.clone()).collect(),
    open: |state| {
        let id = state.services.table.open_selected();
        state.show_run_of(PaneId::Services, id);
    },
    ..Pane::PLAIN
};

/// Draws the visible part of the table.
fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    put(frame, area, &table::lines(state, &state.services.table, area, titles, table::no_graph));
}

/// Returns the titles, longest first: the visible services, and the order if no column shows it.
fn titles(state: &State, columns: &Columns<ServiceRow>, shown: usize) -> Vec<String> {
    let table = &state.services.table;
    let extent = extent(table, shown);
    if !table.filter.is_empty() {
        return vec![format!("services {extent}"), filter_title(table)];
    }
    let sorted = columns.sorted(state.theme, table);
    vec![format!("services {extent}{sorted}, 10 s"), format!("services {extent}"), "services".to_owned()]
}
