//! The settings that the proxy publishes, and the settings that can change while it runs.

use std::path::Path;
use std::time::Duration;

use records::setting::{Applies, Setting, SettingError, SettingInfo, SettingKind, Value};
use records::text::{clean, quantity};

use crate::config::options::{
    DeclaredOptions, OptionError, OptionKind, OptionSpec, PREFIX, fixed_setting, option_names, refused,
    whole_number,
};
use crate::config::rate::Rate;
use crate::config::{Limits, ProxyConfig};
use crate::tls::TlsSettings;
use crate::upstream::route::repeated;

/// Shortest and longest timeout, in seconds: a day.
const TIMEOUT_RANGE: (f64, f64) = (0.001, 86_400.0);
/// Smallest and largest limit on pending bytes, in MiB: a TiB.
const PENDING_RANGE: (f64, f64) = (1.0, 1_048_576.0);
/// Smallest and largest bound on the process's memory, in MiB: a TiB. A proxy without connections takes half of the
/// smallest.
const MEMORY_RANGE: (f64, f64) = (64.0, 1_048_576.0);
/// Largest bound on handshakes, and on the connections of a client.
const BOUND_MAX: f64 = 1_000_000.0;
pub const WORKERS_RANGE: (f64, f64) = (1.0, 256.0);

const WORKERS: &str = "proxy.workers";
const CONNECTIONS_MAX: &str = "proxy.connections-max";

/// The limits. A new one is a field of [`Limits`] and an entry here.
const LIMITS: [OptionSpec<Limits>; 14] = [
    // The limit by descriptors is known when the proxy starts.
    bound(
        ("connections-max", f64::INFINITY),
        Applies::Live,
        |limits| &mut limits.connections_max,
        "Connections at once; more wait in the backlog",
    )
    .absent("what descriptors allow", "10000"),
    bound(
        ("handshakes-max", BOUND_MAX),
        Applies::NewConnections,
        |limits| &mut limits.handshakes_max,
        "Handshakes at once; more wait in the backlog",
    )
    .absent("no bound", "1000"),
    bound(
        ("connections-per-client", BOUND_MAX),
        Applies::NewConnections,
        |limits| &mut limits.connections_per_client,
        "Connections at once of a client address; more are closed. Of IPv6 a /64 counts as one",
    )
    .absent("no bound", "100"),
    rate(
        "connection-rate",
        |limits| &mut limits.connection_rate,
        "Rate of connections of a client address, such as 100/s or 6000/m; more are reset. Of IPv6 a /64 counts as one",
    ),
    rate(
        "handshake-rate",
        |limits| &mut limits.handshake_rate,
        "Rate of handshakes of a client address, such as 100/s or 6000/m; connections of more are reset. Of IPv6 a /64 counts as one",
    ),
    OptionSpec::new(
        ("pending-max", "SIZE"),
        Applies::Live,
        OptionKind::Memory { range: PENDING_RANGE, at: |limits| &mut limits.pending_bytes_max },
        "Memory for peers that do not read; of all connections together. Beyond it, those are cut that hold far more than \
         others, then those whose peer has read nothing for longest",
    ),
    OptionSpec::new(
        ("memory-max", "SIZE"),
        Applies::Live,
        OptionKind::MemoryBound { range: MEMORY_RANGE, at: |limits: &mut Limits| &mut limits.memory_bytes_max },
        "Resident memory of the process; from 90 % of it idle connections are closed, from 95 % new ones refused",
    )
    .absent("memory.max of the control group, if it has one", "1GiB"),
    timeout("handshake-timeout", |limits| &mut limits.handshake_timeout, "Deadline of a handshake"),
    timeout("connect-timeout", |limits| &mut limits.connect_timeout, "Deadline for reaching the upstream"),
    timeout(
        "idle-timeout",
        |limits| &mut limits.idle_timeout,
        "Close a connection this long without a byte",
    ),
    timeout(
        "send-timeout",
        |limits| &mut limits.send_timeout,
        "Time that a client may take no byte; one whose bytes wait is then reset",
    ),
    timeout(
        "half-closed-timeout",
        |limits| &mut limits.half_closed_timeout,
        "Time that a client may stay after its upstream has ended",
    )
    .without_flag(),
    timeout(
        "drain-timeout",
        |limits| &mut limits.drain_timeout,
        "Time for connections to finish at the end",
    ),
    timeout(
        "drain-quiet",
        |limits| &mut limits.drain_quiet,
        "Time without a byte after which a drain closes a connection that is owed nothing",
    )
    .without_flag(),
];

const fn timeout(
    name: &'static str,
    at: fn(&mut Limits) -> &mut Duration,
    help: &'static str,
) -> OptionSpec<Limits> {
    OptionSpec::new((name, "TIME"), Applies::Live, OptionKind::Time { range: TIMEOUT_RANGE, at }, help)
}

const fn bound(
    (name, max): (&'static str, f64),
    applies: Applies,
    at: fn(&mut Limits) -> &mut Option<usize>,
    help: &'static str,
) -> OptionSpec<Limits> {
    OptionSpec::new((name, "N"), applies, OptionKind::Bound { max, at }, help)
}

const fn rate(
    name: &'static str,
    at: fn(&mut Limits) -> &mut Option<Rate>,
    help: &'static str,
) -> OptionSpec<Limits> {
    let option = OptionSpec::new((name, "RATE"), Applies::NewConnections, OptionKind::Rate(at), help);
    option.absent("no bound", "100/s,burst=200")
}

impl DeclaredOptions for Limits {
    const OPTIONS: &'static [OptionSpec<Self>] = &LIMITS;
    const NAMES: &'static [&'static str] = &option_names(&LIMITS);
}

