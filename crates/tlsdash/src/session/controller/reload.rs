//! The controller's handling of a reload: the configuration file, certificates and keys are read again, and changes
//! are applied.
//!
//! The thread `files` reads the files, because a disk may hang. Replaced certificates and keys are applied separately,
//! as without a reload. Of the configuration, all changes that can act while the proxy runs are applied, or none if
//! one is refused.

use std::sync::mpsc::SyncSender;

use proxy_core::{FileChanges, Proxy};
use serde_json::json;
use telemetry::{Alerts, Applies, Level, NoticeRecord, Setting, SettingInfo, Value};

use super::RunController;
use super::certificates::FileReloadOutcome;
use super::files::FileWatch;
use crate::cli::ProxyOptions;
use crate::cli::source::{ConfigurationSource, SettingOrigin};
use crate::control::ControlAnswer;
use crate::control::protocol::{ReloadData, ReloadedSetting, SettingData};
use crate::service;
use crate::session::setting_infos;
use crate::upgrade::program::UpgradeProgram;

/// The topic of notices about reloads.
const RELOAD: &str = "reload";
/// The end of the message about a reload.
const READ_AGAIN: &str = "certificates and keys were read again";
/// In front of the names that options have as settings.
const PROXY: &str = "proxy.";
/// The word of the alerts.
const ALERT: &str = "alert";

/// The options of the proxy of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunConfiguration {
    /// The options in force, without live changes.
    pub(crate) options: ProxyOptions,
    /// Where they are read again; `None` in the demo.
    pub(crate) source: Option<ConfigurationSource>,
    /// The program that an upgrade starts; `None` in the demo, and with a dashboard, which needs the terminal.
    pub(crate) program: Option<UpgradeProgram>,
}

/// The files that the thread `files` has read.
#[derive(Debug, Default)]
pub(super) struct FilesRead {
    pub(super) changes: FileChanges,
    /// The options, if a reload asked for them and there is a file.
    pub(super) options: Option<anyhow::Result<ProxyOptions>>,
}

/// A client that waits for the end of a reload or an upgrade.
#[derive(Debug)]
pub(super) struct ReloadWaiter {
    pub(super) by: String,
    pub(super) reply: SyncSender<Result<ControlAnswer, String>>,
}

/// The changes of a new configuration.
#[derive(Debug, Default)]
struct ReloadPlan {
    /// The names of settings, with their new values.
    changes: Vec<(String, Value)>,
    /// The words that only a restart changes.
    restart: Vec<String>,
}

impl ReloadPlan {
    fn has_change(&self, setting: &str) -> bool {
        self.changes.iter().any(|(name, _)| name == setting)
    }

    fn needs_restart(&self, word: &str) -> bool {
        self.restart.iter().any(|other| other == word)
    }
}

impl RunConfiguration {
    /// The options of `source`, as they would be in force after a restart.
    fn complete(&self, options: ProxyOptions) -> anyhow::Result<ProxyOptions> {
        let mut options = options.with_defaults()?;
        if self.options.listen.is_empty() {
            // The sockets come from the service manager.
            options.listen.clear();
        }
        options.check()?;
        Ok(options)
    }

    /// The origin of a setting's value, if it was not changed live.
    fn origin(&self, name: &str) -> Option<SettingOrigin> {
        let word = name.strip_prefix(PROXY)?;
        let word = if word.starts_with("certificate") { "cert" } else { word };
        Some(self.source.as_ref()?.origin(word, &self.options))
    }
}

/// Starts the watch over certificates and keys.
pub(super) fn watch_files(
    proxy: &Proxy,
    source: Option<ConfigurationSource>,
) -> std::io::Result<FileWatch<FilesRead>> {
    let files = proxy.files();
    FileWatch::start(move |at_once| FilesRead {
        options: source.as_ref().filter(|source| at_once && source.has_file()).map(ConfigurationSource::read),
        changes: files.check(at_once),
    })
}

impl RunController {
    /// Begins a reload for a client of the control socket, who is answered at its end.
    pub(super) fn begin_reload(&mut self, by: String, reply: SyncSender<Result<ControlAnswer, String>>) {
        if self.files.is_none() {
            let _ = reply.try_send(Err("only a proxy has files to read again".to_owned()));
            return;
        }
        self.report(NoticeRecord::new(Level::Notice, "control", &format!("reload: asked for by {by}")));
        self.reload_waiting.push(ReloadWaiter { by, reply });
        self.signals.reload.ask();
    }

