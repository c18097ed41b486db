//! `tlsdash report`: files about a run in a journal.

use ::report::{Figures, Report};
use anyhow::Context;

use crate::cli::ReportArgs;
use crate::commands::output_files::OutputFiles;
use crate::commands::recordings::check::checked;
use crate::error::usage;
use crate::journals::reading::{RecordedRun, RunQuery};
use crate::service::environment::command;

/// Intervals kept of the run: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

/// Why there is no file of latencies.
const NOTHING: &str = "the run has neither proxy nor load";

/// Writes the requested files; `-` is standard output.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let flags = [
        ("--html", &args.html),
        ("--json", &args.json),
        ("--csv", &args.csv),
        ("--md", &args.md),
        ("--hgrm", &args.hgrm),
        ("--hlog", &args.hlog),
    ];
    let output_files = OutputFiles::check(&flags, [])?;
    if output_files.is_empty() {
        return Err(usage("report: name a file with --html, --json, --csv, --md, --hgrm or --hlog"));
    }
    let recorded = RecordedRun::read(&args.runs.sources, &RunQuery::of("report", &args.runs, INTERVALS_MAX))?;
    let run = recorded.run()?;
    let figures = Figures::of(recorded.model(), run, Some(&recorded.source));
    let conditions = checked(args.assert.clone(), &figures)?;
    let report = Report::new(recorded.model(), run, &recorded.source, command())
        .with_conditions(conditions)
        .with_apdex_threshold(args.apdex)
        .with_parts(recorded.parts.clone())
        .with_range(recorded.range);
    let report = if args.anonymise { report.anonymised() } else { report };
    output_files.write("--html", || Ok(report.html()))?;
    output_files.write("--json", || Ok(report.json()?))?;
    output_files.write("--csv", || Ok(report.csv()))?;
    output_files.write("--md", || Ok(report.markdown()))?;
    output_files.write("--hgrm", || ::report::percentile_file(run).context(NOTHING))?;
    output_files.write("--hlog", || {
        let (text, lacking) = ::report::interval_log(run).context(NOTHING)?;
        if lacking > 0 {
            crate::say(format_args!("warning: the log lacks {lacking} samples whose intervals are not kept"));
        }
        Ok(text)
    })
}
