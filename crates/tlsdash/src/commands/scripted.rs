//! Loads whose requests have times of their own.

use std::sync::Arc;

use loadgen::{LoadConfig, Profile, Rate, Script, Template};
use mix::{MixLoad, MixLoadOptions, TrafficMix};

use crate::error::usage;

/// A load that is like a recorded traffic, and what is to be said of it.
///
/// # Errors
/// If the traffic has no requests, or too many.
pub(crate) fn like(
    base: LoadConfig,
    mix: &TrafficMix,
    headers: &[(String, String)],
    [scale, speed]: [f64; 2],
) -> anyhow::Result<(LoadConfig, Vec<String>)> {
    let options = MixLoadOptions { target: &base.target, headers, scale, speed };
    let MixLoad { templates, script, notes } =
        MixLoad::new(mix, options).map_err(|error| usage(format!("{}: {error}", mix.source)))?;
    scripted(base, templates, script, notes)
}

/// The load of a script, with what there is to say of it. It has no end.
///
/// # Errors
/// If no plan can have so many connections or requests.
pub(crate) fn scripted(
    base: LoadConfig,
    templates: Vec<Template>,
    script: Script,
    mut notes: Vec<String>,
) -> anyhow::Result<(LoadConfig, Vec<String>)> {
    let rate = script.requests.len() as f64 / script.period.as_secs_f64();
    let mut plan = base.plan.clone();
    plan.rate = Rate::per_second(rate.max(Rate::MIN.as_per_second())).map(Profile::constant);
    if script.has_both_protocols() {
        plan.threads = plan.threads.max(2);
    }
    plan.connections = script.connections_max().max(plan.threads);
    if base.reaches_loopback() {
        plan.sources = script.clients.iter().map(|client| client.source + 1).max();
    } else {
        notes.push("its clients have this host's address: the server is not on 127.0.0.0/8".to_owned());
    }
    plan.protocol = script.profiles.first().map_or(plan.protocol, |profile| profile.protocol);
    plan.check().map_err(usage)?;
    Ok((LoadConfig { requests: templates, script: Some(Arc::new(script)), plan, ..base }, notes))
}
