//! The supervisor: it starts one command, and ends the command and all its descendants.
//!
//! It is the child subreaper of its descendants: a process whose parent has ended becomes its child, also after a
//! double fork. So no descendant escapes, and their CPU time is accounted to it (`prctl(2)`,
//! `PR_SET_CHILD_SUBREAPER`). It does not use a parent-death signal, which comes when the thread of bench that started
//! the supervisor ends. The pipe closes when the process ends.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use recorder::host::ProcessTree;
use records::text::Cpus;
use rustix::process::{
    Pid, Resource, Rlimit, Signal, WaitOptions, getpid, kill_process, kill_process_group,
    set_child_subreaper, setrlimit, wait,
};
use rustix::thread::{sched_getaffinity, sched_setaffinity};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::program_folders;
use super::protocol::{CommandExit, ExitInfo, SupervisedCommand, SupervisorMessage};

/// How often processes to kill are listed again: a process may fork before it is killed.
const KILL_EVERY: Duration = Duration::from_millis(20);

/// How long processes have to end after SIGKILL. A process that does not end may belong to another user, or wait for a
/// device.
const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// The events that the supervisor waits for.
#[derive(Clone, Copy, Debug)]
enum SupervisionEvent {
    /// The pipe from bench has closed, or a signal asks for the end.
    EndWanted,
    /// A child has ended and was waited for.
    Reaped(Pid, CommandExit),
    /// No child is left, so no descendant either.
    AllEnded,
}

/// Runs the supervisor: reads a command from standard input, and writes messages to standard output.
///
/// # Errors
/// If it cannot begin to supervise. A command that cannot be started is a message.
pub fn supervise() -> io::Result<()> {
    let (tell, events) = channel();
    end_at_signals(&tell)?;
    set_child_subreaper(Some(getpid()))?;
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line)?;
    let command: SupervisedCommand = serde_json::from_str(&line)?;
    let pid = match start(&command) {
        Ok(pid) => pid,
        Err(error) => {
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            say(&SupervisorMessage::NotStarted { reason: error.to_string(), is_missing });
            return Ok(());
        }
    };
    say(&SupervisorMessage::Started(pid.as_raw_nonzero().get().unsigned_abs()));
    end_with_stdin(tell.clone());
    reap(tell);
    let info = Supervision { command: pid, events, exit: None, grace: command.grace }.run();
    say(&SupervisorMessage::Done(info));
    Ok(())
}

fn say(message: &SupervisorMessage) {
    let line = serde_json::to_string(message).expect("a message is plain data");
    // Bench may have ended.
    let _ = writeln!(io::stdout(), "{line}");
}

/// Starts the command in a separate process group, with its limits.
fn start(command: &SupervisedCommand) -> io::Result<Pid> {
    let [program, args @ ..] = &command.argv[..] else { return Err(refused("the command is empty")) };
    if !command.directory.is_dir() {
        return Err(refused(format_args!("there is no folder {}", command.directory.display())));
    }
    let output = create(&command.output)?;
    let stdout = command.stdout.as_deref().map_or_else(|| output.try_clone(), create)?;
    let own_cores = sched_getaffinity(None)?;
    limit(command)?;
    let child = Command::new(program)
        .args(args)
        .envs(std::env::join_paths(program_folders()).map(|folders| ("PATH", folders)))
        .envs(&command.environment)
        .current_dir(&command.directory)
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(output)
        .process_group(0)
        .spawn()
        .map_err(|error| io::Error::new(error.kind(), format!("cannot start {program}: {error}")))?;
    // The command inherited its cores from this process, which goes back to its own.
    sched_setaffinity(None, &own_cores)?;
    Ok(Pid::from_child(&child))
}

/// Sets the limits of the command, which it inherits.
fn limit(command: &SupervisedCommand) -> io::Result<()> {
    if let Some(count) = command.descriptors_max {
        let limit = Rlimit { current: Some(count), maximum: Some(count) };
        setrlimit(Resource::Nofile, limit)
            .map_err(|error| refused(format_args!("cannot limit descriptors to {count}: {error}")))?;
    }
    if let Some(list) = &command.cpus {
        let cpus: Cpus = list.parse().map_err(refused)?;
        cpus.check().map_err(refused)?;
        cpus.confine()
            .map_err(|error| refused(format_args!("cannot run on the cores {cpus} alone: {error}")))?;
    }
    Ok(())
}

fn create(path: &Path) -> io::Result<File> {
    File::create(path).map_err(|error| refused(format_args!("cannot write {}: {error}", path.display())))
}

/// An error that is not about a missing program.
fn refused(reason: impl Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, reason.to_string())
}