/// Describes the settings of the proxy that have a range or a list of words.
pub fn infos() -> Vec<SettingInfo> {
    let workers = SettingInfo {
        name: WORKERS.to_owned(),
        kind: SettingKind::Whole,
        absent: Some("one per core"),
        ..SettingInfo::default()
    };
    let limits = LIMITS.iter().map(|limit| limit.info(PREFIX));
    let tls = TlsSettings::OPTIONS.iter().map(|option| option.info(PREFIX));
    std::iter::once(workers).chain(limits).chain(tls).collect()
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConfigError {
    #[error("{option} {value}: {problem}")]
    Value {
        /// The option, as on a command line.
        option: &'static str,
        /// Its value, in its unit.
        value: String,
        problem: OptionError,
    },
    #[error("upstream {0}: it is given twice, or with two weights")]
    UpstreamTwice(String),
}

/// Whether a proxy can begin with these values: the same values that [`set`] accepts.
pub(crate) fn check(config: &ProxyConfig) -> Result<(), ConfigError> {
    let workers = Value::Number(config.workers.get() as f64);
    whole_number(&workers, WORKERS_RANGE).map_err(|problem| ConfigError::Value {
        option: "workers",
        value: workers.to_string(),
        problem,
    })?;
    for limit in &LIMITS {
        limit.check(&config.limits).map_err(|problem| {
            let value = limit.value(&config.limits).map_or_else(String::new, |value| value.to_string());
            ConfigError::Value { option: limit.name, value: value + limit.unit(), problem }
        })?;
    }
    match repeated(&config.upstreams) {
        Some(twice) => Err(ConfigError::UpstreamTwice(twice.to_string())),
        None => Ok(()),
    }
}

/// The state of every setting. `possible` is the limit on connections that the descriptors allow.
pub(crate) fn list(config: &ProxyConfig, limits: &Limits, possible: usize, workers: usize) -> Vec<Setting> {
    let words = |words: &[String]| words.join(" ");
    let listen: Vec<_> = config.listen.iter().map(ToString::to_string).collect();
    let sent = config.proxy_protocol.map_or_else(|| "off".to_owned(), |version| version.to_string());
    let check = config.upstream_check.as_ref().map_or_else(|| "off".to_owned(), ToString::to_string);
    let path = |path: Option<&Path>| path.map_or_else(|| "off".to_owned(), |path| path.display().to_string());
    let access = config.access.files();
    let cpus = config.cpus.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string);
    let mut settings = vec![
        fixed_setting("proxy.listen", words(&listen)),
        fixed_setting("proxy.upstream-check", check),
        fixed_setting("proxy.balance", config.balance.to_string()),
        fixed_setting("proxy.slow-start", quantity::shown(config.slow_start.as_secs_f64(), "s")),
        fixed_setting("proxy.proxy-protocol", sent),
        fixed_setting("proxy.accept-proxy", config.accept_proxy.to_string()),
        fixed_setting("proxy.allow", path(access.allow.as_deref())),
        fixed_setting("proxy.deny", path(access.deny.as_deref())),
        fixed_setting("proxy.log-names", if config.records_names { "on" } else { "off" }.to_owned()),
        fixed_setting("proxy.cpus", cpus),
        live_number(WORKERS, workers, WORKERS_RANGE),
    ];
    settings.extend(LIMITS.iter().map(|limit| match format!("{PREFIX}{}", limit.name) {
        name if name == CONNECTIONS_MAX => {
            live_number(&name, limits.connections_max.unwrap_or(possible), (1.0, possible as f64))
        }
        name => Setting { name, ..limit.setting(limits) },
    }));
    settings
}

/// Changes one of `limits`. Returns the former state of the setting, and the new number of workers if that setting
/// changed.
pub(crate) fn set(
    config: &ProxyConfig,
    limits: &mut Limits,
    possible: usize,
    workers: usize,
    name: &str,
    value: &Value,
) -> Result<(Setting, Option<usize>), SettingError> {
    let before = list(config, limits, possible, workers).into_iter().find(|setting| setting.name == name);
    let before = before.ok_or_else(|| SettingError::Unknown(clean::text(name)))?;
    if before.applies == Applies::Restart {
        return Err(SettingError::Restart(before.name));
    }
    let refused = |error: OptionError| refused(name, value, error.to_string());
    if name == WORKERS {
        let wanted = whole_number(value, WORKERS_RANGE).map_err(refused)?;
        return Ok((before, Some(wanted)));
    }
    if name == CONNECTIONS_MAX {
        whole_number(value, (1.0, possible as f64)).map_err(refused)?;
    }
    let limit = name.strip_prefix(PREFIX).and_then(Limits::option);
    let limit = limit.ok_or_else(|| SettingError::Unknown(clean::text(name)))?;
    limit.set(limits, value).map_err(refused)?;
    Ok((before, None))
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
