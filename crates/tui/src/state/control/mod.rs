//! Changes of settings: which are pending, which were confirmed or refused, and undo.
//!
//! The value shown always comes from records. Only a repeated key steps from the value that is still pending, because
//! its record follows a moment later.

pub(crate) mod access;
mod leave;
pub(crate) mod recording;
mod remote;

use std::time::Duration;

use model::runs::{Marker, Run, TimelineEvent};
use records::command::Command;
use records::setting::{Setting, Value};

use crate::clock::ClockReading;
use crate::input::intent::{Direction, QuickControl};
use crate::screens::settings::quick_control;

/// How long the records may take to show a change before it counts as refused.
const ANSWER_PATIENCE: Duration = Duration::from_secs(3);
/// The number of changes that can be undone.
const UNDO_MAX: usize = 100;

/// A change that no record has confirmed yet.
#[derive(Clone, Debug)]
struct PendingChange {
    name: String,
    before: Value,
    value: Value,
    at: ClockReading,
    /// True for an undo, which cannot be undone itself.
    is_undo: bool,
}

/// A change by this dashboard that a record has confirmed.
#[derive(Clone, Debug)]
pub(crate) struct ConfirmedChange {
    pub(crate) name: String,
    pub(crate) value: Value,
    /// When it was asked for, and when its record was read.
    pub(crate) realtime_us: (u64, u64),
    pub(crate) is_undo: bool,
}

/// Pending changes and the outcome of earlier ones.
#[derive(Clone, Debug, Default)]
pub(crate) struct Control {
    asks: Vec<PendingChange>,
    /// Changes that were confirmed and can be undone, with the values before, the latest at the end.
    done: Vec<(String, Value)>,
    /// All confirmed changes of this dashboard, the latest at the end.
    made: Vec<ConfirmedChange>,
    /// Why a setting did not change at the last request.
    refused: Vec<(String, String)>,
}

impl Control {
    /// Returns the command that moves a quick control one step.
    ///
    /// # Errors
    /// A message, if it cannot be moved.
    pub(crate) fn adjust(
        &mut self,
        run: Option<&Run>,
        control: QuickControl,
        direction: Direction,
        now: ClockReading,
    ) -> Result<Command, String> {
        let run = changeable(run)?;
        let has_load = run.load().is_some() || run.settings().iter().any(|s| s.name.starts_with("load."));
        if !has_load {
            return Err("this run has no load: start tlsdash with --load PLAN for one".to_owned());
        }
        let setting = run.setting(control.setting()).ok_or_else(|| control.missing())?;
        let asked = self.asked(control.setting()).unwrap_or(&setting.value);
        let value = control.moved(asked, direction).ok_or_else(|| control.missing())?;
        self.ask(Some(run), control.setting(), within(setting, value), now)
    }

    /// Returns the command that changes a setting.
    ///
    /// # Errors
    /// A message, if the value is not allowed.
    pub(crate) fn ask(
        &mut self,
        run: Option<&Run>,
        name: &str,
        value: Value,
        now: ClockReading,
    ) -> Result<Command, String> {
        self.ask_as(run, name, value, now, false)
    }

    fn ask_as(
        &mut self,
        run: Option<&Run>,
        name: &str,
        value: Value,
        now: ClockReading,
        is_undo: bool,
    ) -> Result<Command, String> {
        let run = changeable(run)?;
        let setting = run.setting(name).ok_or_else(|| format!("there is no setting {name}"))?;
        setting.check(None, &value)?;
        if run.compared_setting() == Some(name) {
            return Err(format!("{name} is locked: an experiment compares it; end that first"));
        }
        self.refused.retain(|(refused, _)| refused != name);
        self.asks.retain(|ask| ask.name != name);
        let (name, before) = (name.to_owned(), setting.value.clone());
        self.asks.push(PendingChange { name: name.clone(), before, value: value.clone(), at: now, is_undo });
        Ok(Command::Set { name, value })
    }

    /// Returns the command that undoes the last confirmed change.
    ///
    /// # Errors
    /// A message, if there is none.
    pub(crate) fn undo(&mut self, run: Option<&Run>, now: ClockReading) -> Result<Command, String> {
        let (name, before) =
            self.done.last().cloned().ok_or("no change was made from here that could be taken back")?;
        let command = self.ask_as(run, &name, before, now, true)?;
        self.done.pop();
        Ok(command)
    }

