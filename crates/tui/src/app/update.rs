//! Updates the state after every event.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use model::history::Update;
use model::runs::Level;
use records::ids::RunId;
use records::kinds::{AlertRecord, AlertState, Body};

use super::action::{Action, Effect};
use super::want::{arrange, want};
use crate::clock::ClockReading;
use crate::frame::layout;
use crate::options::AlertNotify;
use crate::screens::help::view;
use crate::screens::prompt::state::TEXT_MAX;
use crate::state::State;
use crate::state::screen::Screen;
use crate::state::sight::Sight;
use crate::state::status::LastRecord;
use crate::terminal::frame_scheduler::Urgency;

const DRAW: Effect = Effect::Draw(Urgency::Now);

/// Updates what is shown, if something has changed; call it before each frame. Reading a long journal brings many
/// batches per frame, so the work is done once per frame and not per batch.
pub(crate) fn prepare(state: &mut State, now: ClockReading) {
    state.renew(now);
    arrange_for(state, layout::sight(state));
    // What is in a list now may make its pane higher.
    let sight = layout::sight(state);
    if sight != state.sight {
        arrange_for(state, sight);
    }
    state.follow_timeline();
}

/// Arranges what is shown for what can be seen of it.
fn arrange_for(state: &mut State, sight: Sight) {
    for (list, rows) in &sight.lists {
        state.table_mut(*list).set_sight(*rows);
    }
    state.sight = sight;
    arrange(state);
}

/// Updates the state after an event at `now`, and returns what the caller has to do.
pub(crate) fn update(state: &mut State, action: Action, now: ClockReading) -> Vec<Effect> {
    match action {
        Action::Want(intent) => {
            let effects = want(state, intent, now);
            keep(state, effects)
        }
        Action::Type(key) => typed(state, key, now),
        Action::Paste(text) if state.prompt.is_some() => {
            let keys = text.chars().filter(|c| !c.is_control()).take(TEXT_MAX);
            let keys = keys.map(|c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::NONE));
            keys.for_each(|key| drop(state.typed(key, now)));
            arrange(state);
            vec![DRAW]
        }
        Action::Paste(_) => {
            state.say("pasted text is not a command: open a prompt first", now);
            vec![DRAW]
        }
        Action::Point(event) => {
            let effects = super::mouse::point(state, event, now);
            keep(state, effects)
        }
        Action::Restore(text) => {
            if let Err(error) = state.restore_arrangement(&text) {
                let text = format!("the kept columns and panes are not used: {error}");
                state.notice(Level::Warning, text, now);
            }
            state.kept_text = state.kept();
            vec![DRAW]
        }
        Action::Update(news) => {
            let notification = notification(state, &news);
            apply_update(state, news, now);
            std::iter::once(Effect::Draw(Urgency::Soon)).chain(notification).collect()
        }
        Action::History(news) => {
            let is_news = state.apply_history(news, now);
            if is_news { vec![Effect::Draw(Urgency::Soon)] } else { Vec::new() }
        }
        Action::Tick => tick(state, now),
        Action::Resize(columns, rows) => {
            state.size = (columns, rows);
            if let Screen::Help { offset } = state.screen {
                state.screen = Screen::Help { offset: offset.min(view::offset_max(state)) };
            }
            vec![DRAW]
        }
        Action::Done(level, what) => {
            state.answer(level, what, now);
            vec![DRAW]
        }
        Action::Access(run, access) => {
            state.note_access(run, access, now);
            vec![DRAW]
        }
        Action::NotSent(why) => {
            state.control.give_up();
            state.answer(Level::Warning, why, now);
            vec![DRAW]
        }
    }
}

/// Adds an effect that keeps the arrangement if it has changed.
fn keep(state: &mut State, mut effects: Vec<Effect>) -> Vec<Effect> {
    effects.extend(state.changed_arrangement().map(Effect::Keep));
    effects
}

fn apply_update(state: &mut State, news: Update, now: ClockReading) {
    match news {
        Update::Batch(batch) => {
            let shown = state.options.run.or_else(|| state.shown.filter(|_| state.caught_up));
            state.last_record = LastRecord::of(&batch, &state.model, shown, now).or(state.last_record);
            let has_run_on = state.run().is_some_and(|run| run.stopped().is_none());
            state.model.apply_batch(batch);
            state.stale = true;
            if has_run_on && state.caught_up {
                state.follow_upgrade(now);
            }
        }
        Update::CaughtUp => {
            state.caught_up = true;
            state.stale = true;
            state.open_replay(now);
        }
        Update::Notice(level, text) => state.answer(level, text, now),
        Update::Recording(recording) => {
            state.recorded.update(recording, now);
            state.stale = true;
        }
        Update::Ignored(..) => {}
    }
}

/// Returns the notification of an update that was just recorded. What the journal held at the start, and what is
/// replayed, notifies nobody.
fn notification(state: &State, update: &Update) -> Option<Effect> {
    let Update::Batch(batch) = update else { return None };
    if !state.caught_up || state.options.alert_notify == AlertNotify::Off {
        return None;
    }
    let shown = state.options.run.or(state.shown);
    // A service that is shown has the alerts of them all.
    let is_shown = |run: RunId| shown.is_some_and(|shown| run == shown || run == shown.whole());
    let fired = |record: &AlertRecord| record.state == AlertState::Fired;
    let mut alerts = batch.records.iter().filter_map(|record| match &record.body {
        Body::Alert(alert) if fired(alert) && is_shown(record.stamp.run) => Some(alert.sentence.0.clone()),
        _ => None,
    });
    let first = alerts.next()?;
    let more = match alerts.count() {
        0 => String::new(),
        n => format!(" (and {n} more)"),
    };
    Some(Effect::Notify(format!("{first}{more}")))
}

/// Redraws only if the passing of time changes the screen.
fn tick(state: &mut State, now: ClockReading) -> Vec<Effect> {
    // A pending change that is never confirmed must disappear even if no record arrives.
    state.stale |= state.control.is_waiting();
    let was_asked = state.recorded.question().is_some();
    state.recorded.tick(now);
    let has_moved = state.play_on(now) | state.drop_old_message(now);
    let status = state.status_at(now);
    let changed = std::mem::replace(&mut state.status, status) != status;
    let has_due_hosts = state.has_hosts() && state.has_due_hosts(now);
    let is_answered = was_asked && state.recorded.question().is_none();
    if changed || has_moved || state.stale || has_due_hosts || is_answered {
        vec![Effect::Draw(Urgency::Soon)]
    } else {
        Vec::new()
    }
}

fn typed(state: &mut State, key: KeyEvent, now: ClockReading) -> Vec<Effect> {
    let effects = state.typed(key, now);
    arrange(state);
    effects
}
