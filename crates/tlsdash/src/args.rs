//! The words of the command line and of the configuration file: one list serves both, flags win.

#![expect(clippy::doc_markdown, reason = "the documentation of an argument is its help text")]
#![allow(rustdoc::broken_intra_doc_links, reason = "the same; only rustdoc sees it")]

mod configuration;
mod recorded;

use std::ffi::OsString;
use std::fmt;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::{Deserialize, Serialize};
use telemetry::Moment;
use tui::Speed;

use crate::load::LoadArgs;
use crate::look::LookWords;
use crate::tls_words::TlsWords;
use crate::writers::WriterArgs;

pub(crate) use configuration::ProxyWords;
pub use configuration::read_configuration;
pub(crate) use recorded::{CheckArgs, CompactArgs, CompareArgs, ReportArgs, RunsArgs};

/// Shortest interval: the budget of records must hold proxy, load and host of every interval.
const INTERVAL_MIN: Duration = Duration::from_millis(100);
/// Longest interval.
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// The command line or the configuration is wrong; ends with exit code 2.
#[derive(Debug)]
pub(crate) struct Usage(String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Makes an error that ends with exit code 2. The reason may quote anything: it becomes one printable line.
pub(crate) fn usage(reason: impl fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Usage(telemetry::clean::line(&reason.to_string())))
}

/// Stands below the help.
const EXIT_CODES: &str =
    "Exit codes: 0 done, 1 failed at run time, 2 wrong usage or configuration, 99 an assertion does not hold";

/// Observe what TLS costs, live, on this box.
///
/// Terminates TLS in front of an application, loads it if asked to, and shows latency percentiles, full against
/// resumed handshakes, and the throughput of each client. Every figure shown was read back from a systemd journal.
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

#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Run everything built in: certificate, upstream, load, dashboard; nothing to set up
    Demo(Box<DemoArgs>),
    /// Run the load generator alone, against any server
    Load(Box<LoadArgs>),
    /// Show the dashboard over a journal, read-only: a running service, or a recording
    Watch(WatchArgs),
    /// Check what a run came to, as a journal holds it; ends with exit code 99 if a condition does not hold
    Check(CheckArgs),
    /// Write a report on a run, as a journal holds it: a page for people, tables, or files for tools
    Report(ReportArgs),
    /// Copy a recording in fewer records: intervals of ten seconds, with the same totals and latencies
    Compact(CompactArgs),
    /// Compare two runs, as journals hold them: what differs, by how much, and whether that can be said
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

/// What every mode that makes records takes.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct RunWords {
    /// Where records go: auto, system, namespace:NAME, file:PATH.journal, or off (headless only) [default: auto]
    #[arg(long, value_name = "WHERE")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) journal: Option<String>,
    /// Write a second copy of all records to this journal file, which must not exist
    #[arg(long, value_name = "FILE.journal")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) record: Option<PathBuf>,
    /// Go on in the file of --record if it exists: what is there is archived beside it
    #[arg(long)]
    pub(crate) append: bool,
    /// How often counters become records, 100ms to 60s [default: 1s]
    #[arg(long, value_name = "TIME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interval: Option<String>,
    /// Run without a dashboard, until SIGTERM or Ctrl-C
    #[arg(long)]
    pub(crate) headless: bool,
    /// Go on without a dashboard when the terminal goes away, until SIGTERM; without this the run ends then
    #[arg(long)]
    pub(crate) keep_running: bool,
    /// How the summary at the end is printed [default: text]
    #[arg(long, value_name = "FORMAT")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) format: Option<Format>,
    /// Compare two values of a setting in pairs of blocks, such as workers=1..2,metric=exchange.p99,pairs=12; the other
    /// words are aa, block, discard, flush and keep (docs/experiments.md). Without a dashboard the run ends with it
    #[arg(long, value_name = "WORDS")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ab: Option<String>,
}

#[derive(Args, Debug)]
pub(crate) struct ProxyArgs {
    #[command(flatten)]
    pub(crate) words: ProxyWords,
    /// Configuration file in TOML, with the same words; flags win
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print the configuration in force, defaults included, and end
    #[arg(long)]
    pub(crate) print_config: bool,
}

#[derive(Args, Debug)]
pub(crate) struct DemoArgs {
    /// Address of the proxy [default: a free port of 127.0.0.1]
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: Option<String>,
    /// Words of the load plan that differ from the demo's
    /// rate=1000,connections=32,sources=16,keepalive=10,resume=80%
    #[arg(long, value_name = "PLAN")]
    pub(crate) load: Option<String>,
    /// Worker threads of the proxy [default: half the cores]
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<NonZeroUsize>,
    /// End by itself after so long and print a summary
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Configuration file in TOML, of which the dashboard's look and keys are taken
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) tls: TlsWords,
    #[command(flatten)]
    pub(crate) run: RunWords,
    #[command(flatten)]
    pub(crate) look: LookWords,
}

#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// Journal to watch: a file with its archives, a folder of files, `system`, or `namespace:NAME`; with @FROM..TO behind
    /// it a stretch of its run, such as @13:05..13:10, @-10m.. or @mark:2..mark:3 [default: where `--journal auto` writes]
    #[arg(value_name = "SOURCE")]
    pub(crate) source: Option<OsString>,
    /// Play what was recorded, from its beginning or --from, so many times as fast: 1/4, 1/2, 1, 2, 4, 8, 16, 32 or 64
    /// [default: 1]
    #[arg(long, value_name = "SPEED", num_args = 0..=1, require_equals = true, default_missing_value = "1")]
    #[arg(conflicts_with = "headless")]
    pub(crate) play: Option<Speed>,
    /// Begin at this time of the run instead of its end: 13:05 or 2026-01-31T13:05:00Z (UTC), 5m into it, -10m before its
    /// end, or mark:2
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, conflicts_with = "headless")]
    pub(crate) from: Option<Moment>,
    /// The run to show, by its id or the beginning of it (TLSDASH_RUN) [default: the newest]
    #[arg(long, value_name = "ID")]
    pub(crate) run: Option<String>,
    #[command(flatten)]
    pub(crate) writers: WriterArgs,
    /// Print the summary that the journal gives, without a screen
    #[arg(long)]
    pub(crate) headless: bool,
    /// How the summary is printed [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub(crate) format: Option<Format>,
    /// Configuration file in TOML, of which the dashboard's look and keys are taken
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) look: LookWords,
}

