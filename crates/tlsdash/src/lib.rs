//! A terminal dashboard for live TLS proxy observation: arguments, wiring, exit codes.
//!
//! It is a library for fuzzing only, which reads configurations and answers requests of the control socket; its interface
//! may change at any time.

#![forbid(unsafe_code)]
mod cli;
mod commands;
mod control;
mod journals;
mod service;
mod session;
mod summary;
mod upgrade;

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::cli::{Cli, Flags, InternalCommand, Mode, UsageError, usage};
use crate::commands::observed::{observe, wire};
use crate::commands::recordings::{check, compact, compare, explain, report, runs};
use crate::commands::{bench, bench_upstream, config, ctl, demo, load, proxy, watch};
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
            } else if error.is::<check::AssertionFailed>() || error.is::<explain::FindingsFailed>() {
                ExitCode::from(99)
            } else {
                ExitCode::FAILURE
            }
        }
    }
}

/// An error with its causes, each once.
fn line(error: &anyhow::Error) -> String {
    error.chain().skip(1).map(ToString::to_string).fold(error.to_string(), |line, cause| {
        if line.ends_with(&cause) { line } else { format!("{line}: {cause}") }
    })
}

/// Prints help and version as they are, and an error as one line.
fn refuse(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    let value = refused_value(error);
    let line = value.unwrap_or_else(|| format!("{} (--help tells more)", refused_words(error)));
    upgrade::predecessor::refuse(&line);
    say(line);
    ExitCode::from(2)
}

/// Why clap refuses arguments, in one line.
fn refusal(error: &clap::Error) -> String {
    refused_value(error).unwrap_or_else(|| refused_words(error))
}

/// clap's message about refused arguments, in one line.
fn refused_words(error: &clap::Error) -> String {
    let text = error.to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let what = lines.next().unwrap_or_default().trim_start_matches("error: ");
    // Missing arguments and suggestions are on separate lines.
    let more = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    let words: Vec<_> = std::iter::once(what).chain(more).collect();
    words.join("; ").replace(":;", ":")
}

/// The line about a value that a flag cannot have: flag, value, reason.
fn refused_value(error: &clap::Error) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let (argument, value) = (context(ContextKind::InvalidArg)?, context(ContextKind::InvalidValue)?);
    let reason = std::error::Error::source(error).filter(|_| error.kind() == ErrorKind::ValueValidation)?;
    let flag = argument.split([' ', '[', '=']).next().filter(|flag| flag.starts_with('-'));
    Some(flag.map_or_else(|| reason.to_string(), |flag| format!("{flag} {value}: {reason}")))
}

/// Prints one line on standard error, made printable, since it may quote peers, paths and files. A closed standard
/// error is ignored.
fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "tlsdash: {}", records::text::clean::line(&line.to_string()));
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
        Some(Mode::Completions { shell }) => {
            clap_complete::generate(shell, &mut Cli::command(), "tlsdash", &mut std::io::stdout());
            Ok(())
        }
        Some(Mode::Man { command }) => manual(command.as_deref()),
    }
}

/// Prints the manual page of the program, or of one of its commands.
fn manual(command: Option<&str>) -> anyhow::Result<()> {
    let mut program = Cli::command();
    program.build();
    let page = match command {
        None => program,
        Some(name) => {
            let found = program.find_subcommand(name).cloned();
            found.ok_or_else(|| usage(format!("man {name}: there is no such command")))?
        }
    };
    Ok(clap_mangen::Man::new(page).render(&mut std::io::stdout())?)
}
