//! The position of each pane, at every screen size.
//!
//! ```text
//!  narrow                          wide (150 × 30 and up)
//! +---------------------------+   +---------------------------------------+
//! | status                    |   | status                                |
//! | over time                 |   | over time                             |
//! | latency                   |   | latency            | handshakes       |
//! | handshakes                |   |                    | system           |
//! | system, if there is room  |   | clients                               |
//! | clients                   |   | log                                   |
//! | log                       |   | playback, while it is played          |
//! | playback                  |   | keys                                  |
//! | keys                      |   +---------------------------------------+
//! +---------------------------+
//! ```
//!
//! Each pane says how many rows it can use; its ranks say when it gets them. Clients get what is left. Below 40 × 10
//! cells there is one line. In HTTP mode, `http` is above the handshakes and `routes` above the clients.
//! `upstreams` is above the routes where there are several, or one is not up. `usage` is below the clients where these
//! leave room, `certificates` below it where there are several, or one needs care. Findings are named below the header, and
//! have rows where few other panes are shown. With several hosts, the pane of hosts comes first.

use ratatui::layout::Rect;

use super::dock::Dock;
use super::{footer, playback, status};
use crate::input::click::ClickTarget;
use crate::input::intent::List;
use crate::panes::PaneId;
use crate::panes::latency::view as latency;
use crate::panes::timeline::time_axis;
use crate::panes::{PaneRows, pane};
use crate::screens::choice::view as choice;
use crate::screens::requests::view as requests;
use crate::screens::runs::view as runs;
use crate::state::State;
use crate::state::screen::Screen;
use crate::state::sight::{Sight, WIDE_MIN};

/// The smallest screen with panes.
const PANES_MIN: (u16, u16) = (40, 10);
/// The cells that the right column needs beside the latencies.
const RIGHT_WIDTH_MIN: u16 = 44;
/// The cells between two columns.
const GAP: u16 = 2;

