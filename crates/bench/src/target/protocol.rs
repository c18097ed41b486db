//! Messages between bench and a supervisor: lines of JSON.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The default time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

/// A command that runs under a supervisor: the first and only line that the supervisor reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisedCommand {
    /// The program and its arguments. The program must stay in the foreground.
    pub argv: Vec<String>,
    /// Variables added to the environment of bench.
    pub environment: BTreeMap<String, String>,
    pub directory: PathBuf,
    /// The file of its standard output and standard error, truncated first. Its last lines are quoted in errors.
    pub output: PathBuf,
    /// The file of its standard output alone, truncated first; `None` leaves it to `output`.
    pub stdout: Option<PathBuf>,
    /// The cores of the command and all its descendants, such as `0-3,8`; `None` leaves the choice to the kernel.
    pub cpus: Option<String>,
    /// The limit on open descriptors, soft and hard; `None` leaves them as they are.
    pub descriptors_max: Option<u64>,
    /// How long processes have from SIGTERM to SIGKILL.
    pub grace: Duration,
}

impl SupervisedCommand {
    /// A command without any limits.
    pub fn new(argv: Vec<String>, directory: PathBuf, output: PathBuf) -> Self {
        Self {
            argv,
            environment: BTreeMap::new(),
            directory,
            output,
            stdout: None,
            cpus: None,
            descriptors_max: None,
            grace: GRACE,
        }
    }

    /// The program's name, for messages.
    pub(super) fn program(&self) -> &str {
        self.argv.first().map_or("", String::as_str)
    }
}

/// A supervisor's messages, one per line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum SupervisorMessage {
    /// The command runs, under this process id.
    Started(u32),
    NotStarted {
        /// The operation that failed, and why.
        reason: String,
        is_missing: bool,
    },
    /// The command ended; its descendants are ended next.
    CommandEnded(CommandExit),
    /// All of its processes have ended. Nothing comes after it.
    Done(ExitInfo),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandExit {
    Code(i32),
    Signal(i32),
}

/// How a supervised command and its descendants ended, and their resources from start to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitInfo {
    /// How the command ended; `None` if the supervisor died before it could report.
    pub exit: Option<CommandExit>,
    /// The processes that still existed when the command had ended without a signal from bench.
    pub left_behind: usize,
    /// The processes that did not end at SIGTERM and had to be killed.
    pub killed: usize,
    /// Processes that did not end at SIGKILL and may still run.
    pub left: usize,
    /// CPU time in user mode, in microseconds.
    pub user_us: u64,
    /// CPU time in the kernel, in microseconds.
    pub system_us: u64,
}

impl ExitInfo {
    /// Which processes did not end as they should, in words; `None` if all did.
    pub fn unclean_exit(&self) -> Option<String> {
        let count = |count: usize, words: &str| match count {
            0 => None,
            1 => Some(format!("1 process {words}")),
            _ => Some(format!("{count} processes {words}")),
        };
        let words = [
            count(self.left_behind, "outlived the command"),
            count(self.killed, "did not end at SIGTERM and had to be killed"),
            count(self.left, "did not end at SIGKILL and may go on"),
        ];
        let words: Vec<String> = words.into_iter().flatten().collect();
        (!words.is_empty()).then(|| words.join("; "))
    }
}

impl CommandExit {
    /// True for exit code 0.
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for CommandExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}
