//! The effects of clicks and the wheel; each has a key, too.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::update::want;
use super::{Effect, Intent, ListMove, Screen, State};
use crate::clock::Now;
use crate::terminal::pace::Urgency;
use crate::view::layout::{self, Target};

/// Handles a mouse event.
pub(super) fn point(state: &mut State, event: MouseEvent, now: Now) -> Vec<Effect> {
    match event.kind {
        MouseEventKind::ScrollUp => want(state, Intent::Scroll(ListMove::Up), now),
        MouseEventKind::ScrollDown => want(state, Intent::Scroll(ListMove::Down), now),
        MouseEventKind::Down(MouseButton::Left) => click(state, (event.column, event.row), now),
        _ => Vec::new(),
    }
}

fn click(state: &mut State, at: (u16, u16), now: Now) -> Vec<Effect> {
    if !matches!(state.screen, Screen::Dashboard | Screen::Log | Screen::Runs) || state.prompt.is_some() {
        return Vec::new();
    }
    match layout::target(state, at) {
        Some(Target::Client(row)) => {
            let Some(id) = state.clients.page().get(row).map(|row| row.id) else { return Vec::new() };
            if state.clients.selected.replace(id) == Some(id) {
                return want(state, Intent::Open, now);
            }
        }
        Some(Target::ClientColumn(column)) => state.clients.sort_by(column),
        Some(Target::RunColumn(column)) => state.runs.table.sort_by(column),
        Some(Target::Column(place)) => {
            let us = state.timeline.end_us(place);
            state.go_to(us, now);
        }
        Some(Target::Played(thousandth)) => {
            let Some(run) = state.run() else { return Vec::new() };
            let length_us = run.last_us().saturating_sub(run.began_us());
            let us = run.began_us() + length_us / 1_000 * thousandth;
            state.go_to(us, now);
        }
        Some(Target::Timeline) => return want(state, Intent::NextClass, now),
        None => return Vec::new(),
    }
    vec![Effect::Draw(Urgency::Now)]
}
