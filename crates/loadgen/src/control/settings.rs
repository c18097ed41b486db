//! The settings of a load as they are published, and how each of them is changed.

use std::str::FromStr;

use records::setting::{Applies, RESUME, Setting, SettingError, SettingInfo, SettingKind, Value};

use super::descriptors;
use crate::control::LiveSettings;
use crate::plan::{CONNECTIONS_MAX, KeepAlive, Plan, Rate, Share};
use crate::protocol::{BODY_BYTES_MAX, RequestSource};

pub(crate) const RATE: &str = "load.rate";
const RUNNING: &str = "load.running";
const CONNECTIONS: &str = "load.connections";
const KEEPALIVE: &str = "load.keep-alive";
const BODY: &str = "load.body";
const PROTOCOL: &str = "load.protocol";

pub fn infos() -> Vec<SettingInfo> {
    let info = |(name, kind, about): (&str, SettingKind, &str)| SettingInfo {
        name: name.to_owned(),
        about: about.to_owned(),
        kind,
        ..SettingInfo::default()
    };
    let any = || SettingKind::Any;
    let keepalive = SettingKind::Parsed {
        parse: |text| KeepAlive::from_str(text).ok().map(|keepalive| keepalive.to_string()),
        allowed: "on, off or a number of requests from 1",
    };
    [
        (RUNNING, any(), "Whether requests become due"),
        (RATE, any(), "Requests that become due each second, over all connections"),
        (RESUME, any(), "Share of new connections that resume a TLS session"),
        ("load.target", any(), "Where the load connects"),
        (CONNECTIONS, SettingKind::Whole, "Connections at once"),
        (
            KEEPALIVE,
            keepalive,
            "Requests on a connection before it is closed: on (no limit), off, or a number",
        ),
        (PROTOCOL, any(), "Protocol of the requests"),
        (BODY, SettingKind::Whole, "Size of a request's body"),
        ("load.threads", SettingKind::Whole, "Threads of the load"),
        ("load.source-addresses", SettingKind::Whole, "Source addresses of its connections"),
        ("load.plan", any(), "The plan at the start of the load"),
        ("load.replay", any(), "Log whose requests the load sends at their own times"),
        (records::setting::TRUST, any(), "How the load checks the server's certificate"),
    ]
    .map(info)
    .into()
}

pub(crate) fn all(
    wanted: &LiveSettings,
    plan: &Plan,
    rate_now: f64,
    original: &RequestSource,
) -> Vec<Setting> {
    let number = |name, value: f64, unit: &str, range, applies| Setting {
        unit: unit.to_owned(),
        range: Some(range),
        ..setting(name, Value::Number(value), applies)
    };
    let rate_range = (Rate::MIN.as_per_second(), Rate::MAX.as_per_second());
    let share_range = (Share::ZERO.as_percent(), Share::ALL.as_percent());
    let mut all = vec![
        setting(RUNNING, Value::Flag(wanted.running && !wanted.stopped), Applies::Live),
        match plan.rate {
            _ if original.script.is_some() => setting(RATE, Value::Number(rate_now), Applies::Restart),
            Some(_) => number(RATE, rate_now, "1/s", rate_range, Applies::Live),
            None => setting(RATE, Value::Text("closed loop".to_owned()), Applies::Restart),
        },
        number(RESUME, wanted.resume.as_percent(), "%", share_range, Applies::NewConnections),
        setting("load.target", Value::Text(original.target.to_string()), Applies::Restart),
        number(
            CONNECTIONS,
            wanted.connections.into(),
            "",
            (plan.threads.into(), CONNECTIONS_MAX.into()),
            if original.script.is_some() { Applies::Restart } else { Applies::Live },
        ),
        setting(KEEPALIVE, Value::Text(wanted.keepalive.to_string()), Applies::Live),
        setting(PROTOCOL, Value::Text(original.protocol_name()), Applies::Restart),
    ];
    if let Some(bytes) = wanted.body_bytes {
        all.push(number(BODY, bytes as f64, "B", (1.0, BODY_BYTES_MAX as f64), Applies::Live));
    }
    let fixed = |name, value| setting(name, value, Applies::Restart);
    all.push(fixed("load.threads", Value::Number(plan.threads.into())));
    if let Some(sources) = plan.sources {
        all.push(fixed("load.source-addresses", Value::Number(sources.into())));
    }
    all.push(fixed("load.plan", Value::Text(plan.to_string())));
    if let Some(script) = &original.script {
        all.push(fixed("load.replay", Value::Text(script.name.clone())));
    }
    if let Some(trust) = &original.trust {
        all.push(fixed(records::setting::TRUST, Value::Text(trust.clone())));
    }
    all
}

