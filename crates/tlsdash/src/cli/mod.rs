//! The command line and the configuration file. Both have the same options, and flags win.
//!
//! The options of the proxy are in `configuration/`. Its limits and TLS options are not in this crate: proxy-core
//! declares each once (see `DeclaredOptions`), and `value/options.rs` makes a flag and a configuration key of it. After
//! a change `just schema` writes docs/options.md.

#![expect(clippy::doc_markdown, reason = "the documentation of an argument is its help text")]
#![allow(rustdoc::broken_intra_doc_links, reason = "the same; only rustdoc sees it")]

pub(crate) mod acme;
pub(crate) mod appearance;
mod balancing;
pub(crate) mod config;
pub(crate) mod configuration;
pub(crate) mod ctl;
pub(crate) mod destinations;
#[cfg(test)]
mod document;
mod effective_options;
pub(crate) mod http;
mod internal;
pub(crate) mod mode;
mod printed;
mod recorded;
pub(crate) mod tls;
mod upstream_tls;
pub(crate) mod value;

use std::ffi::OsString;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::parser::ValueSource;
use clap::{ArgMatches, Args, Command, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use experiment::ExperimentPlan;
use model::alerts::Alert;
use model::history::Moment;
use proxy_core::{ListenAddr, TlsSettings};
use serde::{Deserialize, Serialize};
use tui::Speed;

use crate::commands::bench::BenchArgs;
use crate::commands::load::LoadArgs;
use crate::commands::observed::observe::ObserveArgs;
use crate::commands::observed::wire::WireArgs;
use crate::journals::choice::JournalChoice;
use crate::journals::reading::RunPrefix;
use crate::journals::writers::WriterArgs;
use appearance::AppearanceOptions;
use config::ConfigArgs;
use ctl::CtlArgs;
use mode::ProxyMode;
use tls::TlsFileOptions;
use value::options::OptionValues;
use value::{ParsedValue, PositiveDuration, RecordInterval, one_or_many};

pub use configuration::{ConfigurationError, read_configuration};
pub(crate) use configuration::{ProxyArgs, ProxyOptions, read_file};
pub(crate) use internal::{BenchUpstreamArgs, InternalCommand};
pub(crate) use recorded::{
    CheckArgs, CompactArgs, CompareArgs, ExplainArgs, ListRunsArgs, ReportArgs, RunsArgs,
};

/// Printed below the help.
const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed at run time, 2 wrong usage or configuration, 99 an assertion does not hold, or explain found something";

/// Observe what TLS costs, live, on this box.
///
/// Terminates TLS in front of an application, can load it, and shows latency percentiles, full and resumed handshakes,
/// and the throughput of each client. Every figure is read back from a systemd journal.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    max_term_width = 100, after_help = EXIT_CODES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) mode: Option<Mode>,
    #[command(flatten)]
    pub(crate) proxy: ProxyArgs,
}

impl Cli {
    /// Parses a command line; `args` starts with the program's name.
    ///
    /// # Errors
    /// When it is wrong. `--help` and `--version` are also errors, whose text the caller prints.
    pub(crate) fn read(
        args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<(Self, Flags), clap::Error> {
        let matches = Self::command().try_get_matches_from(args)?;
        Ok((Self::from_arg_matches(&matches)?, Flags::new(matches)))
    }
}

/// The flags given to the program or to its subcommand, without those at their defaults.
#[derive(Clone, Debug)]
pub(crate) struct Flags(ArgMatches);

impl Flags {
    fn new(mut matches: ArgMatches) -> Self {
        let mut matches = match matches.remove_subcommand() {
            Some((_, of_subcommand)) => of_subcommand,
            None => matches,
        };
        let is_default =
            |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::DefaultValue);
        let defaults: Vec<_> = matches.ids().filter(is_default).cloned().collect();
        for id in defaults {
            // This fails only for an unknown flag.
            let _ = matches.try_clear_id(id.as_str());
        }
        Self(matches)
    }

    /// Whether the flag of this word was given.
    pub(crate) fn is_given(&self, word: &str) -> bool {
        let ids = [word.to_owned(), word.replace('-', "_")];
        ids.iter().any(|id| self.0.ids().any(|given| given == id.as_str()))
    }

    /// Applies the flags over the options of a configuration file.
    pub(crate) fn over<T: FromArgMatches>(&self, mut file: T) -> anyhow::Result<T> {
        file.update_from_arg_matches(&self.0)?;
        Ok(file)
    }
}

/// The options when no flag is given: every default.
fn without_flags<T: Args>() -> T {
    let matches = T::augment_args(Command::new("tlsdash")).try_get_matches_from(["tlsdash"]);
    matches.and_then(|matches| T::from_arg_matches(&matches)).expect("every default of a flag can be read")
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Run proxy, load and dashboard with a built-in certificate and upstream; needs no set-up
    Demo(Box<DemoArgs>),
    /// Run the load generator alone, against any server
    Load(Box<LoadArgs>),
    /// Compare servers side by side: rounds of short loads, with verdicts
    Bench(Box<BenchArgs>),
    /// Count the log of a terminator that runs already: HAProxy, nginx or stunnel
    Observe(Box<ObserveArgs>),
    /// Count the TLS connections of this machine, or of a capture, from their packets, whoever terminates them
    Wire(Box<WireArgs>),
    /// Show the dashboard over a journal: a running service, or a recording
    Watch(WatchArgs),
    /// List the runs in a journal: when, where, by whom, and their headline figures
    Runs(ListRunsArgs),
    /// Control a running service: settings, marks, reload, drain, experiments
    Ctl(CtlArgs),
    /// Check a configuration file, or compare it with what runs
    Config(ConfigArgs),
    /// Check conditions on a recorded run; exit code 99 if one does not hold
    Check(CheckArgs),
    /// Explain a run: what is about to break, why handshakes were full, and what would help
    Explain(ExplainArgs),
    /// Write a report on a recorded run: a page, tables, or files for tools
    Report(ReportArgs),
    /// Copy a recording with intervals of ten seconds; totals and latencies stay the same
    Compact(CompactArgs),
    /// Compare two recorded runs: what differs, by how much, and how sure that is
    Compare(CompareArgs),
    /// Print completions for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or that of a command
    Man {
        /// The command, such as demo
        command: Option<String>,
    },
}