/// Reads a length of time such as `10s`; `flag` names it in the error.
pub(crate) fn time(flag: &str, text: &str) -> anyhow::Result<Duration> {
    match time_or_none(flag, text)? {
        Duration::ZERO => Err(usage(format!("--{flag} {text}: must be longer than nothing"))),
        time => Ok(time),
    }
}

/// The same, where nothing is a length too.
pub(crate) fn time_or_none(flag: &str, text: &str) -> anyhow::Result<Duration> {
    humantime::parse_duration(text).map_err(|_| {
        usage(format!("--{flag} {text}: expected a time with its unit, such as 500ms, 10s or 5m"))
    })
}

impl RunWords {
    pub(crate) fn interval(&self) -> anyhow::Result<Duration> {
        let text = self.interval.as_deref().unwrap_or("1s");
        let interval = time("interval", text)?;
        if (INTERVAL_MIN..=INTERVAL_MAX).contains(&interval) {
            return Ok(interval);
        }
        Err(usage(format!("--interval {text}: must be from 100ms to 60s")))
    }

    fn or(self, other: Self) -> Self {
        Self {
            journal: self.journal.or(other.journal),
            record: self.record.or(other.record),
            append: self.append || other.append,
            interval: self.interval.or(other.interval),
            headless: self.headless || other.headless,
            keep_running: self.keep_running || other.keep_running,
            format: self.format.or(other.format),
            ab: self.ab.or(other.ab),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn flags_win_over_the_file_and_the_file_over_the_defaults() {
        let file: ProxyWords =
            toml::from_str("upstream = \"unix:/a\"\nworkers = 3\ninterval = \"2s\"").unwrap();
        let flags = ProxyWords { upstream: vec!["unix:/b".into()], ..ProxyWords::default() };
        let words = flags.or(file).or(ProxyWords::defaults());
        assert_eq!(words.upstream, ["unix:/b"]);
        assert_eq!(words.workers.map(NonZeroUsize::get), Some(3));
        assert_eq!(words.run.interval.as_deref(), Some("2s"));
        assert_eq!(words.listen, [":8443"]);
    }

    #[test]
    fn the_printed_configuration_reads_back() {
        let words = ProxyWords { upstream: vec!["unix:/a".into()], ..ProxyWords::default() }
            .or(ProxyWords::defaults());
        let printed = words.to_toml().unwrap();
        let read: ProxyWords = toml::from_str(&printed).unwrap();
        assert_eq!(read.to_toml().unwrap(), printed);
    }

    #[test]
    fn a_configuration_is_read_without_files_and_refused_in_one_line() {
        let printed = read_configuration("").unwrap();
        assert_eq!(read_configuration(&printed), Ok(printed.clone()));
        let all = printed.replace("# ", "");
        assert!(read_configuration(&all).is_ok(), "{all}");
        for (text, part) in [
            ("upstream = [", "line 1"),
            ("\n\nworkers = \"two\"", "line 3: workers"),
            ("idle-timeout = \"2days\"", "1ms to 24h"),
            ("groups = \"x448\"", "x448 is not known"),
            ("listen = [\"8443\"]", "--listen 8443"),
            ("ticket-send = \"\\nswer\"", "--ticket-send \\u{a}swer: "),
        ] {
            let error = read_configuration(text).unwrap_err();
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn every_flag_stands_in_the_printed_configuration() {
        let printed = ProxyWords::default().or(ProxyWords::defaults()).to_toml().unwrap();
        for argument in Cli::command().get_arguments() {
            let word = argument.get_long().unwrap_or_default();
            if ["config", "print-config", "help", "version"].contains(&word) {
                continue;
            }
            let stands =
                printed.lines().any(|line| line.trim_start_matches("# ").starts_with(&format!("{word} = ")));
            assert!(stands, "{word} in {printed}");
        }
        let uncommented = printed.replace("# ", "");
        assert!(toml::from_str::<ProxyWords>(&uncommented).is_ok(), "{uncommented}");
    }

    #[test]
    fn every_flag_that_the_operators_guide_names_exists() {
        let guide =
            [include_str!("../../../docs/proxy.md"), include_str!("../../../docs/tlsdash.service")].concat();
        let known: Vec<_> =
            Cli::command().get_arguments().filter_map(|arg| arg.get_long().map(str::to_owned)).collect();
        let flags = guide
            .split("--")
            .skip(1)
            .map(|rest| rest.split(|c: char| !c.is_ascii_lowercase() && c != '-').next().unwrap_or_default());
        for flag in flags.filter(|flag| flag.starts_with(|c: char| c.is_ascii_lowercase())) {
            assert!(known.iter().any(|word| word == flag), "--{flag} is not a flag");
        }
    }

    #[test]
    fn times_need_a_unit_and_a_length() {
        assert!(time("duration", "10s").is_ok_and(|t| t == Duration::from_secs(10)));
        for text in ["0", "0s", "10", "-1s", "soon", ""] {
            assert!(time("duration", text).is_err_and(|error| error.is::<Usage>()), "{text:?}");
        }
    }
}
