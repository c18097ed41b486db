//! What a reload changes: settings and upstreams at once, and options that only a restart changes.

use std::collections::BTreeMap;

use records::setting::{Applies, Setting, SettingInfo, Value};
use serde_json::json;

use crate::cli::ProxyOptions;
use crate::cli::configuration::effective_options::PROXY;
use crate::cli::configuration::setting_infos;
use crate::cli::options::route::{PASS, ROUTE, UPSTREAM};
use crate::control::ControlAnswer;
use crate::control::protocol::{ReloadData, ReloadedSetting};
use crate::session::controller::RunController;
use crate::session::controller::alerts::alert_changes;
use crate::session::controller::upstreams::NewUpstreams;

pub(super) const ALERT: &str = "alert";

#[derive(Debug, Default)]
pub(super) struct ReloadPlan {
    /// The names of settings, with their new values.
    pub(super) changes: Vec<(String, Value)>,
    /// Other upstreams of the same destinations.
    pub(super) upstreams: Option<NewUpstreams>,
    /// The words that only a restart changes, each with its change in words.
    pub(super) restart: BTreeMap<String, String>,
}

impl ReloadPlan {
    /// All settings that change, with their new values.
    pub(super) fn all_changes(&self) -> impl Iterator<Item = &(String, Value)> {
        self.changes.iter().chain(self.upstreams.iter().flat_map(|new| &new.settings))
    }

    pub(super) fn has_change(&self, setting: &str) -> bool {
        self.changes.iter().any(|(name, _)| name == setting)
    }

    pub(super) fn needs_restart(&self, word: &str) -> bool {
        self.restart.contains_key(word)
    }
}

impl RunController {
    /// Checks new options as a whole, and finds the changes.
    pub(super) fn plan_reload(&self, options: ProxyOptions) -> Result<(ProxyOptions, ReloadPlan), String> {
        let configuration = self.setup.configuration.as_deref().ok_or("there is no proxy")?;
        let options = configuration.complete(options).map_err(|error| format!("{error:#}"))?;
        let differing =
            configuration.options.changed_options(&options).map_err(|error| format!("{error:#}"))?;
        let settings = self.run_record().settings;
        let upstreams =
            NewUpstreams::between(&configuration.options, &options).map_err(|error| format!("{error:#}"))?;
        let mut plan = ReloadPlan { upstreams, ..ReloadPlan::default() };
        for (word, in_words) in differing {
            let changes = match word.as_str() {
                ALERT => alert_changes(&options, &settings),
                UPSTREAM | ROUTE | PASS => plan.upstreams.is_some().then(Vec::new),
                word if waits_for_file(word, &configuration.options, &options) => None,
                word => live_change(word, &options, &settings)?.map(|change| vec![change]),
            };
            match changes {
                Some(changes) => plan.changes.extend(changes),
                None => drop(plan.restart.insert(word, in_words)),
            }
        }
        plan.changes.retain(|(name, value)| {
            settings.iter().any(|setting| setting.name == *name && setting.value != *value)
        });
        match plan.changes.iter().find(|(name, _)| self.is_compared(name)) {
            Some((name, _)) => {
                Err(format!("{name} is locked: an experiment compares it; tlsdash ctl ab end ends that"))
            }
            None => Ok((options, plan)),
        }
    }

    pub(super) fn describe(&self, plan: &ReloadPlan, verb: &str) -> ControlAnswer {
        let settings = self.run_record().settings;
        let change = |(name, value): &(String, Value)| {
            let setting = settings.iter().find(|setting| setting.name == *name)?;
            let info = SettingInfo::find(setting_infos::all(), name);
            let [before, after] = [&setting.value, value].map(|value| setting.in_words(value, info));
            Some(ReloadedSetting { name: name.clone(), before, after })
        };
        let changes: Vec<ReloadedSetting> = plan.all_changes().filter_map(change).collect();
        let done = match &changes[..] {
            [] => format!("nothing {verb}"),
            changes => {
                format!("{verb} {}", changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))
            }
        };
        let pending: Vec<&str> = plan.restart.values().map(String::as_str).collect();
        let restart = match &pending[..] {
            [] => String::new(),
            pending => format!("; only a restart changes {}", pending.join(", ")),
        };
        ControlAnswer {
            text: done + &restart,
            data: Some(json!(ReloadData { changes, restart: plan.restart.keys().cloned().collect() })),
        }
    }
}

/// Whether an option acts only with a file that is read at the start, and the run or the next one lacks it.
fn waits_for_file(word: &str, run: &ProxyOptions, next: &ProxyOptions) -> bool {
    let (run, next) = (&run.tls_files, &next.tls_files);
    match word {
        "client-auth" => run.client_ca.is_none() || next.client_ca.is_none(),
        "client-crl-expired" => run.client_crl.is_empty() || next.client_crl.is_empty(),
        // Tickets have the keys of the file until the restart.
        "resumption" => run.ticket_keys.is_some(),
        _ => false,
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
