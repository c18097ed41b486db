//! `tlsdash` without arguments: what one can do here, by what is found here.
//!
//! It reads `/proc`, `PATH` and the journal that `tlsdash watch` would read. It connects to nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::path::Path;
use std::sync::mpsc::channel;
use std::time::Duration;

use observe::LogKind;
use recorder::host::{listening_processes, listening_sockets, processes};
use records::text::clean;
use records::text::table::cut;

use crate::commands::observed::observe::setup::{installed_program, program_names};
use crate::journals::choice::auto_source;
use crate::journals::writers::WriterArgs;
use crate::service::privileges;
use crate::service::thread::spawn;
use crate::summary::print_text;

/// Ports on which servers usually speak TLS from the first byte.
const TLS_PORTS: [u16; 17] =
    [443, 465, 563, 636, 853, 990, 993, 995, 4433, 5061, 5671, 6443, 6514, 6697, 8443, 8883, 9443];
/// How long the journal may take to say whether it holds runs: the system's may be large, and on a slow disk.
const JOURNAL_PATIENCE: Duration = Duration::from_millis(800);
/// The size of the screen.
const COLUMNS: usize = 80;
/// The longest name of the program that leaves room for the commands.
const NAME_BYTES_MAX: usize = 22;
/// Where `sudo` finds programs, as distributions configure it.
const SUDO_FOLDERS: [&str; 6] =
    ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Prints the screen.
///
/// # Errors
/// If it cannot be printed. What cannot be seen is left out.
pub(crate) fn run() -> anyhow::Result<()> {
    print_text(&Findings::look().text(&ProgramName::of_this_process()))
}

/// How the user calls this program, also as root.
struct ProgramName {
    own: String,
    as_root: String,
}

impl ProgramName {
    fn of_this_process() -> Self {
        let called = env::args_os().next().unwrap_or_default().to_string_lossy().into_owned();
        let is_path =
            called.contains('/') && called.len() <= NAME_BYTES_MAX && clean::text(&called) == called;
        let own = if is_path && !called.contains(' ') { called } else { "tlsdash".to_owned() };
        let file = env::current_exe().unwrap_or_default();
        let is_found_by_sudo = SUDO_FOLDERS.iter().any(|folder| file.parent() == Some(Path::new(folder)));
        let as_root = match () {
            () if privileges::is_root() => own.clone(),
            () if own.contains('/') || is_found_by_sudo => format!("sudo {own}"),
            () => "sudo $(command -v tlsdash)".to_owned(),
        };
        Self { own, as_root }
    }
}

/// What is of interest on this machine.
#[derive(Debug, Default)]
struct Findings {
    /// The listening ports of [`TLS_PORTS`], with the process if it may be seen.
    ports: BTreeMap<u16, Option<String>>,
    /// Terminators whose log can be observed, and whether they run.
    terminators: Vec<(LogKind, bool)>,
    /// The journal with runs.
    journal: Option<String>,
}

impl Findings {
    fn look() -> Self {
        let own = listening_processes().into_iter().next().unwrap_or_default().processes;
        let listening = listening_sockets().into_iter().map(|(port, _)| port);
        let ports = listening.filter(|port| TLS_PORTS.contains(port));
        let ports = ports.map(|port| (port, own.get(&port).map(|process| clean::text(&process.name))));
        let running: BTreeSet<String> = processes().into_iter().map(|process| process.name).collect();
        let state = |kind: LogKind| {
            let is_running = program_names(kind).iter().any(|name| running.contains(*name));
            (is_running || installed_program(kind).is_some()).then_some((kind, is_running))
        };
        Self {
            ports: ports.collect(),
            terminators: [LogKind::Haproxy, LogKind::Nginx, LogKind::Stunnel]
                .into_iter()
                .filter_map(state)
                .collect(),
            journal: journal_with_runs(),
        }
    }

    fn text(&self, program: &ProgramName) -> String {
        let ProgramName { own, as_root } = program;
        let title = format!("tlsdash {}: what TLS costs on this machine, live.", env!("CARGO_PKG_VERSION"));
        let mut sections = vec![vec![title]];
        if !self.ports.is_empty() {
            let mut section = vec![
                self.port_line(),
                command(&format!("{as_root} wire"), "live, from packets, without set-up"),
            ];
            if own != as_root && self.ports.values().any(Option::is_none) {
                section.push(format!("Whose ports they are is hidden in part; {as_root} shows it."));
            }
            sections.push(section);
        }
        sections
            .push((5514..).zip(&self.terminators).flat_map(|(port, it)| log_lines(own, port, *it)).collect());
        if let Some(journal) = &self.journal {
            sections.push(vec![
                cut(&format!("Recorded runs, {journal}:"), COLUMNS),
                command(&format!("{own} runs"), "the list"),
                command(&format!("{own} watch"), "the dashboard over the newest"),
                command(&format!("{own} report --html report.html"), "a page about it"),
            ]);
        }
        sections.push(vec![
            "Without set-up:".to_owned(),
            command(&format!("{own} demo"), "certificate, upstream, proxy and load"),
            command(&format!("{own} selftest"), "what works here, and what is lacking"),
            command(&format!("{own} --help"), "all commands and options"),
        ]);
        let sections = sections.iter().filter(|section| !section.is_empty());
        sections.map(|section| section.join("\n") + "\n").collect::<Vec<_>>().join("\n")
    }

