//! Carries out what a person asks for.

use model::runs::Level;
use records::command::Command;

use super::action::Effect;
use super::navigation::{back, open, scroll, toggle_help, toggle_screen, toggle_tuning};
use super::outcome::outcome;
use crate::clock::ClockReading;
use crate::input::intent::{Direction, Intent, List, PlayControl, QuickControl, SettingEdit};
use crate::options::Exit;
use crate::state::State;
use crate::state::moment::View;
use crate::state::screen::Screen;
use crate::terminal::SuspendTarget;
use crate::terminal::frame_scheduler::Urgency;

const DRAW: Effect = Effect::Draw(Urgency::Now);

/// Updates what is in sight of all lists.
pub(super) fn arrange(state: &mut State) {
    crate::panes::arrange(state);
    crate::screens::arrange(state);
}

pub(crate) fn want(state: &mut State, intent: Intent, now: ClockReading) -> Vec<Effect> {
    if !state.accepts(intent) {
        return Vec::new();
    }
    state.message = None;
    // Any other key takes leaving back.
    if !matches!(intent, Intent::Quit | Intent::Copy) {
        state.recorded.stay();
    }
    match intent {
        Intent::Quit if state.may_leave(now) => return vec![Effect::Leave(Exit::Quit)],
        Intent::Quit => {}
        Intent::Suspend => return suspend(state, now),
        Intent::Redraw => return vec![Effect::Redraw],
        Intent::Back => go_back(state, now),
        Intent::Help => toggle_help(state),
        Intent::Choose(choice) => state.open_choice(choice),
        Intent::EditChoice(edit) => state.edit_choice(edit),
        Intent::Pane(action) => state.arrange_panes(action),
        Intent::Experiments | Intent::Runs | Intent::Findings => toggle_screen(state, screen_of(intent)),
        Intent::Tune => toggle_tuning(state),
        Intent::Open => open(state),
        Intent::Requests => crate::screens::requests::state::next(state),
        Intent::NextDimension => state.next_dimension(),
        Intent::RunFilter => state.type_filter_of(List::Runs),
        Intent::RunOpen => {
            state.show_selected_run(now);
            state.renew_status(now);
        }
        Intent::Palette => state.open_palette(),
        Intent::Filter if matches!(state.screen, Screen::Help { .. }) => state.type_help_search(),
        Intent::Filter => state.type_filter(),
        Intent::Copy if state.recorded.question().is_some() => return vec![Effect::Leave(Exit::Quit)],
        Intent::Copy => return copy(state, now),
        Intent::Export => state.type_file_name(now),
        Intent::NextRun => {
            state.next_run(now);
            state.renew_status(now);
        }
        Intent::Compare => compare(state, now),
        Intent::EndExperiment => return send(state, Command::EndExperiment, now),
        Intent::Setting(edit) => return edit_setting(state, edit, now),
        Intent::Freeze if !state.is_replay() => toggle_freeze(state, now),
        Intent::Freeze => state.play(PlayControl::Toggle, now),
        Intent::Play(control) => state.play(control, now),
        Intent::GoTo => state.type_moment(),
        Intent::Seek(target) => {
            state.seek(target, now);
            state.stale = true;
            state.renew_status(now);
        }
        Intent::ZoomOut => state.time.zoom_out(state.column_us()),
        Intent::ZoomIn => state.time.zoom_in(state.column_us()),
        Intent::ZoomToFit => state.time.zoom_to_fit(),
        Intent::ToggleTimeline => state.time.shows_heat = !state.time.shows_heat,
        Intent::NextClass => next_class(state),
        Intent::Window(direction) => change_span(state, direction, now),
        Intent::SortNext | Intent::SortReverse => sort(state, intent == Intent::SortReverse),
        Intent::Scroll(to) => scroll(state, to),
        Intent::Adjust(control, direction) => return adjust(state, control, direction, now),
        // The publisher assigns the number of a mark.
        Intent::Mark => return send(state, Command::Mark(String::new()), now),
        Intent::Record => return record(state, now),
        Intent::WriteConfiguration => return write_configuration(state, now),
        Intent::Calibrate => return send(state, Command::Calibrate, now),
        Intent::DrainUpstream => return drain_upstream(state, now),
    }
    if let Some(text) = outcome(state, intent) {
        state.say(text, now);
    }
    arrange(state);
    vec![DRAW]
}

/// Drops what is staged in the list of settings, else goes back.
fn go_back(state: &mut State, now: ClockReading) {
    if state.screen == Screen::Tuning && state.tuning.count() > 0 {
        return state.drop_staged(now);
    }
    let was_past = state.view.past().is_some();
    back(state);
    if was_past && state.view.past().is_none() {
        state.say(state.present_words(), now);
    }
    state.renew_status(now);
}

fn next_class(state: &mut State) {
    if let Some(run) = crate::state::shown_run(&state.model, &state.options) {
        state.time.next_class(run);
    }
}

/// Returns the screen that a request shows or closes.
fn screen_of(intent: Intent) -> Screen {
    match intent {
        Intent::Experiments => Screen::Experiments,
        Intent::Findings => Screen::Findings(0),
        _ => Screen::Runs,
    }
}

