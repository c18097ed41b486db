//! The arguments of `tlsdash bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::value::{InvalidValue, whole};

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash bench --against nginx,haproxy       # what tlsdash costs beside them
  tlsdash bench --against nginx --upstream 127.0.0.1:8080  # before your server
  tlsdash bench comparison.toml --save results --html results.html
  tlsdash bench seed:003 --quick              # a published experiment, in short
  tlsdash bench --resume results --rounds 12  # go on, or add rounds

Exit codes:
  0 done, 1 failed at run time, 2 wrong usage, 99 an assertion does not hold";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    pub(crate) mode: Option<BenchMode>,
    /// Scenario to run: a file, or a published experiment, seed:000 to seed:004
    #[arg(value_name = "SCENARIO", conflicts_with = "resume")]
    pub(crate) scenario: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) against: AgainstArgs,
    #[command(flatten)]
    pub(crate) selection: SelectionArgs,
    #[command(flatten)]
    pub(crate) output: BenchOutputArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum BenchMode {
    /// List the templates of targets, or print one to copy and change
    Templates {
        /// The template, such as nginx-http
        name: Option<String>,
    },
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Without a scenario")]
pub(crate) struct AgainstArgs {
    /// Compare tlsdash with these terminators: nginx, haproxy, hitch, stunnel, nghttpx, go, or a template
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', conflicts_with_all = ["scenario", "resume"])]
    pub(crate) against: Vec<String>,
    /// The server behind them all: HOST:PORT, http://HOST:PORT/PATH or unix:PATH [default: one that is started]
    #[arg(long, value_name = "TARGET", requires = "against")]
    pub(crate) upstream: Option<String>,
    /// The certificate of them all, in PEM [default: one that is made, for ECDSA with P-256]
    #[arg(long, value_name = "FILE", requires_all = ["against", "key"])]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key, in PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "What is run")]
pub(crate) struct SelectionArgs {
    /// Run only the cases marked quick, in six rounds
    #[arg(long, conflicts_with = "resume")]
    pub(crate) quick: bool,
    /// Rounds: how often each target runs each case [default: of the scenario]
    #[arg(long, value_name = "N", value_parser = whole::<u32>(1..=1_000))]
    pub(crate) rounds: Option<u32>,
    /// Seed of the random orders [default: random, and printed]
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(crate) seed: Option<u64>,
    /// Multiply all times and counts of requests by this, such as 0.5
    #[arg(long, value_name = "FACTOR", value_parser = factor, conflicts_with = "resume")]
    pub(crate) scale: Option<f64>,
    /// Run only these targets
    #[arg(long, value_name = "TARGET,...", value_delimiter = ',', conflicts_with = "resume")]
    pub(crate) only: Vec<String>,
    /// Run only the cases whose name matches; GLOB is a pattern of * and ?
    #[arg(long, value_name = "GLOB", conflicts_with = "resume")]
    pub(crate) case: Option<String>,
    /// Fail if the program of a target is missing; without this the others run
    #[arg(long)]
    pub(crate) require_all: bool,
    /// Print the cells and commands, and run nothing; also how long they take
    #[arg(long, conflicts_with = "resume")]
    pub(crate) dry_run: bool,
}

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Output")]
pub(crate) struct BenchOutputArgs {
    /// Keep all results in this new folder; with a journal of each cell for report, compare and watch
    #[arg(long, value_name = "FOLDER", conflicts_with = "resume")]
    pub(crate) save: Option<PathBuf>,
    /// Go on with the comparison in this folder; with more --rounds, add rounds
    #[arg(long, value_name = "FOLDER")]
    pub(crate) resume: Option<PathBuf>,
    /// Write the comparison as JSON (docs/bench.md); for this and all other files, - is standard output, and replaces the
    /// text
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write a row for each cell, with all its figures, as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    /// Write the tables as Markdown
    #[arg(long, value_name = "FILE")]
    pub(crate) md: Option<PathBuf>,
    /// Write one page that needs no network and prints well
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the result of each assertion as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
}

/// The largest factor of `--scale`.
const FACTOR_MAX: f64 = 1_000.0;

fn factor(text: &str) -> Result<f64, InvalidValue> {
    let factor = text.parse().ok().filter(|factor| (0.001..=FACTOR_MAX).contains(factor));
    factor.ok_or(InvalidValue("a factor from 0.001 to 1000"))
}