    /// Such as `Servers where TLS is usual, :443 nginx, :8443 and 2 more:`, with as many ports as fit.
    fn port_line(&self) -> String {
        let name = |(port, process): (&u16, &Option<String>)| {
            format!(":{port} {}", process.as_deref().unwrap_or_default()).trim_end().to_owned()
        };
        let names: Vec<_> = self.ports.iter().map(name).collect();
        let line = |shown: usize| {
            let more = names.len() - shown;
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            format!("Servers where TLS is usual, {}{more}:", names[..shown].join(", "))
        };
        let lines = (1..=names.len()).rev().map(line);
        lines.into_iter().find(|line| line.chars().count() <= COLUMNS).unwrap_or_default()
    }
}

/// How to observe a terminator, and whether it runs; its log comes to this port.
fn log_lines(own: &str, port: u16, (kind, is_running): (LogKind, bool)) -> Vec<String> {
    let state = if is_running { "runs" } else { "is installed" };
    if kind == LogKind::Stunnel {
        let setup = format!("{own} observe setup stunnel");
        return vec![
            format!("{kind} {state}; what to configure, and what to run then:"),
            command(&setup, ""),
        ];
    }
    let socket = format!("--syslog udp:127.0.0.1:{port}");
    vec![
        format!("{kind} {state}; lines for its configuration, and then the dashboard:"),
        command(&format!("{own} observe setup {kind} {socket}"), ""),
        command(&format!("{own} observe {kind} {socket}"), ""),
    ]
}

/// A command to copy, with what it does if there is room.
fn command(command: &str, does: &str) -> String {
    let line = format!("    {command:<34} # {does}");
    let has_room = !does.is_empty() && line.chars().count() <= COLUMNS;
    if has_room { line } else { format!("    {command}") }
}

/// The journal that `tlsdash watch` reads, if it holds runs and says so in time.
fn journal_with_runs() -> Option<String> {
    let (tell, told) = channel();
    let look = move || {
        let writers = WriterArgs::default();
        let source =
            auto_source(&writers).ok().filter(|source| source.holds_records(&writers.filter(source)));
        // Nobody listens once it took too long.
        let _ = tell.send(source.map(|source| source.to_string()));
    };
    spawn("journal", look).ok()?;
    told.recv_timeout(JOURNAL_PATIENCE).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> ProgramName {
        ProgramName { own: "tlsdash".to_owned(), as_root: "sudo $(command -v tlsdash)".to_owned() }
    }

    #[test]
    fn the_screen_has_80_columns_and_24_lines_at_most() {
        let ports = TLS_PORTS.map(|port| (port, (port != 443).then(|| "a-long-process".to_owned())));
        let all = Findings {
            ports: ports.into_iter().collect(),
            terminators: [LogKind::Haproxy, LogKind::Nginx, LogKind::Stunnel].map(|kind| (kind, true)).into(),
            journal: Some(format!("file:/{}/tlsdash.journal", "long/".repeat(40))),
        };
        let text = all.text(&program());
        let columns = text.lines().map(|line| line.chars().count()).max();
        assert!(columns <= Some(COLUMNS) && text.lines().count() <= 24, "{text}");
        for part in [
            " usual, :443, :465 a-long-process and 15 more:",
            "\n    sudo $(command -v tlsdash) wire ",
            "\n    tlsdash observe nginx --syslog udp:127.0.0.1:5515",
            "…\n    tlsdash runs ",
            "is hidden in part",
        ] {
            assert!(text.contains(part), "{part:?} is not in {text}");
        }
    }

    #[test]
    fn with_nothing_here_only_what_needs_nothing_is_offered() {
        let text = Findings::default().text(&program());
        let commands: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("    ")).collect();
        assert_eq!(commands.len(), 3, "{text}");
        assert!(commands[0].starts_with("tlsdash demo ") && !text.contains("hidden"), "{text}");
    }
}
