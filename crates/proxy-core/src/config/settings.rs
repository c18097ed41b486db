//! The settings that the proxy publishes, and those that can change while it runs.

use std::time::Duration;

use telemetry::{Applies, Setting, SettingError, Value};

use crate::config::{Limits, ProxyConfig};

/// A bound in time that acts at once when it is changed, also on connections that are open.
struct LiveTimeout {
    name: &'static str,
    at: fn(&mut Limits) -> &mut Duration,
}

const LIVE_TIMEOUTS: [LiveTimeout; 7] = [
    LiveTimeout { name: "proxy.handshake-timeout", at: |limits| &mut limits.handshake_timeout },
    LiveTimeout { name: "proxy.connect-timeout", at: |limits| &mut limits.connect_timeout },
    LiveTimeout { name: "proxy.idle-timeout", at: |limits| &mut limits.idle_timeout },
    LiveTimeout { name: "proxy.send-timeout", at: |limits| &mut limits.send_timeout },
    LiveTimeout { name: "proxy.half-closed-timeout", at: |limits| &mut limits.half_closed_timeout },
    LiveTimeout { name: "proxy.drain-timeout", at: |limits| &mut limits.drain_timeout },
    LiveTimeout { name: "proxy.drain-quiet", at: |limits| &mut limits.drain_quiet },
];
/// Smallest and largest timeout, in seconds: a day.
const TIMEOUT_RANGE: (f64, f64) = (0.001, 86_400.0);
const CONNECTIONS_MAX: &str = "proxy.connections-max";
const PENDING_MAX: &str = "proxy.pending-max";
const MIB: usize = 1 << 20;
/// Smallest and largest bound on what waits to be sent, in MiB: a TiB.
const PENDING_MIB_RANGE: (f64, f64) = (1.0, 1_048_576.0);

const WORKERS: &str = "proxy.workers";
/// Most workers.
const WORKERS_MAX: usize = 256;
/// Largest bound on handshakes, and on the connections of a client.
const BOUND_MAX: usize = 1_000_000;
/// Begins the names of settings, which a command line leaves out.
const PREFIX: &str = "proxy.";

/// A bound on a number, where 0 stands for none, that new connections meet.
struct Bound {
    name: &'static str,
    at: fn(&mut Limits) -> &mut Option<usize>,
}

const BOUNDS: [Bound; 2] = [
    Bound { name: "proxy.handshakes-max", at: |limits| &mut limits.handshakes_max },
    Bound { name: "proxy.connections-per-client", at: |limits| &mut limits.connections_per_client },
];

/// A proxy cannot be told this.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word} {value}: {problem}")]
pub struct ConfigError {
    /// The word, as on a command line.
    word: &'static str,
    value: String,
    problem: String,
}

impl ConfigError {
    fn new(word: &'static str, value: &dyn ToString, problem: impl Into<String>) -> Self {
        Self { word, value: value.to_string(), problem: problem.into() }
    }
}

/// Whether a proxy can begin like this: the same that [`set`] lets it come to.
pub(crate) fn check(config: &ProxyConfig) -> Result<(), ConfigError> {
    let workers = config.workers.get();
    if workers > WORKERS_MAX {
        return Err(ConfigError::new("workers", &workers, format!("expected 1 to {WORKERS_MAX}")));
    }
    check_limits(&config.limits)?;
    let mut upstreams = config.upstreams.iter().enumerate();
    if let Some((_, twice)) = upstreams.find(|(i, one)| config.upstreams[..*i].contains(one)) {
        return Err(ConfigError::new("upstream", twice, "it stands there twice"));
    }
    Ok(())
}

/// The same of its limits alone.
pub(crate) fn check_limits(limits: &Limits) -> Result<(), ConfigError> {
    let mut limits = limits.clone();
    for timeout in &LIVE_TIMEOUTS {
        let time = *(timeout.at)(&mut limits);
        let (low, high) = TIMEOUT_RANGE;
        if !(low..=high).contains(&time.as_secs_f64()) {
            let word = word(timeout.name);
            return Err(ConfigError::new(word, &format!("{time:?}"), "expected a time from 1ms to 24h"));
        }
    }
    for bound in &BOUNDS {
        if let Some(n) = (bound.at)(&mut limits).filter(|n| !(1..=BOUND_MAX).contains(n)) {
            return Err(ConfigError::new(word(bound.name), &n, format!("expected 1 to {BOUND_MAX}")));
        }
    }
    if limits.connections_max == Some(0) {
        return Err(ConfigError::new(
            word(CONNECTIONS_MAX),
            &0,
            "nobody would be served; expected 1 or more",
        ));
    }
    let (low, high) = PENDING_MIB_RANGE;
    if !(low..=high).contains(&mib(limits.pending_bytes_max)) {
        let bytes = limits.pending_bytes_max;
        return Err(ConfigError::new(word(PENDING_MAX), &bytes, "expected 1MiB to 1024GiB"));
    }
    Ok(())
}

fn mib(bytes: usize) -> f64 {
    bytes as f64 / MIB as f64
}

fn word(name: &'static str) -> &'static str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

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
        live_number(WORKERS, workers, (1.0, WORKERS_MAX as f64)),
        live_number(CONNECTIONS_MAX, limits.connections_max.unwrap_or(possible), (1.0, possible as f64)),
    ];
    settings.extend(BOUNDS.iter().map(|bound| bound.setting(limits)));
    let pending_max = live_number(PENDING_MAX, limits.pending_bytes_max / MIB, PENDING_MIB_RANGE);
    settings.push(Setting { unit: "MiB".into(), ..pending_max });
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
    let is_time = before.unit == "s";
    let number = match *value {
        Value::Number(number) if (low..=high).contains(&number) && (is_time || number.fract() == 0.0) => {
            number
        }
        _ => {
            let kind = if is_time { "number" } else { "whole number" };
            return Err(refused(name, value, format!("expected a {kind} from {low} to {high}")));
        }
    };
    let whole = number as usize;
    let wanted = (name == WORKERS).then_some(whole);
    if name == CONNECTIONS_MAX {
        limits.connections_max = Some(whole);
    } else if name == PENDING_MAX {
        limits.pending_bytes_max = whole * MIB;
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
    fn setting(&self, limits: &Limits) -> Setting {
        let value = (self.at)(&mut limits.clone()).unwrap_or(0);
        let setting = live_number(self.name, value, (0.0, BOUND_MAX as f64));
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
