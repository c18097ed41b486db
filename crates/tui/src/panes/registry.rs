//! What each pane does, by its name.

use super::{PaneId, findings, handshakes, http, latency, log, system, tables, timeline};
use crate::input::intent::List;
use crate::panes::Pane;
use crate::state::State;
use crate::widgets::detail::Details;

/// What the screen asks of a pane.
pub(crate) fn pane(id: PaneId) -> &'static Pane {
    match id {
        PaneId::Hosts => &tables::hosts::view::PANE,
        PaneId::Services => &tables::services::view::PANE,
        PaneId::Timeline => &timeline::view::PANE,
        PaneId::Latency => &latency::view::PANE,
        PaneId::Http => &http::view::PANE,
        PaneId::Handshakes => &handshakes::view::PANE,
        PaneId::System => &system::view::PANE,
        PaneId::Upstreams => &tables::upstreams::view::PANE,
        PaneId::Routes => &tables::routes::view::PANE,
        PaneId::Clients => &tables::clients::view::PANE,
        PaneId::Usage => &tables::usage::view::PANE,
        PaneId::Certificates => &tables::certificates::view::PANE,
        PaneId::Findings => &findings::view::PANE,
        PaneId::Log => &log::view::PANE,
    }
}

/// Updates what is in sight of all lists.
pub(crate) fn arrange(state: &mut State) {
    for id in PaneId::ALL {
        (pane(id).arrange)(state);
    }
}

/// Opens the selected row of a list, or the first in sight.
pub(crate) fn open(state: &mut State, list: List) {
    if let Some(id) = list.pane() {
        (pane(id).open)(state);
    }
}

/// Returns all about the opened row of a list; `None` if its rows have no details.
pub(crate) fn details(state: &State, list: List) -> Option<Details> {
    (pane(list.pane()?).details)(state)
}
