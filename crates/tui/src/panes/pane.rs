//! The list of panes. A new pane has its own file, an entry here, its places in `layout`, and [`PaneId`] with the presets
//! that show it.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::PaneId;
use super::clients::view as clients;
use super::findings::view as findings;
use super::handshakes::view as handshakes;
use super::hosts::view as hosts;
use super::http::view as http;
use super::latency::view as latency;
use super::log::view as log;
use super::routes::view as routes;
use super::services::view as services;
use super::system::view as system;
use super::timeline::view as latency_timeline;
use super::usage::view as usage;
use crate::input::click::ClickTarget;
use crate::input::keymap::Hint;
use crate::state::State;

pub(crate) struct Pane {
    pub(crate) id: PaneId,
    /// The rows that it can use.
    pub(crate) rows: fn(&State) -> PaneRows,
    /// When it gets its minimum, enough, and all rows that it wants: panes with lower ranks come first.
    pub(crate) ranks: [u8; 3],
    pub(crate) render: fn(&State, &mut Frame<'_>, Rect),
    /// Returns what is at a cell of its area.
    pub(crate) target: fn(&State, Rect, (u16, u16)) -> Option<ClickTarget>,
    /// Keys that the footer names while it has the focus.
    pub(crate) hints: &'static [Hint],
}

/// The rows that a pane can use, with its heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PaneRows {
    /// Fewer are of no use; 0 for a pane that has nothing to show.
    pub(crate) min: u16,
    pub(crate) enough: u16,
    pub(crate) wanted: u16,
    /// Whether it can use all rows that are left.
    pub(crate) grows: bool,
}

const PANES: [Pane; 12] = [
    hosts::PANE,
    services::PANE,
    latency::PANE,
    latency_timeline::PANE,
    http::PANE,
    handshakes::PANE,
    system::PANE,
    routes::PANE,
    clients::PANE,
    usage::PANE,
    findings::PANE,
    log::PANE,
];

pub(crate) fn pane(id: PaneId) -> &'static Pane {
    const { &PANES }.iter().find(|pane| pane.id == id).unwrap_or(&PANES[0])
}
