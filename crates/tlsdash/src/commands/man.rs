//! `tlsdash man`: the manual page of the program or of a command. A terminal shows it as `man` does, anything else gets it
//! as it is.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::{Command, Stdio};

use clap::builder::Resettable;
use clap_mangen::Man;
use model::figures::nearest;

use crate::error::usage;
use crate::summary::print_text;

/// Shows the page of the command of these names, or of the program.
pub(crate) fn run(mut program: clap::Command, names: &[String]) -> anyhow::Result<()> {
    program.build();
    let mut command = &program;
    for name in names {
        command = command.find_subcommand(name).ok_or_else(|| unknown(command, name, names))?;
    }
    let page = page(command.clone())?;
    if !io::stdout().is_terminal() {
        return print_text(&page);
    }
    if is_shown(Command::new("man").args(["-l", "-"]), &page) {
        return Ok(());
    }
    let text = command.clone().render_long_help().to_string();
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.is_empty());
    let pager = pager.unwrap_or_else(|| "less".to_owned());
    if is_shown(Command::new("sh").args(["-c", &pager]), &text) { Ok(()) } else { print_text(&text) }
}

fn unknown(command: &clap::Command, name: &str, names: &[String]) -> anyhow::Error {
    let near = nearest(name, command.get_subcommands().map(clap::Command::get_name));
    let meant = near.map_or_else(String::new, |near| format!("; did you mean {near}?"));
    usage(format!("man {}: there is no such command{meant}", names.join(" ")))
}

/// Gives a text to a program that shows it; false if that failed.
fn is_shown(viewer: &mut Command, text: &str) -> bool {
    let Ok(mut child) = viewer.stdin(Stdio::piped()).stderr(Stdio::null()).spawn() else { return false };
    if let Some(mut input) = child.stdin.take() {
        // Whoever leaves early has seen enough.
        let _ = input.write_all(text.as_bytes());
    }
    child.wait().is_ok_and(|status| status.success())
}

/// The page in roff.
fn page(mut command: clap::Command) -> anyhow::Result<String> {
    let synopsis = command.render_usage().to_string().replacen("Usage: ", "", 1);
    let below = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
    let command = command.override_usage(synopsis).after_long_help(Resettable::Reset);
    let version = format!("tlsdash {}", env!("CARGO_PKG_VERSION"));
    let mut page = Vec::new();
    Man::new(command).source(version).render(&mut page)?;
    Ok(String::from_utf8(page)? + &sections(&below))
}

/// What stands below the help, in roff: indented lines below their headings.
fn sections(text: &str) -> String {
    let roff = |line: &str| match line.strip_prefix("  ") {
        None => format!(".fi\n.SH {}\n.nf\n", line.trim_end_matches(':').to_uppercase()),
        Some(line) => format!("\\&{}\n", line.replace('\\', "\\e").replace('-', "\\-")),
    };
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).map(roff).collect();
    lines.concat()
}
