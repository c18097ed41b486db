//! Settings that describe themselves, and the commands that change them.

mod info;

use crate::metrics::Field;
use crate::wire::{DecodeError, FieldSource, WireField, json};
use journal::EntryBuf;
use std::fmt;

use serde::{Deserialize, Serialize};

pub use info::{SettingInfo, SettingKind};

/// The setting of the share of new connections of a load that resume.
pub const RESUME: &str = "load.resume";
/// The setting that selects which certificates the load trusts.
pub const TRUST: &str = "load.trust";
/// Its value if the load trusts every certificate.
pub const INSECURE: &str = "insecure";
const CERTIFICATE: &str = "proxy.certificate";
/// Settings that are kept of a run; more are not taken from a journal.
pub const SETTINGS_MAX: usize = 256;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// On or off.
    Flag(bool),
    /// A number in the setting's unit.
    Number(f64),
    /// Anything else.
    Text(String),
}

/// The name of the setting that describes a server certificate: `proxy.certificate`, then `proxy.certificate.2`, ….
/// `index` counts from 0.
pub fn certificate_name(index: usize) -> String {
    if index == 0 { CERTIFICATE.to_owned() } else { format!("{CERTIFICATE}.{}", index + 1) }
}

pub fn is_certificate(name: &str) -> bool {
    name.strip_prefix(CERTIFICATE).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(true) => f.pad("on"),
            Self::Flag(false) => f.pad("off"),
            Self::Number(number) => f.pad(&number.to_string()),
            Self::Text(text) => f.pad(text),
        }
    }
}

/// When a changed setting takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Applies {
    /// At once, on everything.
    Live,
    /// On connections that begin after the change.
    NewConnections,
    /// Only after a restart of the program.
    Restart,
}

impl fmt::Display for Applies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Live => "live",
            Self::NewConnections => "new connections",
            Self::Restart => "restart",
        })
    }
}

/// One setting, as the proxy or the load publishes it: its name, value and range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// Dotted name, such as `load.rate`.
    pub name: String,
    pub value: Value,
    /// Unit of a number, such as `1/s`; empty if it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    pub applies: Applies,
    /// Smallest and largest number allowed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(f64, f64)>,
}

/// Why a setting keeps its value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("there is no setting {0}")]
    Unknown(String),
    /// The value is not of the setting's kind, or out of its range.
    #[error("{name} cannot be {value}: {reason}")]
    Refused { name: String, value: String, reason: String },
    /// The setting only changes with a restart of the program.
    #[error("{0} changes only at a restart")]
    Restart(String),
}

/// Finds a setting by its name, or by what is behind the point if no other has that: `workers` is `proxy.workers`.
pub fn find_setting<'a>(
    mut settings: impl Iterator<Item = &'a Setting> + Clone,
    name: &str,
) -> Option<&'a Setting> {
    let is_short_for =
        |setting: &&Setting| setting.name.split_once('.').is_some_and(|(_, short)| short == name);
    let mut short = settings.clone().filter(is_short_for);
    let found = settings.find(|setting| setting.name == name);
    found.or_else(|| short.next().filter(|_| short.next().is_none()))
}

/// Replaces the setting of the same name by a changed one.
pub fn put_setting(settings: &mut Vec<Setting>, after: Setting) {
    match settings.iter().position(|known| known.name == after.name) {
        Some(at) => settings[at] = after,
        None if settings.len() < SETTINGS_MAX => settings.push(after),
        None => {}
    }
}

impl WireField for Vec<Setting> {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        if !self.is_empty() {
            out.push_display(&field.name, serde_json::json!(self));
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        let settings: Self =
            from.text(&field.name).map_or_else(|| Ok(Self::new()), |text| json(field, text))?;
        Ok(settings.into_iter().take(SETTINGS_MAX).map(clean_setting).collect())
    }
}

impl WireField for Option<Setting> {
    fn put(&self, field: &'static Field, out: &mut EntryBuf) {
        if let Some(setting) = self {
            out.push_display(&field.name, serde_json::json!(setting));
        }
    }

    fn get(field: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        Ok(from.text(&field.name).map(|text| json(field, text)).transpose()?.map(clean_setting))
    }
}

fn clean_setting(mut setting: Setting) -> Setting {
    setting.name = crate::text::clean::text(&setting.name);
    setting.unit = crate::text::clean::text(&setting.unit);
    if let Value::Text(text) = &setting.value {
        setting.value = Value::Text(crate::text::clean::text(text));
    }
    setting
}
