//! `tlsdash compare`: two runs from journals, or the experiments of one.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ::report::{CompareOptions, Report};
use clap::Args;
use experiment::ComparableFigure;
use mix::MixComparison;

use crate::cli::configuration::setting_infos;
use crate::cli::help::RUNS;
use crate::cli::{Format, RecordsArg};
use crate::commands::output_files::OutputFiles;
use crate::error::{UnmetCondition, usage};
use crate::journals::mixes;
use crate::journals::reading::{RecordedRun, RunChoice, RunPrefix, RunQuery};
use crate::journals::writers::WriterArgs;
use crate::service::environment::command;
use crate::summary;
use crate::value::{time, time_or_none};

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash compare before.journal after.journal --html page.html
  tlsdash compare run.journal@0s..10m run.journal@10m..20m
  tlsdash compare a.journal b.journal --metric exchange.p99+cpu.per_exchange
  tlsdash compare recorded.journal replayed.journal --as-mix";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CompareArgs {
    /// Journal of the first run: a file with its archives, a folder of files, `system`, `namespace:NAME`, or a log
    /// store as logs+http://HOST:PORT; @FROM..TO behind it selects a time range, such as @13:05..13:10 (UTC), @-10m..
    /// or @mark:2..mark:3
    #[arg(value_name = "A")]
    pub(crate) a: OsString,
    /// Journal of the second run; without it, A's, with --run-b, or else what the A/B experiments of A came to
    #[arg(value_name = "B")]
    pub(crate) b: Option<OsString>,
    /// The first run, by its id or the first characters of it [default: the newest]
    #[arg(long, help_heading = RUNS, value_name = "ID")]
    pub(crate) run_a: Option<RunPrefix>,
    /// The second run
    #[arg(long, help_heading = RUNS, value_name = "ID")]
    pub(crate) run_b: Option<RunPrefix>,
    /// Figures to compare, such as exchange.p99+cpu.per_exchange (docs/figures.md) [default: the usual ones that both have]
    #[arg(long, value_name = "M+M", value_delimiter = '+')]
    pub(crate) metric: Vec<ComparableFigure>,
    /// Length of the blocks that each run is cut into; at least four must fit [default: by the length of the runs, which
    /// give a verdict from 45 s on]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) block: Option<Duration>,
    /// Time at the start of each run to ignore [default: 5s, and of runs of less than 20 s a quarter]
    #[arg(long, value_name = "TIME", value_parser = time_or_none)]
    pub(crate) discard: Option<Duration>,
    /// Compare runs that are not comparable too, such as of different loads; why they are not stands first
    #[arg(long)]
    pub(crate) force: bool,
    /// Compare what the traffic was like, not what it cost: arrivals, connections, sizes, shares and clients of both;
    /// exit code 99 if a feature differs by more than its limit
    #[arg(long, conflicts_with_all = ["metric", "block", "discard", "force", "html", "json", "md"])]
    pub(crate) as_mix: bool,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Write one page with both runs drawn over each other; it needs no network, and prints well. For this and all other
    /// files, - is standard output, and replaces the text
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the comparison as JSON too (docs/compare.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the comparison as Markdown too
    #[arg(long, value_name = "FILE")]
    pub(crate) md: Option<PathBuf>,
    #[command(flatten, next_help_heading = RUNS)]
    pub(crate) writers: WriterArgs,
    #[command(flatten)]
    pub(crate) records: RecordsArg,
}

/// Intervals kept of each run: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    if args.as_mix {
        return as_mix(args);
    }
    let output_files =
        OutputFiles::check(&[("--html", &args.html), ("--json", &args.json), ("--md", &args.md)], [])?;
    match (&args.b, &args.run_b) {
        (Some(b), _) => two_runs(args, b, &output_files),
        (None, Some(_)) => two_runs(args, &args.a, &output_files),
        (None, None) => experiments(args, &output_files),
    }
}

