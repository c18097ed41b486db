//! `tlsdash load URL`: the generator alone, against any server.

mod args;
mod config;
mod output;
mod replay;

use std::time::Duration;

use anyhow::Context;
use loadgen::{Load, LoadConfig};
use recorder::host::ProcessObserver;
use records::kinds::RunRecord;
use records::text::Cpus;

use crate::cli::appearance::{Appearance, AppearanceTables};
use crate::error::usage;
use crate::service::{environment, privileges};
use crate::session::console;
use crate::session::frontend::Frontend;
use crate::session::workload::{LoadStart, Workload};
use crate::session::{Channels, FinishedRun, Session, SessionConfig, signals};
use crate::summary;

pub(crate) use args::LoadArgs;
use config::LoadVariant;
use output::LoadOutput;

/// How long the server may take to accept a connection and a handshake, before the load starts.
const PROBE_PATIENCE: Duration = Duration::from_secs(5);
/// Intervals kept for an interval log: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

/// Runs the load, as often as asked for.
pub(crate) fn run(args: &LoadArgs) -> anyhow::Result<()> {
    if args.request.print_plan {
        let mix = config::mix(&args.request)?;
        return summary::print_text(&mix.map(|mix| mix.to_plan()).unwrap_or_default());
    }
    let appearance = Appearance::resolve(&args.appearance, &AppearanceTables::default())?;
    let mut session = SessionConfig::resolve(&args.run, None, appearance)?;
    let mut output = LoadOutput::new(args, session.format)?;
    if args.tls.client_key.is_some() {
        privileges::forbid_dumps()?;
    }
    let variants = config::variants(args)?;
    if let Some(cpus) = &args.plan.cpus {
        confine(cpus)?;
    }
    if output.wants_intervals() {
        if session.frontend != Frontend::Headless {
            return Err(usage("--hlog goes with --headless only: the dashboard keeps no more than it shows"));
        }
        session.history = INTERVALS_MAX;
    }
    if output.shows_intervals() {
        session.history = INTERVALS_MAX;
    }
    let is_repeated = variants.len() > 1 || args.plan.repeat > 1;
    if is_repeated && session.frontend != Frontend::Headless {
        return Err(usage("several runs go with --headless only"));
    }
    if is_repeated && session.record.is_some() {
        return Err(usage("--record takes one run: leave out --repeat, and all but one of --body-bytes"));
    }
    if args.tls.insecure {
        crate::say("--insecure: the server's certificate is not verified");
    }
    for variant in &variants {
        variant.notices.iter().for_each(console::report_early);
        loadgen::probe(&variant.config, PROBE_PATIENCE)
            .map_err(|error| if error.is_wrong_option() { usage(error) } else { error.into() })?;
    }
    for (index, variant) in variants.iter().enumerate() {
        for time in 0..args.plan.repeat {
            let finished = once(args, &session, variant)?;
            let name = if variant.name.is_empty() { String::new() } else { format!(" of {}", variant.name) };
            if is_repeated && session.frontend == Frontend::Headless {
                crate::say(format_args!("run {}{name} is done", index as u32 * args.plan.repeat + time + 1));
            }
            output.take(&variant.name, &finished)?;
            let ended = finished.check();
            if ended.is_err() || signals::asked_to_end() {
                return output.finish(ended);
            }
        }
    }
    output.finish(Ok(()))
}

/// Pins the program to these cores, with all threads that it starts later.
fn confine(cpus: &Cpus) -> anyhow::Result<()> {
    cpus.check().map_err(|error| usage(format!("--cpus {cpus}: {error}")))?;
    cpus.confine().with_context(|| format!("cannot run on the cores {cpus} alone"))
}

impl LoadArgs {
    /// Checks the arguments as far as possible without a server.
    ///
    /// # Errors
    /// The problem with the arguments.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        config::variants(self).map(drop)
    }
}

fn once(args: &LoadArgs, session: &SessionConfig, variant: &LoadVariant) -> anyhow::Result<FinishedRun> {
    let pids = &args.output.observe_pid;
    let observed =
        ProcessObserver::new(pids).with_context(|| format!("cannot observe process {}", list(pids)))?;
    let header = RunRecord { upstream: records::text::clean::text(args.url.text()), ..environment::header() };
    let channels = Channels::new(session)?;
    // Paused: the controller starts it when everything is ready.
    let load = Load::start(LoadConfig { paused: true, ..variant.config.clone() })?;
    let journal = session.journal.open()?;
    let title = format!("load > {}", header.upstream);
    let workload = Workload {
        load: Some(load),
        load_cpus: args.plan.cpus.clone(),
        load_start: match args.plan.start_at_us {
            Some(us) => LoadStart::At(us),
            None if args.request.is_like_another() => LoadStart::NextTenth,
            None => LoadStart::Now,
        },
        observed,
        ends_with_load: true,
        ..Workload::default()
    };
    let notices = variant.notices.clone();
    Session { config: session.clone(), channels, title, header, notices, workload, journal, handover: None }
        .finish()
}

fn list(pids: &[u32]) -> String {
    pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ")
}
