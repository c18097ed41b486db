//! The controller's handling of commands, of the dashboard and of the control socket. Restores settings when their time
//! has passed.

use std::time::Instant;

use journal::Timestamps;
use model::alerts::Alerts;
use model::figures::nearest;
use proxy_core::UpstreamChange;
use records::command::Command;
use records::kinds::{Level, NoticeRecord};
use records::setting::{Setting, SettingInfo, Value, find_setting};
use records::text::quantity;
use serde_json::json;

use super::{PendingRevert, RunController};
use crate::cli::configuration::setting_infos;
use crate::cli::configuration::source::SettingOrigin;
use crate::control::protocol::SettingData;
use crate::control::{ControlAction, ControlAnswer, ControlCommand, ServiceChange};

impl RunController {
    /// Executes waiting commands, and restores settings that are due.
    pub(super) fn serve_control(&mut self) {
        while let Ok(ControlCommand { action, by, reply }) = self.setup.control.try_recv() {
            let result = match action {
                ControlAction::Reload => {
                    self.begin_reload(by, reply);
                    continue;
                }
                ControlAction::Upgrade => {
                    self.upgrade.ask(by, reply);
                    continue;
                }
                ControlAction::Settings => Ok(self.describe_settings()),
                ControlAction::CompareConfiguration(text) => self.compare_configuration(&text),
                ControlAction::Change(change) => self.change(change, &by).map(ControlAnswer::from),
            };
            // The client may have given up.
            let _ = reply.try_send(result);
        }
        let now = Instant::now();
        let reverts = std::mem::take(&mut self.reverts);
        // A setting that is compared waits for the end of the experiment.
        let (due, waiting): (Vec<_>, Vec<_>) =
            reverts.into_iter().partition(|revert| revert.at <= now && !self.is_compared(&revert.name));
        self.reverts = waiting;
        for PendingRevert { name, to, by, .. } in due {
            let by = format!("the timer of {by}");
            match self.change_setting(&name, &to, &by) {
                Ok(true) => self.experiments.disturb(&format!("{name} was put back")),
                Ok(false) => {}
                Err(error) => self.console.say(Level::Warning, &format!("cannot put back {name}: {error}")),
            }
        }
    }

    /// Executes a command of the dashboard.
    pub(super) fn execute(&mut self, command: Command) {
        match command {
            Command::Mark(text) => self.publisher.mark(&text, Timestamps::now()),
            Command::Set { name, value } => match self.change_for(&name, &value, "") {
                Ok(true) => self.cancel_revert(&name),
                Ok(false) => {}
                Err(error) => self.console.say(Level::Warning, &error),
            },
            Command::Experiment(words) => match words.parse() {
                Ok(plan) => self.experiments.want(plan),
                Err(error) => self.console.say(Level::Warning, &format!("no experiment: {error}")),
            },
            Command::EndExperiment => self.end_experiment(),
            Command::Calibrate => match self.calibration.begin() {
                Ok(text) => self.console.say(Level::Notice, &text),
                Err(error) => self.console.say(Level::Warning, &error),
            },
            Command::Upstream { name, drained } => {
                let change = if drained { UpstreamChange::Drain } else { UpstreamChange::Return };
                let changed = self.change(ServiceChange::Upstream(name, change), "the dashboard");
                self.answer(changed.map_err(anyhow::Error::msg));
            }
            Command::Record(path) => {
                let baselines = self.publisher.baselines();
                let begun = self.publisher.sink().begin_recording(&path, baselines);
                self.answer(begun);
            }
            Command::EndRecording => {
                let ended = self.publisher.sink().end_recording();
                self.answer(ended);
            }
            Command::WriteConfiguration => {
                let written = self.write_configuration();
                self.answer(written);
            }
            Command::Notice(notice) => self.report(notice),
        }
    }

