//! `observe setup`: the lines to paste, and the lines that a configuration lacks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;
use bench::target::program_folders;
use observe::LogKind;
use observe::setup::{Version, lines, missing};

use super::args::SetupArgs;
use crate::error::usage;
use crate::summary;

/// Prints the lines, or the missing ones.
pub(super) fn run(args: &SetupArgs) -> anyhow::Result<()> {
    let kind = args.kind;
    let version = match args.version {
        Some(version) => version,
        None => installed(kind)?,
    };
    let Some(path) = &args.check else {
        return summary::print_text(&lines(kind, version, &args.syslog));
    };
    let name = path.display();
    let text = if path.as_os_str() == "-" {
        std::io::read_to_string(std::io::stdin())
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.with_context(|| format!("cannot read --check {name}"))?;
    let missing = missing(kind, version, &text);
    if missing.is_empty() {
        return summary::print_text(&format!("{name}: all that {kind} {version} can log is there\n"));
    }
    let list: Vec<_> =
        missing.iter().map(|missing| format!("missing: {}\n", missing.in_file(&name))).collect();
    summary::print_text(&list.concat())?;
    anyhow::bail!(
        "--check {name}: {} missing; `tlsdash observe setup {kind}` prints the lines",
        missing.len()
    )
}

/// The names of a terminator's program.
pub(crate) fn program_names(kind: LogKind) -> &'static [&'static str] {
    match kind {
        LogKind::Haproxy => &["haproxy"],
        LogKind::Nginx | LogKind::NginxStream => &["nginx"],
        LogKind::Stunnel => &["stunnel", "stunnel4"],
    }
}

/// The file of a terminator's program, if it is installed.
pub(crate) fn installed_program(kind: LogKind) -> Option<PathBuf> {
    let folders = program_folders();
    let files = folders.iter().flat_map(|folder| program_names(kind).iter().map(|name| folder.join(name)));
    files.into_iter().find(|file| file.is_file())
}

/// Asks the installed program for its version.
fn installed(kind: LogKind) -> anyhow::Result<Version> {
    let program = installed_program(kind);
    let program = program.as_deref().unwrap_or_else(|| Path::new(program_names(kind)[0]));
    let option = if kind == LogKind::Stunnel { "-version" } else { "-v" };
    let absent = || {
        usage(format!(
            "observe setup {kind}: cannot run `{} {option}` to ask its version; give --for VERSION",
            program.display()
        ))
    };
    let asked = Command::new(program).arg(option).output().map_err(|_| absent())?;
    let text = [asked.stdout, asked.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // `nginx version: nginx/1.22.1`, `HAProxy version 2.6.12-1+deb12u4 2026/10/17`.
    let mut numbers = text.split(|c: char| !c.is_ascii_digit() && c != '.').filter(|word| word.contains('.'));
    numbers.find_map(|word| word.parse().ok()).ok_or_else(absent)
}
