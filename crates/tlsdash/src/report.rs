//! `tlsdash report`: files for others, from a run as a journal holds it.

use ::report::Report;
use anyhow::Context;

use crate::args::{ReportArgs, usage};
use crate::reading::{Recorded, Wanted};
use crate::written::{command, write};

/// Intervals that are kept: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

/// Why there is no file of latencies.
const NOTHING: &str = "the run has neither proxy nor load";

/// Writes the files that are wanted; - is standard output.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let files = [&args.html, &args.json, &args.csv, &args.md, &args.hgrm, &args.hlog];
    if files.iter().all(|file| file.is_none()) {
        return Err(usage("report: name a file with --html, --json, --csv, --md, --hgrm or --hlog"));
    }
    let recorded = Recorded::read(&args.runs.sources, &Wanted::of("report", &args.runs, INTERVALS_MAX))?;
    let run = recorded.run()?;
    let report =
        Report::new(recorded.model(), run, &recorded.source, command()).of_parts(recorded.parts.clone());
    let report = if args.anonymise { report.anonymised() } else { report };
    write("html", args.html.as_ref(), || Ok(report.html()))?;
    write("json", args.json.as_ref(), || Ok(report.json()?))?;
    write("csv", args.csv.as_ref(), || Ok(report.csv()))?;
    write("md", args.md.as_ref(), || Ok(report.markdown()))?;
    write("hgrm", args.hgrm.as_ref(), || ::report::percentile_file(run).context(NOTHING))?;
    write("hlog", args.hlog.as_ref(), || {
        let (text, lacking) = ::report::interval_log(run).context(NOTHING)?;
        if lacking > 0 {
            crate::say(format_args!("warning: the log lacks {lacking} samples whose intervals are not kept"));
        }
        Ok(text)
    })
}
