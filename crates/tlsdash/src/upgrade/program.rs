//! The program that an upgrade starts: the file at the path by which this process was started, with the same arguments.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use super::VARIABLE;
use crate::service::signals;

/// Variables for this process alone. Without `WATCHDOG_PID` the watchdog applies to any process that reads it.
const OWN_VARIABLES: [&str; 4] = ["LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "WATCHDOG_PID"];

/// The program as it was started.
#[derive(Clone, Debug)]
pub(crate) struct UpgradeProgram {
    path: PathBuf,
    /// The arguments, the program's name included.
    args: Vec<OsString>,
    /// The state directory from before root was given up.
    state_directory: Option<PathBuf>,
}

impl UpgradeProgram {
    /// To be called at the start: later the path may lead to the new program.
    ///
    /// # Errors
    /// If the path is unknown.
    pub(crate) fn at_start() -> anyhow::Result<Self> {
        let args: Vec<_> = std::env::args_os().collect();
        let own = fs::metadata("/proc/self/exe").context("cannot tell which program runs")?;
        let name = args.first().map(PathBuf::from).unwrap_or_default();
        // Not the file that a link leads to: an upgrade may replace the link.
        let path = candidates(&name).find(|path| is_same(path, &own));
        let path = path.map_or_else(std::env::current_exe, Ok).context("cannot tell which program runs")?;
        Ok(Self { path, args, state_directory: None })
    }

    /// Keeps a state directory that this process could determine only as root.
    pub(crate) fn with_state_directory(self, folder: Option<PathBuf>) -> Self {
        Self { state_directory: folder, ..self }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The command that starts it as the successor of this process.
    pub(super) fn command(&self) -> Command {
        let mut command = Command::new(&self.path);
        let mut args = self.args.iter();
        if let Some(name) = args.next() {
            command.arg0(name);
        }
        command.args(args).env(VARIABLE, "1");
        for variable in OWN_VARIABLES {
            command.env_remove(variable);
        }
        if signals::is_hangup_ignored() {
            command.env(signals::HANGUP_IGNORED_VARIABLE, "1");
        }
        if let Some(folder) = &self.state_directory {
            command.env("STATE_DIRECTORY", folder);
        }
        command
    }
}

/// Where a shell finds a program of this name.
fn candidates(name: &Path) -> impl Iterator<Item = PathBuf> {
    let has_folder = name.parent().is_some_and(|folder| !folder.as_os_str().is_empty());
    let own = has_folder.then(|| std::path::absolute(name).ok()).flatten();
    let folders = std::env::var_os("PATH").filter(|_| !has_folder).unwrap_or_default();
    let folders: Vec<_> = std::env::split_paths(&folders).map(|folder| folder.join(name)).collect();
    own.into_iter().chain(folders)
}

fn is_same(path: &Path, own: &Metadata) -> bool {
    fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()))
}
