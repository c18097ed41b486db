//! `tlsdash check`: whether a run in a journal meets conditions.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use report::{Assertion, AssertionOutcome, AssertionResult, Figures};

use crate::cli::RunsArgs;
use crate::commands::output_files::OutputFiles;
use crate::error::{UnmetCondition, usage};
use crate::journals::reading::{RecordedRun, run_name};
use crate::summary;

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash check run.journal --assert 'handshake_full.p99 < 8ms'
  tlsdash check --since -1h --assert 'failed.ratio < 1%' --assert 'lost == 0'
  tlsdash check run.journal --assert-file limits.txt --junit result.xml";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// Condition that must hold, such as 'handshake_full.p99 < 8ms', 'resumed.ratio > 90%' or 'lost == 0'; may be repeated
    /// (docs/figures.md names the figures)
    #[arg(long, value_name = "CONDITION")]
    pub(crate) assert: Vec<Assertion>,
    /// File of conditions, one per line; # starts a comment
    #[arg(long, value_name = "FILE")]
    pub(crate) assert_file: Vec<PathBuf>,
    /// Write the result of each condition as JUnit XML; - is standard output, and replaces the text
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
}

/// Prints the result of each condition, and fails if one does not hold.
pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let assertions = assertions(args)?;
    let output_files = OutputFiles::check(&[("--junit", &args.junit)], &args.assert_file)?;
    let recorded = RecordedRun::read(&args.runs.sources, &args.runs.query("check", 1))?;
    let run = recorded.run()?;
    if run.stopped().is_none() {
        crate::say(format_args!(
            "warning: the last record of {} was not read: it still runs, or was killed",
            run_name(run)
        ));
    }
    let figures = Figures::of(recorded.model(), run, Some(&recorded.source));
    let checked = checked(assertions, &figures)?;
    let name = format!("{}, {}", recorded.source, run_name(run));
    output_files.write("--junit", || Ok(report::junit(&name, run.duration_us(), &checked)))?;
    if !output_files.has_stdout() {
        summary::print_text(&told(&checked))?;
    }
    let breaches: Vec<String> = checked
        .iter()
        .filter_map(|AssertionResult { assertion, verdict }| match verdict {
            AssertionOutcome::Breached(reason) => Some(format!("{assertion}: {reason}")),
            AssertionOutcome::Holds => None,
        })
        .collect();
    if breaches.is_empty() { Ok(()) } else { Err(UnmetCondition::of_assertions(&breaches)) }
}

/// The result of each condition.
///
/// # Errors
/// When the run has no such figure, or the value another unit.
pub(super) fn checked(
    assertions: Vec<Assertion>,
    figures: &Figures<'_>,
) -> anyhow::Result<Vec<AssertionResult>> {
    let check = |assertion: Assertion| {
        assertion.is_known(figures).map_err(usage)?;
        let verdict = assertion.check(figures);
        Ok(AssertionResult { assertion, verdict })
    };
    assertions.into_iter().map(check).collect()
}

fn told(checked: &[AssertionResult]) -> String {
    let mut text = String::new();
    for AssertionResult { assertion, verdict } in checked {
        let _ = match verdict {
            AssertionOutcome::Breached(reason) => writeln!(text, "FAILED  {assertion}: {reason}"),
            AssertionOutcome::Holds => writeln!(text, "holds   {assertion}"),
        };
    }
    text
}

/// The assertions of the command line and of files, one per line. Blank lines and lines that begin with `#` are
/// skipped.
fn assertions(args: &CheckArgs) -> anyhow::Result<Vec<Assertion>> {
    let mut all = args.assert.clone();
    for path in &args.assert_file {
        let text = read(path)?;
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let of_line = |error| usage(format!("--assert-file {} line {number}: {error}", path.display()));
            all.push(line.parse().map_err(of_line)?);
        }
    }
    if all.is_empty() {
        return Err(usage("there is nothing to check: name a condition with --assert, or a file of them"));
    }
    Ok(all)
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .map_err(|error| usage(format!("cannot read --assert-file {}: {error}", path.display())))
}
