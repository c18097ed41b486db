//! A terminal dashboard for live TLS proxy observation: arguments, wiring, exit codes.
//!
//! It is a library for fuzzing only, which reads configurations and answers requests of the control socket; its interface
//! may change at any time.
//!
//! A room imports only from rooms above it in this list:
//!
//! | room | content |
//! |---|---|
//! | `error`, `say` | errors in one line, lines on standard error |
//! | `value` | values of options, each parsed once |
//! | `service` | the process: service manager, signals, privileges, threads, metrics |
//! | `journals` | the journals that runs are written to and read from |
//! | `cli` | options that commands share, the options of the proxy, the configuration file |
//! | `control` | requests to a running service, and its answers |
//! | `upgrade` | a new process that takes over from a running one |
//! | `summary` | the summary of a run as text |
//! | `session` | a run from beginning to end |
//! | `commands` | the commands, with their arguments |
//! | `command_line` | the command line as a whole |

#![forbid(unsafe_code)]
mod cli;
mod command_line;
mod commands;
mod control;
mod error;
mod journals;
mod say;
mod service;
mod session;
mod summary;
mod upgrade;
mod value;

use std::process::ExitCode;

use crate::cli::Flags;
use crate::command_line::{Cli, InternalCommand, Mode};
use crate::commands::observed::{observe, wire};
use crate::commands::recordings::{check, compact, compare, explain, report, runs};
use crate::commands::{
    bench, bench_upstream, config, ctl, demo, first_screen, load, man, proxy, selftest, watch,
};
use crate::error::{UnmetCondition, UsageError, line, meant, refused_value, refused_words};
use crate::say::say;
use crate::service::signals;

pub use cli::{ConfigurationError, read_configuration};

/// Answers the lines of a client of the control socket without executing anything: the requests that a service would
/// execute are added to `carried_out`. Returns the answers, one per line.
pub fn answer_control_requests(input: &[u8], may_write: bool, carried_out: &mut Vec<String>) -> Vec<String> {
    control::conversation::answer_lines(input, may_write, carried_out)
}

/// Runs the program with the process's arguments.
pub fn main() -> ExitCode {
    if let Some(code) = upgrade::launcher::launch() {
        return code;
    }
    let args: Vec<_> = std::env::args_os().collect();
    let result = match InternalCommand::read(&args) {
        Some(internal) => internal.map(run_internal),
        None => Cli::read(args).map(|(cli, flags)| run(cli, flags)),
    };
    match result {
        Err(error) => refuse(&error),
        Ok(ended) => exit_code(ended),
    }
}

fn exit_code(ended: anyhow::Result<()>) -> ExitCode {
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line: the operation, its object, and the reason of the failure.
            let line = line(&error);
            upgrade::predecessor::refuse(&line);
            say(line);
            if error.is::<UsageError>() {
                ExitCode::from(2)
            } else if error.is::<UnmetCondition>() {
                ExitCode::from(99)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// Prints help and version as they are, and an error as one line.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let value = refused_value(error);
    let line = value.unwrap_or_else(|| format!("{} (--help tells more)", refused_words(error)));
    let line = line + meant(error);
    upgrade::predecessor::refuse(&line);
    say(line);
    ExitCode::from(2)
}

fn run_internal(command: InternalCommand) -> anyhow::Result<()> {
    match command {
        InternalCommand::BenchSupervisor => Ok(::bench::target::supervise()?),
        InternalCommand::BenchUpstream(args) => bench_upstream::run(&args),
    }
}

fn run(cli: Cli, flags: Flags) -> anyhow::Result<()> {
    signals::survive_file_limits();
    match cli.mode {
        None if flags.is_empty() && !service::is_managed() => first_screen::run(),
        None => proxy::run(cli.proxy, flags),
        Some(Mode::Demo(args)) => demo::run(&args, &flags),
        Some(Mode::Load(args)) => load::run(&args),
        Some(Mode::Bench(args)) => bench::run(&args),
        Some(Mode::Observe(args)) => observe::run(&args, &flags),
        Some(Mode::Wire(args)) => wire::run(&args, &flags),
        Some(Mode::Watch(args)) => watch::run(&args, &flags),
        Some(Mode::Runs(args)) => runs::run(&args),
        Some(Mode::Ctl(args)) => ctl::run(&args),
        Some(Mode::Config(args)) => config::run(&args),
        Some(Mode::Check(args)) => check::run(&args),
        Some(Mode::Compact(args)) => compact::run(&args),
        Some(Mode::Compare(args)) => compare::run(&args),
        Some(Mode::Explain(args)) => explain::run(&args),
        Some(Mode::Report(args)) => report::run(&args),
        Some(Mode::Selftest(args)) => selftest::run(&args),
        Some(Mode::Completions { shell }) => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::described(), "tlsdash", &mut script);
            summary::print_text(&String::from_utf8_lossy(&script))
        }
        Some(Mode::Man { command }) => man::run(Cli::described(), &command),
    }
}