    /// Shows the result of a command.
    fn answer(&self, result: anyhow::Result<String>) {
        match result {
            Ok(text) => self.console.say(Level::Notice, &text),
            Err(error) => self.console.say(Level::Warning, &format!("{error:#}")),
        }
    }

    /// Whether an experiment under way compares values of this setting.
    pub(super) fn is_compared(&self, name: &str) -> bool {
        self.experiments.is_under_way() && self.experiments.setting() == name
    }

    /// Cancels restoring a setting: it has been changed since.
    pub(super) fn cancel_revert(&mut self, name: &str) {
        self.reverts.retain(|revert| revert.name != name);
    }

    pub(super) fn change(&mut self, change: ServiceChange, by: &str) -> Result<String, String> {
        if self.upgrade.is_final() {
            return Err("an upgrade is under way: ask the new process".to_owned());
        }
        match change {
            ServiceChange::Set { name, value, revert_after } => {
                let at = revert_after.map(|after| Instant::now() + after);
                self.set_by(&name, &value, at, by)
            }
            ServiceChange::Mark(text) => {
                let text = records::text::clean::text(&text);
                self.publisher.mark(&text, Timestamps::now());
                self.note(by, format!("mark {text}").trim_end());
                Ok(format!("marked {text}").trim_end().to_owned())
            }
            ServiceChange::ForgetSessions => {
                self.forget_sessions().map_err(|error| error.to_string())?;
                self.note(by, "forget sessions");
                Ok("sessions and ticket keys are forgotten".to_owned())
            }
            ServiceChange::RotateTickets => {
                let proxy = self.workload.proxy.as_ref();
                let proxy = proxy.ok_or("only a proxy has ticket keys")?;
                proxy.rotate_tickets().map_err(|error| error.to_string())?;
                self.note(by, "rotate tickets");
                Ok("new tickets have a new key; those of the former keys are still accepted".to_owned())
            }
            ServiceChange::Upstream(name, change) => {
                let proxy = self.workload.proxy.as_ref().ok_or("only a proxy has upstreams")?;
                let is_changed = proxy.change_upstream(&name, change).map_err(|error| error.to_string())?;
                let (verb, state) = match change {
                    UpstreamChange::Drain => ("drain", "drained: it gets no new connections"),
                    UpstreamChange::Return => ("return", "in service"),
                };
                if is_changed {
                    self.note(by, &format!("{verb} the upstream {name}"));
                }
                Ok(format!("the upstream {name} is {state}"))
            }
            ServiceChange::Experiment(_) if self.is_ending => {
                Err("this process is ending: it serves open connections to their end".to_owned())
            }
            ServiceChange::Experiment(words) => {
                let settings = self.workload.settings();
                let text = crate::session::experiments::check_plan(&words, &settings, self.setup.interval)?;
                if self.experiments.is_wanted_or_under_way() {
                    return Err("an experiment is under way; tlsdash ctl ab end ends it".to_owned());
                }
                self.note(by, &format!("experiment {words}"));
                self.experiments
                    .want(words.parse().map_err(|error: experiment::ExperimentPlanError| error.to_string())?);
                Ok(format!(
                    "the experiment begins: {text}; tlsdash ctl status shows its progress, the log its verdict"
                ))
            }
            ServiceChange::EndExperiment => {
                if !self.experiments.is_wanted_or_under_way() {
                    return Err("no experiment is under way".to_owned());
                }
                self.note(by, "end the experiment");
                self.end_experiment();
                Ok("the experiment has ended".to_owned())
            }
            ServiceChange::Calibrate => {
                let begun = self.calibration.begin()?;
                self.note(by, "calibrate");
                Ok(begun)
            }
        }
    }

