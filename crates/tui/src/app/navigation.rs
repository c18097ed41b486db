//! Moving between screens, and along their lines.

use crate::input::intent::List;
use crate::panes::PaneId;
use crate::screens::help::view;
use crate::state::screen::Screen;
use crate::state::{State, shown_run};
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
    if let Some(run) = shown_run(&state.model, &state.options) {
        state.tuning.select_changeable(run.settings());
    }
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
        Screen::Choice(..) => return state.select_choice(to),
        Screen::Findings(selected) => {
            let last = crate::panes::findings::details::listed(state).len().saturating_sub(1);
            state.screen = Screen::Findings(to.from(selected, last));
            return;
        }
        _ => {}
    }
    state.go(state.list(), to);
}

fn select_setting(state: &mut State, to: ListMove) {
    let last = state.settings().len().saturating_sub(1);
    state.tuning.selected = to.from(state.tuning.selected, last);
    state.tuning.complaint = None;
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
    let stays = |list: &List| matches!(list, List::Hosts | List::Services | List::Requests | List::Runs);
    let is_service_selected = !state.is_service_open() && state.table_mut(List::Services).deselect();
    let lists = List::ALL.into_iter().filter(|list| !stays(list));
    lists.fold(is_service_selected, |was_selected, list| state.table_mut(list).deselect() | was_selected)
}

/// Goes to a screen, or leaves it.
pub(crate) fn toggle_screen(state: &mut State, screen: Screen) {
    let is_there = std::mem::discriminant(&state.screen) == std::mem::discriminant(&screen);
    state.screen = if is_there { Screen::Dashboard } else { screen };
}

/// Opens the selected row, or the first in sight.
pub(crate) fn open(state: &mut State) {
    let is_focused = state.screen == Screen::Dashboard && state.panes.focus == Some(PaneId::Findings);
    if is_focused || matches!(state.screen, Screen::Findings(_)) {
        return toggle_screen(state, Screen::Findings(0));
    }
    crate::panes::open(state, state.list());
}
