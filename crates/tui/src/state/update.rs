//! How everything that happens changes the state.

use crossterm::event::KeyEvent;
use telemetry::model::Level;
use telemetry::{Command, Update};

use super::client_list::Move;
use super::lever::{Direction, Lever};
use super::phase::Heard;
use super::seek::SeekTarget;
use super::view::View;
use super::{Action, Effect, Intent, Phase, Screen, State};
use crate::clock::Now;
use crate::options::Exit;
use crate::pace::Urgency;
use crate::terminal::Suspend;
use crate::view::{help, layout};

/// Columns of a long step through time.
const FAR: i64 = 10;

const DRAW: Effect = Effect::Draw(Urgency::Now);

/// Changes the state by what happened at `now`, and says what is to be done outside.
pub(crate) fn update(state: &mut State, action: Action, now: Now) -> Vec<Effect> {
    match action {
        Action::Want(intent) => want(state, intent, now),
        Action::Type(key) => typed(state, key, now),
        Action::Point(event) => super::mouse::point(state, event, now),
        Action::Update(news) => {
            take_in(state, news, now);
            vec![Effect::Draw(Urgency::Soon)]
        }
        Action::History(news) => {
            let is_news = state.hear(news, now);
            if is_news { vec![Effect::Draw(Urgency::Soon)] } else { Vec::new() }
        }
        Action::Tick => tick(state, now),
        Action::Resize(columns, rows) => {
            state.size = (columns, rows);
            vec![DRAW]
        }
        Action::Done(level, what) => {
            state.notice(level, what, now);
            vec![DRAW]
        }
        Action::NotSent(why) => {
            state.control.give_up();
            state.notice(Level::Warning, why, now);
            vec![DRAW]
        }
    }
}

fn take_in(state: &mut State, news: Update, now: Now) {
    match news {
        Update::Batch(batch) => {
            state.heard = Heard::of(&batch, &state.model, state.options.run, now).or(state.heard);
            state.model.apply_batch(batch);
            state.stale = true;
        }
        Update::CaughtUp => {
            state.caught_up = true;
            state.stale = true;
            state.open_replay(now);
        }
        Update::Notice(level, text) => {
            if level == Level::Warning {
                state.control.hear(&text);
                if state.screen == Screen::Experiments {
                    state.tuning.complaint = Some(text.clone());
                }
            }
            state.notice(level, text, now);
        }
        Update::Recording(recording) => state.note_recording(recording, now),
    }
}

/// Draws only if the passing of time alone changes what is to be seen.
fn tick(state: &mut State, now: Now) -> Vec<Effect> {
    // What was asked and never confirmed must not stay on the screen because no record came.
    state.stale |= state.control.is_waiting();
    let has_moved = state.play_on(now);
    let phase = Phase::of(state, now);
    let changed = std::mem::replace(&mut state.phase, phase) != phase;
    if changed || has_moved || state.stale { vec![Effect::Draw(Urgency::Soon)] } else { Vec::new() }
}

fn typed(state: &mut State, key: KeyEvent, now: Now) -> Vec<Effect> {
    let effects = state.typed(key, now);
    state.arrange();
    effects
}

