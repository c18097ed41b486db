//! The command line: the proxy, and the commands.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::{Flags, ProxyArgs};
use crate::commands::bench::BenchArgs;
use crate::commands::bench_upstream::BenchUpstreamArgs;
use crate::commands::config::ConfigArgs;
use crate::commands::ctl::CtlArgs;
use crate::commands::demo::DemoArgs;
use crate::commands::load::LoadArgs;
use crate::commands::observed::observe::ObserveArgs;
use crate::commands::observed::wire::WireArgs;
use crate::commands::recordings::check::CheckArgs;
use crate::commands::recordings::compact::CompactArgs;
use crate::commands::recordings::compare::CompareArgs;
use crate::commands::recordings::explain::ExplainArgs;
use crate::commands::recordings::report::ReportArgs;
use crate::commands::recordings::runs::ListRunsArgs;
use crate::commands::selftest::SelftestArgs;
use crate::commands::watch::WatchArgs;

/// Printed below the help.
const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed at run time, 2 wrong usage or configuration, 99 an assertion does not hold, or explain found something";

/// Observe what TLS costs, live, on this box.
///
/// Terminates TLS in front of an application, can load it, and shows latency percentiles, full and resumed handshakes,
/// and the throughput of each client. Every figure is read back from a systemd journal. Without arguments it shows what
/// one can do here.
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
    /// Check whether tlsdash works here, and what this machine lacks
    Selftest(SelftestArgs),
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

/// Commands that the program starts itself. Help, completions and manual do not list them.
#[derive(Debug, Parser)]
#[command(name = "tlsdash")]
pub(crate) enum InternalCommand {
    /// Runs a command of a bench, and ends all that descends from it
    BenchSupervisor,
    /// Serves the answers behind the targets of a bench
    BenchUpstream(BenchUpstreamArgs),
}

impl InternalCommand {
    /// Parses a command line that starts with the program's name; `None` if it names none of these commands.
    pub(crate) fn read(args: &[OsString]) -> Option<Result<Self, clap::Error>> {
        let is_internal = Self::has_subcommand(args.get(1)?.to_str()?);
        is_internal.then(|| Self::try_parse_from(args))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }
}