    /// Every setting, with the origin of its value.
    fn describe_settings(&self) -> ControlAnswer {
        let settings = self.run_record().settings;
        let configuration = self.setup.configuration.as_deref();
        let describe = |setting: &Setting| {
            let is_live = self.at_start.get(&setting.name).is_some_and(|before| *before != setting.value);
            let origin = configuration.and_then(|configuration| configuration.origin(&setting.name));
            let origin = if is_live { Some(SettingOrigin::Live) } else { origin };
            SettingData { setting: setting.clone(), origin }
        };
        let data: Vec<_> = settings.iter().map(describe).collect();
        ControlAnswer { text: format!("{} settings", data.len()), data: Some(json!(data)) }
    }

    /// Sets a setting to the value in a text.
    fn set_by(&mut self, name: &str, text: &str, at: Option<Instant>, by: &str) -> Result<String, String> {
        let settings = self.run_record().settings;
        let setting = find_setting(settings.iter(), name);
        let setting = setting.ok_or_else(|| no_setting(name, &settings))?;
        let name = &*setting.name;
        let info = SettingInfo::find(setting_infos::all(), name);
        let value = setting.parse(info, text)?;
        if at.is_some() && Alerts::is_setting(name) {
            return Err(format!("{name} is an alert: it cannot be put back by itself"));
        }
        let is_changed = self.change_for(name, &value, by)?;
        self.schedule_revert(setting, at, by);
        let shown = |value| setting.in_words(value, info);
        let before = &setting.value;
        let left = at.map(|at| at.saturating_duration_since(Instant::now()).as_secs_f64().ceil());
        let back = left.map_or_else(String::new, |left| format!(", for {}", quantity::shown(left, "s")));
        Ok(if is_changed {
            format!("{name} changed from {} to {}{back}", shown(before), shown(&value))
        } else {
            format!("{name} is {} already{back}", shown(before))
        })
    }

    /// Changes a setting for a user, unless an experiment compares it. Returns false if it already had this value.
    pub(super) fn change_for(&mut self, name: &str, value: &Value, by: &str) -> Result<bool, String> {
        if self.is_compared(name) {
            return Err(format!("{name} is locked: an experiment compares it; tlsdash ctl ab end ends that"));
        }
        if Alerts::is_setting(name) {
            return self.change_alert(name, value, by).map_err(|error| error.to_string());
        }
        let is_changed = self.change_setting(name, value, by).map_err(|error| error.to_string())?;
        if is_changed {
            self.experiments.disturb(&format!("{name} was changed"));
        }
        Ok(is_changed)
    }

    /// Remembers to put a setting back at `at`. A later change without a time stays.
    fn schedule_revert(&mut self, before: &Setting, at: Option<Instant>, by: &str) {
        let earlier = self.reverts.iter().position(|revert| revert.name == before.name);
        let earlier = earlier.map(|index| self.reverts.swap_remove(index));
        let Some(at) = at else { return };
        // The setting returns to its value before the first temporary one.
        let to = earlier.map_or_else(|| before.value.clone(), |earlier| earlier.to);
        self.reverts.push(PendingRevert { at, name: before.name.clone(), to, by: by.to_owned() });
    }

    /// Records the user and the request.
    fn note(&mut self, by: &str, what: &str) {
        self.report(NoticeRecord::new(Level::Notice, "control", &format!("{what}: asked for by {by}")));
    }
}

/// Why there is no setting of this name, and what to do.
fn no_setting(name: &str, settings: &[Setting]) -> String {
    let of_load = |info: &SettingInfo| {
        info.name.strip_prefix("load.").is_some_and(|short| [short, &*info.name].contains(&name))
    };
    let is_of_load = setting_infos::all().iter().any(of_load);
    let names =
        settings.iter().flat_map(|setting| [Some(&*setting.name), setting.name.split('.').next_back()]);
    match nearest(name, names.flatten()) {
        _ if is_of_load => {
            format!("there is no setting {name}: this run has no load; start it with --load PLAN")
        }
        Some(meant) => format!("there is no setting {name}; did you mean {meant}?"),
        None => format!("there is no setting {name}; `ctl settings` lists them"),
    }
}
