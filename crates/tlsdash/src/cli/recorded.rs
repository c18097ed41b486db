//! The options of the commands that read recordings.

#![expect(clippy::doc_markdown, reason = "the documentation of an argument is its help text")]
#![allow(rustdoc::broken_intra_doc_links, reason = "the same; only rustdoc sees it")]

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use experiment::ComparableFigure;
use model::history::Moment;
use model::insight::Severity;
use report::Assertion;

use super::Format;
use super::value::{ParsedValue, time, time_or_none};
use crate::journals::reading::RunPrefix;
use crate::journals::writers::WriterArgs;

/// Which runs are read, and of when.
#[derive(Args, Debug)]
pub(crate) struct RunsArgs {
    /// Journals to read: a file with its archives, a folder of files, `system`, or `namespace:NAME`; runs of several are
    /// merged. @FROM..TO behind one selects a time range, such as @13:05..13:10 (UTC), @-10m.. or @mark:2..mark:3
    /// [default: where `--journal auto` writes]
    #[arg(value_name = "SOURCE")]
    pub(crate) sources: Vec<OsString>,
    /// The run, by its id (TLSDASH_RUN) or the first characters of it [default: the newest of each host]
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<RunPrefix>,
    /// The newest run of the host of this name only (_HOSTNAME)
    #[arg(long, value_name = "NAME", conflicts_with = "run")]
    pub(crate) host: Option<String>,
    /// This service only, of a run of `wire`: its name, its port or its process, such as :443 or nginx
    #[arg(long, value_name = "NAME")]
    pub(crate) service: Option<String>,
    /// Start of the time range: 13:05 or 2026-01-31T13:05:00Z (UTC), or -1h for an hour ago
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) since: Option<ParsedValue<Moment>>,
    /// End of the time range
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    pub(crate) until: Option<ParsedValue<Moment>>,
    #[command(flatten)]
    pub(crate) writers: WriterArgs,
}

#[derive(Args, Debug)]
pub(crate) struct ListRunsArgs {
    /// Journal to read: a file with its archives, a folder of files, `system`, or `namespace:NAME`; @FROM..TO behind it
    /// selects a time range [default: where `--journal auto` writes]
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<OsString>,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    #[command(flatten)]
    pub(crate) writers: WriterArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
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
}

#[derive(Args, Debug)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// End with exit code 99 if a finding of the run was so severe, or more: info, warning or critical
    #[arg(long, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<FindingSeverity>,
}

/// How severe a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FindingSeverity {
    Info,
    Warning,
    Critical,
}

impl From<FindingSeverity> for Severity {
    fn from(severity: FindingSeverity) -> Self {
        match severity {
            FindingSeverity::Info => Self::Info,
            FindingSeverity::Warning => Self::Warning,
            FindingSeverity::Critical => Self::Critical,
        }
    }
}

#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    /// Journal to read: a file with its archives, a folder of files, `system`, or `namespace:NAME`; it is not changed
    #[arg(value_name = "SOURCE")]
    pub(crate) source: OsString,
    /// File to write, which must not exist
    #[arg(value_name = "FILE.journal")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) writers: WriterArgs,
}

#[derive(Args, Debug)]
pub(crate) struct CompareArgs {
    /// Journal of the first run: a file with its archives, a folder of files, `system`, or `namespace:NAME`; @FROM..TO
    /// behind it selects a time range, such as @13:05..13:10 (UTC), @-10m.. or @mark:2..mark:3
    #[arg(value_name = "A")]
    pub(crate) a: OsString,
    /// Journal of the second run; without it, A's, with --run-b, or else what the A/B experiments of A came to
    #[arg(value_name = "B")]
    pub(crate) b: Option<OsString>,
    /// The first run, by its id or the first characters of it [default: the newest]
    #[arg(long, value_name = "ID")]
    pub(crate) run_a: Option<RunPrefix>,
    /// The second run
    #[arg(long, value_name = "ID")]
    pub(crate) run_b: Option<RunPrefix>,
    #[command(flatten)]
    pub(crate) writers: WriterArgs,
    /// Figures to compare, such as exchange.p99+cpu.per_exchange (docs/figures.md) [default: the usual ones that both have]
    #[arg(long, value_name = "M+M", value_delimiter = '+')]
    pub(crate) metric: Vec<ComparableFigure>,
    /// Length of the blocks that each run is cut into; at least four must fit [default: by the length of the runs, which
    /// give a verdict from 45 s on]
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) block: Option<Duration>,
    /// Time at the start of each run to ignore [default: 5s, and of runs of less than 20 s a quarter]
    #[arg(long, value_name = "TIME", value_parser = time_or_none)]
    pub(crate) discard: Option<Duration>,
    /// Compare runs that are not comparable too, such as of different loads; why they are not stands first
    #[arg(long)]
    pub(crate) force: bool,
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Write one page with both runs drawn over each other; it needs no network, and prints well. For this and all other
    /// files, - is standard output, and replaces the text
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the comparison as JSON too (docs/compare.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the comparison as Markdown too
    #[arg(long, value_name = "FILE")]
    pub(crate) md: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub(crate) struct ReportArgs {
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
    /// Write one page that needs no network and prints well; for this and all other files, - is standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write figures, settings and intervals as JSON (docs/reports.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the intervals as CSV: a line for each counter and each class of latencies
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the tables as Markdown
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
    /// Replace clients by numbers, and leave out hosts, addresses and names
    #[arg(long)]
    pub(crate) anonymise: bool,
}
