//! The place of settings and experiments beside the panes that they act on.
//!
//! ```text
//!  130 columns and more             less
//! +----------------------------+   +---------------------+
//! | status                     |   | status              |
//! | latency       | settings   |   | latency             |
//! | over time     |            |   | over time           |
//! | clients       |            |   | settings            |
//! | keys                       |   | keys                |
//! +----------------------------+   +---------------------+
//! ```

use ratatui::layout::Rect;

use super::layout::{Panes, Rest, RowAllocator};
use super::{latency, latency_timeline, status};
use crate::state::{Screen, State};

/// The smallest screen with the dock at the right.
const RIGHT_MIN: (u16, u16) = (130, 30);
/// The fewest and the most columns of a dock at the right.
const WIDTH: (u16, u16) = (54, 78);
/// The blanks between panes and dock.
const GAP: u16 = 2;
/// The rows that a dock below gets before the timeline.
const HEIGHT_MIN: u16 = 8;
/// The rows, with the heading, that latencies get first above a dock.
const LATENCY_MIN: u16 = 6;

/// Returns the panes and the dock; `None` if nothing is docked. `beside` places the panes in what the dock leaves.
pub(super) fn split(area: Rect, state: &State, beside: impl FnOnce(Rect, &State) -> Panes) -> Option<Panes> {
    if !matches!(state.screen, Screen::Tuning | Screen::Experiments) {
        return None;
    }
    if area.width < RIGHT_MIN.0 || area.height < RIGHT_MIN.1 {
        return Some(above(area, state));
    }
    let width = (area.width / 5 * 2).clamp(WIDTH.0, WIDTH.1);
    let mut panes = beside(Rect { width: area.width - width - GAP, ..area }, state);
    // Status and keys keep the whole width.
    (panes.status.width, panes.footer.width) = (area.width, area.width);
    let y = panes.status.bottom();
    panes.dock = Rect { x: area.right() - width, y, width, height: panes.footer.y - y };
    Some(panes)
}

/// Places the dock below the panes that a setting changes; all others are left out.
fn above(area: Rect, state: &State) -> Panes {
    let mut rest = Rest(area.height - 1);
    let (mut status, mut latency, mut timeline, mut dock) = (0, 0, 0, 0);
    rest.give(&mut status, 1);
    rest.give(&mut dock, HEIGHT_MIN);
    rest.give_all(&mut latency, 3);
    rest.give(&mut latency, LATENCY_MIN.min(latency::height(state)));
    if state.figures().is_some() {
        rest.give_all(&mut timeline, latency_timeline::HEIGHT_MIN);
    }
    rest.give(&mut dock, area.height * 2 / 5);
    rest.give(&mut status, status::height(state));
    rest.give(&mut latency, latency::height(state));
    if timeline > 0 {
        rest.give(&mut timeline, latency_timeline::HEIGHT_WANTED);
    }
    let mut rows = RowAllocator { area };
    let none = Rect { height: 0, ..area };
    Panes {
        status: rows.next(status),
        latency: rows.next(latency),
        timeline: rows.next(timeline),
        dock: rows.next(dock + rest.0),
        footer: rows.next(1),
        handshakes: none,
        clients: none,
        playback: none,
        log: none,
    }
}
