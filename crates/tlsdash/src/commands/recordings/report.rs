//! `tlsdash report`: files about a run in a journal.

use std::io::{self, IsTerminal as _};
use std::path::PathBuf;
use std::time::Duration;

use ::report::{Assertion, Figures, Report};
use anyhow::Context;
use clap::Args;

use crate::cli::RunsArgs;
use crate::cli::configuration::setting_infos;
use crate::commands::output_files::OutputFiles;
use crate::commands::recordings::check::checked;
use crate::journals::reading::RecordedRun;
use crate::service::environment::command;
use crate::value::time;

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash report run.journal                  # the tables
  tlsdash report run.journal --html run.html  # a page
  tlsdash report --since -1h --csv hour.csv   # an hour of the service
  tlsdash report run.journal --json - --anonymise";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Write one page that needs no network and prints well; for this and all other files, - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write figures, settings and intervals as JSON; docs/reports.md describes it
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the intervals as CSV: a line for each counter and each class of latencies
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the tables as Markdown; without any file they go to standard output, on a terminal in columns
    #[arg(long, value_name = "FILE")]
    pub(crate) md: Option<PathBuf>,
    /// Write the percentiles for HdrHistogram's plotter
    #[arg(long, value_name = "FILE")]
    pub(crate) hgrm: Option<PathBuf>,
    /// Write an HdrHistogram log of all intervals
    #[arg(long, value_name = "FILE")]
    pub(crate) hlog: Option<PathBuf>,
    /// Condition to show as pass or fail, such as 'response.p99 < 5ms'; may be repeated. A condition that fails changes
    /// nothing of the exit code: that is what `tlsdash check` is for
    #[arg(long, value_name = "CONDITION")]
    pub(crate) assert: Vec<Assertion>,
    /// Threshold T of the Apdex score: answers within it satisfy, those within four times as long are tolerated
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = time)]
    pub(crate) apdex: Duration,
    /// Replace clients by numbers; hosts, addresses and names are left out
    #[arg(long)]
    pub(crate) anonymise: bool,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
}

/// Intervals kept of the run: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

/// Why there is no file of latencies.
const NOTHING: &str = "the run has neither proxy nor load";

/// Writes the requested files; `-` is standard output.
pub(crate) fn run(args: &ReportArgs) -> anyhow::Result<()> {
    let mut flags = [
        ("--html", &args.html),
        ("--json", &args.json),
        ("--csv", &args.csv),
        ("--md", &args.md),
        ("--hgrm", &args.hgrm),
        ("--hlog", &args.hlog),
    ];
    let tables_to_stdout = Some(PathBuf::from("-"));
    let names_none = flags.iter().all(|(_, path)| path.is_none());
    if names_none {
        flags[3].1 = &tables_to_stdout;
    }
    let output_files = OutputFiles::check(&flags, [])?;
    let recorded = RecordedRun::read(&args.runs.sources, &args.runs.query("report", INTERVALS_MAX))?;
    let run = recorded.run()?;
    let figures = Figures::of(recorded.model(), run, Some(&recorded.source));
    let conditions = checked(args.assert.clone(), &figures)?;
    let report = Report::new(recorded.model(), run, &recorded.source, command())
        .with_conditions(conditions)
        .with_apdex_threshold(args.apdex)
        .with_setting_infos(setting_infos::all())
        .with_parts(recorded.parts.clone())
        .with_range(recorded.range);
    let report = if args.anonymise { report.anonymised() } else { report };
    output_files.write("--html", || Ok(report.html()))?;
    output_files.write("--json", || Ok(report.json()?))?;
    output_files.write("--csv", || Ok(report.csv()))?;
    let is_read_here = names_none && io::stdout().is_terminal();
    let tables = || if is_read_here { ::report::columns(&report.markdown()) } else { report.markdown() };
    output_files.write("--md", || Ok(tables()))?;
    output_files.write("--hgrm", || ::report::percentile_file(run).context(NOTHING))?;
    output_files.write("--hlog", || {
        let (text, lacking) = ::report::interval_log(run).context(NOTHING)?;
        if lacking > 0 {
            crate::say(format_args!("warning: the log lacks {lacking} samples whose intervals are not kept"));
        }
        Ok(text)
    })
}
