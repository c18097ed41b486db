//! The effects of clicks and the wheel; each has a key, too.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::action::Effect;
use super::update::want;
use crate::clock::ClockReading;
use crate::frame::layout;
use crate::input::click::ClickTarget;
use crate::input::intent::{Intent, List};
use crate::state::State;
use crate::state::screen::Screen;
use crate::table::{ChoiceEdit, ListMove};
use crate::terminal::frame_scheduler::Urgency;

pub(crate) fn point(state: &mut State, event: MouseEvent, now: ClockReading) -> Vec<Effect> {
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
        Some(ClickTarget::Row(list, row)) => match state.table_mut(list).select_in_sight(row) {
            None => return Vec::new(),
            // What is known of a request is below its list.
            Some(true) if list != List::Requests => return want(state, Intent::Open, now),
            Some(_) => {}
        },
        Some(ClickTarget::Heading(list, column)) => state.table_mut(list).sort_by(column),
        Some(ClickTarget::Choice(line)) => {
            if let Screen::Choice(of, _) = state.screen {
                state.screen = Screen::Choice(of, line);
            }
            state.edit_choice(ChoiceEdit::Toggle);
        }
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
