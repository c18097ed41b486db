//! `tlsdash bench`: targets side by side, in rounds of short loads.

mod args;
mod output;
mod recording;
mod watcher;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ::bench::against::Against;
use ::bench::results::ResultsFolder;
use ::bench::run::{RunError, RunPlan, RunPrograms, Selection};
use ::bench::scenario::{CertificatePaths, Placement, Scenario};
use ::bench::seeds::Seed;
use ::bench::template::ServerTemplate;
use anyhow::Context;
use clap::{Args as _, Command, FromArgMatches as _};
use wildmatch::WildMatch;

use crate::commands::load::LoadArgs;
use crate::error::usage;
use crate::service::{environment, signals};
use crate::summary;
pub(crate) use args::BenchArgs;
use args::{AgainstArgs, BenchMode, SelectionArgs};
use output::{BenchOutput, folder_error};
use watcher::Watcher;

/// The URL with which the flags of a case are checked.
const CHECKED_URL: &str = "https://localhost/";
/// The largest seed that is drawn: it is easy to type.
const SEED_MAX: u64 = 1_000_000;
/// How the configurations of terminators are named.
const CONFIGURATIONS: [&str; 2] = [".conf", ".cfg"];
/// How the scenario of a published experiment is named.
const SEED_PREFIX: &str = "seed:";

/// Runs a scenario, or prints templates.
pub(crate) fn run(args: &BenchArgs) -> anyhow::Result<()> {
    if let Some(BenchMode::Templates { name }) = &args.mode {
        return templates(name.as_deref());
    }
    let output = BenchOutput::check(&args.output, args.scenario.as_ref())?;
    let tlsdash = std::env::current_exe().context("cannot find this program's own file")?;
    let (mut plan, mut folder) = if let Some(path) = &args.output.resume {
        resume(path, &args.selection)?
    } else {
        let plan = plan(args)?;
        if args.selection.dry_run {
            return summary::print_text(&::bench::run::preview(&plan, &tlsdash));
        }
        let folder = ResultsFolder::create(args.output.save.as_deref(), &plan).map_err(folder_error)?;
        (plan, folder)
    };
    let is_against = !args.against.against.is_empty();
    let requires_all = args.selection.require_all || is_against;
    let interrupted = signals::interruption()?;
    let watcher = Watcher::new(interrupted);
    let read = |path: &Path| recording::read(path).map_err(|error| format!("{error:#}"));
    let programs = RunPrograms { tlsdash, read_recording: &read };
    announce(&plan, is_against);
    let ended = ::bench::run::run(&mut plan, &mut folder, &programs, &watcher, requires_all);
    watcher.clear();
    let end = ended.map_err(run_error)?;
    let written = output.write(&plan, &end, &folder);
    if end.is_interrupted {
        say_how_to_resume(&folder);
    }
    written
}

/// Says what is about to run, how long it takes, and what disturbs it.
fn announce(plan: &RunPlan, is_against: bool) {
    let scenario = &plan.scenario;
    crate::say(format_args!("{}: {}; seed {}", scenario.name, scenario.title, plan.seed));
    for target in &scenario.targets {
        match target.template().filter(|_| is_against) {
            Some(template) => {
                crate::say(format_args!(
                    "{}: as `tlsdash bench templates {template}` prints it",
                    target.name
                ));
            }
            // A scenario may come from someone else.
            None => ::bench::run::commands(target)
                .iter()
                .for_each(|command| crate::say(format_args!("{}: {command}", target.name))),
        }
    }
    let cases: Vec<&str> = scenario.cases.iter().map(|case| &*case.name).collect();
    crate::say(format_args!("cases: {}", cases.join("; ")));
    crate::say(::bench::run::size(plan));
    let placement = scenario.cpus.clone().unwrap_or_default();
    let disturbances = ::bench::run::disturbances(&placement, &environment::header().governor);
    if !disturbances.is_empty() {
        crate::say(format_args!("noisy: {}", disturbances.join("; ")));
    }
}

/// The plan of a new comparison.
fn plan(args: &BenchArgs) -> anyhow::Result<RunPlan> {
    let scenario = match &args.scenario {
        Some(path) => read_scenario(path)?,
        None if args.against.against.is_empty() => {
            return Err(usage("bench: name a scenario, or terminators: --against nginx,haproxy"));
        }
        None => against(&args.against)?,
    };
    let SelectionArgs { quick, rounds, seed, scale, only, case, .. } = &args.selection;
    let pattern = WildMatch::new(case.as_deref().unwrap_or("*"));
    let selection = Selection {
        is_quick: *quick,
        rounds: *rounds,
        scale: *scale,
        targets: only,
        has_case: &|name| pattern.matches(name),
    };
    let (mut scenario, changes) = selection.apply(scenario).map_err(usage)?;
    scenario.cpus.get_or_insert_with(Placement::split);
    let seed = seed.unwrap_or_else(|| fastrand::u64(..SEED_MAX));
    Ok(RunPlan { changes, ..RunPlan::new(scenario, seed) })
}

