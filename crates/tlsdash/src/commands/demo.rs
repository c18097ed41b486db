//! `tlsdash demo`: certificate, upstream, proxy, load and dashboard in one, with nothing to set up.

use std::num::NonZeroUsize;

use anyhow::Context;
use loadgen::{DemoUpstream, Plan, Template, UpstreamAddr};
use proxy_core::{ProxyConfig, Upstream};

use crate::cli::look::Look;
use crate::cli::{DemoArgs, usage};
use crate::commands::proxy;
use crate::service::privileges;
use crate::session::{Shape, Wiring};

/// The demo's load: an open loop from many addresses, most connections resumed.
const PLAN: &str = "rate=1000,connections=32,sources=16,keepalive=10,resume=80%";

/// Runs the demo until it is told to end.
pub(crate) fn run(args: &DemoArgs) -> anyhow::Result<()> {
    let look = Look::with_file(&args.look, args.config.as_deref())?;
    let shape = Shape::resolve(&args.run, args.duration.as_deref(), look)?;
    let plan = plan(args.load.as_deref())?;
    privileges::forbid_dumps()?;
    let tls = args.tls.resolve(true)?;
    let listen = args.listen.as_deref().unwrap_or("127.0.0.1:0");
    let listen = listen.parse().map_err(|error| usage(format!("--listen {listen}: {error}")))?;
    // Before there is a folder that a signal would leave behind.
    let wiring = Wiring::new(&shape)?;
    let folder = tempfile::Builder::new()
        .prefix("tlsdash-")
        .tempdir()
        .context("cannot make a folder for the demo upstream's socket")?;
    let socket = folder.path().join("app.sock");
    let _upstream = DemoUpstream::start(UpstreamAddr::Unix(socket.clone()))?;
    let mut config = ProxyConfig::new(vec![listen], Upstream::Unix(socket), tls);
    config.workers = args.workers.unwrap_or_else(half_the_cores);
    proxy::Bound::bind(config, Vec::new())?.start(Some(plan), requests(), shape, wiring)
}

/// The demo's plan with the words that are given put in place of its own.
fn plan(words: Option<&str>) -> anyhow::Result<Plan> {
    let given: Vec<&str> = words.map(|words| words.split(',').map(str::trim).collect()).unwrap_or_default();
    let name = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    let kept = PLAN.split(',').filter(|own| !given.iter().any(|word| name(word) == name(own)));
    let merged: Vec<&str> = kept.chain(given.iter().copied()).collect();
    merged.join(",").parse().map_err(usage)
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
        let plan = plan(Some("rate=50,keepalive=off")).unwrap();
        let own: Plan = PLAN.parse().unwrap();
        assert_eq!(plan.rate.map(|rate| rate.at(0)), Some(50.0));
        assert_eq!((plan.connections, plan.sources), (own.connections, own.sources));
        assert_ne!(plan.keepalive, own.keepalive);
    }
}
