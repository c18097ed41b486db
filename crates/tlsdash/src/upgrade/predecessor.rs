//! The old process, as the new one sees it.

use std::io::Stdin;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, anyhow, bail, ensure};
use proxy_core::{ListenAddr, ListenerSets, ListenerSource, TicketKeySnapshot};
use records::ids::RunId;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{getpgid, set_parent_process_death_signal, setpgid};

use super::channel::{
    CarriedSetting, PreparedProcess, ReceivedMessage, UpgradeMessage, UpgradeOffer, VERSION, is_channel,
    receive, send,
};
use super::{READY_PATIENCE, VARIABLE, sealed};
use crate::error::usage;

/// The most descriptors that are taken: sockets of 256 workers at 16 addresses.
const DESCRIPTORS_MAX: usize = 4096;

/// State that the old process leaves.
#[derive(Debug)]
pub(crate) struct HandoverState {
    /// The run of the old process.
    pub(crate) run: RunId,
    pub(crate) keys: TicketKeySnapshot,
    pub(crate) settings: Vec<CarriedSetting>,
}

/// The old process, which waits for this one to be ready.
#[derive(Debug)]
pub(crate) struct Predecessor {
    channel: Stdin,
    run: RunId,
    listeners: Option<ListenerSets>,
    metrics: Option<(SocketAddr, OwnedFd)>,
    control: Option<(std::path::PathBuf, OwnedFd)>,
    redirect: Option<(ListenAddr, OwnedFd)>,
    /// Which of the last three were taken over.
    has_metrics: bool,
    has_control: bool,
    has_redirect: bool,
}

/// The channel to the process that started this one; `None` without one.
fn channel() -> Option<Stdin> {
    std::env::var_os(VARIABLE).map(|_| std::io::stdin())
}

/// Tells a waiting old process why this one ends.
pub(crate) fn refuse(reason: &str) {
    if let Some(channel) = channel().filter(|channel| is_channel(channel.as_fd())) {
        // No process waits if this one has served.
        let _ = send(channel.as_fd(), &UpgradeMessage::Refused { reason: reason.to_owned() }, &[]);
    }
}

impl Predecessor {
    /// The process that started this one to replace it; `None` without one.
    ///
    /// # Errors
    /// If its offer is invalid.
    pub(crate) fn find() -> anyhow::Result<Option<Self>> {
        let Some(channel) = channel() else { return Ok(None) };
        if !is_channel(channel.as_fd()) {
            return Err(usage(format!("{VARIABLE} is set, and standard input is no channel: unset it")));
        }
        let deadline = Instant::now() + READY_PATIENCE;
        let ReceivedMessage { message, mut descriptors } = next(&channel, deadline)?;
        let UpgradeMessage::Offer(offer) = message else { bail!("expected an offer of sockets") };
        ensure!(
            offer.version == VERSION,
            "the running program speaks version {} of an upgrade, this one {VERSION}: restart the service",
            offer.version
        );
        let count = offer.descriptors().filter(|count| *count <= DESCRIPTORS_MAX);
        let count = count.context("the running program offers too many sockets")?;
        while descriptors.len() < count {
            let ReceivedMessage { message, descriptors: more } = next(&channel, deadline)?;
            let has_more = message == UpgradeMessage::Descriptors {} && !more.is_empty();
            ensure!(has_more, "the running program offers fewer sockets than it says");
            descriptors.extend(more);
        }
        ensure!(descriptors.len() == count, "the running program offers more sockets than it says");
        Self::with_offer(channel, offer, descriptors).map(Some)
    }

    fn with_offer(channel: Stdin, offer: UpgradeOffer, descriptors: Vec<OwnedFd>) -> anyhow::Result<Self> {
        let UpgradeOffer { run, listen, sets, is_managed, metrics, control, redirect, .. } = offer;
        let run = run.parse().context("the running program names no run")?;
        let mut descriptors = descriptors.into_iter();
        let mut set = || descriptors.by_ref().take(listen.len()).map(TcpListener::from).collect();
        let sets = (0..sets).map(|_| set()).collect();
        let listen = listen.iter().map(|addr| addr.parse()).collect::<Result<_, _>>()?;
        let metrics = metrics.and_then(|addr| Some((addr, descriptors.next()?)));
        let control = control.and_then(|path| Some((path, descriptors.next()?)));
        let redirect = redirect.map(|addr| addr.parse()).transpose()?;
        let redirect = redirect.and_then(|addr| Some((addr, descriptors.next()?)));
        let listeners = Some(ListenerSets { listen, sets, is_managed });
        let (has_metrics, has_control, has_redirect) = (false, false, false);
        Ok(Self {
            channel,
            run,
            listeners,
            metrics,
            control,
            redirect,
            has_metrics,
            has_control,
            has_redirect,
        })
    }