    /// Removes pending changes that the records confirm, and those that have timed out.
    pub(crate) fn settle(&mut self, run: &Run, now: ClockReading) {
        let Self { asks, done, made, refused } = self;
        asks.retain(|ask| {
            if has_come(run, ask) {
                if !ask.is_undo && ask.before != ask.value {
                    done.push((ask.name.clone(), ask.before.clone()));
                }
                made.push(ConfirmedChange {
                    name: ask.name.clone(),
                    value: ask.value.clone(),
                    realtime_us: (ask.at.realtime_us, now.realtime_us),
                    is_undo: ask.is_undo,
                });
                return false;
            }
            let in_time = now.instant.saturating_duration_since(ask.at.instant) < ANSWER_PATIENCE;
            if !in_time {
                refused.push((ask.name.clone(), "no record confirms it".to_owned()));
            }
            in_time
        });
        done.drain(..done.len().saturating_sub(UNDO_MAX));
        made.drain(..made.len().saturating_sub(UNDO_MAX));
    }

    /// Treats the program's warning about a setting as the answer to its pending change.
    pub(crate) fn note_refusal(&mut self, text: &str) {
        if let Some(at) = self.asks.iter().position(|ask| text.contains(&ask.name)) {
            let ask = self.asks.remove(at);
            self.refused.push((ask.name, text.to_owned()));
        }
    }

    /// Removes all pending changes.
    pub(crate) fn give_up(&mut self) {
        self.asks.clear();
    }

    pub(crate) fn is_waiting(&self) -> bool {
        !self.asks.is_empty()
    }

    /// Returns the pending value of a setting.
    pub(crate) fn asked(&self, name: &str) -> Option<&Value> {
        self.asks.iter().find(|ask| ask.name == name).map(|ask| &ask.value)
    }

    /// Returns why the last change of a setting failed.
    pub(crate) fn refusal(&self, name: &str) -> Option<&str> {
        self.refused.iter().rev().find(|(refused, _)| refused == name).map(|(_, why)| &**why)
    }

    /// Returns the changes of this dashboard that were confirmed.
    pub(crate) fn made(&self) -> &[ConfirmedChange] {
        &self.made
    }

    /// Returns the last change of this dashboard that was asked for or confirmed since a moment.
    pub(crate) fn changed_since(&self, realtime_us: u64) -> Option<String> {
        let made = self.made.iter().map(|change| (&change.name, &change.value, change.realtime_us.0));
        let asked = self.asks.iter().map(|ask| (&ask.name, &ask.value, ask.at.realtime_us));
        let (name, value, _) = made.chain(asked).rfind(|(.., us)| *us >= realtime_us)?;
        Some(quick_control::words(name, value))
    }

    /// Returns what undo would change next: a setting and the value it gets back.
    pub(crate) fn next_undo(&self) -> Option<&(String, Value)> {
        self.done.last()
    }

    /// Returns the pending changes as text; empty if there are none.
    pub(crate) fn pending(&self) -> String {
        let words: Vec<String> =
            self.asks.iter().map(|ask| quick_control::words(&ask.name, &ask.value)).collect();
        words.join(", ")
    }
}

/// Whether a setting has the value that was asked for, or has had it since: somebody else may have changed it again.
fn has_come(run: &Run, ask: &PendingChange) -> bool {
    let is_it = |marker: &Marker| {
        let TimelineEvent::Change { after, .. } = &marker.event else { return false };
        after.name == ask.name && after.value == ask.value
    };
    let mut since = run.markers().rev().take_while(|marker| marker.realtime_us >= ask.at.realtime_us);
    run.setting(&ask.name).is_some_and(|setting| setting.value == ask.value) || since.any(is_it)
}

fn changeable(run: Option<&Run>) -> Result<&Run, String> {
    match run {
        None => Err("there is no run yet".to_owned()),
        Some(run) if run.stopped().is_some() => Err("the run has ended".to_owned()),
        Some(run) => Ok(run),
    }
}

/// Returns the nearest allowed value.
pub(crate) fn within(setting: &Setting, value: Value) -> Value {
    match (value, setting.range) {
        (Value::Number(number), Some((low, high))) => Value::Number(number.max(low).min(high)),
        (value, _) => value,
    }
}