/// Panes beside each other, as stacks from left to right.
type Band<'a> = &'a [&'a [PaneId]];

/// The one band of a wide screen with several panes; all others have their own, as on a narrow screen.
const BESIDE: Band<'static> = &[&[PaneId::Latency], &[PaneId::Http, PaneId::Handshakes, PaneId::System]];

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The screen has no cell.
    Nothing,
    Essentials(Rect),
    /// Panes; some may have no rows.
    Panes(Panes),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Panes {
    pub(crate) status: Rect,
    /// The panes that have rows, in the order of the screen.
    pub(crate) shown: Vec<(PaneId, Rect)>,
    pub(crate) body: Rect,
    /// Empty unless a run is replayed.
    pub(crate) playback: Rect,
    pub(crate) footer: Rect,
    /// Settings or experiments; empty unless they are open.
    pub(crate) dock: Rect,
}

impl Panes {
    /// Returns the area of a pane; empty if it is not shown.
    pub(crate) fn area(&self, id: PaneId) -> Rect {
        self.shown.iter().find(|(shown, _)| *shown == id).map_or_else(Rect::default, |(_, area)| *area)
    }
}

pub(crate) fn of(area: Rect, state: &State) -> Layout {
    if area.is_empty() {
        return Layout::Nothing;
    }
    if area.width < PANES_MIN.0 || area.height < PANES_MIN.1 {
        // What is docked takes all rows but the first.
        let is_docked = matches!(state.screen, Screen::Tuning | Screen::Experiments);
        return Layout::Essentials(if is_docked { Rect { height: 1, ..area } } else { area });
    }
    Layout::Panes(panes(area, state))
}

fn panes(area: Rect, state: &State) -> Panes {
    let mut rows = RowAllocator { area };
    let status = rows.next(status::height(state));
    let below = u16::from(state.is_replay());
    let body = rows.next(rows.area.height.saturating_sub(1 + below));
    let (playback, footer) = (rows.next(below), rows.next(1));
    let docked = Dock::of(area, state);
    let (body, dock) = docked.split(body);
    let is_wide = area.width >= WIDE_MIN.0 && area.height >= WIDE_MIN.1;
    let bands = PaneId::ALL.iter().map(|id| match id {
        PaneId::Latency if is_wide => demands(BESIDE, docked, state),
        PaneId::Http | PaneId::Handshakes | PaneId::System if is_wide => Vec::new(),
        id => demands(&[std::slice::from_ref(id)], docked, state),
    });
    let bands: Vec<Vec<Vec<Demand>>> = bands.filter(|band| !band.is_empty()).collect();
    let heights = divide(body.height, &bands.iter().map(|band| Demand::of_band(band)).collect::<Vec<_>>());
    let mut rows = RowAllocator { area: body };
    let mut shown = Vec::new();
    for (band, height) in bands.iter().zip(heights) {
        let mut left = rows.next(height);
        for (at, stack) in band.iter().enumerate() {
            let width = if at + 1 == band.len() { left.width } else { left_width(state, left.width) };
            let mut column = RowAllocator { area: Rect { width, ..left } };
            let heights = divide(height, stack);
            shown.extend(stack.iter().zip(heights).map(|(demand, height)| (demand.id, column.next(height))));
            (left.x, left.width) = (left.x + width + GAP, left.width.saturating_sub(width + GAP));
        }
    }
    shown.retain(|(_, area)| !area.is_empty());
    Panes { status, shown, body, playback, footer, dock }
}

/// Returns the width of the left one of two columns.
fn left_width(state: &State, width: u16) -> u16 {
    latency::width(state).min(width.saturating_sub(RIGHT_WIDTH_MIN + GAP))
}

/// The space that a pane, or panes beside each other, can use.
#[derive(Clone, Copy)]
struct Demand {
    id: PaneId,
    ranks: [u8; 3],
    rows: PaneRows,
}

impl Demand {
    fn of(id: PaneId, state: &State) -> Option<Self> {
        let pane = pane(id);
        let rows = (pane.rows)(state);
        let rows = match (state.panes.rows_of(id), state.panes.maximised) {
            (_, Some(_)) => PaneRows { grows: true, ..rows },
            (Some(fixed), None) => PaneRows { min: fixed, enough: fixed, wanted: fixed, grows: false },
            (None, None) => rows,
        };
        // Before the first client there is nothing to show but where it can come.
        let is_there = !state.awaits_clients() || matches!(id, PaneId::Timeline | PaneId::Log);
        // What has the focus is seen, wherever else there is no room.
        let [first, then, last] = pane.ranks;
        let ranks = [if state.panes.focus == Some(id) { 0 } else { first }, then, last];
        (state.panes.shows(id) && rows.min > 0 && is_there).then_some(Self { id, ranks, rows })
    }

    /// The tallest stack decides.
    fn of_band(band: &[Vec<Self>]) -> Self {
        let sum = |of: fn(&PaneRows) -> u16| {
            let stacks = band.iter().map(|stack| stack.iter().map(|demand| of(&demand.rows)).sum());
            stacks.max().unwrap_or(0)
        };
        let first = band[0][0];
        let rows = PaneRows {
            min: first.rows.min,
            enough: sum(|rows| rows.enough),
            wanted: sum(|rows| rows.wanted),
            grows: band.iter().flatten().any(|demand| demand.rows.grows),
        };
        Self { rows, ..first }
    }
}

fn demands(band: Band<'_>, dock: Dock, state: &State) -> Vec<Vec<Demand>> {
    let stack = |ids: &&[PaneId]| -> Vec<Demand> {
        ids.iter().filter(|id| dock.keeps(**id)).filter_map(|&id| Demand::of(id, state)).collect()
    };
    band.iter().map(stack).filter(|stack| !stack.is_empty()).collect()
}

/// Divides rows: first minima, whole or not at all, then what is enough, then what is wanted, each by rank; the rest
/// goes to what grows.
fn divide(height: u16, demands: &[Demand]) -> Vec<u16> {
    let mut heights = vec![0; demands.len()];
    let mut rest = height;
    let mut steps: Vec<(u8, usize, usize)> = demands
        .iter()
        .enumerate()
        .flat_map(|(at, demand)| (0..3).map(move |step| (demand.ranks[step], step, at)))
        .collect();
    steps.sort_unstable();
    for (_, step, at) in steps {
        let rows = demands[at].rows;
        let target = [rows.min, rows.enough.max(rows.min), rows.wanted.max(rows.min)][step];
        let missing = target.saturating_sub(heights[at]);
        let is_possible = if step == 0 { missing <= rest } else { heights[at] > 0 };
        if is_possible {
            let given = missing.min(rest);
            heights[at] += given;
            rest -= given;
        }
    }
    let has_rows = |at: &usize| heights[*at] > 0;
    let grows = (0..demands.len()).filter(has_rows).find(|&at| demands[at].rows.grows);
    // A plot benefits from more rows than it wants; other panes in the last place do not.
    let plot = || (0..demands.len()).filter(has_rows).find(|&at| demands[at].id == PaneId::Timeline);
    let last = || (0..demands.len()).rfind(has_rows);
    // A screen too small for any minimum still shows the first pane.
    if let Some(at) = grows.or_else(plot).or_else(last).or_else(|| (!demands.is_empty()).then_some(0)) {
        heights[at] += rest;
    }
    heights
}

/// Assigns rows from the top.
pub(crate) struct RowAllocator {
    pub(crate) area: Rect,
}

impl RowAllocator {
    pub(crate) fn next(&mut self, height: u16) -> Rect {
        let height = height.min(self.area.height);
        let taken = Rect { height, ..self.area };
        self.area.y += height;
        self.area.height -= height;
        taken
    }
}

/// Returns the panes of the screen; `None` if it is too small for panes.
pub(crate) fn of_screen(state: &State) -> Option<Panes> {
    let (columns, rows) = state.size();
    match of(Rect::new(0, 0, columns, rows), state) {
        Layout::Panes(panes) => Some(panes),
        Layout::Nothing | Layout::Essentials(_) => None,
    }
}

/// Returns the pane and the target at a column and row of the screen.
pub(crate) fn target(state: &State, (x, y): (u16, u16)) -> (Option<PaneId>, Option<ClickTarget>) {
    let panes = of_screen(state);
    let is_in = |area: Rect| area.contains((x, y).into());
    if let Some(footer) = panes.as_ref().map(|panes| panes.footer).filter(|footer| is_in(*footer)) {
        return (None, footer::intent_at(state, footer, x).map(ClickTarget::Key));
    }
    if state.screen == Screen::Runs {
        return (None, runs::column_at(state, (x, y)).map(|column| ClickTarget::Heading(List::Runs, column)));
    }
    if let Screen::Requests { .. } = state.screen {
        return (None, requests::target(state, (x, y)));
    }
    if let Screen::Choice(of, selected) = state.screen {
        return (None, choice::line_at(state, of, selected, (x, y)).map(ClickTarget::Choice));
    }
    let Some(panes) = panes else { return (None, None) };
    if is_in(panes.playback) {
        return (None, playback::place_at(state, panes.playback, x).map(ClickTarget::Played));
    }
    if is_in(panes.status) {
        return (None, (y == panes.status.y + 1).then_some(ClickTarget::Problem));
    }
    let found = panes.shown.iter().find(|(_, area)| is_in(*area));
    found.map_or((None, None), |&(id, area)| (Some(id), (pane(id).target)(state, area, (x, y))))
}

/// Returns the pane above the heading at a cell of the screen.
pub(crate) fn boundary(state: &State, at: (u16, u16)) -> Option<PaneId> {
    let panes = of_screen(state).filter(|_| state.screen == Screen::Dashboard)?;
    let (_, below) = panes.shown.iter().find(|(_, area)| area.y == at.1 && area.contains(at.into()))?;
    let is_above = |area: &Rect| area.bottom() == below.y && area.x <= below.x;
    panes.shown.iter().rfind(|(_, area)| is_above(area)).map(|(id, _)| *id)
}

/// Returns what the screen has room for.
pub(crate) fn sight(state: &State) -> Sight {
    let panes = of_screen(state);
    let area = |id| panes.as_ref().map_or_else(Rect::default, |panes| panes.area(id));
    let timeline = area(PaneId::Timeline);
    let width = if timeline.is_empty() { state.size().0 } else { timeline.width };
    let lists = List::ALL.map(|list| match list.pane() {
        Some(id) => (pane(id).sight)(state, area(id)),
        None if list == List::Runs => runs::visible_rows(state.size(), usize::MAX),
        None => requests::visible_rows(state, usize::MAX),
    });
    Sight {
        timeline_columns: time_axis::columns(width).max(1),
        lists: List::ALL.into_iter().zip(lists).collect(),
        panes: panes.iter().flat_map(|panes| &panes.shown).map(|(id, area)| (*id, area.height)).collect(),
    }
}
