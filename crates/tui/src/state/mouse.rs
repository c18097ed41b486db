//! The effects of clicks and the wheel; each has a key, too.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::update::want;
use super::{ChoiceEdit, Effect, Intent, ListMove, Screen, State};
use crate::clock::ClockReading;
use crate::terminal::frame_scheduler::Urgency;
use crate::view::layout::{self, ClickTarget};

pub(super) fn point(state: &mut State, event: MouseEvent, now: ClockReading) -> Vec<Effect> {
    match event.kind {
        MouseEventKind::ScrollUp => want(state, Intent::Scroll(ListMove::Up), now),
        MouseEventKind::ScrollDown => want(state, Intent::Scroll(ListMove::Down), now),
        MouseEventKind::Down(MouseButton::Left) => {
            state.dragged = layout::boundary(state, (event.column, event.row));
            click(state, (event.column, event.row), now)
        }
        MouseEventKind::Drag(MouseButton::Left) => drag(state, event.row),
        _ => Vec::new(),
    }
}

/// Moves the boundary below a pane to a row.
fn drag(state: &mut State, row: u16) -> Vec<Effect> {
    let area = state.dragged.and_then(|id| Some((id, layout::of_screen(state)?.area(id))));
    let Some((id, area)) = area.filter(|(_, area)| !area.is_empty()) else { return Vec::new() };
    let rows = row.saturating_sub(area.y);
    if rows == area.height {
        return Vec::new();
    }
    state.panes.resize(id, rows);
    vec![Effect::Draw(Urgency::Now)]
}

fn click(state: &mut State, at: (u16, u16), now: ClockReading) -> Vec<Effect> {
    if !matches!(
        state.screen,
        Screen::Dashboard | Screen::Runs | Screen::Requests { .. } | Screen::Choice(..)
    ) || state.prompt.is_some()
    {
        return Vec::new();
    }
    let (pane, target) = layout::target(state, at);
    state.panes.focus = pane.or(state.panes.focus);
    match target {
        Some(ClickTarget::Client(row)) => {
            let Some(id) = state.clients.page().get(row).map(|row| row.id) else { return Vec::new() };
            if state.clients.selected.replace(id) == Some(id) {
                return want(state, Intent::Open, now);
            }
        }
        Some(ClickTarget::ClientColumn(column)) => state.clients.sort_by(column),
        Some(ClickTarget::Route(row)) => {
            let Some(id) = state.routes.page().get(row).map(|row| row.id) else { return Vec::new() };
            if state.routes.selected.replace(id) == Some(id) {
                return want(state, Intent::Open, now);
            }
        }
        Some(ClickTarget::Usage(row)) => {
            let table = &mut state.usage.table;
            let Some(id) = table.page().get(row).map(crate::table::Row::id) else { return Vec::new() };
            if table.selected.replace(id) == Some(id) {
                return want(state, Intent::Open, now);
            }
        }
        Some(ClickTarget::Host(row)) => {
            let table = &mut state.hosts.table;
            let Some(id) = table.page().get(row).map(crate::table::Row::id) else { return Vec::new() };
            if table.selected.replace(id) == Some(id) {
                return want(state, Intent::Open, now);
            }
        }
        Some(ClickTarget::HostColumn(column)) => state.hosts.table.sort_by(column),
        Some(ClickTarget::UsageColumn(column)) => state.usage.table.sort_by(column),
        Some(ClickTarget::RouteColumn(column)) => state.routes.sort_by(column),
        Some(ClickTarget::Request(row)) => {
            let table = &mut state.requests.table;
            table.selected = table.page().get(row).map(crate::table::Row::id);
        }
        Some(ClickTarget::RequestColumn(column)) => state.requests.table.sort_by(column),
        Some(ClickTarget::Choice(line)) => {
            if let Screen::Choice(of, _) = state.screen {
                state.screen = Screen::Choice(of, line);
            }
            state.edit_choice(ChoiceEdit::Toggle);
        }
        Some(ClickTarget::RunColumn(column)) => state.runs.table.sort_by(column),
        Some(ClickTarget::Column(place)) => {
            let us = state.timeline.end_us(place);
            state.go_to(us, now);
        }
        Some(ClickTarget::Played(thousandth)) => {
            let Some(run) = state.run() else { return Vec::new() };
            let length_us = run.last_us().saturating_sub(run.began_us());
            let us = run.began_us() + length_us / 1_000 * thousandth;
            state.go_to(us, now);
        }
        Some(ClickTarget::Timeline) => return want(state, Intent::NextClass, now),
        None if pane.is_none() => return Vec::new(),
        None => {}
    }
    vec![Effect::Draw(Urgency::Now)]
}
