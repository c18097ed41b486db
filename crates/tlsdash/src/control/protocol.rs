//! Requests and responses: a JSON object in a line each.

use std::fmt;
use std::time::Duration;

use model::runs::RECENT_MAX;
use records::setting::Setting;
use records::text::quantity;
use serde::{Deserialize, Serialize};

use crate::cli::configuration::source::SettingOrigin;

/// The version of the protocol; later versions only add to it.
pub(crate) const VERSION: u32 = 1;
pub(crate) const LINE_BYTES_MAX: usize = 64 << 10;
/// The longest time after which a setting is restored.
const REVERT_MAX: Duration = Duration::from_secs(7 * 24 * 3600);
/// The time of clients' rates, unless a request has another.
pub(crate) const RECENT: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum ControlRequest {
    /// The client's permissions, and the run.
    Access {},
    /// The run and its headline figures.
    Status {},
    /// Every setting with its value, unit and range.
    Settings {},
    /// The clients with their rates, those with the most bytes first.
    Clients {
        #[serde(default = "clients_default")]
        limit: usize,
        /// Seconds: those are first that used most bytes in this time. Without it the rates are those of a minute.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        last_s: Option<f64>,
    },
    /// The certificates, the one that ends first at the top.
    Certificates {},
    Set {
        /// Its dotted name.
        name: String,
        /// The value, as a person types it.
        value: String,
        /// The seconds after which the former value is restored.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        for_s: Option<f64>,
    },
    /// Leave a note in the time line.
    Mark {
        #[serde(default)]
        text: String,
    },
    /// Read the configuration file, certificates and keys again.
    Reload {},
    /// Replace the running program by a new process.
    Upgrade {},
    /// List the changes of a reload with another configuration file.
    CompareConfiguration {
        text: String,
    },
    /// Serve open connections to their end, and end.
    Drain {},
    /// Forget sessions and ticket keys.
    ForgetSessions {},
    RotateTickets {},
    /// Start or stop the built-in load.
    Load {
        running: bool,
    },
    /// Drain an upstream, or return it to service.
    Upstream {
        /// As it was configured.
        name: String,
        drained: bool,
    },
    Experiment {
        /// The words of `--ab`.
        words: String,
    },
    EndExperiment {},
    /// Measure the cost of handshakes on this machine.
    Calibrate {},
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ControlResponse {
    pub(crate) version: u32,
    /// Whether the request was carried out.
    pub(crate) ok: bool,
    /// The result or the reason of a refusal, in a sentence.
    pub(crate) text: String,
    /// The requested data; absent if the text is complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) data: Option<serde_json::Value>,
}

/// The data of the answer to [`ControlRequest::Access`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AccessData {
    pub(crate) run: String,
    /// True if the client may change things.
    pub(crate) write: bool,
    /// The client as the service's records name it.
    pub(crate) client: String,
}

/// An element of the data of the answer to [`ControlRequest::Settings`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SettingData {
    #[serde(flatten)]
    pub(crate) setting: Setting,
    /// The origin of its value; absent if the setting is not an option.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<SettingOrigin>,
}

/// The data of the answers to [`ControlRequest::Reload`], if there is a file, and [`ControlRequest::CompareConfiguration`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReloadData {
    /// The settings that change while the proxy runs.
    pub(crate) changes: Vec<ReloadedSetting>,
    /// The words that only a restart changes.
    pub(crate) restart: Vec<String>,
}

/// The data of the answer to [`ControlRequest::Upgrade`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UpgradeData {
    /// The run of the new process.
    pub(crate) run: String,
    pub(crate) pid: u32,
}

/// A setting with two values, as a person reads them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReloadedSetting {
    pub(crate) name: String,
    pub(crate) before: String,
    pub(crate) after: String,
}

impl fmt::Display for ReloadedSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, before, after } = self;
        write!(f, "{name} from {before} to {after}")
    }
}

fn clients_default() -> usize {
    20
}

impl ControlRequest {
    /// Parses a line.
    ///
    /// # Errors
    /// With the problem.
    pub(crate) fn parse(line: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(line).map_err(|error| format!("this is not a request: {error}"))
    }

