//! `tlsdash check`: whether a run, as a journal holds it, meets conditions.

use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use report::{Assertion, AssertionOutcome, AssertionResult, Figures};

use crate::args::{CheckArgs, usage};
use crate::outputs::Outputs;
use crate::reading::{Recorded, Wanted, run_name};
use crate::summary;

/// An assertion does not hold; ends with exit code 99.
#[derive(Debug)]
pub(crate) struct Breach(String);

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Breach {}

impl Breach {
    /// The error of these assertions, each with the reason.
    pub(crate) fn of(breaches: &[String]) -> anyhow::Error {
        anyhow::Error::new(Self(format!("assertion does not hold: {}", breaches.join("; "))))
    }
}

/// Checks, tells of each condition on standard output, and fails if one does not hold.
pub(crate) fn run(args: &CheckArgs) -> anyhow::Result<()> {
    let assertions = assertions(&args.assert, &args.assert_file)?;
    let outputs = Outputs::check(&[("--junit", &args.junit)], &args.assert_file)?;
    let recorded = Recorded::read(&args.runs.sources, &Wanted::of("check", &args.runs, 1))?;
    let run = recorded.run()?;
    if run.stopped().is_none() {
        crate::say(format_args!(
            "warning: the last record of {} was not read: it still runs, or was killed",
            run_name(run)
        ));
    }
    let figures = Figures::of(recorded.model(), run, Some(&recorded.source));
    let check = |assertion: Assertion| -> anyhow::Result<AssertionResult> {
        assertion.is_known(&figures).map_err(usage)?;
        let verdict = assertion.check(&figures);
        Ok(AssertionResult { assertion, verdict })
    };
    let checked = assertions.into_iter().map(check).collect::<anyhow::Result<Vec<AssertionResult>>>()?;
    let name = format!("{}, {}", recorded.source, run_name(run));
    outputs.write("--junit", || Ok(report::junit(&name, run.duration_us(), &checked)))?;
    if !outputs.has_stdout() {
        summary::print_text(&told(&checked))?;
    }
    let breaches: Vec<String> = checked
        .iter()
        .filter_map(|AssertionResult { assertion, verdict }| match verdict {
            AssertionOutcome::Breached(reason) => Some(format!("{assertion}: {reason}")),
            AssertionOutcome::Holds => None,
        })
        .collect();
    if breaches.is_empty() { Ok(()) } else { Err(Breach::of(&breaches)) }
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

/// Those of the command line and of files, one a line; blank lines and those that begin with # say nothing.
fn assertions(words: &[String], files: &[PathBuf]) -> anyhow::Result<Vec<Assertion>> {
    let parse = |text: &str| text.parse::<Assertion>();
    let named = |text: &String| parse(text).map_err(|error| usage(format!("--assert {error}")));
    let mut all: Vec<Assertion> = words.iter().map(named).collect::<anyhow::Result<_>>()?;
    for path in files {
        let text = read(path)?;
        let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line.trim()));
        for (number, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
            let of_line = |error| usage(format!("--assert-file {} line {number}: {error}", path.display()));
            all.push(parse(line).map_err(of_line)?);
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
