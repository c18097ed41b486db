//! `tlsdash report`: files for others, from a run as a journal holds it.

use ::report::Report;
use anyhow::Context;

use crate::args::{ReportArgs, usage};
use crate::environment::command;
use crate::outputs::Outputs;
use crate::reading::{Recorded, Wanted};

/// Intervals that are kept: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

/// Why there is no file of latencies.
const NOTHING: &str = "the run has neither proxy nor load";

/// Writes the files that are wanted; - is standard output.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let flags = [
        ("--html", &args.html),
        ("--json", &args.json),
        ("--csv", &args.csv),
        ("--md", &args.md),
        ("--hgrm", &args.hgrm),
        ("--hlog", &args.hlog),
    ];
    let outputs = Outputs::check(&flags, [])?;
    if outputs.is_empty() {
        return Err(usage("report: name a file with --html, --json, --csv, --md, --hgrm or --hlog"));
    }
    let recorded = Recorded::read(&args.runs.sources, &Wanted::of("report", &args.runs, INTERVALS_MAX))?;
    let run = recorded.run()?;
    let report = Report::new(recorded.model(), run, &recorded.source, command())
        .of_parts(recorded.parts.clone())
        .of_stretch(recorded.stretch);
    let report = if args.anonymise { report.anonymised() } else { report };
    outputs.write("--html", || Ok(report.html()))?;
    outputs.write("--json", || Ok(report.json()?))?;
    outputs.write("--csv", || Ok(report.csv()))?;
    outputs.write("--md", || Ok(report.markdown()))?;
    outputs.write("--hgrm", || ::report::percentile_file(run).context(NOTHING))?;
    outputs.write("--hlog", || {
        let (text, lacking) = ::report::interval_log(run).context(NOTHING)?;
        if lacking > 0 {
            crate::say(format_args!("warning: the log lacks {lacking} samples whose intervals are not kept"));
        }
        Ok(text)
    })
}
