//! The table of the hosts that are watched, with their sum.
//!
//! ```text
//! ─ hosts 1-3/3, 2 live, 10 s ── version  state      conns   hs/s  resumed  p99 ms    CPU  lag s   gaps
//!  sum of 2                      0.1.0                  76  1,310    81.0%    0.31    92%   0.21      0
//! ▶edge-1                        0.1.0    live          64    998    80.0%    0.30    61%   0.21      0
//!  edge-2                        0.1.0    clock +4s     12    312    84.1%  (4.10)    31%      –      0
//!  edge-3                        0.1.0    silent 01:12   –      –        –       –      –      –      2
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use super::model::HostRow;
use crate::input::click::ClickTarget;
use crate::input::intent::{Intent, List, PaneAction, Preset};
use crate::input::keymap::hints::hint_if;
use crate::input::requirement::KeyRequirement as Needs;
use crate::panes::{Pane, PaneId, PaneRows};
use crate::state::State;
use crate::widgets::parts::put;
use crate::widgets::table::{self, Columns, extent, filter_title};

/// The fewest rows: heading, sum and one host.
const HEIGHT_MIN: u16 = 3;
/// The rows that hosts get before less important panes.
const HEIGHT_ENOUGH: u16 = 7;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        if !state.has_hosts() {
            return PaneRows::default();
        }
        PaneRows::listed(state.hosts.rows.table.counts().1 + 2, HEIGHT_MIN, HEIGHT_ENOUGH)
    },
    ranks: [0, 4, 9],
    render,
    target: |state, area, at| match table::target(List::Hosts, &state.hosts.rows.table, area, at)? {
        ClickTarget::Row(list, row) => {
            let sum = usize::from(state.hosts.sum.is_some());
            row.checked_sub(sum).map(|row| ClickTarget::Row(list, row))
        }
        heading => Some(heading),
    },
    hints: &[
        hint_if(Needs::Hosts, &[Intent::Open], "show host"),
        hint_if(Needs::Hosts, &[Intent::SortNext], "sort"),
        hint_if(Needs::Hosts, &[Intent::Filter], "filter"),
        hint_if(Needs::Hosts, &[Intent::NextRun, Intent::Runs], "next, list"),
        hint_if(Needs::Hosts, &[Intent::Pane(PaneAction::Preset(Preset::Only(PaneId::Hosts)))], "only hosts"),
    ],
    arrange: |state| state.hosts.arrange(state.shown),
    // The sum takes a row.
    sight: |state, area| table::rows(area).saturating_sub(usize::from(state.hosts.sum.is_some())),
    names: |state| {
        let mut names: Vec<String> = state.hosts.rows.all().iter().map(|row| row.host.clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    },
    open: |state| {
        let id = state.hosts.rows.table.open_selected();
        state.show_run_of(PaneId::Hosts, id);
    },
    ..Pane::PLAIN
};

/// Draws the sum and the visible part of the table.
fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let (theme, table) = (state.theme, &state.hosts.rows.table);
    let mut lines = table::lines(state, table, area, titles, table::no_graph);
    if let Some(sum) = &state.hosts.sum {
        let columns = Columns::of(table, usize::from(area.width));
        let line = columns.line(theme, table, sum, table::no_graph);
        lines.insert(1, line.patch_style(theme.figure()));
    }
    if table.counts().1 == 0 {
        lines.push(Line::styled(" no host yet", theme.quiet()));
    }
    put(frame, area, &lines);
}

/// Returns the titles, longest first: the visible hosts, those that are live, and the order if no column shows it.
fn titles(state: &State, columns: &Columns<HostRow>, shown: usize) -> Vec<String> {
    let (table, live) = (&state.hosts.rows.table, state.hosts.live);
    if !table.filter.is_empty() {
        return vec![format!("hosts {}", extent(table, shown)), filter_title(table)];
    }
    let sorted = columns.sorted(state.theme, table);
    let (extent, all) = (extent(table, shown), table.counts().1);
    vec![
        format!("hosts {extent}{sorted}, {live} live, 10 s"),
        format!("hosts {extent}{sorted}, {live} live"),
        format!("hosts, {live} of {all} live"),
        format!("hosts {live}/{all} live"),
        "hosts".to_owned(),
    ]
}
