//! The options with the settings that changed while the proxy ran.

use std::num::NonZeroUsize;

use model::alerts::Alerts;
use records::setting::{Setting, Value};

use crate::cli::ProxyOptions;
use crate::cli::options::load::BuiltInLoad;
use crate::value::ParsedValue;

/// In front of the names of the settings of proxy and load.
pub(crate) const PROXY: &str = "proxy.";
const LOAD: &str = "load.";

/// The options of a proxy, and changed settings without an option.
pub(crate) struct EffectiveOptions {
    options: ProxyOptions,
    others: Vec<String>,
}

impl ProxyOptions {
    /// The same options with the values of changed settings. Omits the file of `--record`, which now exists, unless it
    /// is archived.
    pub(crate) fn effective_options(&self, changed: impl Iterator<Item = Setting>) -> EffectiveOptions {
        let mut options = self.clone();
        options.run.record = options.run.record.filter(|_| options.run.append);
        let mut alerts: Vec<_> = std::mem::take(&mut options.run.alert).into_iter().map(Some).collect();
        let mut others = Vec::new();
        for setting in changed {
            let taken = match Alerts::number(&setting.name) {
                Some(number) => set_alert(&mut alerts, number, &setting.value),
                None => options.take(&setting),
            };
            if !taken.unwrap_or(false) {
                others.push(format!("{} = {}", setting.name, setting.shown(&setting.value)));
            }
        }
        options.run.alert = alerts.into_iter().flatten().collect();
        EffectiveOptions { options, others }
    }

    /// Whether no upstream is configured, as in the demo, whose upstream ends with it.
    pub(crate) fn is_without_upstream(&self) -> bool {
        self.upstream.is_empty() && self.route.is_empty() && self.pass.is_empty()
    }

    /// Sets the option of a setting to its value. Returns false if no option is that setting.
    pub(crate) fn take(&mut self, setting: &Setting) -> anyhow::Result<bool> {
        if let Some(word) = setting.name.strip_prefix(LOAD) {
            return self.set_load(word, &setting.value);
        }
        match (setting.name.strip_prefix(PROXY), &setting.value) {
            (None, _) => Ok(false),
            (Some("workers"), Value::Number(workers)) => {
                self.workers = NonZeroUsize::new(*workers as usize);
                Ok(true)
            }
            (Some(name), _) => Ok(self.limits.take(name, setting)?
                || self.tls.take(name, setting)?
                || self.http_limits.take(name, setting)?),
        }
    }

    /// Sets a word of the load's plan.
    fn set_load(&mut self, name: &str, value: &Value) -> anyhow::Result<bool> {
        let is_word = ["rate", "connections", "resume", "keep-alive"].contains(&name);
        let is_plan = |load: &&ParsedValue<BuiltInLoad>| matches!(***load, BuiltInLoad::Plan(_));
        let Some(plan) = self.load.as_ref().filter(|_| is_word).filter(is_plan) else { return Ok(false) };
        let is_other = |word: &&str| word.split('=').next().is_none_or(|other| other.trim() != name);
        let mut words: Vec<String> = plan.text().split(',').filter(is_other).map(str::to_owned).collect();
        words.push(format!("{name}={value}"));
        self.load = Some(words.join(",").parse()?);
        Ok(true)
    }
}

/// Sets or removes the alert of this number, from 1.
fn set_alert(
    alerts: &mut Vec<Option<ParsedValue<model::alerts::Alert>>>,
    number: usize,
    value: &Value,
) -> anyhow::Result<bool> {
    let alert = if Alerts::is_off(value) { None } else { Some(value.to_string().parse()?) };
    if alerts.len() < number {
        alerts.resize_with(number, || None);
    }
    alerts[number - 1] = alert;
    Ok(true)
}

impl EffectiveOptions {
    /// In the form of a configuration file; settings without an option are comments.
    pub(crate) fn to_toml(&self) -> anyhow::Result<String> {
        let comment =
            |other: &String| format!("# {other} (a running proxy can have it, a configuration cannot)\n");
        let others: String = self.others.iter().map(comment).collect();
        Ok(others + &self.options.to_toml()?)
    }
}

