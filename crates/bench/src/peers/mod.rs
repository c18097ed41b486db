//! The terminators that the program is compared with, and the program itself: which are there, how each is set up alike,
//! and what its processes use.

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
pub use cases::{CASES, Case, Exchange, Figure, Goal};
pub use certificates::{Certificates, Key};
pub use process::{Running, Usage, allow_all_descriptors, take_along_when_interrupted};
pub use sample::{Conditions, Sample, certificates, take};
pub use setup::Setup;

/// A terminator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The program under measurement, with records on.
    Tlsdash,
    /// nginx, its `stream` module.
    NginxStream,
    /// `HAProxy`, `mode tcp`.
    Haproxy,
    /// hitch.
    Hitch,
    /// nghttpx, which takes requests apart.
    Nghttpx,
    /// stunnel: a thread a connection, whatever the number of workers.
    Stunnel,
    /// `peers/proxy.go`.
    Go,
    /// sozu, which takes requests apart and has rustls too.
    Sozu,
}

/// Where Debian puts daemons, beside the folders of `PATH`.
const DAEMONS: &str = "/usr/sbin";

impl Kind {
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

    /// What it is called here.
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

    /// Its command, and what makes that say its version.
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

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A terminator that is there.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Which.
    pub kind: Kind,
    /// What it says its version is.
    pub version: String,
    program: PathBuf,
}

impl Peer {
    /// Those that are there: the program at `--program`, what `--sozu PATH` names, and what is installed; with `--peers`,
    /// only the program and those of whose name a part stands there. What is built for it goes to `folder`.
    ///
    /// # Errors
    /// When the program is not there, or the Go compiler is there and fails.
    pub fn find(folder: &Path) -> Result<Vec<Self>> {
        let wanted = argument("peers");
        let is_wanted = |kind: Kind| {
            let is_named = |part: &str| kind.name().to_lowercase().contains(&part.to_lowercase());
            kind == Kind::Tlsdash || wanted.as_ref().is_none_or(|names| names.split(',').any(is_named))
        };
        let mut found = Vec::new();
        for kind in Kind::ALL.into_iter().filter(|&kind| is_wanted(kind)) {
            let (name, version) = kind.command();
            let given = match kind {
                Kind::Tlsdash => argument("program"),
                _ => argument(name),
            };
            let Some(program) = given.map(PathBuf::from).or_else(|| in_path(name)) else { continue };
            let version = version_of(Command::new(&program).arg(version))?;
            let program = if kind == Kind::Go { build_go(&program, folder)? } else { program };
            found.push(Self { kind, version, program });
        }
        if found.first().is_none_or(|first| first.kind != Kind::Tlsdash) {
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

/// The first word that a program says which looks like a version.
fn version_of(command: &mut Command) -> Result<String> {
    let said =
        command.stdin(Stdio::null()).output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    let said = [said.stdout, said.stderr].concat();
    Ok(version_in(&String::from_utf8_lossy(&said)).unwrap_or("unknown").to_owned())
}

fn version_in(said: &str) -> Option<&str> {
    let words = said.split(|c: char| c.is_whitespace() || c == '/' || c == ',');
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
    fn versions_are_found_in_what_programs_say_of_themselves() {
        for (said, version) in [
            ("nginx version: nginx/1.22.1", "1.22.1"),
            ("HAProxy version 2.6.12-1+deb12u4 2026/10/17 - https://haproxy.org/", "2.6.12-1+deb12u4"),
            ("hitch 1.7.2", "1.7.2"),
            ("stunnel 5.68 on x86_64-pc-linux-gnu platform", "5.68"),
            ("nghttpx nghttp2/1.52.0", "1.52.0"),
            ("go version go1.26.8 linux/amd64", "1.26.8"),
        ] {
            assert_eq!(version_in(said), Some(version));
        }
        assert_eq!(version_in("no version"), None);
    }
}