    /// Applies the result of reading, and answers waiting clients.
    pub(super) fn finish_reload(
        &mut self,
        options: Option<anyhow::Result<ProxyOptions>>,
        files: FileReloadOutcome,
    ) {
        let waiting = std::mem::take(&mut self.reload_waiting);
        let by = waiting.first().map_or("SIGHUP", |waiter| &waiter.by);
        let outcome = match (files, options) {
            (FileReloadOutcome::Refused, None) => Err("a certificate or key cannot be used".to_owned()),
            (FileReloadOutcome::Refused, Some(_)) => {
                Err("a certificate or key cannot be used; the configuration stays as it was".to_owned())
            }
            (FileReloadOutcome::Same | FileReloadOutcome::Changed, None) => {
                Ok(ControlAnswer::from(READ_AGAIN.to_owned()))
            }
            (FileReloadOutcome::Same | FileReloadOutcome::Changed, Some(options)) => options
                .map_err(|error| format!("{error:#}"))
                .and_then(|options| self.apply_options(options, by))
                .map(|ControlAnswer { text, data }| ControlAnswer {
                    text: format!("{text}; {READ_AGAIN}"),
                    data,
                })
                .map_err(|reason| format!("{reason}; the configuration stays as it was")),
        };
        let (level, text) = match &outcome {
            Ok(answer) => (Level::Notice, &answer.text),
            Err(reason) => (Level::Warning, reason),
        };
        let same = if outcome.is_ok() && files == FileReloadOutcome::Same { " and are the same" } else { "" };
        self.report(NoticeRecord::new(level, RELOAD, &format!("reload: {text}{same}")));
        service::ready();
        for ReloadWaiter { reply, .. } in waiting {
            // The client may have given up.
            let _ = reply.try_send(outcome.clone());
        }
    }

    /// Lists the changes of a reload with this text as the configuration file.
    pub(super) fn compare_configuration(&self, text: &str) -> Result<ControlAnswer, String> {
        let configuration = self.setup.configuration.as_deref();
        let source = configuration.and_then(|configuration| configuration.source.as_ref());
        let source = source.ok_or("only a proxy with options of its own reads a configuration file")?;
        let options = source.over_text(text).map_err(|error| format!("{error:#}"))?;
        let (_, plan) = self.plan_reload(options)?;
        Ok(self.describe(&plan, "a reload changes"))
    }

    /// Applies all changes, or none.
    fn apply_options(&mut self, options: ProxyOptions, by: &str) -> Result<ControlAnswer, String> {
        let (options, plan) = self.plan_reload(options)?;
        let answer = self.describe(&plan, "changed");
        self.apply_changes(&plan.changes, &format!("a reload by {by}"))?;
        let settings = self.run_record().settings;
        for (name, value) in &plan.changes {
            self.cancel_revert(name);
            self.at_start.insert(name.clone(), value.clone());
        }
        if let Some(configuration) = &mut self.setup.configuration {
            let effective_options = &mut configuration.options;
            for setting in settings.iter().filter(|setting| plan.has_change(&setting.name)) {
                // A value of the proxy is always valid for its option.
                let _ = effective_options.take(setting);
            }
            if !plan.needs_restart(ALERT) {
                effective_options.run.alert = options.run.alert;
            }
            // An option that needs a restart still has its former origin.
            let is_pending = |word: &String| plan.restart.contains(word);
            effective_options.words.retain(is_pending);
            effective_options.words.extend(options.words.into_iter().filter(|word| !is_pending(word)));
        }
        Ok(answer)
    }