    /// Whether the listening sockets come from a service manager.
    pub(crate) fn is_managed(&self) -> bool {
        self.listeners.as_ref().is_some_and(|listeners| listeners.is_managed)
    }

    /// Its listening sockets, once.
    pub(crate) fn take_listeners(&mut self) -> ListenerSource {
        self.listeners.take().map_or(ListenerSource::Bind, ListenerSource::Predecessor)
    }

    /// Its socket of `--metrics`, if the address is the same.
    pub(crate) fn take_metrics(&mut self, addr: SocketAddr) -> Option<TcpListener> {
        let (_, fd) = self.metrics.take_if(|(former, _)| *former == addr)?;
        self.has_metrics = true;
        Some(fd.into())
    }

    /// Its control socket, if the path is the same.
    pub(crate) fn take_control(&mut self, path: &Path) -> Option<UnixListener> {
        let (_, fd) = self.control.take_if(|(former, _)| former == path)?;
        self.has_control = true;
        Some(fd.into())
    }

    /// Its socket of `--redirect-http`, if the address is the same.
    pub(crate) fn take_redirect(&mut self, addr: ListenAddr) -> Option<TcpListener> {
        let (_, fd) = self.redirect.take_if(|(former, _)| *former == addr)?;
        self.has_redirect = true;
        Some(fd.into())
    }

    /// Reports that this process can serve as `run` at the addresses `listen`, and waits for the old process's state.
    ///
    /// # Errors
    /// If the old process has ended, or gave up.
    pub(crate) fn await_handover(&self, run: RunId, listen: &[SocketAddr]) -> anyhow::Result<HandoverState> {
        let Self { has_metrics, has_control, has_redirect, .. } = *self;
        let prepared = PreparedProcess {
            pid: std::process::id(),
            run: run.to_string(),
            listen: listen.to_vec(),
            has_metrics,
            has_control,
            has_redirect,
        };
        send(self.channel.as_fd(), &UpgradeMessage::Prepared(prepared), &[])
            .context("cannot answer the running program")?;
        let ReceivedMessage { message, descriptors } = next(&self.channel, Instant::now() + READY_PATIENCE)?;
        let UpgradeMessage::Serve { settings } = message else { bail!("expected ticket keys") };
        let [keys] = <[OwnedFd; 1]>::try_from(descriptors).map_err(|_| anyhow!("expected ticket keys"))?;
        let keys =
            sealed::unseal(keys, TicketKeySnapshot::BYTES_MAX).context("cannot read the ticket keys")?;
        Ok(HandoverState { run: self.run, keys: TicketKeySnapshot::parse(keys)?, settings })
    }

    /// Reports that this process serves.
    pub(crate) fn tell_serving(&self) {
        outlive_launcher(self.channel.as_fd());
        // Without it this process serves all the same.
        let _ = send(self.channel.as_fd(), &UpgradeMessage::Serving {}, &[]);
    }
}

/// Lets this process go on without the one that started it, in the process group of the one that it replaces, at the other
/// end of the channel.
fn outlive_launcher(channel: BorrowedFd<'_>) {
    let _ = set_parent_process_death_signal(None);
    // Without them it goes on in the group of the launcher.
    let group = socket_peercred(channel).and_then(|other| getpgid(Some(other.pid)));
    let _ = group.and_then(|group| setpgid(None, Some(group)));
}

fn next(channel: &Stdin, deadline: Instant) -> anyhow::Result<ReceivedMessage> {
    let received = receive(channel.as_fd(), deadline).context("no word from the running program")?;
    received.context("the running program has gone")
}
