//! Which pane stands where, at every size.
//!
//! ```text
//!  narrow                          wide (150 × 30 and up)
//! +---------------------------+   +---------------------------------------+
//! | status                    |   | status                                |
//! | latency                   |   | latency            | handshakes       |
//! | handshakes: one line      |   | clients                               |
//! | clients                   |   | log                                   |
//! | log                       |   | keys                                  |
//! | keys                      |   +---------------------------------------+
//! +---------------------------+
//! ```
//!
//! Where there is less room the clients go first, then the log; below 40 × 10 one line is left. A run without a proxy
//! has no clients. What the clients do not need the log gets.

use ratatui::layout::Rect;

use super::{clients, handshakes, help, latency, status};
use crate::state::State;

/// The smallest screen with panes.
const PANES_MIN: (u16, u16) = (40, 10);
/// The smallest screen with two columns.
const WIDE_MIN: (u16, u16) = (150, 30);
/// Below this there is no room for all status lines, nor for clients.
const TALL_MIN: u16 = 20;
/// Rows that the clients get before latencies of lesser interest do, with the heading.
const CLIENTS_MIN: u16 = 5;
/// Rows with the heading below which clients are not shown at all.
const CLIENTS_USEFUL: u16 = 3;
/// Clients for which there is room even if there are fewer.
const CLIENTS_KEPT: u16 = 8;
/// Rows that the latencies get before the clients do, with the heading.
const LATENCY_MIN: u16 = 9;

/// What stands on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    /// There is not a single cell.
    Nothing,
    /// Everything in a line.
    OneLine(Rect),
    /// Panes, some of them perhaps without rows.
    Panes(Panes),
}

/// Where each pane stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Panes {
    pub(crate) status: Rect,
    pub(crate) latency: Rect,
    pub(crate) handshakes: Rect,
    pub(crate) clients: Rect,
    pub(crate) log: Rect,
    pub(crate) footer: Rect,
}

impl Panes {
    /// The room of latency, handshakes and clients together.
    pub(super) fn body(&self) -> Rect {
        self.latency.union(self.handshakes).union(self.clients)
    }
}

/// The layout of an area.
pub(crate) fn of(area: Rect, state: &State) -> Layout {
    if area.is_empty() {
        return Layout::Nothing;
    }
    if area.width < PANES_MIN.0 || area.height < PANES_MIN.1 {
        return Layout::OneLine(Rect { height: 1, ..area });
    }
    Layout::Panes(if area.width >= WIDE_MIN.0 && area.height >= WIDE_MIN.1 {
        wide(area, state)
    } else {
        narrow(area, state)
    })
}

fn narrow(area: Rect, state: &State) -> Panes {
    let is_tall = area.height >= TALL_MIN;
    let status = status::height(state).min(if is_tall { u16::MAX } else { 3 });
    let (handshakes, footer) = (1, 1);
    let log = log_height(area.height);
    let rest = area.height - status - handshakes - footer - log;
    let all_latency = latency::height(state);
    let some_latency = if is_tall { (rest.saturating_sub(CLIENTS_MIN)).max(LATENCY_MIN) } else { rest };
    let clients = rest.saturating_sub(all_latency.min(some_latency));
    // A heading with next to nothing below it is no use.
    let clients = if clients >= CLIENTS_USEFUL { clients.min(clients_wanted(state)) } else { 0 };
    let latency = all_latency.min(rest - clients);
    let log = log + (rest - latency - clients);
    let mut rows = Rows { area };
    Panes {
        status: rows.next(status),
        latency: rows.next(latency),
        handshakes: rows.next(handshakes),
        clients: rows.next(clients),
        log: rows.next(log),
        footer: rows.next(footer),
    }
}

fn wide(area: Rect, state: &State) -> Panes {
    let status = status::height(state);
    let log = log_height(area.height);
    let tables = latency::height(state).max(handshakes::HEIGHT);
    let mut rows = Rows { area };
    let status = rows.next(status);
    let tables = rows.next(tables);
    let left = latency::WIDTH_MAX.min(tables.width);
    let right = Rect { x: tables.x + left + 2, width: tables.width.saturating_sub(left + 2), ..tables };
    let clients = (rows.area.height - log - 1).min(clients_wanted(state));
    let log = rows.area.height - clients - 1;
    Panes {
        status,
        latency: Rect { width: left, ..tables },
        handshakes: right,
        clients: rows.next(clients),
        log: rows.next(log),
        footer: rows.next(1),
    }
}

/// Rows that the clients can use, with the heading; some are kept for clients that are still to come, so that the
/// panes do not move with each.
fn clients_wanted(state: &State) -> u16 {
    match state.figures() {
        Some(figures) if figures.proxy.is_none() => 0,
        Some(figures) => {
            u16::try_from(figures.clients.len()).unwrap_or(u16::MAX).max(CLIENTS_KEPT).saturating_add(1)
        }
        None => u16::MAX,
    }
}

fn log_height(height: u16) -> u16 {
    match height {
        0..14 => 1,
        14..TALL_MIN => 2,
        TALL_MIN..30 => 3,
        _ => height / 6,
    }
}

/// Hands out rows from the top.
struct Rows {
    area: Rect,
}

impl Rows {
    fn next(&mut self, height: u16) -> Rect {
        let height = height.min(self.area.height);
        let taken = Rect { height, ..self.area };
        self.area.y += height;
        self.area.height -= height;
        taken
    }
}

/// Clients that are in sight at once.
pub(crate) fn client_rows(state: &State) -> usize {
    let (columns, rows) = state.size();
    match of(Rect::new(0, 0, columns, rows), state) {
        Layout::Panes(panes) => clients::rows(panes.clients),
        Layout::Nothing | Layout::OneLine(_) => 0,
    }
}

/// Lines of the help that can be scrolled away on a terminal of this size.
pub(crate) fn help_offset_max((columns, rows): (u16, u16)) -> usize {
    help::offset_max(Rect::new(0, 0, columns, rows))
}