#[cfg(test)]
mod tests {
    use records::setting::Applies;

    use super::*;

    fn setting(name: &str, value: Value, unit: &str) -> Setting {
        Setting { name: name.into(), value, unit: unit.into(), applies: Applies::Live, range: None }
    }

    fn number(name: &str, value: f64, unit: &str) -> Setting {
        setting(name, Value::Number(value), unit)
    }

    fn text(name: &str, value: &str) -> Setting {
        setting(name, Value::Text(value.to_owned()), "")
    }

    fn options(text: &str) -> ProxyOptions {
        ProxyOptions::parse(text).unwrap().with_defaults().unwrap()
    }

    fn printed(options: &ProxyOptions, changed: Vec<Setting>) -> String {
        options.effective_options(changed.into_iter()).to_toml().unwrap()
    }

    #[test]
    fn without_a_change_it_is_the_printed_configuration() {
        let options = options("upstream = \"unix:/a\"\nidle-timeout = \"1m\"\nworkers = 3");
        assert_eq!(printed(&options, Vec::new()), options.to_toml().unwrap());
    }

    #[test]
    fn changed_settings_take_the_place_of_options() {
        let given = options(
            "upstream = \"unix:/a\"\nhandshakes-max = 7\nload = \"rate=10..20/5s,resume=10%,warmup=1s\"\n\
             alert = [\"response.p99 > 5ms\", \"failed.ratio > 1% over 1m\"]",
        );
        let printed = printed(
            &given,
            vec![
                number("proxy.workers", 3.0, ""),
                number("proxy.idle-timeout", 0.5, "s"),
                number("proxy.pending-max", 2_048.0, "MiB"),
                number("proxy.handshakes-max", 0.0, ""),
                number("proxy.tickets", 2.0, ""),
                text("proxy.groups", "x25519,secp256r1"),
                number("load.rate", 500.5, "1/s"),
                number("load.resume", 80.0, "%"),
                text("load.keep-alive", "off"),
                text("alert.1", "off"),
                text("alert.4", "service.p50 > 1ms"),
            ],
        );
        for line in [
            "workers = 3",
            "idle-timeout = \"500ms\"",
            "pending-max = \"2GiB\"",
            "# handshakes-max = 1000",
            "tickets = 2",
            "groups = \"x25519,secp256r1\"",
            "load = \"warmup=1s,rate=500.5,resume=80,keep-alive=off\"",
        ] {
            assert!(printed.lines().any(|printed| printed == line), "{line} in {printed}");
        }
        let read = options(&printed);
        let alerts: Vec<_> = read.run.alert.iter().map(ParsedValue::text).collect();
        assert_eq!(alerts, ["failed.ratio > 1% over 1m", "service.p50 > 1ms"]);
        assert_eq!(read.to_toml().unwrap(), printed);
    }

    #[test]
    fn settings_that_no_option_has_are_comments() {
        let changed = vec![
            number("proxy.drain-quiet", 2.0, "s"),
            setting("load.running", Value::Flag(false), ""),
            number("load.body", 10.0, "B"),
        ];
        let given = options("upstream = \"unix:/a\"\nload = \"connections=4\"");
        let printed = printed(&given, changed);
        for part in ["# proxy.drain-quiet = 2s (a", "# load.running = off (a", "# load.body = 10B (a"] {
            assert!(printed.contains(part), "{part} in {printed}");
        }
        assert!(printed.ends_with(&given.to_toml().unwrap()));
    }

    #[test]
    fn the_file_of_a_recording_is_left_out_unless_it_is_archived() {
        let record = |more: &str| {
            let text = format!("upstream = \"unix:/a\"\nrecord = \"a.journal\"\n{more}");
            printed(&options(&text), Vec::new()).contains("\nrecord = \"a.journal\"")
        };
        assert!(!record(""));
        assert!(record("append = true"));
    }
}