/// Sorts the list that keys act on by its next column, or the other way round.
fn sort(state: &mut State, reverse: bool) {
    let table = state.table_mut(state.list());
    if reverse { table.reverse() } else { table.sort_by_next() }
}

/// Only a viewer suspends: a server would stop serving its clients.
fn suspend(state: &mut State, now: ClockReading) -> Vec<Effect> {
    if state.options.watches {
        return vec![Effect::Suspend(SuspendTarget::Group)];
    }
    state.refuse_to_stop(now);
    arrange(state);
    vec![DRAW]
}

/// Copies the selection, or else the screen, to the clipboard.
fn copy(state: &mut State, now: ClockReading) -> Vec<Effect> {
    let (what, text) = match (state.screen, state.clients.selected) {
        (Screen::Runs, _) => ("the runs".to_owned(), state.table(List::Runs).text()),
        (Screen::Details(list), _) => {
            let text = crate::panes::details(state, list).map_or_else(String::new, |details| details.text());
            let of_client = state.clients.opened.filter(|_| list == List::Clients);
            let title = || text.lines().next().unwrap_or_default().to_owned();
            (of_client.map_or_else(title, |id| format!("details of {id}")), text)
        }
        (Screen::Requests { .. }, _) => ("the requests".to_owned(), state.table(List::Requests).text()),
        (Screen::Dashboard, Some(id)) => (id.to_string(), id.to_string()),
        _ => ("the screen".to_owned(), super::export::screen_text(state)),
    };
    // The terminal does not report whether it copied the text.
    state.answer(Level::Notice, format!("{what} sent to the terminal's clipboard (OSC 52)"), now);
    vec![DRAW, Effect::Copy(text)]
}

fn toggle_freeze(state: &mut State, now: ClockReading) {
    match state.view {
        View::Live => state.freeze(now),
        View::Frozen(_) | View::Replay(..) => state.go_live(),
    }
    state.renew_status(now);
}

fn change_span(state: &mut State, direction: Direction, now: ClockReading) {
    state.span = match direction {
        Direction::Down => state.span.shorter(),
        Direction::Up => state.span.longer(),
    };
    state.stale = true;
    state.refresh_past_moment(now);
}

fn edit_setting(state: &mut State, edit: SettingEdit, now: ClockReading) -> Vec<Effect> {
    if refuse_without_control(state, now) {
        return vec![DRAW];
    }
    let mut effects = vec![DRAW];
    match edit {
        SettingEdit::Step(direction) => state.step_setting(direction),
        SettingEdit::Type => state.type_value(),
        SettingEdit::TypeDigit(digit) => state.type_digit(digit),
        SettingEdit::Unstage => state.unstage(now),
        SettingEdit::Apply => effects.extend(state.apply_staged(now).into_iter().map(Effect::Send)),
        SettingEdit::Undo => effects.extend(state.undo(now).map(Effect::Send)),
    }
    effects
}

fn compare(state: &mut State, now: ClockReading) {
    if !refuse_without_control(state, now) {
        state.tuning.complaint = None;
        state.type_experiment();
    }
}

fn adjust(state: &mut State, control: QuickControl, direction: Direction, now: ClockReading) -> Vec<Effect> {
    if refuse_without_control(state, now) {
        return vec![DRAW];
    }
    let run = crate::state::shown_run(&state.model, &state.options);
    let asked = state.control.adjust(run, control, direction, now);
    std::iter::once(DRAW).chain(state.sent(asked, now).map(Effect::Send)).collect()
}

fn send(state: &mut State, command: Command, now: ClockReading) -> Vec<Effect> {
    if refuse_without_control(state, now) {
        return vec![DRAW];
    }
    vec![DRAW, Effect::Send(command)]
}

/// Drains the selected upstream, or returns it to service.
fn drain_upstream(state: &mut State, now: ClockReading) -> Vec<Effect> {
    let Some((name, is_drained)) = state.selected_upstream() else {
        let why = "no upstream is selected: focus their pane with tab, and select one with the arrows";
        state.answer(Level::Warning, why, now);
        return vec![DRAW];
    };
    send(state, Command::Upstream { name, drained: !is_drained }, now)
}

fn record(state: &mut State, now: ClockReading) -> Vec<Effect> {
    if let Some(why) = state.recording_obstacle() {
        state.answer(Level::Warning, why, now);
        return vec![DRAW];
    }
    if state.recorded.progress().is_some() {
        return vec![DRAW, Effect::Send(Command::EndRecording)];
    }
    state.type_recording_name(now);
    vec![DRAW]
}

/// Only the process of a run knows its options.
fn write_configuration(state: &mut State, now: ClockReading) -> Vec<Effect> {
    if state.options.watches {
        let why = "only the dashboard beside the proxy writes a configuration; `tlsdash ctl settings` shows what is in force";
        state.answer(Level::Warning, why, now);
        return vec![DRAW];
    }
    send(state, Command::WriteConfiguration, now)
}

/// Says why nothing can be changed, if so.
fn refuse_without_control(state: &mut State, now: ClockReading) -> bool {
    let Some(why) = state.obstacle() else { return false };
    state.access.doubt();
    state.answer(Level::Warning, why, now);
    true
}