fn end_at_signals(tell: &Sender<SupervisionEvent>) -> io::Result<()> {
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])?;
    let tell = tell.clone();
    thread::spawn(move || signals.forever().try_for_each(|_| tell.send(SupervisionEvent::EndWanted)));
    Ok(())
}

fn end_with_stdin(tell: Sender<SupervisionEvent>) {
    thread::spawn(move || {
        // Bench sends nothing more; the next event is the end.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = tell.send(SupervisionEvent::EndWanted);
    });
}

/// Waits for children until there are none.
fn reap(tell: Sender<SupervisionEvent>) {
    thread::spawn(move || {
        loop {
            let event = match wait(WaitOptions::empty()) {
                Ok(Some((pid, status))) => {
                    let code = status.exit_status().map(CommandExit::Code);
                    let exit = code.or_else(|| status.terminating_signal().map(CommandExit::Signal));
                    let Some(exit) = exit else { continue };
                    SupervisionEvent::Reaped(pid, exit)
                }
                Err(rustix::io::Errno::INTR) | Ok(None) => continue,
                Err(_) => SupervisionEvent::AllEnded,
            };
            if tell.send(event).is_err() || matches!(event, SupervisionEvent::AllEnded) {
                return;
            }
        }
    });
}

/// A command from its start to the end of its last descendant.
#[derive(Debug)]
struct Supervision {
    command: Pid,
    events: Receiver<SupervisionEvent>,
    exit: Option<CommandExit>,
    grace: Duration,
}

impl Supervision {
    fn run(mut self) -> ExitInfo {
        let mut info = ExitInfo::default();
        let all_ended = loop {
            match self.events.recv() {
                Ok(SupervisionEvent::Reaped(pid, exit)) if pid == self.command => {
                    self.command_ended(exit);
                    info.left_behind = descendants().map_or(0, |left| left.len());
                    break false;
                }
                Ok(SupervisionEvent::Reaped(..)) => {}
                Ok(SupervisionEvent::EndWanted) => break false,
                Ok(SupervisionEvent::AllEnded) | Err(_) => break true,
            }
        };
        if !all_ended {
            (info.killed, info.left) = self.end_all();
        }
        info.exit = self.exit;
        if let Ok(used) = getrusage(UsageWho::RUSAGE_CHILDREN) {
            let us =
                |time: nix::sys::time::TimeVal| (time.tv_sec() * 1_000_000 + time.tv_usec()).unsigned_abs();
            (info.user_us, info.system_us) = (us(used.user_time()), us(used.system_time()));
        }
        info
    }

    fn command_ended(&mut self, exit: CommandExit) {
        self.exit = Some(exit);
        say(&SupervisorMessage::CommandEnded(exit));
    }

    /// Ends all descendants: SIGTERM, and SIGKILL after a time. Returns how many were killed, and how many are left all the
    /// same.
    fn end_all(&mut self) -> (usize, usize) {
        self.send_all(Signal::TERM);
        if self.have_ended_by(Instant::now() + self.grace) {
            return (0, 0);
        }
        let mut killed = BTreeSet::new();
        let deadline = Instant::now() + KILL_PATIENCE;
        loop {
            killed.extend(self.send_all(Signal::KILL));
            if self.have_ended_by(Instant::now() + KILL_EVERY) {
                return (killed.len(), 0);
            }
            if Instant::now() > deadline {
                // A child is left, even if `/proc` does not show it.
                let left: BTreeSet<u32> = descendants().unwrap_or_default().into_iter().collect();
                return (killed.difference(&left).count(), left.len().max(1));
            }
        }
    }

    /// Sends a signal to each descendant and returns them. SIGKILL goes to the process group of the command too while that is
    /// certain to be the command's; every signal does if no descendant is known.
    fn send_all(&self, signal: Signal) -> Vec<u32> {
        let found = descendants();
        if (signal == Signal::KILL && self.exit.is_none()) || found.is_err() {
            // It may have ended.
            let _ = kill_process_group(self.command, signal);
        }
        let found = found.unwrap_or_default();
        for pid in &found {
            send(*pid, signal);
        }
        found
    }

    fn have_ended_by(&mut self, deadline: Instant) -> bool {
        loop {
            match self.events.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(SupervisionEvent::Reaped(pid, exit)) if pid == self.command => self.command_ended(exit),
                Ok(SupervisionEvent::Reaped(..) | SupervisionEvent::EndWanted) => {}
                Ok(SupervisionEvent::AllEnded) | Err(RecvTimeoutError::Disconnected) => return true,
                Err(RecvTimeoutError::Timeout) => return false,
            }
        }
    }
}

/// # Errors
/// If `/proc` cannot be read.
fn descendants() -> io::Result<Vec<u32>> {
    ProcessTree::of_descendants(std::process::id()).map(|tree| tree.pids())
}

fn send(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may already have ended.
        let _ = kill_process(pid, signal);
    }
}
