//! `tlsdash report`: files for others, from a run as a journal holds it.

use std::path::{Path, PathBuf};

use ::report::Report;
use anyhow::Context;

use crate::args::{ReportArgs, usage};
use crate::reading::{Recorded, Wanted};
use crate::summary;

/// Intervals that are kept: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

/// Writes the files that are wanted; - is standard output.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let files = [&args.html, &args.json, &args.csv, &args.md, &args.hgrm, &args.hlog];
    if files.iter().all(|file| file.is_none()) {
        return Err(usage("report: name a file with --html, --json, --csv, --md, --hgrm or --hlog"));
    }
    let wanted = Wanted {
        mode: "report",
        run: args.run.as_deref(),
        history: INTERVALS_MAX,
        since: args.since.as_deref(),
        until: args.until.as_deref(),
    };
    let recorded = Recorded::read(&args.sources, &wanted)?;
    let run = recorded.run()?;
    let report =
        Report::new(recorded.model(), run, &recorded.source, command()).of_parts(recorded.parts.clone());
    let report = if args.anonymise { report.anonymised() } else { report };
    write("html", args.html.as_ref(), || Ok(Some(report.html())))?;
    write("json", args.json.as_ref(), || Ok(Some(report.json()?)))?;
    write("csv", args.csv.as_ref(), || Ok(Some(report.csv())))?;
    write("md", args.md.as_ref(), || Ok(Some(report.markdown())))?;
    write("hgrm", args.hgrm.as_ref(), || Ok(::report::percentile_file(run)))?;
    write("hlog", args.hlog.as_ref(), || {
        let Some((text, lacking)) = ::report::interval_log(run) else { return Ok(None) };
        if lacking > 0 {
            crate::say(format_args!("warning: the log lacks {lacking} samples whose intervals are not kept"));
        }
        Ok(Some(text))
    })
}

fn write(
    flag: &str,
    file: Option<&PathBuf>,
    text: impl FnOnce() -> anyhow::Result<Option<String>>,
) -> anyhow::Result<()> {
    let Some(file) = file else { return Ok(()) };
    let nothing = || format!("--{flag} {}: the run has neither proxy nor load", file.display());
    let text = text()?.with_context(nothing)?;
    if file == Path::new("-") {
        return summary::print_text(&text);
    }
    std::fs::write(file, text).with_context(|| format!("cannot write --{flag} {}", file.display()))
}

/// What was asked for, so that a reader can ask again.
fn command() -> String {
    let words = std::env::args_os().skip(1).map(|word| {
        let word = telemetry::clean::text(&word.to_string_lossy());
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@".contains(c);
        if !word.is_empty() && word.chars().all(is_plain) {
            word
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    });
    std::iter::once("tlsdash".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
}
