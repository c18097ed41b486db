//! `observe setup`: the lines to paste, and the lines that a configuration lacks.

use std::process::Command;

use anyhow::Context;
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

/// Asks the installed program for its version.
fn installed(kind: LogKind) -> anyhow::Result<Version> {
    let program = match kind {
        LogKind::Haproxy => "haproxy",
        LogKind::Nginx | LogKind::NginxStream => "nginx",
        LogKind::Stunnel => "stunnel",
    };
    let option = if kind == LogKind::Stunnel { "-version" } else { "-v" };
    let absent = || {
        usage(format!(
            "observe setup {kind}: cannot run `{program} {option}` to ask its version; give --for VERSION"
        ))
    };
    let asked = Command::new(program).arg(option).output().map_err(|_| absent())?;
    let text = [asked.stdout, asked.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // `nginx version: nginx/1.22.1`, `HAProxy version 2.6.12-1+deb12u4 2026/10/17`.
    let mut numbers = text.split(|c: char| !c.is_ascii_digit() && c != '.').filter(|word| word.contains('.'));
    numbers.find_map(|word| word.parse().ok()).ok_or_else(absent)
}
