//! `tlsdash demo`: certificate, upstream, proxy, load and dashboard in one, with nothing to set up.

use std::num::NonZeroUsize;
use std::str::FromStr;

use anyhow::Context;
use loadgen::{DemoUpstream, Plan, PlanError, Template, UpstreamAddr};
use proxy_core::{ProxyConfig, Upstream};

use crate::cli::appearance::Appearance;
use crate::cli::{DemoArgs, Flags};
use crate::commands::proxy;
use crate::service::privileges;
use crate::session::{Channels, SessionConfig};

/// The demo's load: an open loop from many addresses, most connections resumed.
const PLAN: &str = "rate=1000,connections=32,sources=16,keepalive=10,resume=80%";

/// The demo's plan, with the given words in place of its own.
#[derive(Clone, Debug)]
pub(crate) struct DemoPlan(Plan);

impl FromStr for DemoPlan {
    type Err = PlanError;

    fn from_str(words: &str) -> Result<Self, PlanError> {
        let given: Vec<&str> = words.split(',').map(str::trim).collect();
        let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
        let kept = PLAN.split(',').filter(|own| !given.iter().any(|word| name(word) == name(own)));
        let merged: Vec<&str> = kept.chain(given.iter().copied()).collect();
        merged.join(",").parse().map(Self)
    }
}

/// Runs the demo until it is told to end.
pub(crate) fn run(args: &DemoArgs, flags: &Flags) -> anyhow::Result<()> {
    let appearance = Appearance::with_file(args.config.as_deref(), flags)?;
    let session = SessionConfig::resolve(&args.run, args.duration.map(|duration| duration.0), appearance)?;
    privileges::forbid_dumps()?;
    let tls = args.tls_files.load(&args.tls, true)?;
    // Before the folder exists, which a signal would leave behind.
    let channels = Channels::new(&session)?;
    let folder = tempfile::Builder::new()
        .prefix("tlsdash-")
        .tempdir()
        .context("cannot make a folder for the demo upstream's socket")?;
    let socket = folder.path().join("app.sock");
    let _upstream = DemoUpstream::start(UpstreamAddr::Unix(socket.clone()))?;
    let mut config = ProxyConfig::new(vec![args.listen], Upstream::Unix(socket), tls);
    config.workers = args.workers.unwrap_or_else(half_the_cores);
    proxy::BoundSession::bind(config, Vec::new())?.start(
        Some(args.load.0.clone()),
        requests(),
        session,
        channels,
    )
}

/// Small and large answers, and an upload now and then.
fn requests() -> Vec<Template> {
    vec![
        Template::get("/bytes/100"),
        Template::get("/bytes/1000"),
        Template::get("/bytes/10000"),
        Template::get("/bytes/100"),
        Template::get("/bytes/100000"),
        Template::get("/bytes/1000"),
        Template::post("/echo", 2_000),
    ]
}

fn half_the_cores() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores / 2).unwrap_or(NonZeroUsize::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_demos_plan_can_be_replaced_one_by_one() {
        let DemoPlan(plan) = "rate=50,keepalive=off".parse().unwrap();
        let own: Plan = PLAN.parse().unwrap();
        assert_eq!(plan.rate.map(|rate| rate.at(0)), Some(50.0));
        assert_eq!((plan.connections, plan.sources), (own.connections, own.sources));
        assert_ne!(plan.keepalive, own.keepalive);
    }
}
