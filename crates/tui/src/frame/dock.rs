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

use crate::panes::PaneId;
use crate::panes::timeline::view as latency_timeline;
use crate::state::State;
use crate::state::screen::Screen;

/// The smallest screen with the dock at the right.
const RIGHT_MIN: (u16, u16) = (130, 30);
/// The fewest and the most columns of a dock at the right.
const WIDTH: (u16, u16) = (54, 78);
/// The blanks between panes and dock.
const GAP: u16 = 2;
/// The fewest rows of a dock below.
const HEIGHT_MIN: u16 = 8;
/// The fewest rows above a dock for the most important latencies and a plot.
const PANES_MIN: u16 = 6 + latency_timeline::HEIGHT_MIN;
/// The fewest rows above a dock for latencies alone.
const LATENCY_MIN: u16 = 3;

/// The place of settings or experiments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dock {
    Closed,
    /// At the right of the panes.
    Right,
    /// Below latency and plot; all other panes are left out.
    Below,
}

impl Dock {
    pub(crate) fn of(screen: Rect, state: &State) -> Self {
        match state.screen {
            Screen::Tuning | Screen::Experiments => {
                if screen.width >= RIGHT_MIN.0 && screen.height >= RIGHT_MIN.1 {
                    Self::Right
                } else {
                    Self::Below
                }
            }
            Screen::Dashboard
            | Screen::Help { .. }
            | Screen::Runs
            | Screen::Choice(..)
            | Screen::Details(_)
            | Screen::Findings(_)
            | Screen::Requests { .. } => Self::Closed,
        }
    }

    /// Returns whether a pane stays beside the dock.
    pub(crate) fn keeps(self, pane: PaneId) -> bool {
        self != Self::Below || matches!(pane, PaneId::Latency | PaneId::Timeline)
    }

    /// Returns the part of the body that panes get, and the dock.
    pub(crate) fn split(self, body: Rect) -> (Rect, Rect) {
        match self {
            Self::Closed => (body, Rect::default()),
            Self::Right => {
                let width = (body.width / 5 * 2).clamp(WIDTH.0, WIDTH.1);
                let dock = Rect { x: body.right() - width, width, ..body };
                (Rect { width: body.width - width - GAP, ..body }, dock)
            }
            Self::Below => {
                let panes = if body.height >= PANES_MIN + HEIGHT_MIN {
                    (body.height / 2).max(PANES_MIN)
                } else {
                    // A heading without rows would be of no use.
                    let left = body.height.saturating_sub(HEIGHT_MIN);
                    if left < LATENCY_MIN { 0 } else { left }
                };
                let dock = Rect { y: body.y + panes, height: body.height - panes, ..body };
                (Rect { height: panes, ..body }, dock)
            }
        }
    }
}