    pub(crate) fn is_write(&self) -> bool {
        match self {
            Self::Access {}
            | Self::Status {}
            | Self::Settings {}
            | Self::CompareConfiguration { .. }
            | Self::Clients { .. }
            | Self::Certificates {} => false,
            Self::Set { .. }
            | Self::Mark { .. }
            | Self::Reload {}
            | Self::Upgrade {}
            | Self::Drain {}
            | Self::ForgetSessions {}
            | Self::RotateTickets {}
            | Self::Load { .. }
            | Self::Upstream { .. }
            | Self::Experiment { .. }
            | Self::EndExperiment {}
            | Self::Calibrate {} => true,
        }
    }
}

/// The time of clients' rates.
///
/// # Errors
/// If it is none, or longer than what is kept.
pub(crate) fn recent_time(last_s: f64) -> Result<Duration, String> {
    let last = Duration::try_from_secs_f64(last_s).ok();
    let last = last.filter(|last| !last.is_zero() && *last <= RECENT_MAX);
    last.ok_or_else(|| {
        let most = quantity::shown(RECENT_MAX.as_secs_f64(), "s");
        format!("expected a time up to {most}; `tlsdash report --since` knows longer ones")
    })
}

/// The time after which a setting is restored.
///
/// # Errors
/// If it is none, or too long.
pub(crate) fn revert_after(for_s: Option<f64>) -> Result<Option<Duration>, String> {
    let Some(seconds) = for_s else { return Ok(None) };
    let after = Duration::try_from_secs_f64(seconds).ok();
    let after = after.filter(|after| !after.is_zero() && *after <= REVERT_MAX);
    after.map(Some).ok_or_else(|| format!("for {seconds} s: expected a time up to seven days"))
}

impl ControlResponse {
    pub(crate) fn done(text: impl Into<String>) -> Self {
        Self { version: VERSION, ok: true, text: text.into(), data: None }
    }

    pub(crate) fn refused(reason: impl Into<String>) -> Self {
        Self { version: VERSION, ok: false, text: reason.into(), data: None }
    }

    pub(crate) fn data(text: impl Into<String>, data: serde_json::Value) -> Self {
        Self { data: Some(data), ..Self::done(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_what_the_document_says() {
        for (line, expected) in [
            (r#"{"request":"status"}"#, ControlRequest::Status {}),
            (r#"{"request":"clients"}"#, ControlRequest::Clients { limit: 20, last_s: None }),
            (
                r#"{"request":"set","name":"load.rate","value":"200","for_s":600}"#,
                ControlRequest::Set { name: "load.rate".into(), value: "200".into(), for_s: Some(600.0) },
            ),
            (r#"{"request":"end-experiment"}"#, ControlRequest::EndExperiment {}),
        ] {
            assert_eq!(ControlRequest::parse(line.as_bytes()), Ok(expected.clone()), "{line}");
            let written = serde_json::to_vec(&expected).unwrap();
            assert_eq!(ControlRequest::parse(&written), Ok(expected));
        }
    }

    #[test]
    fn other_lines_are_refused_with_a_reason() {
        for line in [
            "",
            "{}",
            "[]",
            r#"{"request":"shout"}"#,
            r#"{"request":"set","name":"a"}"#,
            r#"{"request":"status","x":1}"#,
        ] {
            let reason = ControlRequest::parse(line.as_bytes()).unwrap_err();
            assert!(reason.starts_with("this is not a request: "), "{line}: {reason}");
        }
    }

    #[test]
    fn rates_are_of_a_time_that_is_kept() {
        assert_eq!(recent_time(60.0), Ok(Duration::from_secs(60)));
        for bad in [0.0, -1.0, f64::NAN, 301.0] {
            assert!(recent_time(bad).unwrap_err().contains("up to 5m"), "{bad}");
        }
    }

    #[test]
    fn a_setting_is_put_back_after_a_bounded_time() {
        assert_eq!(revert_after(Some(1.5)), Ok(Some(Duration::from_millis(1500))));
        assert_eq!(revert_after(None), Ok(None));
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
            assert!(revert_after(Some(bad)).is_err(), "{bad}");
        }
    }
}