    /// Checks new options as a whole, and finds the changes.
    fn plan_reload(&self, options: ProxyOptions) -> Result<(ProxyOptions, ReloadPlan), String> {
        let configuration = self.setup.configuration.as_deref().ok_or("there is no proxy")?;
        let options = configuration.complete(options).map_err(|error| format!("{error:#}"))?;
        let words = configuration.options.changed_options(&options).map_err(|error| format!("{error:#}"))?;
        let settings = self.run_record().settings;
        let mut plan = ReloadPlan::default();
        for word in words {
            let changes = match word.as_str() {
                ALERT => alert_changes(&options, &settings),
                word => live_change(word, &options, &settings)?.map(|change| vec![change]),
            };
            match changes {
                Some(changes) => plan.changes.extend(changes),
                None => plan.restart.push(word),
            }
        }
        plan.changes.retain(|(name, value)| {
            settings.iter().any(|setting| setting.name == *name && setting.value != *value)
        });
        match plan.changes.iter().find(|(name, _)| self.is_compared(name)) {
            Some((name, _)) => Err(format!("{name} is locked: an experiment compares it; end that first")),
            None => Ok((options, plan)),
        }
    }

    /// Gives settings new values. If one is refused, all have their former values again.
    fn apply_changes(&mut self, changes: &[(String, Value)], by: &str) -> Result<(), String> {
        let before = self.run_record().settings;
        let mut waiting: Vec<_> = changes.iter().collect();
        let mut refusal = None;
        while !waiting.is_empty() {
            let count = waiting.len();
            // A refused change may be accepted after others, such as the oldest and the newest version of TLS.
            waiting.retain(|(name, value)| match self.change_for(name, value, by) {
                Ok(_) => false,
                Err(reason) => {
                    refusal = Some(reason);
                    true
                }
            });
            if waiting.len() == count {
                break;
            }
        }
        let (false, Some(reason)) = (waiting.is_empty(), refusal) else { return Ok(()) };
        for (name, _) in changes.iter().rev() {
            if let Some(setting) = before.iter().find(|setting| setting.name == *name) {
                // It had this value, so it may have it again.
                let _ = self.change_for(name, &setting.value, by);
            }
        }
        Err(reason)
    }

    /// Every setting, with the origin of its value.
    pub(super) fn describe_settings(&self) -> ControlAnswer {
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

    fn describe(&self, plan: &ReloadPlan, verb: &str) -> ControlAnswer {
        let settings = self.run_record().settings;
        let change = |(name, value): &(String, Value)| {
            let setting = settings.iter().find(|setting| setting.name == *name)?;
            let (before, after) = (setting.shown(&setting.value), setting.shown(value));
            Some(ReloadedSetting { name: name.clone(), before, after })
        };
        let changes: Vec<ReloadedSetting> = plan.changes.iter().filter_map(change).collect();
        let done = match &changes[..] {
            [] => format!("nothing {verb}"),
            changes => {
                format!("{verb} {}", changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
        };
        let restart = match &plan.restart[..] {
            [] => String::new(),
            words => format!("; only a restart changes {}", words.join(", ")),
        };
        ControlAnswer {
            text: done + &restart,
            data: Some(json!(ReloadData { changes, restart: plan.restart.clone() })),
        }
    }
}

/// The setting that a word is, with its value in `options`; `None` if it cannot change while the proxy runs.
fn live_change(
    word: &str,
    options: &ProxyOptions,
    settings: &[Setting],
) -> Result<Option<(String, Value)>, String> {
    let name = format!("{PROXY}{word}");
    let is_live = |setting: &&Setting| setting.name == name && setting.applies != Applies::Restart;
    let Some(setting) = settings.iter().find(is_live) else { return Ok(None) };
    let Some(value) = options.live_value(word) else { return Ok(None) };
    let value = match (value, setting.range) {
        // No own limit: the number that descriptors allow.
        (Value::Number(0.0), Some((low, high))) if low > 0.0 => Value::Number(high),
        (value, _) => value,
    };
    setting.check(SettingInfo::find(setting_infos::all(), &name), &value)?;
    Ok(Some((name, value)))
}

/// The settings of alerts; `None` if there are too many.
fn alert_changes(options: &ProxyOptions, settings: &[Setting]) -> Option<Vec<(String, Value)>> {
    let names: Vec<_> =
        settings.iter().map(|setting| &setting.name).filter(|name| Alerts::is_setting(name)).collect();
    let alerts = &options.run.alert;
    let off = || "off".to_owned();
    let value = |number: usize| alerts.get(number).map_or_else(off, |alert| alert.text().to_owned());
    let changes =
        names.iter().enumerate().map(|(number, name)| ((*name).clone(), Value::Text(value(number))));
    (alerts.len() <= names.len()).then(|| changes.collect())
}
