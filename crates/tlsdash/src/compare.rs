//! `tlsdash compare`: two runs, as journals hold them.

use std::ffi::OsString;

use ::report::{CompareOptions, Report};
use experiment::ComparableFigure;

use crate::args::{CompareArgs, Format, time, time_or_none, usage};
use crate::environment::command;
use crate::outputs::Outputs;
use crate::reading::{Choice, Recorded, Wanted};
use crate::summary;

/// Intervals that are kept of each run: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

/// Compares, and prints what came of it.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let metric =
        |name: &str| name.parse::<ComparableFigure>().map_err(|error| usage(format!("--metric {error}")));
    let metrics = args.metric.as_deref().map(|names| names.split('+').map(metric).collect()).transpose()?;
    let how = CompareOptions {
        metrics: metrics.unwrap_or_default(),
        block: time("block", args.block.as_deref().unwrap_or("10s"))?,
        discard: time_or_none("discard", args.discard.as_deref().unwrap_or("5s"))?,
    };
    let outputs = Outputs::check(&[("--html", &args.html), ("--json", &args.json), ("--md", &args.md)], [])?;
    let read = |source: &OsString, run: &Option<String>| {
        let (run, history) = (run.as_deref(), INTERVALS_MAX);
        let choice = Choice { mode: "compare", run, writers: &args.writers };
        let wanted = Wanted { choice, history, since: None, until: None };
        Recorded::read(std::slice::from_ref(source), &wanted)
    };
    let (a, b) = (read(&args.a, &args.run_a)?, read(&args.b, &args.run_b)?);
    let (run_a, run_b) = (a.run()?, b.run()?);
    // Two stretches of one run can be compared.
    if run_a.id() == run_b.id() && a.source == b.source {
        return Err(usage(format!(
            "compare: both are run {}; name others with --run-a and --run-b",
            run_a.id()
        )));
    }
    let command = command();
    let report = |recorded: &'_ Recorded, run| {
        Report::new(recorded.model(), run, &recorded.source, command.clone())
            .of_parts(recorded.parts.clone())
            .of_stretch(recorded.stretch)
    };
    let (of_a, of_b) = (report(&a, run_a), report(&b, run_b));
    let comparison = ::report::comparison(&of_a, &of_b, &how, &command)?;
    outputs.write("--html", || Ok(comparison.html()))?;
    outputs.write("--json", || Ok(comparison.json()?))?;
    outputs.write("--md", || Ok(comparison.markdown()))?;
    if outputs.has_stdout() {
        return Ok(());
    }
    summary::print_text(&match args.format.unwrap_or_default() {
        Format::Text => comparison.text(),
        Format::Json => comparison.json()?,
    })
}
