//! Moving between screens, and along their lines.

use crate::input::intent::List;
use crate::panes::PaneId;
use crate::screens::help::view;
use crate::state::State;
use crate::state::screen::Screen;
use crate::table::ListMove;

pub(crate) fn toggle_help(state: &mut State) {
    state.help.search.clear();
    if matches!(state.screen, Screen::Help { .. }) {
        return back(state);
    }
    state.help.over = state.screen;
    state.screen = Screen::Help { offset: 0 };
}

pub(crate) fn toggle_tuning(state: &mut State) {
    toggle_screen(state, Screen::Tuning);
    state.select_changeable_setting();
}

pub(crate) fn scroll(state: &mut State, to: ListMove) {
    if let Screen::Help { offset } = state.screen {
        let page = view::page(state).max(1);
        let offset = match to {
            ListMove::Up => offset.saturating_sub(1),
            ListMove::Down => offset + 1,
            ListMove::PageUp => offset.saturating_sub(page),
            ListMove::PageDown => offset.saturating_add(page),
            ListMove::First => 0,
            ListMove::Last => usize::MAX,
        };
        state.screen = Screen::Help { offset: offset.min(view::offset_max(state)) };
        return;
    }
    match state.screen {
        Screen::Tuning => return select_setting(state, to),
        Screen::Runs => return state.select_run(to),
        Screen::Choice(..) => return state.select_choice(to),
        Screen::Findings(selected) => {
            let last = state.figures().map_or(0, |figures| figures.findings.open.len().saturating_sub(1));
            state.screen = Screen::Findings(to.from(selected, last));
            return;
        }
        Screen::Dashboard
        | Screen::Experiments
        | Screen::Client(_)
        | Screen::Route(_)
        | Screen::Usage(_)
        | Screen::Certificate(_)
        | Screen::Requests { .. }
        | Screen::Help { .. } => {}
    }
    match state.list() {
        List::Clients | List::Runs => {}
        List::Routes | List::Requests => return state.scroll_http(to),
        List::Usage => return state.scroll_usage(to),
        List::Hosts => return state.scroll_hosts(to),
        List::Services => return state.scroll_services(to),
        List::Upstreams => return state.scroll_upstreams(to),
        List::Certificates => return state.scroll_certificates(to),
        List::Workers => return state.scroll_workers(to),
    }
    let rows = state.sight.clients;
    let (clients, table) = state.clients_and_table();
    clients.go(to, &mut table.rows, rows);
    if let (Screen::Client(_), Some(id)) = (state.screen, state.clients.selected) {
        state.screen = Screen::Client(id);
    }
}

fn select_setting(state: &mut State, to: ListMove) {
    let last = state.settings().len().saturating_sub(1);
    state.tuning.selected = to.from(state.tuning.selected, last);
    (state.tuning.complaint, state.tuning.answer) = (None, None);
}

/// Closes the help or what covers the panes, else deselects the client, else leaves usage or the service that is
/// open, else returns to the present.
pub(crate) fn back(state: &mut State) {
    if matches!(state.screen, Screen::Help { .. }) {
        state.screen = state.help.over;
    } else if state.screen != Screen::Dashboard {
        state.screen = Screen::Dashboard;
    } else if state.panes.maximised.is_some() {
        state.panes.maximised = None;
    } else {
        // From a selection in the past, one step leads to the present.
        let was_selected = deselect(state);
        if state.view.past().is_some() {
            state.go_live();
        } else if !was_selected && !state.leave_usage() && !state.leave_service() {
            state.panes.focus = None;
        }
    }
}

/// Gives up what is selected; false if nothing is.
fn deselect(state: &mut State) -> bool {
    let lists =
        [List::Clients, List::Routes, List::Usage, List::Upstreams, List::Certificates, List::Workers];
    let is_service_selected = !state.is_service_open() && state.table_mut(List::Services).deselect();
    lists.map(|list| state.table_mut(list).deselect()).contains(&true) || is_service_selected
}

/// Goes to a screen, or leaves it.
pub(crate) fn toggle_screen(state: &mut State, screen: Screen) {
    let is_there = std::mem::discriminant(&state.screen) == std::mem::discriminant(&screen);
    state.screen = if is_there { Screen::Dashboard } else { screen };
}

/// Opens the selected client or route, or the first in sight.
pub(crate) fn open(state: &mut State) {
    let is_focused = state.screen == Screen::Dashboard && state.panes.focus == Some(PaneId::Findings);
    if is_focused || matches!(state.screen, Screen::Findings(_)) {
        return toggle_screen(state, Screen::Findings(0));
    }
    match state.list() {
        List::Clients => {}
        List::Routes => return state.open_route(),
        List::Usage => return state.open_usage(),
        List::Hosts => return state.open_host(),
        List::Services => return state.open_service(),
        List::Certificates => return state.open_certificate(),
        List::Requests | List::Upstreams | List::Workers | List::Runs => return,
    }
    let first = || state.clients.page().first().map(|row| row.id);
    if let Some(id) = state.clients.selected.or_else(first) {
        state.clients.selected = Some(id);
        state.screen =
            if state.screen == Screen::Client(id) { Screen::Dashboard } else { Screen::Client(id) };
    }
}
