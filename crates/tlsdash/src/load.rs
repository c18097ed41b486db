//! `tlsdash load URL`: the generator alone, against any server.

use std::time::Duration;

use loadgen::{KeepAlive, Load, LoadConfig, Plan, Profile, Rate, Share, Target, Trust};
use telemetry::RunRecord;

use crate::args::{LoadArgs, time, usage};
use crate::recorder::Measured;
use crate::session::{Session, Shape, Wiring, host_name};

/// Length of a load that is given none.
const DURATION: Duration = Duration::from_secs(10);

/// Runs the load to its end.
pub(crate) fn run(args: &LoadArgs) -> anyhow::Result<()> {
    let shape = Shape::resolve(&args.run, None)?;
    let target: Target = args.url.parse().map_err(|error| usage(format!("{}: {error}", args.url)))?;
    let plan = plan(args)?;
    let header = RunRecord {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host: host_name(),
        upstream: telemetry::clean::text(&args.url),
        ..RunRecord::default()
    };
    let trust = trust(args);
    let wiring = Wiring::new(&shape)?;
    // Paused: the recorder lets it go when everything stands.
    let load = Load::start(LoadConfig { paused: true, ..LoadConfig::new(target, plan, trust) })?;
    let writer = shape.journal.open()?;
    let title = format!("load > {}", header.upstream);
    let measured = Measured { proxy: None, load: Some(load), ends_with_load: true };
    Session { shape, wiring, title, header, measured, writer }.run()
}

fn trust(args: &LoadArgs) -> Trust {
    match &args.ca {
        Some(file) => Trust::CaFile(file.clone()),
        None if args.insecure => {
            crate::say("--insecure: the server's certificate is not verified");
            Trust::Insecure
        }
        None => Trust::Roots,
    }
}

fn plan(args: &LoadArgs) -> anyhow::Result<Plan> {
    let mut plan = Plan::default();
    if let Some(rate) = args.rate {
        let in_range =
            || usage(format!("--rate {rate}: must be from {} to {} a second", Rate::MIN, Rate::MAX));
        plan.rate = Some(Rate::per_second(rate).map(Profile::constant).ok_or_else(in_range)?);
    }
    if let Some(share) = &args.resume {
        let number = share.strip_suffix('%').unwrap_or(share).parse::<f64>().ok();
        let expected = || usage(format!("--resume {share}: expected a share from 0% to 100%"));
        plan.resume = number.and_then(Share::percent).ok_or_else(expected)?;
    }
    if let Some(which) = args.keep_alive.as_deref() {
        plan.keepalive = keep_alive(which)?;
    }
    plan.connections = args.connections.unwrap_or(plan.connections);
    plan.threads = args.threads.unwrap_or(plan.threads);
    plan.sources = args.source_addresses;
    plan.requests = args.requests;
    plan.duration = match &args.duration {
        Some(text) => Some(time("duration", text)?),
        None => args.requests.is_none().then_some(DURATION),
    };
    // Read back from its own words: the plan's rules stand in one place.
    plan.to_string().parse().map_err(usage)
}

fn keep_alive(which: &str) -> anyhow::Result<KeepAlive> {
    match which {
        "on" => Ok(KeepAlive::Unlimited),
        "off" => Ok(KeepAlive::Requests(1)),
        number => match number.parse() {
            Ok(n) if n > 0 => Ok(KeepAlive::Requests(n)),
            _ => Err(usage(format!("--keep-alive {which}: expected on, off or a number of requests"))),
        },
    }
}
