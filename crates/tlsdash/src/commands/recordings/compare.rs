//! `tlsdash compare`: two runs from journals, or the experiments of one.

use std::ffi::OsString;

use ::report::{CompareOptions, Report};

use crate::cli::{CompareArgs, Format};
use crate::commands::output_files::OutputFiles;
use crate::error::usage;
use crate::journals::reading::{RecordedRun, RunChoice, RunPrefix, RunQuery};
use crate::service::environment::command;
use crate::summary;

/// Intervals kept of each run: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let output_files =
        OutputFiles::check(&[("--html", &args.html), ("--json", &args.json), ("--md", &args.md)], [])?;
    match (&args.b, &args.run_b) {
        (Some(b), _) => two_runs(args, b, &output_files),
        (None, Some(_)) => two_runs(args, &args.a, &output_files),
        (None, None) => experiments(args, &output_files),
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
    let choice = RunChoice { mode: "compare", run: run.map(|prefix| &**prefix), writers: &args.writers };
    let wanted =
        RunQuery { choice, history: INTERVALS_MAX, host: None, service: None, since: None, until: None };
    RecordedRun::read(std::slice::from_ref(source), &wanted)
}

fn report(recorded: &RecordedRun) -> anyhow::Result<Report<'_>> {
    Ok(Report::new(recorded.model(), recorded.run()?, &recorded.source, command())
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
