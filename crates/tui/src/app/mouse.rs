//! The effects of clicks and the wheel; each has a key, too.

use crossterm::event::{MouseButton, MouseEvent, MouseEventKind};

use super::action::Effect;
use super::want::want;
use crate::clock::ClockReading;
use crate::frame::layout;
use crate::input::click::ClickTarget;
use crate::input::intent::{Intent, List};
use crate::state::State;
use crate::state::screen::Screen;
use crate::table::{ChoiceEdit, ListMove};
use crate::terminal::frame_scheduler::Urgency;

pub(crate) fn point(state: &mut State, event: MouseEvent, now: ClockReading) -> Vec<Effect> {
    let at = (event.column, event.row);
    match event.kind {
        MouseEventKind::ScrollUp | MouseEventKind::ScrollDown => {
            let is_up = event.kind == MouseEventKind::ScrollUp;
            let is_over_plot = column_at(state, at).is_some() && state.screen == Screen::Dashboard;
            let intent = match (is_over_plot, is_up) {
                (true, true) => Intent::ZoomIn,
                (true, false) => Intent::ZoomOut,
                (false, true) => Intent::Scroll(ListMove::Up),
                (false, false) => Intent::Scroll(ListMove::Down),
            };
            want(state, intent, now)
        }
        MouseEventKind::Down(MouseButton::Left) => {
            state.dragged = layout::boundary(state, at);
            state.drag_from_us = column_at(state, at);
            click(state, at, now)
        }
        MouseEventKind::Drag(MouseButton::Left) => drag(state, event.row),
        MouseEventKind::Up(MouseButton::Left) => release(state, at, now),
        _ => Vec::new(),
    }
}

/// Returns the end of the plot's column at a cell, on the run's monotonic clock.
fn column_at(state: &State, at: (u16, u16)) -> Option<u64> {
    match layout::target(state, at).1 {
        Some(ClickTarget::Column(place)) => Some(state.timeline.end_us(place)),
        _ => None,
    }
}

/// The fewest columns of a range that is dragged over the plot: less is a click that slipped.
const RANGE_COLUMNS_MIN: u64 = 3;

/// Zooms to the range of the plot between where the button was pressed and here.
fn release(state: &mut State, at: (u16, u16), now: ClockReading) -> Vec<Effect> {
    let range = state.drag_from_us.take().zip(column_at(state, at));
    let Some((from_us, to_us)) = range.map(|(a, b)| (a.min(b), a.max(b))) else { return Vec::new() };
    let span_us = to_us - from_us;
    if span_us < RANGE_COLUMNS_MIN * state.timeline.column_us() {
        return Vec::new();
    }
    state.time.zoom_to(span_us, state.sight.timeline_columns as u64);
    state.go_to(to_us, now);
    vec![Effect::Draw(Urgency::Now)]
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
    if state.prompt.is_some() {
        return Vec::new();
    }
    let (pane, target) = layout::target(state, at);
    let has_targets = matches!(
        state.screen,
        Screen::Dashboard | Screen::Runs | Screen::Requests { .. } | Screen::Choice(..)
    );
    if !has_targets && !matches!(target, Some(ClickTarget::Key(_))) {
        // Details have nothing to point at: a click leaves them.
        let is_docked = matches!(state.screen, Screen::Tuning | Screen::Experiments);
        return if is_docked { Vec::new() } else { want(state, Intent::Back, now) };
    }
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
        Some(ClickTarget::Key(intent)) => return want(state, intent, now),
        Some(ClickTarget::Problem) => return want(state, Intent::Findings, now),
        // Beside a list that lies over the panes.
        None if state.screen != Screen::Dashboard => return want(state, Intent::Back, now),
        None if pane.is_none() => return Vec::new(),
        None => {}
    }
    vec![Effect::Draw(Urgency::Now)]
}
