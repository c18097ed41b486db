//! The list of panes. A new pane has its own file, an entry here, its places in `layout`, and [`PaneId`] with the presets
//! that show it.

use ratatui::Frame;
use ratatui::layout::Rect;

use super::layout::ClickTarget;
use super::{
    clients, findings, handshakes, hosts, http, latency, latency_timeline, log, routes, system, usage,
};
use crate::input::keymap::Hint;
use crate::state::{PaneId, State};

pub(super) struct Pane {
    pub(super) id: PaneId,
    /// What it shows, for the choice of panes.
    pub(super) meaning: &'static str,
    /// The rows that it can use.
    pub(super) rows: fn(&State) -> PaneRows,
    /// When it gets its minimum, enough, and all rows that it wants: panes with lower ranks come first.
    pub(super) ranks: [u8; 3],
    pub(super) render: fn(&State, &mut Frame<'_>, Rect),
    /// Returns what is at a cell of its area.
    pub(super) target: fn(&State, Rect, (u16, u16)) -> Option<ClickTarget>,
    /// Keys that the footer names while it has the focus.
    pub(super) hints: &'static [Hint],
}

/// The rows that a pane can use, with its heading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PaneRows {
    /// Fewer are of no use; 0 for a pane that has nothing to show.
    pub(super) min: u16,
    pub(super) enough: u16,
    pub(super) wanted: u16,
    /// Whether it can use all rows that are left.
    pub(super) grows: bool,
}

const PANES: [Pane; 11] = [
    hosts::PANE,
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

pub(super) fn pane(id: PaneId) -> &'static Pane {
    const { &PANES }.iter().find(|pane| pane.id == id).unwrap_or(&PANES[0])
}

pub(crate) fn meaning(id: PaneId) -> &'static str {
    pane(id).meaning
}
