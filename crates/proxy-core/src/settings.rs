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

const WORKERS: &str = "proxy.workers";
/// Most workers.
const WORKERS_MAX: f64 = 256.0;

/// A bound on a number, where 0 stands for none, that new connections meet.
struct Bound {
    name: &'static str,
    at: fn(&mut Limits) -> &mut Option<usize>,
}

const BOUNDS: [Bound; 2] = [
    Bound { name: "proxy.handshakes-max", at: |limits| &mut limits.handshakes_max },
    Bound { name: "proxy.connections-per-client", at: |limits| &mut limits.connections_per_client },
];

/// Every setting as it stands. `possible` is the bound on connections that the descriptors allow.
pub(crate) fn list(config: &ProxyConfig, limits: &Limits, possible: usize, workers: usize) -> Vec<Setting> {
    let fixed = |name: &str, value| Setting {
        name: name.into(),
        value: Value::Text(value),
        unit: String::new(),
        applies: Applies::Restart,
        range: None,
    };
    let words = |words: &[String]| words.join(" ");
    let listen: Vec<_> = config.listen.iter().map(ToString::to_string).collect();
    let upstreams: Vec<_> = config.upstreams.iter().map(ToString::to_string).collect();
    let sent = config.proxy_protocol.map_or_else(|| "off".to_owned(), |version| version.to_string());
    let cpus = config.cpus.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string);
    let mut settings = vec![
        fixed("proxy.listen", words(&listen)),
        fixed("proxy.upstream", words(&upstreams)),
        fixed("proxy.proxy-protocol", sent),
        fixed("proxy.accept-proxy", config.accept_proxy.to_string()),
        fixed("proxy.cpus", cpus),
        live_number(WORKERS, workers, (1.0, WORKERS_MAX)),
        live_number(CONNECTIONS_MAX, limits.connections_max.unwrap_or(possible), (1.0, possible as f64)),
    ];
    settings.extend(BOUNDS.iter().map(|bound| bound.setting(limits, possible)));
    settings.extend(LIVE_TIMEOUTS.iter().map(|timeout| timeout.setting(limits)));
    settings
}

/// Changes one of `limits`; returns the setting as it stood before, and how many workers are wanted if it is that
/// which shall change.
pub(crate) fn set(
    config: &ProxyConfig,
    limits: &mut Limits,
    possible: usize,
    workers: usize,
    name: &str,
    value: &Value,
) -> Result<(Setting, Option<usize>), SettingError> {
    let before = list(config, limits, possible, workers).into_iter().find(|setting| setting.name == name);
    let before = before.ok_or_else(|| SettingError::Unknown(telemetry::clean::text(name)))?;
    if before.applies == Applies::Restart {
        return Err(SettingError::Restart(before.name));
    }
    let (low, high) = before.range.unwrap_or(TIMEOUT_RANGE);
    let number = match *value {
        Value::Number(number) if (low..=high).contains(&number) => number,
        _ => return Err(refused(name, value, format!("expected a number from {low} to {high}"))),
    };
    let whole = number as usize;
    let wanted = (name == WORKERS).then_some(whole);
    if name == CONNECTIONS_MAX {
        limits.connections_max = Some(whole);
    } else if let Some(bound) = BOUNDS.iter().find(|bound| bound.name == name) {
        *(bound.at)(limits) = Some(whole).filter(|&n| n > 0);
    } else if let Some(timeout) = LIVE_TIMEOUTS.iter().find(|timeout| timeout.name == name) {
        *(timeout.at)(limits) = Duration::from_secs_f64(number);
    }
    Ok((before, wanted))
}

/// The error that says why `value` cannot be.
pub(crate) fn refused(name: &str, value: &Value, reason: String) -> SettingError {
    SettingError::Refused { name: name.to_owned(), value: telemetry::clean::text(&value.to_string()), reason }
}

fn live_number(name: &str, value: usize, range: (f64, f64)) -> Setting {
    Setting {
        name: name.into(),
        value: Value::Number(value as f64),
        unit: String::new(),
        applies: Applies::Live,
        range: Some(range),
    }
}

impl Bound {
    fn setting(&self, limits: &Limits, possible: usize) -> Setting {
        let value = (self.at)(&mut limits.clone()).unwrap_or(0);
        let setting = live_number(self.name, value, (0.0, possible as f64));
        Setting { applies: Applies::NewConnections, ..setting }
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
