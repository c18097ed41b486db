//! The parts of a worker, prepared before its thread starts, where an error can still be returned.

use std::io;
use std::net::TcpListener;
use std::sync::Arc;

use mio::{Poll, Registry, Waker};
use records::text::Cpus;

use super::WAKER;
use super::control::ProxyControl;
use super::pool::CommandQueue;
use crate::accept::listeners::Listeners;
use crate::accept::networks::Networks;
use crate::accept::proxy_protocol::ProxyProtocol;
use crate::notices::NoticeLog;
use crate::stats::seen::SeenAddresses;
use crate::upstream::route::NameRoutes;

/// Listeners have the tokens from here downwards.
const FIRST_LISTENER: usize = WAKER.0 - 1;

#[derive(Clone, Debug)]
pub(crate) struct WorkerShared {
    pub(crate) clients_max: usize,
    pub(crate) records_names: bool,
    pub(crate) seen: Arc<SeenAddresses>,
    pub(crate) cpus: Option<Cpus>,
    pub(crate) sends_header: Option<ProxyProtocol>,
    pub(crate) trusted: Arc<Networks>,
    pub(crate) routes: Arc<NameRoutes>,
    pub(crate) control: Arc<ProxyControl>,
    pub(crate) notices: Arc<NoticeLog>,
}

/// A worker before its thread starts. Nothing after this can fail.
#[derive(Debug)]
pub(crate) struct PreparedWorker {
    pub(crate) index: usize,
    pub(super) poll: Poll,
    pub(super) registry: Registry,
    pub(super) listeners: Listeners,
    pub(super) commands: Arc<CommandQueue>,
    pub(super) shared: WorkerShared,
}

impl PreparedWorker {
    /// Prepares the worker number `index`, and returns it with its waker.
    ///
    /// # Errors
    /// When the kernel refuses an event loop, or to watch a socket.
    pub(crate) fn new(
        index: usize,
        sockets: Vec<TcpListener>,
        commands: Arc<CommandQueue>,
        shared: WorkerShared,
    ) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = Waker::new(&registry, WAKER)?;
        let mut listeners = Listeners::new(registry.try_clone()?, FIRST_LISTENER);
        for socket in sockets {
            listeners.add(index, socket)?;
        }
        Ok((Self { index, poll, registry, listeners, commands, shared }, waker))
    }
}
