//! The position of each pane, at every screen size.
//!
//! ```text
//!  narrow                          wide (150 × 30 and up)
//! +---------------------------+   +---------------------------------------+
//! | status                    |   | status                                |
//! | latency                   |   | latency            | handshakes       |
//! | timeline over time          |   | timeline over time                      |
//! | handshakes: one line      |   | clients                               |
//! | clients                   |   | playback, while it is played         |
//! | playback                 |   | log                                   |
//! | log                       |   | keys                                  |
//! | keys                      |   +---------------------------------------+
//! +---------------------------+
//! ```
//!
//! With less room, the timeline is left out first, then the clients, then the log; below 40 × 10 cells there
//! is one line. A run without a proxy has no clients. The log gets the remaining rows.

use ratatui::layout::Rect;

use super::{clients, dock, handshakes, latency, latency_timeline, playback, status};
use crate::state::{Screen, State};

/// The smallest screen with panes.
const PANES_MIN: (u16, u16) = (40, 10);
/// The smallest screen with two columns.
const WIDE_MIN: (u16, u16) = (150, 30);
/// The cells that the handshakes table needs beside the latencies.
const HANDSHAKES_WIDTH_MIN: u16 = 44;
/// The minimum height for all status lines and for clients.
const TALL_MIN: u16 = 20;
/// The rows, with the heading, that clients get before less important latencies.
const CLIENTS_MIN: u16 = 5;
/// The minimum rows for clients, with the heading.
const CLIENTS_USEFUL: u16 = 3;
/// The number of clients for which rows are reserved.
const CLIENTS_KEPT: u16 = 8;
/// The rows, with the heading, that latencies get before clients.
const LATENCY_MIN: u16 = 6;

/// The layout of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// The screen has no cell.
    Nothing,
    /// Everything in one line.
    OneLine(Rect),
    /// Panes; some may have no rows.
    Panes(Panes),
}

/// The area of each pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panes {
    pub(crate) status: Rect,
    pub(crate) latency: Rect,
    pub(crate) timeline: Rect,
    pub(crate) handshakes: Rect,
    pub(crate) clients: Rect,
    /// Empty unless a run is replayed.
    pub(crate) playback: Rect,
    pub(crate) log: Rect,
    pub(crate) footer: Rect,
    /// Settings or experiments; empty unless they are open.
    pub(crate) dock: Rect,
}

impl Panes {
    /// The area of latencies, handshakes and clients together.
    pub(super) fn body(&self) -> Rect {
        self.latency.union(self.timeline).union(self.handshakes).union(self.clients)
    }
}

/// Returns the layout of an area.
pub(crate) fn of(area: Rect, state: &State) -> Layout {
    if area.is_empty() {
        return Layout::Nothing;
    }
    if area.width < PANES_MIN.0 || area.height < PANES_MIN.1 {
        return Layout::OneLine(Rect { height: 1, ..area });
    }
    Layout::Panes(dock::split(area, state, undocked).unwrap_or_else(|| undocked(area, state)))
}

fn undocked(area: Rect, state: &State) -> Panes {
    if area.width >= WIDE_MIN.0 && area.height >= WIDE_MIN.1 {
        wide(area, state)
    } else {
        narrow(area, state)
    }
}

fn narrow(area: Rect, state: &State) -> Panes {
    let is_tall = area.height >= TALL_MIN;
    let status = status::height(state).min(if is_tall { u16::MAX } else { 3 });
    let (handshakes, footer, playback) = (1, 1, u16::from(state.is_replay()));
    let log = log_height(area.height, state);
    let fixed = status + handshakes + playback + footer + log;
    let mut rest = Rest(area.height - fixed.min(area.height));
    let (mut latency, mut timeline, mut clients) = (0, 0, 0);
    rest.give(&mut latency, if is_tall { LATENCY_MIN } else { u16::MAX }.min(latency::height(state)));
    if state.figures().is_none() {
        rest.give(&mut clients, u16::MAX);
    } else if is_tall && state.screen != Screen::Log {
        rest.give_all(&mut timeline, latency_timeline::HEIGHT_MIN);
        rest.give_all(&mut clients, CLIENTS_USEFUL.min(clients_wanted(state)));
        rest.give(&mut timeline, latency_timeline::HEIGHT_MIN + 1);
        rest.give(&mut latency, latency::height(state));
        rest.give(&mut timeline, latency_timeline::HEIGHT_WANTED);
        rest.give(&mut clients, clients_wanted(state));
    }
    let mut rows = RowAllocator { area };
    Panes {
        status: rows.next(status),
        latency: rows.next(latency),
        timeline: rows.next(timeline),
        handshakes: rows.next(handshakes),
        clients: rows.next(clients),
        playback: rows.next(playback),
        log: rows.next(log + rest.0),
        footer: rows.next(footer),
        dock: Rect::default(),
    }
}