/// Does what a person wants.
pub(super) fn want(state: &mut State, intent: Intent, now: Now) -> Vec<Effect> {
    match intent {
        Intent::Quit if state.may_leave(now) => return vec![Effect::Leave(Exit::Quit)],
        Intent::Quit => {}
        Intent::Suspend => return vec![Effect::Suspend(Suspend::Group)],
        Intent::Redraw => return vec![Effect::Redraw],
        Intent::Help
        | Intent::Back
        | Intent::Log
        | Intent::Tune
        | Intent::Experiments
        | Intent::Runs
        | Intent::Open => go(state, intent, now),
        Intent::RunFilter => state.type_hosts(),
        Intent::RunOpen => {
            state.show_selected_run(now);
            state.phase = Phase::of(state, now);
        }
        Intent::Palette => state.open_palette(),
        Intent::Filter => state.type_filter(),
        Intent::Copy => return copy(state, now),
        Intent::Export => state.type_file_name(now),
        Intent::NextRun => {
            state.next_run(now);
            state.phase = Phase::of(state, now);
        }
        Intent::Compare | Intent::EndExperiment => return experiment(state, intent, now),
        Intent::StepDown | Intent::StepUp | Intent::Edit | Intent::Apply | Intent::Unstage | Intent::Undo => {
            return tune(state, intent, now);
        }
        Intent::Freeze if !state.is_replay() => toggle_freeze(state, now),
        Intent::Freeze | Intent::Play | Intent::PlaySlower | Intent::PlayFaster | Intent::PlayOwnPace => {
            play(state, intent, now);
        }
        Intent::GoTo => state.type_moment(),
        Intent::ScrubBack
        | Intent::ScrubForward
        | Intent::ScrubFarBack
        | Intent::ScrubFarForward
        | Intent::MarkPrevious
        | Intent::MarkNext
        | Intent::Worst
        | Intent::NextInterval
        | Intent::PreviousInterval
        | Intent::Beginning
        | Intent::End => leap(state, intent, now),
        Intent::ZoomOut => state.time.zoom_out(),
        Intent::ZoomIn => state.time.zoom_in(),
        Intent::Turn => state.time.turn(),
        Intent::Subject => {
            if let Some(run) = super::shown_run(&state.model, &state.options) {
                state.time.next_subject(run);
            }
        }
        Intent::WindowShorter | Intent::WindowLonger => change_span(state, intent, now),
        Intent::SortNext => state.clients.order.key = state.clients.order.key.next(),
        Intent::SortReverse => state.clients.order.reversed = !state.clients.order.reversed,
        Intent::Up => scroll(state, Move::Up),
        Intent::Down => scroll(state, Move::Down),
        Intent::PageUp => scroll(state, Move::PageUp),
        Intent::PageDown => scroll(state, Move::PageDown),
        Intent::First => scroll(state, Move::First),
        Intent::Last => scroll(state, Move::Last),
        Intent::LoadToggle | Intent::RateDown | Intent::RateUp | Intent::ResumeDown | Intent::ResumeUp => {
            return pull(state, intent, now);
        }
        Intent::Mark => return mark(state, now),
        Intent::Record => return record(state, now),
    }
    state.arrange();
    vec![DRAW]
}

/// What is selected, or else what is seen.
fn copy(state: &mut State, now: Now) -> Vec<Effect> {
    let (what, text) = match (state.screen, state.clients.selected) {
        (Screen::Client(id), _) => (format!("all about {id}"), crate::view::client::text(state, id)),
        (Screen::Dashboard | Screen::Log, Some(id)) => (id.to_string(), id.to_string()),
        _ => ("the screen".to_owned(), crate::export::screen_text(state)),
    };
    // Nobody answers whether the terminal has done it.
    state.notice(Level::Notice, format!("{what} was given to the terminal's clipboard (OSC 52)"), now);
    vec![DRAW, Effect::Copy(text)]
}

fn toggle_freeze(state: &mut State, now: Now) {
    match state.view {
        View::Live => state.freeze(now),
        View::Frozen(_) | View::Replay(..) => state.go_live(),
    }
    state.phase = Phase::of(state, now);
}

fn play(state: &mut State, intent: Intent, now: Now) {
    match intent {
        Intent::PlaySlower => state.slower(now),
        Intent::PlayFaster => state.faster(now),
        Intent::PlayOwnPace => state.own_pace(now),
        _ => state.toggle_play(now),
    }
    state.phase = Phase::of(state, now);
}

fn leap(state: &mut State, intent: Intent, now: Now) {
    let target = match intent {
        Intent::ScrubBack => SeekTarget::Columns(-1),
        Intent::ScrubForward => SeekTarget::Columns(1),
        Intent::ScrubFarBack => SeekTarget::Columns(-FAR),
        Intent::ScrubFarForward => SeekTarget::Columns(FAR),
        Intent::MarkPrevious => SeekTarget::PreviousMark,
        Intent::MarkNext => SeekTarget::NextMark,
        Intent::NextInterval => SeekTarget::NextInterval,
        Intent::PreviousInterval => SeekTarget::PreviousInterval,
        Intent::Beginning => SeekTarget::Beginning,
        Intent::End => SeekTarget::End,
        _ => SeekTarget::Worst,
    };
    state.seek(target, now);
    state.stale = true;
    state.phase = Phase::of(state, now);
}

fn change_span(state: &mut State, intent: Intent, now: Now) {
    state.span = if intent == Intent::WindowLonger { state.span.longer() } else { state.span.shorter() };
    state.stale = true;
    state.show_moment_anew(now);
}

fn scroll(state: &mut State, to: Move) {
    if let Screen::Help { offset } = state.screen {
        let last = help::lines(state).saturating_sub(1);
        let offset = match to {
            Move::Up => offset.saturating_sub(1),
            Move::Down => offset + 1,
            Move::PageUp | Move::First => 0,
            Move::PageDown | Move::Last => last,
        };
        state.screen = Screen::Help { offset: offset.min(help::offset_max(state)) };
        return;
    }
    match state.screen {
        Screen::Tuning => return select_setting(state, to),
        Screen::Runs => return state.select_run(to),
        _ => {}
    }
    let rows = layout::client_rows(state);
    let (clients, table) = state.clients_and_table();
    clients.go(to, table, rows);
    if let (Screen::Client(_), Some(id)) = (state.screen, state.clients.selected) {
        state.screen = Screen::Client(id);
    }
}

