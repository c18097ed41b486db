//! The list of settings: selection and staged values.

use telemetry::model::Level;
use telemetry::{Applies, Command, Setting, Value};

use super::control::{check, parse, within};
use super::quick_control::{self, Direction};
use super::{Effect, State, shown_run};
use crate::clock::Now;

/// An edit of the selected setting, or of all staged ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingEdit {
    /// Stages the next smaller or larger value.
    Step(Direction),
    /// Opens the prompt for a value.
    Type,
    Apply,
    Unstage,
    /// Undoes the last change.
    Undo,
}

/// Values that are staged and not applied yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tuning {
    /// The selected line.
    pub(crate) selected: usize,
    staged: Vec<(String, Value)>,
    /// Why the last value could not be staged.
    pub(crate) complaint: Option<String>,
}

impl Tuning {
    /// Returns the staged value of a setting.
    pub(crate) fn staged(&self, name: &str) -> Option<&Value> {
        self.staged.iter().find(|(staged, _)| staged == name).map(|(_, value)| value)
    }

    /// Returns the number of settings with a staged value.
    pub(crate) fn count(&self) -> usize {
        self.staged.len()
    }

    fn stage(&mut self, setting: &Setting, value: Value) {
        self.complaint = None;
        self.staged.retain(|(name, _)| *name != setting.name);
        if value != setting.value {
            self.staged.push((setting.name.clone(), value));
        }
    }
}

impl State {
    /// Returns all settings of the shown run.
    pub(crate) fn settings(&self) -> &[Setting] {
        self.run().map_or(&[], |run| run.settings())
    }

    fn selected_setting(&self) -> Option<Setting> {
        self.settings().get(self.tuning.selected).cloned()
    }

    /// Selects the setting with this name.
    pub(super) fn select_setting(&mut self, name: &str) {
        self.tuning.selected = self.settings().iter().position(|setting| setting.name == name).unwrap_or(0);
    }

    /// Selects the first changeable setting, unless one is already selected.
    pub(super) fn select_what_can_change(&mut self) {
        let changes = |setting: &Setting| setting.applies != Applies::Restart;
        if self.tuning.selected == 0 {
            self.tuning.selected = self.settings().iter().position(changes).unwrap_or(0);
        }
    }

    /// Stages the next value of the selected setting.
    pub(super) fn step_setting(&mut self, direction: Direction) {
        let Some(setting) = self.selected_setting() else { return };
        let from = self.tuning.staged(&setting.name).unwrap_or(&setting.value);
        let next = quick_control::step(from, direction).map(|value| within(&setting, value));
        let next = next.ok_or_else(|| format!("{} is to be typed", setting.name));
        match next.and_then(|value| check(&setting, &value).map(|()| value)) {
            Ok(value) => self.tuning.stage(&setting, value),
            Err(why) => self.tuning.complaint = Some(why),
        }
    }

    /// Stages a typed value.
    pub(super) fn stage_text(&mut self, name: &str, text: &str) {
        let Some(setting) = self.settings().iter().find(|setting| setting.name == name).cloned() else {
            return;
        };
        match parse(&setting, text) {
            Ok(value) => self.tuning.stage(&setting, value),
            Err(why) => self.tuning.complaint = Some(why),
        }
    }

    /// Drops the staged value of the selected setting.
    pub(super) fn unstage(&mut self) {
        let Some(setting) = self.selected_setting() else { return };
        self.tuning.stage(&setting, setting.value.clone());
    }

    /// Returns the initial text of the prompt; `None` if the setting cannot be typed.
    pub(super) fn typed_from(&mut self) -> Option<(String, String)> {
        let setting = self.selected_setting()?;
        let value = self.tuning.staged(&setting.name).unwrap_or(&setting.value).clone();
        if let Err(why) = check(&setting, &setting.value) {
            self.tuning.complaint = Some(why);
            return None;
        }
        Some((setting.name, value.to_string()))
    }

    /// Requests all staged changes.
    pub(super) fn apply_staged(&mut self, now: Now) -> Vec<Effect> {
        let staged = std::mem::take(&mut self.tuning.staged);
        self.tuning.complaint = staged.is_empty().then(|| "nothing is staged".to_owned());
        staged.into_iter().filter_map(|(name, value)| self.ask(&name, value, now)).collect()
    }

    fn ask(&mut self, name: &str, value: Value, now: Now) -> Option<Effect> {
        let run = shown_run(&self.model, &self.options);
        let asked = self.control.ask(run, name, value, now);
        self.sent(asked, now)
    }

    /// Undoes the last change.
    pub(super) fn undo(&mut self, now: Now) -> Option<Effect> {
        let run = shown_run(&self.model, &self.options);
        let asked = self.control.undo(run, now);
        self.sent(asked, now)
    }

    /// Returns the command, or a notice that explains why there is none.
    pub(super) fn sent(&mut self, asked: Result<Command, String>, now: Now) -> Option<Effect> {
        match asked {
            Ok(command) => Some(Effect::Send(command)),
            Err(why) => {
                self.tuning.complaint = Some(why.clone());
                self.notice(Level::Notice, why, now);
                None
            }
        }
    }
}
