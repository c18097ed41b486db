//! The program and the terminators with which it is compared: finding them, configuring them alike, and
//! measuring their processes.

mod burst;
mod cases;
mod certificates;
mod process;
mod sample;
mod setup;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{Result, argument};

pub use burst::{Burst, handshakes_completed, take_burst};
pub use cases::{CASES, Goal, PeerCase, PeerExchange, PeerFigure};
pub use certificates::{CertificateKey, Certificates};
pub use process::{ProcessUsage, Running, allow_all_descriptors, terminate_children_on_signal};
pub use sample::{Conditions, PeerSample, certificates, take};
pub use setup::Setup;

/// A terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerKind {
    /// The program under measurement, with records on.
    Tlsdash,
    /// nginx, its `stream` module.
    NginxStream,
    /// `HAProxy` in `mode tcp`.
    Haproxy,
    /// hitch.
    Hitch,
    /// nghttpx, which parses requests.
    Nghttpx,
    /// stunnel: one thread per connection, whatever the number of workers.
    Stunnel,
    /// `peers/proxy.go`.
    Go,
    /// sozu, which parses requests and also uses rustls.
    Sozu,
}

/// Debian's folder for daemons, in addition to `PATH`.
const DAEMONS: &str = "/usr/sbin";

impl PeerKind {
    const ALL: [Self; 8] = [
        Self::Tlsdash,
        Self::NginxStream,
        Self::Haproxy,
        Self::Hitch,
        Self::Nghttpx,
        Self::Stunnel,
        Self::Go,
        Self::Sozu,
    ];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tlsdash => "tlsdash",
            Self::NginxStream => "nginx stream",
            Self::Haproxy => "HAProxy tcp",
            Self::Hitch => "hitch",
            Self::Nghttpx => "nghttpx",
            Self::Stunnel => "stunnel",
            Self::Go => "Go",
            Self::Sozu => "sozu",
        }
    }

    /// Returns its command, and the argument that prints its version.
    fn command(self) -> (&'static str, &'static str) {
        match self {
            Self::Tlsdash => ("tlsdash", "--version"),
            Self::NginxStream => ("nginx", "-v"),
            Self::Haproxy => ("haproxy", "-v"),
            Self::Hitch => ("hitch", "--version"),
            Self::Nghttpx => ("nghttpx", "--version"),
            Self::Stunnel => ("stunnel4", "-version"),
            Self::Go => ("go", "version"),
            Self::Sozu => ("sozu", "--version"),
        }
    }
}

impl fmt::Display for PeerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An installed terminator.
#[derive(Clone, Debug)]
pub struct InstalledPeer {
    /// Its kind.
    pub kind: PeerKind,
    /// The version that it reports.
    pub version: String,
    program: PathBuf,
}

impl InstalledPeer {
    /// Finds the program at `--program`, the sozu at `--sozu PATH`, and the installed terminators; with
    /// `--peers`, only the program and those whose name contains one of the given parts. Built programs go to
    /// `folder`.
    ///
    /// # Errors
    /// If the program is missing, or the Go compiler fails.
    pub fn find(folder: &Path) -> Result<Vec<Self>> {
        let wanted = argument("peers");
        let is_wanted = |kind: PeerKind| {
            let is_named = |part: &str| kind.name().to_lowercase().contains(&part.to_lowercase());
            kind == PeerKind::Tlsdash || wanted.as_ref().is_none_or(|names| names.split(',').any(is_named))
        };
        let mut found = Vec::new();
        for kind in PeerKind::ALL.into_iter().filter(|&kind| is_wanted(kind)) {
            let (name, version) = kind.command();
            let given = match kind {
                PeerKind::Tlsdash => argument("program"),
                _ => argument(name),
            };
            let Some(program) = given.map(PathBuf::from).or_else(|| in_path(name)) else { continue };
            let version = version_of(Command::new(&program).arg(version))?;
            let program = if kind == PeerKind::Go { build_go(&program, folder)? } else { program };
            found.push(Self { kind, version, program });
        }
        if found.first().is_none_or(|first| first.kind != PeerKind::Tlsdash) {
            return Err("--program PATH is missing: the tlsdash to measure".into());
        }
        Ok(found)
    }
}

fn in_path(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from(DAEMONS)]);
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

/// Returns the first word of a program's output that looks like a version.
fn version_of(command: &mut Command) -> Result<String> {
    let output =
        command.stdin(Stdio::null()).output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let output = [output.stdout, output.stderr].concat();
    Ok(version_in(&String::from_utf8_lossy(&output)).unwrap_or("unknown").to_owned())
}

fn version_in(output: &str) -> Option<&str> {
    let words = output.split(|c: char| c.is_whitespace() || c == '/' || c == ',');
    let numbers = words.map(|word| word.trim_start_matches(|c: char| c.is_ascii_alphabetic()));
    numbers.into_iter().find(|word| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.'))
}

fn build_go(go: &Path, folder: &Path) -> Result<PathBuf> {
    let program = folder.join("go-proxy");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/peers/proxy.go");
    let status = Command::new(go).args(["build", "-o"]).arg(&program).arg(source).status()?;
    if !status.success() {
        return Err(format!("cannot build {source}: {status}").into());
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::version_in;

    #[test]
    fn versions_are_found_in_the_output_of_programs() {
        for (output, version) in [
            ("nginx version: nginx/1.22.1", "1.22.1"),
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/", "2.6.12-1+deb12u4"),
            ("hitch 1.7.2", "1.7.2"),
            ("stunnel 5.68 on x86_64-pc-linux-gnu platform", "5.68"),
            ("nghttpx nghttp2/1.52.0", "1.52.0"),
            ("go version go1.26.8 linux/amd64", "1.26.8"),
        ] {
            assert_eq!(version_in(output), Some(version));
        }
        assert_eq!(version_in("no version"), None);
    }
}
