//! The command line: the proxy, and the commands.

use std::ffi::OsString;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::cli::help::with_summaries;
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

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash demo                              # look around: it needs no set-up
  tlsdash --upstream 127.0.0.1:8080         # TLS for that server, at :8443
  tlsdash --upstream 127.0.0.1:8080 --load rate=200,resume=80%
  tlsdash --mode http --upstream app:80 --route shop.example/img=img:80
  tlsdash --config tlsdash.toml --headless  # as a service does

Exit codes:
  0 done, 1 failed at run time, 2 wrong usage or configuration,
  99 an assertion does not hold, or explain --fail-on found something

Documents: docs/NAME.md is NAME.html in /usr/share/doc/tlsdash/html/docs";

const COMPLETIONS: &str = "Examples:
  tlsdash completions bash > /etc/bash_completion.d/tlsdash
  tlsdash completions fish > ~/.config/fish/completions/tlsdash.fish";

const MANUALS: &str = "Examples:
  tlsdash man load
  tlsdash man load > tlsdash-load.1  # the page as a file";

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
    max_term_width = 100, after_long_help = EXAMPLES
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) mode: Option<Mode>,
    #[command(flatten)]
    pub(crate) proxy: ProxyArgs,
}

impl Cli {
    /// The command line with its help.
    pub(crate) fn described() -> Command {
        with_summaries(Self::command())
    }

    /// Parses a command line; `args` starts with the program's name.
    ///
    /// # Errors
    /// When it is wrong. `--help` and `--version` are also errors, whose text the caller prints.
    pub(crate) fn read(
        args: impl IntoIterator<Item = impl Into<OsString> + Clone>,
    ) -> Result<(Self, Flags), clap::Error> {
        let matches = Self::described().try_get_matches_from(args)?;
        Ok((Self::from_arg_matches(&matches)?, Flags::new(matches)))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Mode {
    /// Run proxy, load, upstream and dashboard; needs no set-up
    Demo(Box<DemoArgs>),
    /// Run the load generator alone, against any server
    Load(Box<LoadArgs>),
    /// Compare servers side by side; rounds of short loads, with verdicts
    Bench(Box<BenchArgs>),
    /// Count the log of HAProxy, nginx or stunnel
    Observe(Box<ObserveArgs>),
    /// Count TLS connections from packets, live or of a capture
    Wire(Box<WireArgs>),
    /// Show the dashboard of a running service, or of a recording
    Watch(WatchArgs),
    /// List the runs in a journal, with their headline figures
    Runs(ListRunsArgs),
    /// Control a running service: settings, reload, drain, clients
    Ctl(CtlArgs),
    /// Check a configuration file, or compare it with what runs
    Config(ConfigArgs),
    /// Check conditions on a run; exit code 99 if one does not hold
    Check(CheckArgs),
    /// Explain a run: what will break, what it costs, what would help
    Explain(ExplainArgs),
    /// Write a report on a run: a page, tables, or files for tools
    Report(ReportArgs),
    /// Copy a recording with intervals of ten seconds
    Compact(CompactArgs),
    /// Compare two runs: what differs, by how much, and how surely
    Compare(CompareArgs),
    /// Check whether tlsdash works here, and what this machine lacks
    Selftest(SelftestArgs),
    /// Print completions for a shell
    #[command(after_long_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Show the manual page, or that of a command
    #[command(after_long_help = MANUALS)]
    Man {
        /// The command, such as demo
        command: Vec<String>,
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

    /// A command with all below it, for a terminal so wide that nothing is wrapped.
    fn commands() -> Vec<Command> {
        fn with_those_below(command: &Command) -> Vec<Command> {
            let below = command.get_subcommands().filter(|below| below.get_name() != "help");
            std::iter::once(command.clone()).chain(below.flat_map(with_those_below)).collect()
        }
        let mut program = Cli::described().term_width(1_000);
        program.build();
        with_those_below(&program)
    }

    fn examples(command: &Command) -> Vec<String> {
        let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        let is_example = |line: &&str| line.starts_with("  tlsdash ") || line.starts_with("  sudo tlsdash ");
        text.lines().filter(is_example).map(str::to_owned).collect()
    }

    /// The words that a shell makes of a line.
    fn words(line: &str) -> Vec<String> {
        let line = line.split("  #").next().unwrap().split(" > ").next().unwrap().replace("sudo ", "");
        // Every second part was quoted.
        let parts = line.split('\'').enumerate();
        parts
            .flat_map(|(at, part)| match at % 2 {
                0 => part.split_whitespace().map(str::to_owned).collect(),
                _ => vec![part.to_owned()],
            })
            .collect()
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::described().debug_assert();
    }

    #[test]
    fn each_line_of_the_short_help_fits_eighty_columns() {
        let is_wide = |line: &&str| line.chars().count() > 80;
        for mut command in commands() {
            let help = command.render_help().to_string();
            let wide: Vec<_> = help.lines().filter(is_wide).collect();
            assert!(wide.is_empty(), "{}: {wide:#?}", command.get_name());
        }
    }

    #[test]
    fn no_flag_is_without_a_summary_and_few_are_without_a_group() {
        for command in commands() {
            let flags = || command.get_opts();
            for flag in flags() {
                assert!(!flag.get_help().unwrap_or_default().to_string().is_empty(), "{flag}");
            }
            let alone = flags().filter(|flag| flag.get_help_heading().is_none()).count();
            assert!(alone <= 12, "{}: {alone} flags are in no group", command.get_name());
        }
    }

    #[test]
    fn a_synopsis_has_three_lines_and_no_wall_of_brackets() {
        for mut command in commands() {
            let usage = command.render_usage().to_string();
            let lines: Vec<_> = usage.lines().collect();
            assert!(lines.len() <= 3 && lines.iter().all(|line| line.len() <= 80), "{usage}");
        }
    }

    #[test]
    fn every_command_has_examples_that_can_be_read_and_fit_the_terminal() {
        for command in commands().into_iter().filter(|command| {
            let name = command.get_bin_name().unwrap_or_default();
            name.split(' ').count() <= 2
        }) {
            let examples = examples(&command);
            assert!((2..=5).contains(&examples.len()), "{}: {examples:?}", command.get_name());
            for line in examples {
                assert!(line.chars().count() <= 80, "{line}");
                Cli::read(words(&line)).unwrap_or_else(|error| panic!("{line}: {error}"));
            }
        }
    }
}
