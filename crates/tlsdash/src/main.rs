//! A terminal dashboard for live TLS proxy observation: arguments, wiring, exit codes.

#![forbid(unsafe_code)]
mod args;
mod demo;
mod frontend;
mod journal_choice;
mod load;
mod proxy;
mod recorder;
mod session;
mod signals;
mod sink;
mod summary;
mod watch;

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Cli, Mode, Usage};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // One line: what was tried, on what, why it failed.
            say(format_args!("{error:#}"));
            if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

/// Says one line on standard error. Nothing can be done if that is gone, as when the terminal was closed.
fn say(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "tlsdash: {line}");
}

fn run(cli: Cli) -> anyhow::Result<()> {
    match cli.mode {
        None => proxy::run(cli.proxy),
        Some(Mode::Demo(args)) => demo::run(&args),
        Some(Mode::Load(args)) => load::run(&args),
        Some(Mode::Watch(args)) => watch::run(args),
        Some(Mode::Completions { shell }) => {
            clap_complete::generate(shell, &mut Cli::command(), "tlsdash", &mut std::io::stdout());
            Ok(())
        }
        Some(Mode::Man) => Ok(clap_mangen::Man::new(Cli::command()).render(&mut std::io::stdout())?),
    }
}
