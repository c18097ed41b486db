//! The process between an old one and a new one. systemd kills a main process that is not its own child without a
//! drain. So the old process starts a launcher, the launcher starts the new process, and the launcher exits before
//! the new process serves. The new process is then a child of systemd or init.

use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};

use rustix::process::{Signal, getpid, kill_process, set_parent_process_death_signal};

use super::VARIABLE;

/// The value of [`VARIABLE`] in the process that will serve.
const LAUNCHED: &str = "launched";

/// Starts the process that will serve, and waits for its end, which becomes that of this process; `None` if this one
/// is not between two.
pub(crate) fn launch() -> Option<ExitCode> {
    let stage = std::env::var_os(VARIABLE)?;
    if stage == LAUNCHED {
        // Until it serves it ends with the process that started it.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        return None;
    }
    Some(match start() {
        Ok(status) => end_as(status),
        Err(error) => {
            let reason = format!("cannot start another process: {error}");
            super::predecessor::refuse(&reason);
            crate::say(reason);
            ExitCode::FAILURE
        }
    })
}

fn start() -> io::Result<ExitStatus> {
    let mut args = std::env::args_os();
    let mut command = Command::new(std::env::current_exe()?);
    if let Some(name) = args.next() {
        command.arg0(name);
    }
    command.args(args).env(VARIABLE, LAUNCHED).status()
}

fn end_as(status: ExitStatus) -> ExitCode {
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        let _ = kill_process(getpid(), signal);
    }
    status.code().and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
