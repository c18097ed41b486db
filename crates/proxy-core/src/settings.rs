//! The settings that the proxy publishes, and those that can change while it runs.

use std::time::Duration;

use telemetry::{Applies, Setting, SettingError, Value};

use crate::config::{Limits, ProxyConfig};

/// A bound in time that acts at once when it is changed, also on connections that are open.
struct LiveTimeout {
    name: &'static str,
    at: fn(&mut Limits) -> &mut Duration,
}

const LIVE_TIMEOUTS: [LiveTimeout; 6] = [
    LiveTimeout { name: "proxy.handshake-timeout", at: |limits| &mut limits.handshake_timeout },
    LiveTimeout { name: "proxy.connect-timeout", at: |limits| &mut limits.connect_timeout },
    LiveTimeout { name: "proxy.idle-timeout", at: |limits| &mut limits.idle_timeout },
    LiveTimeout { name: "proxy.half-closed-timeout", at: |limits| &mut limits.half_closed_timeout },
    LiveTimeout { name: "proxy.drain-timeout", at: |limits| &mut limits.drain_timeout },
    LiveTimeout { name: "proxy.drain-quiet", at: |limits| &mut limits.drain_quiet },
];
/// Smallest and largest timeout, in seconds.
const TIMEOUT_RANGE: (f64, f64) = (0.001, 86_400.0);
const CONNECTIONS_MAX: &str = "proxy.connections-max";

/// Every setting as it stands. `possible` is the bound on connections that the descriptors allow.
pub(crate) fn list(config: &ProxyConfig, limits: &Limits, possible: usize) -> Vec<Setting> {
    let fixed = |name: &str, value| Setting {
        name: name.into(),
        value,
        unit: String::new(),
        applies: Applies::Restart,
        range: None,
    };
    let listen: Vec<_> = config.listen.iter().map(ToString::to_string).collect();
    let mut settings = vec![
        fixed("proxy.listen", Value::Text(listen.join(" "))),
        fixed("proxy.upstream", Value::Text(config.upstream.to_string())),
        fixed("proxy.workers", Value::Number(config.workers.get() as f64)),
        connections_max(limits, possible),
    ];
    settings.extend(LIVE_TIMEOUTS.iter().map(|timeout| timeout.setting(limits)));
    settings
}

/// Changes one of `limits`; returns the setting as it stood before.
pub(crate) fn set(
    config: &ProxyConfig,
    limits: &mut Limits,
    possible: usize,
    name: &str,
    value: &Value,
) -> Result<Setting, SettingError> {
    let before = list(config, limits, possible).into_iter().find(|setting| setting.name == name);
    let before = before.ok_or_else(|| SettingError::Unknown(telemetry::clean::text(name)))?;
    if before.applies == Applies::Restart {
        return Err(SettingError::Restart(before.name));
    }
    let refused = |reason: String| SettingError::Refused {
        name: name.to_owned(),
        value: telemetry::clean::text(&value.to_string()),
        reason,
    };
    let (low, high) = before.range.unwrap_or(TIMEOUT_RANGE);
    let number = match *value {
        Value::Number(number) if (low..=high).contains(&number) => number,
        _ => return Err(refused(format!("expected a number from {low} to {high}"))),
    };
    if name == CONNECTIONS_MAX {
        limits.connections_max = Some(number as usize);
    } else if let Some(timeout) = LIVE_TIMEOUTS.iter().find(|timeout| timeout.name == name) {
        *(timeout.at)(limits) = Duration::from_secs_f64(number);
    }
    Ok(before)
}

fn connections_max(limits: &Limits, possible: usize) -> Setting {
    Setting {
        name: CONNECTIONS_MAX.into(),
        value: Value::Number(limits.connections_max.unwrap_or(possible) as f64),
        unit: String::new(),
        applies: Applies::Live,
        range: Some((1.0, possible as f64)),
    }
}

impl LiveTimeout {
    fn setting(&self, limits: &Limits) -> Setting {
        let mut limits = limits.clone();
        Setting {
            name: self.name.into(),
            value: Value::Number((self.at)(&mut limits).as_secs_f64()),
            unit: "s".into(),
            applies: Applies::Live,
            range: Some(TIMEOUT_RANGE),
        }
    }
}