/// The scenario of `--against`.
fn against(args: &AgainstArgs) -> anyhow::Result<Scenario> {
    // A comparison may be resumed in another folder.
    let absolute = |path: &PathBuf| std::path::absolute(path).with_context(|| path.display().to_string());
    let certificate = match (&args.cert, &args.key) {
        (Some(cert), Some(key)) => Some(CertificatePaths { cert: absolute(cert)?, key: absolute(key)? }),
        _ => None,
    };
    let upstream = args.upstream.as_deref();
    Against { names: &args.against, certificate, upstream }.scenario(&check_flags).map_err(usage)
}

/// Reads a scenario from a file, or one of the program's own.
fn read_scenario(path: &Path) -> anyhow::Result<Scenario> {
    let name = path.to_string_lossy();
    if name.starts_with(SEED_PREFIX) {
        let seed = Seed::named(&name).ok_or_else(|| {
            let names: Vec<&str> = Seed::all().iter().map(|seed| seed.name).collect();
            usage(format!("bench {name}: there is no such experiment; there are {}", names.join(", ")))
        })?;
        return Scenario::parse(&name, seed.text, &check_flags).map_err(usage);
    }
    if CONFIGURATIONS.iter().any(|end| name.ends_with(end)) {
        return Err(usage(format!(
            "bench {name}: a configuration is no scenario; compare terminators by name, such as --against nginx,haproxy, \
             or start this one and write its address in a scenario"
        )));
    }
    let text = std::fs::read_to_string(path)
        .map_err(|error| usage(format!("bench {name}: cannot read the scenario: {error}")))?;
    let name = path.file_name().unwrap_or_else(|| OsStr::new("")).to_string_lossy();
    Scenario::parse(&name, &text, &check_flags).map_err(usage)
}

/// Checks the flags of a case as `tlsdash load` does.
fn check_flags(flags: &[String]) -> Result<(), String> {
    let words = ["load", CHECKED_URL].into_iter().map(str::to_owned).chain(flags.iter().cloned());
    let matches = LoadArgs::augment_args(Command::new("load"))
        .try_get_matches_from(words)
        .map_err(|error| crate::error::refusal(&error))?;
    let args = LoadArgs::from_arg_matches(&matches).map_err(|error| crate::error::refusal(&error))?;
    args.check().map_err(|error| format!("{error:#}"))
}

/// Opens a comparison to continue it, with more rounds if requested.
fn resume(path: &Path, args: &SelectionArgs) -> anyhow::Result<(RunPlan, ResultsFolder)> {
    let (folder, mut plan, dropped) = ResultsFolder::resume(path).map_err(folder_error)?;
    if let Some(dropped) = dropped {
        crate::say(dropped);
    }
    if let Some(rounds) = args.rounds {
        if rounds < plan.scenario.rounds {
            let planned = plan.scenario.rounds;
            return Err(usage(format!("--rounds {rounds}: {} has {planned}; name more", path.display())));
        }
        plan.changes.extend(added_rounds(&plan, rounds, &folder));
        plan.scenario.rounds = rounds;
        if let Some(excess) = plan.scenario.excess() {
            return Err(usage(format!("--rounds {rounds}: {excess}")));
        }
        folder.write_plan(&plan).map_err(folder_error)?;
    }
    Ok((plan, folder))
}

/// A note on rounds that are added to a comparison with results, as these may be why they are added.
fn added_rounds(plan: &RunPlan, rounds: u32, folder: &ResultsFolder) -> Option<String> {
    let planned = plan.scenario.rounds;
    (rounds > planned && !folder.cells().is_empty()).then(|| {
        format!(
            "rounds were added when there were results, {rounds} instead of {planned}: the error rate of 5 % holds only if \
             that was decided before"
        )
    })
}

fn templates(name: Option<&str>) -> anyhow::Result<()> {
    let all = ServerTemplate::all();
    let Some(name) = name else {
        let names: Vec<&str> = all.iter().map(|template| template.name).collect();
        return summary::print_text(&(names.join("\n") + "\n"));
    };
    let found = ServerTemplate::named(name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|template| template.name).collect();
        usage(format!("bench templates {name}: there is no such template; there are {}", names.join(", ")))
    })?;
    summary::print_text(found.text)
}

fn say_how_to_resume(folder: &ResultsFolder) {
    if folder.is_temporary() {
        crate::say(
            "interrupted: what is shown are the rounds so far; name a folder with --save to go on later",
        );
    } else {
        let path = folder.path().display();
        crate::say(format_args!("interrupted; go on with: tlsdash bench --resume {path}"));
    }
}

fn run_error(error: RunError) -> anyhow::Error {
    match error {
        RunError::Folder(error) => folder_error(error),
        RunError::Cpus(_) => usage(error),
        RunError::Files { .. }
        | RunError::Upstream(_)
        | RunError::Unreachable { .. }
        | RunError::Missing(_)
        | RunError::NoTarget(_) => anyhow::Error::new(error),
    }
}
