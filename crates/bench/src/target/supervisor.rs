//! Bench's end of a supervised command.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use recorder::host::ProcessTree;

use super::output_tail::output_tail;
use super::protocol::{CommandExit, ExitInfo, SupervisedCommand, SupervisorMessage};

/// How long the supervisor may take for operations that the kernel does at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// A command that runs with all its descendants under a supervisor. Dropping it stops them, as any end of this process
/// does, SIGKILL included.
#[derive(Debug)]
pub struct Supervisor {
    child: Child,
    /// Closing it makes the supervisor end everything.
    stdin: Option<ChildStdin>,
    messages: Receiver<SupervisorMessage>,
    pid: u32,
    exit: Option<CommandExit>,
    done: Option<ExitInfo>,
    output: PathBuf,
    grace: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("cannot start {0}: there is no such program")]
    Missing(String),
    /// It cannot be executed, or its cores, limits or files cannot be set up.
    #[error("{0}")]
    Refused(String),
    #[error("cannot start a supervisor for {program}: {reason}")]
    Supervisor { program: String, reason: String },
}

impl Supervisor {
    /// Starts a command; `tlsdash` is the program with the hidden command `bench-supervisor`.
    ///
    /// # Errors
    /// If the command cannot be started. A later failure of the command is not an error here.
    pub fn start(tlsdash: &Path, command: &SupervisedCommand) -> Result<Self, StartError> {
        let fail = |reason: String| StartError::Supervisor { program: command.program().to_owned(), reason };
        let mut child = Command::new(tlsdash)
            .arg("bench-supervisor")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // In a separate group: Ctrl-C is for bench, which ends its children in order.
            .process_group(0)
            .spawn()
            .map_err(|error| fail(error.to_string()))?;
        let mut stdin = child.stdin.take().expect("it is piped");
        let messages = read_messages(&mut child);
        let mut supervisor = Self {
            messages,
            stdin: None,
            pid: 0,
            exit: None,
            done: None,
            output: command.output.clone(),
            grace: command.grace,
            child,
        };
        let line = serde_json::to_string(command).map_err(|error| fail(error.to_string()))?;
        writeln!(stdin, "{line}").map_err(|error| fail(error.to_string()))?;
        supervisor.stdin = Some(stdin);
        match supervisor.messages.recv_timeout(PATIENCE) {
            Ok(SupervisorMessage::Started(pid)) => {
                supervisor.pid = pid;
                Ok(supervisor)
            }
            Ok(SupervisorMessage::NotStarted { is_missing: true, .. }) => {
                Err(StartError::Missing(command.program().to_owned()))
            }
            Ok(SupervisorMessage::NotStarted { reason, .. }) => Err(StartError::Refused(reason)),
            Ok(message) => Err(fail(format!("it said {message:?}"))),
            Err(error) => Err(fail(error.to_string())),
        }
    }

    /// The process id of the command.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// The processes of the command with all its descendants, also those whose parents have ended. The supervisor itself
    /// is not one of them.
    ///
    /// # Errors
    /// If the supervisor has ended, or `/proc` cannot be read.
    pub fn tree(&self) -> std::io::Result<ProcessTree> {
        ProcessTree::of_descendants(self.child.id())
    }

    /// How the command ended; `None` while it runs.
    pub fn exit(&mut self) -> Option<CommandExit> {
        while let Ok(message) = self.messages.try_recv() {
            self.note(&message);
        }
        self.exit
    }

    /// Waits until the command has ended, and its descendants were ended; `None` if it still runs at the deadline.
    pub fn wait_until(&mut self, deadline: Instant) -> Option<ExitInfo> {
        while self.done.is_none() {
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(message) => self.note(&message),
                Err(RecvTimeoutError::Timeout) => return None,
                // It ended before it could report.
                Err(RecvTimeoutError::Disconnected) => {
                    self.done = Some(ExitInfo { exit: self.exit, ..ExitInfo::default() });
                }
            }
        }
        self.done
    }

    /// The last lines of the command's output, as one line.
    pub fn output_tail(&self) -> String {
        output_tail(&self.output)
    }

    /// Ends the command and all its descendants, and waits until they have ended.
    pub fn stop(mut self) -> ExitInfo {
        self.end()
    }

    fn end(&mut self) -> ExitInfo {
        drop(self.stdin.take());
        let info = self.wait_until(Instant::now() + self.grace + PATIENCE);
        if info.is_some() {
            // It has closed its end or is about to.
            let _ = self.child.wait();
        }
        // A supervisor that takes longer keeps running: only it can end the rest.
        info.unwrap_or_default()
    }

    fn note(&mut self, message: &SupervisorMessage) {
        match message {
            SupervisorMessage::CommandEnded(exit) => self.exit = Some(*exit),
            SupervisorMessage::Done(info) => {
                self.exit = info.exit;
                self.done = Some(*info);
            }
            SupervisorMessage::Started(_) | SupervisorMessage::NotStarted { .. } => {}
        }
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads the supervisor's messages on a separate thread, so the supervisor never waits for this process.
fn read_messages(child: &mut Child) -> Receiver<SupervisorMessage> {
    let (tell, messages) = channel();
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    thread::spawn(move || {
        let read = lines.map_while(Result::ok).map_while(|line| serde_json::from_str(&line).ok());
        read.into_iter().try_for_each(|message| tell.send(message))
    });
    messages
}