/// What the traffic of both runs was like.
fn as_mix(args: &CompareArgs) -> anyhow::Result<()> {
    let read = |source, run: Option<&RunPrefix>| {
        mixes::read("compare --as-mix", source, &args.writers, run.map(|prefix| &**prefix), false)
    };
    let b = args.b.as_ref().or_else(|| args.run_b.as_ref().map(|_| &args.a));
    let b = b.ok_or_else(|| usage("compare --as-mix needs two runs: A and B, or --run-a and --run-b"))?;
    let comparison = MixComparison::new(&read(&args.a, args.run_a.as_ref())?, &read(b, args.run_b.as_ref())?);
    summary::print_text(&match args.format {
        Format::Text => comparison.text(),
        Format::Json => serde_json::to_string_pretty(&comparison)? + "\n",
    })?;
    match comparison.differing().count() {
        0 => Ok(()),
        _ => Err(UnmetCondition("the traffic of A and of B differs".to_owned()).into()),
    }
}

fn two_runs(args: &CompareArgs, b: &OsString, output_files: &OutputFiles) -> anyhow::Result<()> {
    let how = CompareOptions {
        metrics: args.metric.clone(),
        block: args.block,
        discard: args.discard,
        force: args.force,
    };
    let (a, b) = (read(args, &args.a, args.run_a.as_ref())?, read(args, b, args.run_b.as_ref())?);
    let (run_a, run_b) = (a.run()?, b.run()?);
    // Two time ranges of one run can be compared.
    if run_a.id() == run_b.id() && a.source == b.source {
        return Err(usage(format!(
            "compare: both are run {}; name others with --run-a and --run-b, or parts of it with @FROM..TO",
            run_a.id()
        )));
    }
    let (of_a, of_b) = (report(&a)?, report(&b)?);
    let command = command();
    let comparison = ::report::comparison(&of_a, &of_b, &how, &command)?;
    output_files.write("--html", || Ok(comparison.html()))?;
    output_files.write("--json", || Ok(comparison.json()?))?;
    output_files.write("--md", || Ok(comparison.markdown()))?;
    print(args, output_files, || comparison.text(), || Ok(comparison.json()?))
}

/// The verdicts of the experiments of the only run.
fn experiments(args: &CompareArgs, output_files: &OutputFiles) -> anyhow::Result<()> {
    let recorded = read(args, &args.a, args.run_a.as_ref())?;
    let report = report(&recorded)?;
    let command = command();
    let Ok(experiments) = ::report::experiments(&report, &command) else {
        let a = records::text::clean::text(&args.a.to_string_lossy());
        return Err(usage(format!(
            "compare {a}: 1 run without an A/B experiment: compare needs two, such as compare A.journal B.journal, two runs of \
             one journal with --run-a and --run-b, two parts of a run as {a}@..1m {a}@1m.., or a run with --ab"
        )));
    };
    output_files.write("--html", || Ok(experiments.html()))?;
    output_files.write("--json", || Ok(experiments.json()?))?;
    output_files.write("--md", || Ok(experiments.markdown()))?;
    print(args, output_files, || experiments.text(), || Ok(experiments.json()?))
}

fn read(args: &CompareArgs, source: &OsString, run: Option<&RunPrefix>) -> anyhow::Result<RecordedRun> {
    let run = run.map(|prefix| &**prefix);
    let records = args.records.limit();
    let choice = RunChoice { mode: "compare", run, host: None, writers: &args.writers, records };
    let wanted = RunQuery { choice, history: INTERVALS_MAX, service: None, since: None, until: None };
    RecordedRun::read(std::slice::from_ref(source), &wanted)
}

fn report(recorded: &RecordedRun) -> anyhow::Result<Report<'_>> {
    Ok(Report::new(recorded.model(), recorded.run()?, &recorded.source, command())
        .with_setting_infos(setting_infos::all())
        .with_parts(recorded.parts.clone())
        .with_range(recorded.range))
}

/// Prints the result, unless a file takes the place of the text.
fn print(
    args: &CompareArgs,
    output_files: &OutputFiles,
    text: impl FnOnce() -> String,
    json: impl FnOnce() -> anyhow::Result<String>,
) -> anyhow::Result<()> {
    if output_files.has_stdout() {
        return Ok(());
    }
    summary::print_text(&match args.format {
        Format::Text => text(),
        Format::Json => json()?,
    })
}
