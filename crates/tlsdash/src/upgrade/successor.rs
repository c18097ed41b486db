//! The new process, as the old one sees it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use proxy_core::{ListenAddr, ListenerSets, TicketKeySnapshot};
use records::ids::RunId;
use rustix::process::{Pid, Signal, kill_process_group};

use super::channel::{
    CarriedSetting, PreparedProcess, ReceivedMessage, UpgradeMessage, UpgradeOffer, VERSION, borrowed, pair,
    receive, send,
};
use super::program::UpgradeProgram;
use super::{READY_PATIENCE, sealed};
use crate::service;

/// The longest time to learn how a process has ended that has closed the channel.
const END_PATIENCE: Duration = Duration::from_secs(1);
const END_POLL: Duration = Duration::from_millis(5);

#[derive(Debug)]
pub(crate) struct OfferedSockets {
    /// The run of this process.
    pub(crate) run: RunId,
    pub(crate) listeners: ListenerSets,
    pub(crate) metrics: Option<(SocketAddr, OwnedFd)>,
    pub(crate) control: Option<(PathBuf, OwnedFd)>,
    pub(crate) redirect: Option<(ListenAddr, OwnedFd)>,
}

/// The launcher and its descendants, which are a process group until the new process serves. Dropping this ends the
/// launcher, and all of them unless the new process serves.
#[derive(Debug)]
struct StartedProcess {
    child: Child,
    is_kept: bool,
}

impl Drop for StartedProcess {
    fn drop(&mut self) {
        // They may have ended by themselves.
        if !self.is_kept {
            let _ = kill_process_group(Pid::from_child(&self.child), Signal::KILL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A new process that can serve.
#[derive(Debug)]
pub(crate) struct PreparedSuccessor {
    process: StartedProcess,
    channel: OwnedFd,
    /// The deadline by which it must serve.
    deadline: Instant,
    prepared: PreparedProcess,
    run: RunId,
}

/// A new process that serves.
#[derive(Debug)]
pub(crate) struct Successor {
    pub(crate) run: RunId,
    pub(crate) pid: u32,
    pub(crate) prepared: PreparedProcess,
}

/// Starts the program, offers it the sockets, and waits until it can serve.
///
/// # Errors
/// If it cannot be started, refuses, ends, or is not ready in time. It is ended in all these cases.
pub(crate) fn prepare(
    program: &UpgradeProgram,
    sockets: OfferedSockets,
) -> anyhow::Result<PreparedSuccessor> {
    let deadline = Instant::now() + READY_PATIENCE;
    let (offer, descriptors) = sockets.into_offer();
    let (channel, other) = pair().context("cannot make a channel to the new process")?;
    // The command is dropped at once, and with it the other end, so the end of the process closes the channel.
    let started = program.command().stdin(Stdio::from(other)).process_group(0).spawn();
    let child = started.with_context(|| format!("cannot start {}", program.path().display()))?;
    let mut process = StartedProcess { child, is_kept: false };
    send(channel.as_fd(), &UpgradeMessage::Offer(offer), &borrowed(&descriptors))
        .or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })
        .context("cannot offer the listening sockets")?;
    drop(descriptors);
    let prepared = match process.next(&channel, deadline)? {
        UpgradeMessage::Prepared(prepared) => prepared,
        other => bail!("the new process says {other:?} instead of being prepared"),
    };
    let run = prepared.run.parse().context("the new process names no run")?;
    Ok(PreparedSuccessor { process, channel, deadline, prepared, run })
}

fn is_gone(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

impl OfferedSockets {
    fn into_offer(self) -> (UpgradeOffer, Vec<OwnedFd>) {
        let Self { run, listeners, metrics, control, redirect } = self;
        let ListenerSets { listen, sets, is_managed } = listeners;
        let offer = UpgradeOffer {
            version: VERSION,
            run: run.to_string(),
            listen: listen.iter().map(ToString::to_string).collect(),
            sets: sets.len(),
            is_managed,
            metrics: metrics.as_ref().map(|(addr, _)| *addr),
            control: control.as_ref().map(|(path, _)| path.clone()),
            redirect: redirect.as_ref().map(|(addr, _)| addr.to_string()),
        };
        let endpoints = [metrics.map(|(_, fd)| fd), control.map(|(_, fd)| fd), redirect.map(|(_, fd)| fd)];
        let endpoints = endpoints.into_iter().flatten();
        (offer, sets.into_iter().flatten().map(OwnedFd::from).chain(endpoints).collect())
    }
}

impl StartedProcess {
    fn next(&mut self, channel: &OwnedFd, deadline: Instant) -> anyhow::Result<UpgradeMessage> {
        match receive(channel.as_fd(), deadline) {
            Ok(Some(ReceivedMessage { message: UpgradeMessage::Refused { reason }, .. })) => {
                Err(anyhow!("the new process refuses: {}", records::text::clean::line(&reason)))
            }
            Ok(Some(ReceivedMessage { message, .. })) => Ok(message),
            Ok(None) => Err(match self.ended() {
                Some(status) => anyhow!("the new process has ended before it was ready: {status}"),
                None => anyhow!("the new process has closed the channel before it was ready"),
            }),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(anyhow!("the new process was not ready within {} s", READY_PATIENCE.as_secs()))
            }
            Err(error) => Err(anyhow!("the new process sends something else than it should: {error}")),
        }
    }

    /// How it has ended; `None` if it has not.
    fn ended(&mut self) -> Option<ExitStatus> {
        let deadline = Instant::now() + END_PATIENCE;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < deadline => std::thread::sleep(END_POLL),
                status => return status.ok().flatten(),
            }
        }
    }
}

impl PreparedSuccessor {
    /// Makes it serve with these ticket keys, and makes it the main process of the service.
    ///
    /// # Errors
    /// If it does not. It is ended then.
    pub(crate) fn serve(
        self,
        keys: &TicketKeySnapshot,
        settings: Vec<CarriedSetting>,
    ) -> anyhow::Result<Successor> {
        let Self { mut process, channel, deadline, prepared, run } = self;
        let keys = sealed::seal(keys.as_bytes()).context("cannot seal the ticket keys")?;
        send(channel.as_fd(), &UpgradeMessage::Serve { settings }, &[keys.as_fd()])
            .or_else(|error| if is_gone(&error) { Ok(()) } else { Err(error) })
            .context("cannot hand over the ticket keys")?;
        match process.next(&channel, deadline.max(Instant::now() + END_PATIENCE))? {
            UpgradeMessage::Serving {} => {}
            other => bail!("the new process says {other:?} instead of serving"),
        }
        process.is_kept = true;
        // Without its launcher the new process is a child of the service manager.
        drop(process);
        let pid = prepared.pid;
        service::hand_main_to(pid);
        Ok(Successor { run, pid, prepared })
    }
}
