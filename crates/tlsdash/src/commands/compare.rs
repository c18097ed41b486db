//! `tlsdash compare`: two runs from journals.

use std::ffi::OsString;

use ::report::{CompareOptions, Report};

use crate::cli::{CompareArgs, Format, usage};
use crate::commands::output_files::OutputFiles;
use crate::journals::reading::{RecordedRun, RunChoice, RunPrefix, RunQuery};
use crate::session::environment::command;
use crate::summary;

/// Intervals kept of each run: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

/// Compares the runs and prints the result.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<()> {
    let how = CompareOptions {
        metrics: args.metric.clone(),
        block: args.block,
        discard: args.discard,
        force: args.force,
    };
    let output_files =
        OutputFiles::check(&[("--html", &args.html), ("--json", &args.json), ("--md", &args.md)], [])?;
    let read = |source: &OsString, run: &Option<RunPrefix>| {
        let (run, history) = (run.as_deref(), INTERVALS_MAX);
        let choice = RunChoice { mode: "compare", run, writers: &args.writers };
        let wanted = RunQuery { choice, history, since: None, until: None };
        RecordedRun::read(std::slice::from_ref(source), &wanted)
    };
    let (a, b) = (read(&args.a, &args.run_a)?, read(&args.b, &args.run_b)?);
    let (run_a, run_b) = (a.run()?, b.run()?);
    // Two time ranges of one run can be compared.
    if run_a.id() == run_b.id() && a.source == b.source {
        return Err(usage(format!(
            "compare: both are run {}; name others with --run-a and --run-b",
            run_a.id()
        )));
    }
    let command = command();
    let report = |recorded: &'_ RecordedRun, run| {
        Report::new(recorded.model(), run, &recorded.source, command.clone())
            .of_parts(recorded.parts.clone())
            .of_range(recorded.range)
    };
    let (of_a, of_b) = (report(&a, run_a), report(&b, run_b));
    let comparison = ::report::comparison(&of_a, &of_b, &how, &command)?;
    output_files.write("--html", || Ok(comparison.html()))?;
    output_files.write("--json", || Ok(comparison.json()?))?;
    output_files.write("--md", || Ok(comparison.markdown()))?;
    if output_files.has_stdout() {
        return Ok(());
    }
    summary::print_text(&match args.format {
        Format::Text => comparison.text(),
        Format::Json => comparison.json()?,
    })
}