fn wide(area: Rect, state: &State) -> Panes {
    let (status, footer, playback) = (status::height(state), 1, u16::from(state.is_replay()));
    let log = log_height(area.height, state);
    let tables = latency::height(state).max(handshakes::HEIGHT);
    let fixed = status + tables + playback + footer + log;
    let mut rest = Rest(area.height - fixed.min(area.height));
    let (mut timeline, mut clients) = (0, 0);
    if state.figures().is_some() {
        rest.give_all(&mut timeline, latency_timeline::HEIGHT_MIN);
    }
    if state.figures().is_none() {
        rest.give(&mut clients, u16::MAX);
    } else if state.screen != Screen::Log {
        rest.give_all(&mut clients, CLIENTS_MIN.min(clients_wanted(state)));
        rest.give(&mut timeline, latency_timeline::HEIGHT_WANTED);
        rest.give(&mut clients, clients_wanted(state));
    }
    let mut rows = RowAllocator { area };
    let status = rows.next(status);
    let tables = rows.next(tables);
    let left = latency::width(state).min(tables.width.saturating_sub(HANDSHAKES_WIDTH_MIN + 2));
    let right = Rect { x: tables.x + left + 2, width: tables.width.saturating_sub(left + 2), ..tables };
    Panes {
        status,
        latency: Rect { width: left, ..tables },
        timeline: rows.next(timeline),
        handshakes: right,
        clients: rows.next(clients),
        playback: rows.next(playback),
        log: rows.next(log + rest.0),
        footer: rows.next(footer),
        dock: Rect::default(),
    }
}

/// The rows that are not assigned yet.
pub(super) struct Rest(pub(super) u16);

impl Rest {
    /// Extends a pane to this many rows, as far as possible.
    pub(super) fn give(&mut self, pane: &mut u16, rows: u16) {
        let given = rows.saturating_sub(*pane).min(self.0);
        *pane += given;
        self.0 -= given;
    }

    /// Extends a pane to this many rows, or removes it.
    pub(super) fn give_all(&mut self, pane: &mut u16, rows: u16) {
        if rows.saturating_sub(*pane) <= self.0 {
            self.give(pane, rows);
        }
    }
}

/// Returns the rows that clients can use, with the heading. Some are reserved for future clients, so that the
/// panes do not move for each new one.
fn clients_wanted(state: &State) -> u16 {
    match state.figures() {
        Some(figures) if figures.proxy.is_none() => 0,
        Some(_) => {
            u16::try_from(state.client_count()).unwrap_or(u16::MAX).max(CLIENTS_KEPT).saturating_add(1)
        }
        None => u16::MAX,
    }
}

/// Returns whether there is room for more than the essential panes.
pub(super) fn is_roomy(state: &State) -> bool {
    state.size().1 >= WIDE_MIN.1
}

/// Returns the rows of the log; one more if it describes an earlier moment that is not replayed.
fn log_height(height: u16, state: &State) -> u16 {
    let of_moment = u16::from(state.earlier().is_some() && !state.is_replay() && height >= TALL_MIN);
    of_moment
        + match height {
            0..14 => 1,
            14..TALL_MIN => 2,
            // The playback line takes one of its rows, not one of the clients'.
            TALL_MIN..30 => 3 - u16::from(state.is_replay()),
            _ => height / 6,
        }
}

/// Assigns rows from the top.
pub(super) struct RowAllocator {
    pub(super) area: Rect,
}

impl RowAllocator {
    pub(super) fn next(&mut self, height: u16) -> Rect {
        let height = height.min(self.area.height);
        let taken = Rect { height, ..self.area };
        self.area.y += height;
        self.area.height -= height;
        taken
    }
}

/// The target of a mouse click.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// The heading of the clients.
    Clients,
    /// A client, by its visible row.
    Client(usize),
    /// The heading of the timeline.
    Timeline,
    /// A column of the timeline, by its index.
    Column(usize),
    /// A position on the playback line, in thousandths of its length.
    Played(u64),
}

/// Returns the target at a column and row of the screen.
pub(crate) fn target(state: &State, (x, y): (u16, u16)) -> Option<Target> {
    let (columns, rows) = state.size();
    let Layout::Panes(panes) = of(Rect::new(0, 0, columns, rows), state) else { return None };
    let inside = |area: Rect| area.contains((x, y).into());
    if inside(panes.clients) {
        let row = usize::from(y - panes.clients.y);
        return Some(row.checked_sub(1).map_or(Target::Clients, Target::Client));
    }
    if inside(panes.playback) {
        return playback::place_at(state, panes.playback, x).map(Target::Played);
    }
    inside(panes.timeline).then_some(())?;
    if y == panes.timeline.y {
        return Some(Target::Timeline);
    }
    latency_timeline::place_at(state, panes.timeline, x).map(Target::Column)
}

/// Returns the number of visible columns of the timeline.
pub(crate) fn timeline_columns(state: &State) -> usize {
    let (columns, rows) = state.size();
    match of(Rect::new(0, 0, columns, rows), state) {
        Layout::Panes(panes) if !panes.timeline.is_empty() => latency_timeline::columns(panes.timeline.width),
        _ => 1,
    }
}

/// Returns the number of visible clients.
pub(crate) fn client_rows(state: &State) -> usize {
    let (columns, rows) = state.size();
    match of(Rect::new(0, 0, columns, rows), state) {
        Layout::Panes(panes) => clients::rows(panes.clients),
        Layout::Nothing | Layout::OneLine(_) => 0,
    }
}