fn select_setting(state: &mut State, to: Move) {
    let last = state.settings().len().saturating_sub(1);
    state.tuning.selected = to.from(state.tuning.selected, last);
    state.tuning.complaint = None;
}

/// Goes to another screen, or back from it.
fn go(state: &mut State, intent: Intent, now: Now) {
    let is_there = match intent {
        Intent::Help => matches!(state.screen, Screen::Help { .. }),
        Intent::Log => state.screen == Screen::Log,
        Intent::Tune => state.screen == Screen::Tuning,
        Intent::Experiments => state.screen == Screen::Experiments,
        Intent::Runs => state.screen == Screen::Runs,
        _ => false,
    };
    match intent {
        Intent::Back if state.screen != Screen::Dashboard => state.screen = Screen::Dashboard,
        Intent::Back if state.clients.selected.is_some() => state.clients.selected = None,
        Intent::Back if state.view.past().is_some() => toggle_freeze(state, now),
        _ if is_there => state.screen = Screen::Dashboard,
        Intent::Help => state.screen = Screen::Help { offset: 0 },
        Intent::Log => state.screen = Screen::Log,
        Intent::Experiments => state.screen = Screen::Experiments,
        Intent::Runs => state.screen = Screen::Runs,
        Intent::Tune => {
            state.screen = Screen::Tuning;
            state.select_what_can_change();
        }
        Intent::Open => open(state),
        _ => {}
    }
}

/// Opens the selected client, or the first in sight.
fn open(state: &mut State) {
    let first = || state.clients.page().first().map(|row| row.id);
    if let Some(id) = state.clients.selected.or_else(first) {
        state.clients.selected = Some(id);
        state.screen =
            if state.screen == Screen::Client(id) { Screen::Dashboard } else { Screen::Client(id) };
    }
}

fn experiment(state: &mut State, intent: Intent, now: Now) -> Vec<Effect> {
    if refuse_if_read_only(state, now) {
        return vec![DRAW];
    }
    if intent == Intent::EndExperiment {
        return vec![DRAW, Effect::Send(Command::EndExperiment)];
    }
    state.tuning.complaint = None;
    state.type_experiment();
    vec![DRAW]
}

fn tune(state: &mut State, intent: Intent, now: Now) -> Vec<Effect> {
    if refuse_if_read_only(state, now) {
        return vec![DRAW];
    }
    let mut effects = vec![DRAW];
    match intent {
        Intent::StepDown => state.step_setting(Direction::Down),
        Intent::StepUp => state.step_setting(Direction::Up),
        Intent::Edit => state.type_value(),
        Intent::Unstage => state.unstage(),
        Intent::Apply => effects.extend(state.apply_staged(now)),
        Intent::Undo => effects.extend(state.undo(now)),
        _ => {}
    }
    effects
}

fn pull(state: &mut State, intent: Intent, now: Now) -> Vec<Effect> {
    if refuse_if_read_only(state, now) {
        return vec![DRAW];
    }
    let (lever, direction) = match intent {
        Intent::RateDown => (Lever::Rate, Direction::Down),
        Intent::RateUp => (Lever::Rate, Direction::Up),
        Intent::ResumeDown => (Lever::Resume, Direction::Down),
        Intent::ResumeUp => (Lever::Resume, Direction::Up),
        _ => (Lever::Running, Direction::Up),
    };
    let run = super::shown_run(&state.model, &state.options);
    let pulled = state.control.pull(run, lever, direction, now);
    std::iter::once(DRAW).chain(state.sent(pulled, now)).collect()
}

fn mark(state: &mut State, now: Now) -> Vec<Effect> {
    if refuse_if_read_only(state, now) {
        return vec![DRAW];
    }
    // The number that a mark is known by is given where its record is made.
    vec![DRAW, Effect::Send(Command::Mark(String::new()))]
}

fn record(state: &mut State, now: Now) -> Vec<Effect> {
    if refuse_if_read_only(state, now) {
        return vec![DRAW];
    }
    vec![DRAW, Effect::Send(Command::Record)]
}

fn refuse_if_read_only(state: &mut State, now: Now) -> bool {
    if state.options.read_only {
        state.notice(Level::Notice, "read-only: this dashboard only watches", now);
    }
    state.options.read_only
}