/// How a summary is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// A table for people.
    #[default]
    Text,
    /// The documented JSON summary.
    Json,
}

/// The options of every command that writes records.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct RunOptions {
    /// Where records go: auto, system, namespace:NAME, file:PATH.journal, or off (headless only)
    #[arg(long, value_name = "WHERE", default_value = "auto")]
    pub(crate) journal: ParsedValue<JournalChoice>,
    /// Write a second copy of all records to this journal file, which must not exist
    #[arg(long, value_name = "FILE.journal")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<PathBuf>,
    /// Archive an existing file of --record beside the new one
    #[arg(long)]
    pub(crate) append: bool,
    /// Time between records of the counters, 100ms to 60s
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: ParsedValue<RecordInterval>,
    /// Run without a dashboard, until SIGTERM or Ctrl-C
    #[arg(long)]
    pub(crate) headless: bool,
    /// Keep serving without a dashboard when the terminal closes, until SIGTERM
    #[arg(long)]
    pub(crate) keep_running: bool,
    /// Format of the summary at the end
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Alert while a figure is beyond a limit, such as 'response.p99 > 5ms for 30s' or 'failed.ratio > 1% over 1m'; may be
    /// repeated (docs/alerts.md)
    #[arg(long, value_name = "CONDITION")]
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_many")]
    pub(crate) alert: Vec<ParsedValue<Alert>>,
    /// Serve figures for Prometheus at http://ADDR/metrics, and /healthz and /readyz (docs/metrics.md)
    #[arg(long, value_name = "ADDR", value_parser = value::address)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) metrics: Option<SocketAddr>,
    /// Give this many clients metrics of their own, those with most bytes (0 to 1000)
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) metrics_clients: usize,
    /// Compare two values of a setting in pairs of blocks, such as workers=1..2,metric=exchange.p99,pairs=12; other
    /// words: quick, normal, careful, aa, block, discard, flush, keep (docs/experiments.md). A headless run ends with the experiment
    #[arg(long, value_name = "WORDS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ab: Option<ParsedValue<ExperimentPlan>>,
}

impl Default for RunOptions {
    fn default() -> Self {
        without_flags()
    }
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Address of the proxy [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0", hide_default_value = true)]
    pub(crate) listen: ListenAddr,
    /// What the proxy does: tcp forwards bytes, http speaks HTTP/2 and shows two routes
    #[arg(long, value_name = "MODE", default_value = "tcp")]
    pub(crate) mode: ProxyMode,
    /// Changes to the demo's load plan,
    /// rate=1000,connections=32,sources=16,keepalive=10,resume=80%; in HTTP mode also http2=on,streams=4
    #[arg(long, value_name = "PLAN", default_value = "", hide_default_value = true)]
    pub(crate) load: String,
    /// Worker threads of the proxy [default: half the cores]
    #[arg(long, value_name = "N", value_parser = value::workers)]
    pub(crate) workers: Option<NonZeroUsize>,
    /// End after this time and print a summary
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<ParsedValue<PositiveDuration>>,
    /// Configuration file in TOML, for the dashboard's colours and keys
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tls_files: TlsFileOptions,
    #[command(flatten)]
    pub(crate) tls: OptionValues<TlsSettings>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
    #[command(flatten)]
    pub(crate) appearance: AppearanceOptions,
}

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Journal to watch: a file with its archives, a folder of files, `system`, or `namespace:NAME`; @FROM..TO behind it
    /// selects a time range, such as @13:05..13:10, @-10m.. or @mark:2..mark:3 [default: where `--journal auto` writes]
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<OsString>,
    /// Play the recording from its start, or from --from, at this speed: 1/4, 1/2, 1, 2, 4, 8, 16, 32 or 64
    /// [default: 1]
    #[arg(long, value_name = "SPEED", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    #[arg(conflicts_with = "headless")]
    pub(crate) play: Option<Speed>,
    /// Start at this time of the run, not at its end: 13:05 or 2026-01-31T13:05:00Z (UTC), 5m after its start, -10m before
    /// its end, or mark:2
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "headless")]
    pub(crate) from: Option<Moment>,
    /// The run to show, by its id (TLSDASH_RUN) or the first characters of it [default: the newest]
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<RunPrefix>,
    #[command(flatten)]
    pub(crate) writers: WriterArgs,
    /// Print the summary of the journal, without a screen
    #[arg(long)]
    pub(crate) headless: bool,
    /// Format of the summary
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Configuration file in TOML, for the dashboard's colours and keys
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) appearance: AppearanceOptions,
}