pub(crate) fn change(
    wanted: &mut LiveSettings,
    plan: &Plan,
    original: &RequestSource,
    name: &str,
    value: &Value,
) -> Result<(), SettingError> {
    let refuse = |reason: &str| refused(name, value, reason);
    match name {
        RUNNING => {
            let Value::Flag(on) = value else { return Err(refuse("it is on or off")) };
            if wanted.stopped && *on {
                return Err(refuse("this load has ended, and another has to be started"));
            }
            wanted.running = *on;
        }
        RATE | CONNECTIONS if original.script.is_some() => {
            return Err(refuse(
                "the times and clients of a log stand fixed; start it again with another --speed",
            ));
        }
        RATE if plan.rate.is_none() => {
            return Err(refuse("this is a closed loop; start it with rate= in its plan"));
        }
        RATE => {
            let rate = number(value).and_then(Rate::per_second);
            let rate =
                rate.ok_or_else(|| refuse("it is a number of requests a second from 0.001 to 10000000"))?;
            wanted.rate = Some(rate);
        }
        RESUME => {
            let share = number(value).and_then(Share::percent);
            wanted.resume = share.ok_or_else(|| refuse("it is a percentage from 0 to 100"))?;
        }
        CONNECTIONS => {
            let range = plan.threads..=CONNECTIONS_MAX;
            let connections = whole(value).and_then(|n| u32::try_from(n).ok()).filter(|n| range.contains(n));
            let connections = connections
                .ok_or_else(|| refuse(&format!("it is a number from {} to 100000", plan.threads)))?;
            descriptors::allow(connections, plan.threads).map_err(|error| refuse(&error.to_string()))?;
            wanted.connections = connections;
        }
        KEEPALIVE => {
            let keepalive = KeepAlive::from_str(&value.to_string()).ok();
            wanted.keepalive = keepalive.ok_or_else(|| refuse("it is on, off or a number of requests"))?;
        }
        PROTOCOL => {
            return Err(refuse(
                "it stands fixed for a run, whose histograms would mix both otherwise; start another load",
            ));
        }
        BODY if wanted.body_bytes.is_some() => {
            let bytes = whole(value).and_then(|n| usize::try_from(n).ok());
            let bytes = bytes.filter(|bytes| (1..=BODY_BYTES_MAX).contains(bytes));
            let bytes = bytes.ok_or_else(|| refuse("it is a number of bytes from 1 to 67108864"))?;
            wanted.requests = original.with_bodies_of(bytes).map_err(|error| refuse(&error.to_string()))?;
            wanted.body_bytes = Some(bytes);
        }
        _ => return Err(SettingError::Restart(name.to_owned())),
    }
    Ok(())
}

fn setting(name: &str, value: Value, applies: Applies) -> Setting {
    Setting { name: name.to_owned(), value, unit: String::new(), applies, range: None }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => Some(*number),
        _ => None,
    }
}

fn whole(value: &Value) -> Option<u64> {
    number(value).filter(|n| n.fract() == 0.0 && *n >= 0.0).map(|n| n as u64)
}

fn refused(name: &str, value: &Value, reason: &str) -> SettingError {
    SettingError::Refused {
        name: name.to_owned(),
        value: records::text::clean::text(&value.to_string()),
        reason: reason.to_owned(),
    }
}
