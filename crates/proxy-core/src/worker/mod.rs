//! One worker: a thread with an event loop, listening sockets and connections of its own.

mod accepting;
pub(crate) mod context;
pub(crate) mod control;
pub(crate) mod pending;
pub(crate) mod pool;
mod ready;
pub(crate) mod timers;
mod turn;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::{Events, Poll, Token, Waker};
use slab::Slab;
use telemetry::{Level, ProxyDelta, Reporter};

use self::ready::ReadyQueue;
use crate::accept::listeners::Listeners;
use crate::accept::proxy_protocol::{ProxyProtocol, TrustedPeers};
use crate::config::cpus::Cpus;
use crate::connection::{Connection, SCRATCH_BYTES, untoken};
use crate::io::buffer::Pool;
use crate::notices::{NoticeLog, Subject};
use crate::stats::account::Account;
use crate::upstream::balance::Upstreams;
use crate::upstream::dial::UpstreamDialer;
use crate::worker::context::Context;
use crate::worker::control::Control;
use crate::worker::pending::Pending;
use crate::worker::pool::{CommandQueue, WorkerCommand};
use crate::worker::timers::Timers;

/// Events taken from the kernel in one turn.
const EVENTS_MAX: usize = 256;

const WAKER: Token = Token(usize::MAX);
/// Listeners have the tokens from here downwards.
const FIRST_LISTENER: usize = usize::MAX - 1;

/// What tells one worker from another, and what they share.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) index: usize,
    pub(crate) listeners: Vec<std::net::TcpListener>,
    pub(crate) commands: Arc<CommandQueue>,
    pub(crate) shared: Shared,
}

/// What all workers have in common.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    pub(crate) clients_max: usize,
    pub(crate) cpus: Option<Cpus>,
    pub(crate) upstreams: Arc<Upstreams>,
    pub(crate) sends_header: Option<ProxyProtocol>,
    pub(crate) trusted: Arc<TrustedPeers>,
    pub(crate) control: Arc<Control>,
    pub(crate) notices: Arc<NoticeLog>,
}

pub(crate) struct Worker {
    index: usize,
    cpus: Option<Cpus>,
    poll: Poll,
    control: Arc<Control>,
    commands: Arc<CommandQueue>,
    notices: Arc<NoticeLog>,
    listeners: Listeners,
    /// Not to accept before this moment, unless a connection leaves its place.
    accept_at: Option<Instant>,
    connections: Slab<Box<Connection>>,
    context: Context,
    /// Connections that have something to do, and those that have in the next turn without waiting for an event.
    ready: ReadyQueue,
    again: Vec<usize>,
    /// Generation of the limits and of TLS in use.
    generation: u64,
    /// Once a drain has begun, when it ends.
    drain_until: Option<Instant>,
    /// Whether it takes no new connections and ends with its last one, while others go on.
    is_retired: bool,
    /// Once the backlogs are to be emptied and closed.
    takes_last: bool,
}

impl Worker {
    /// Prepares everything that can fail; returns the worker and what wakes it.
    pub(crate) fn new(setup: Setup) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = Waker::new(&registry, WAKER)?;
        let mut listeners = Listeners::new(registry.try_clone()?, FIRST_LISTENER);
        let Setup { index, commands, shared, .. } = setup;
        for socket in setup.listeners {
            listeners.add(index, socket)?;
        }
        let context = Context {
            registry,
            dialer: UpstreamDialer::new(shared.upstreams, index),
            tls: shared.control.tls().for_worker(),
            limits: shared.control.limits(),
            sends_header: shared.sends_header,
            trusted: shared.trusted,
            timers: Timers::default(),
            pool: Pool::default(),
            pending: Pending::default(),
            account: Account::new(shared.clients_max),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            is_draining: false,
            handshaking: 0,
            control: Arc::clone(&shared.control),
            notices: Arc::clone(&shared.notices),
            now: Instant::now(),
        };
        let generation = shared.control.generation();
        let worker = Self {
            index,
            cpus: shared.cpus,
            poll,
            control: shared.control,
            commands,
            notices: shared.notices,
            listeners,
            accept_at: None,
            connections: Slab::new(),
            context,
            ready: ReadyQueue::default(),
            again: Vec::new(),
            generation,
            drain_until: None,
            is_retired: false,
            takes_last: false,
        };
        Ok((worker, waker))
    }

    /// Serves until a drain has ended, and hands over whenever the collector asks.
    ///
    /// # Errors
    /// When the kernel tells of no more events; what was open is cut then.
    pub(crate) fn run(mut self, reporter: Reporter<ProxyDelta>) -> io::Result<()> {
        if let Some(Err(error)) = self.cpus.as_ref().map(|cpus| cpus.pin(self.index)) {
            let text = format!("cannot keep the proxy's worker {} on its core: {error}", self.index);
            self.notices.say(Subject::Worker(self.index), Level::Warning, &text, self.context.now);
        }
        let served = self.serve_until_over(&reporter);
        self.cut();
        let Account { delta, mut clients, .. } = self.context.account;
        reporter.finish(delta, |delta| clients.hand_over(delta));
        served
    }

    fn serve_until_over(&mut self, reporter: &Reporter<ProxyDelta>) -> io::Result<()> {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.is_over() {
            let timeout = self.timeout();
            if self.wait(&mut events, timeout)? {
                self.run_commands();
                let account = &mut self.context.account;
                let clients = &mut account.clients;
                reporter.answer(&mut account.delta, |delta| clients.hand_over(delta));
            }
            self.serve();
        }
        Ok(())
    }

    /// Waits for events and notes them; true if the handle or the collector wants something.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> io::Result<bool> {
        let polled = self.poll.poll(events, timeout);
        self.context.now = Instant::now();
        match polled {
            Ok(()) => Ok(self.note(events)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            // Trying again would fail at once, again and again.
            Err(error) => Err(error),
        }
    }

    fn is_over(&self) -> bool {
        if self.control.is_stopping() {
            return true;
        }
        let has_served = self.connections.is_empty() && self.listeners.is_empty();
        (self.is_retired && has_served)
            || self.drain_until.is_some_and(|until| has_served || until <= self.context.now)
    }

    fn timeout(&self) -> Option<Duration> {
        if !self.again.is_empty() || self.ready.handshakes() > 0 {
            return Some(Duration::ZERO);
        }
        let may_accept = self.listeners.is_any_ready() && self.handshakes_bound_met().is_none();
        let accept_at = may_accept.then(|| self.accept_at.unwrap_or(self.context.now));
        let next = [self.context.timers.next(), accept_at, self.listeners.next(), self.drain_until];
        let mut next = next.into_iter().flatten().min();
        if !self.context.pending.is_empty() {
            let send_timeout = self.context.next_send_timeout().map(|(at, _)| at);
            next = next.into_iter().chain(send_timeout).min();
        }
        Some(next?.saturating_duration_since(Instant::now()))
    }

    /// Notes what the events tell; true if the handle or the collector wants something.
    fn note(&mut self, events: &Events) -> bool {
        let mut is_woken = false;
        for event in events {
            let token = event.token();
            if token == WAKER {
                is_woken = true;
            } else if !self.listeners.note(token) {
                let (key, which) = untoken(token);
                // An event may be left over from a connection that has been closed in this turn's beginning.
                if let Some(connection) = self.connections.get_mut(key) {
                    connection.note(which, event);
                    self.ready.push(connection, key, self.context.now);
                }
            }
        }
        is_woken
    }

    /// Looks at what the handle wants.
    fn run_commands(&mut self) {
        for command in self.commands.take() {
            self.run_command(command);
        }
        let generation = self.control.generation();
        let begins_drain = self.control.is_draining() && self.drain_until.is_none();
        if generation == self.generation && !begins_drain {
            return;
        }
        self.generation = generation;
        self.context.limits = self.control.limits();
        self.context.tls = self.control.tls().for_worker();
        if begins_drain {
            self.context.is_draining = true;
            self.drain_until = Some(self.context.now + self.context.limits.drain_timeout);
            if self.control.is_handed_over() {
                // What waits in the backlog is served by whoever comes next.
                self.listeners.give_up_all();
            } else if let Err(error) = self.listeners.begin_last_call(self.context.now) {
                let text = format!(
                    "a drain cannot turn new connections away: {error}; those that begin at its end may be reset"
                );
                self.notices.say(Subject::Worker(self.index), Level::Warning, &text, self.context.now);
            }
        }
        for (_, connection) in &mut self.connections {
            connection.limits_changed(&mut self.context);
        }
        self.accept_at = None;
    }

    fn run_command(&mut self, command: WorkerCommand) {
        match command {
            WorkerCommand::ShareListeners(set, sockets) => {
                for socket in sockets {
                    if let Err(error) = self.listeners.add(set, socket) {
                        let text = format!("a worker cannot take over a listening socket: {error}");
                        let subject = Subject::Worker(self.index);
                        self.notices.say(subject, Level::Warning, &text, self.context.now);
                    }
                }
            }
            WorkerCommand::ReleaseListeners(set) => self.listeners.give_up(set),
            WorkerCommand::Retire => {
                self.listeners.give_up_all();
                self.is_retired = true;
            }
            #[cfg(test)]
            WorkerCommand::Panic => panic!("told to panic"),
        }
    }

    fn expire(&mut self) {
        while let Some((key, kind)) = self.context.timers.expired(self.context.now) {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.expired(kind, &mut self.context);
                self.ready.push(connection, key, self.context.now);
            }
        }
        if !self.context.pending.is_empty() {
            self.expire_sends();
        }
    }

    #[cold]
    fn expire_sends(&mut self) {
        while let Some((_, key)) = self.context.next_send_timeout().filter(|&(at, _)| at <= self.context.now)
        {
            let connection = &mut self.connections[key];
            connection.send_timed_out(&mut self.context);
            self.ready.push(connection, key, self.context.now);
        }
    }

    /// Cuts the connections whose bytes have waited longest, as long as too much waits.
    #[cold]
    fn bound_pending(&mut self) {
        while self.context.has_too_much_pending() {
            let Some(key) = self.context.pending.oldest() else { return };
            self.notices.pending_met(self.context.limits.pending_bytes_max, self.context.now);
            self.connections[key].cut_for_room(&mut self.context);
            self.again.push(key);
        }
    }

    fn close(&mut self, key: usize) {
        self.connections.remove(key).close(&mut self.context);
        self.control.limiter.leave();
        self.accept_at = None;
    }

    /// Ends what is still open.
    fn cut(&mut self) {
        self.context.now = Instant::now();
        for mut connection in std::mem::take(&mut self.connections).drain() {
            connection.cut(&mut self.context);
            connection.write(&mut self.context);
            connection.close(&mut self.context);
            self.control.limiter.leave();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Read, Write};
    use std::net::{Shutdown, TcpStream};
    use std::os::unix::net::UnixListener;

    use rustls::pki_types::{CertificateDer, ServerName};
    use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
    use telemetry::ProxyCounter;

    use super::*;
    use crate::connection::{READ_BYTES_MAX, READS_PER_TURN_MAX};
    use crate::{Certificate, Proxy, ProxyConfig, Upstream};

    type Tls = StreamOwned<ClientConnection, TcpStream>;

    /// Shakes hands, sends two bytes, and encrypts a flood that is not sent yet.
    fn client(addr: std::net::SocketAddr, leaf: Vec<u8>) -> (Tls, Vec<u8>) {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from(leaf)).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = Arc::new(config.unwrap().with_root_certificates(roots).with_no_client_auth());
        let connection = ClientConnection::new(config, ServerName::try_from("localhost").unwrap()).unwrap();
        let mut tls = StreamOwned::new(connection, TcpStream::connect(addr).unwrap());
        tls.write_all(b"go").unwrap();
        tls.conn.set_buffer_limit(None);
        tls.conn.writer().write_all(&vec![1; 8 << 20]).unwrap();
        let mut flood = Vec::new();
        while tls.conn.wants_write() {
            tls.conn.write_tls(&mut flood).unwrap();
        }
        (tls, flood)
    }

    #[test]
    fn a_flooding_client_has_a_bounded_part_read_in_a_turn() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("app.sock");
        let upstream = UnixListener::bind(&socket).unwrap();
        let certificate = Certificate::generate(&[]).unwrap();
        let leaf = certificate.leaf_der().to_vec();
        let listen = vec!["127.0.0.1:0".parse().unwrap()];
        let mut config = ProxyConfig::new(listen, Upstream::Unix(socket), certificate);
        config.workers = std::num::NonZeroUsize::MIN;
        let (addr, mut worker) = Proxy::bind(config).unwrap().into_first_worker();
        let mut events = Events::with_capacity(EVENTS_MAX);
        let mut turn = |worker: &mut Worker| {
            worker.wait(&mut events, Some(Duration::from_millis(10))).unwrap();
            worker.serve();
            worker.context.account.delta.counters[ProxyCounter::WireIn]
        };
        let shaking = std::thread::spawn(move || client(addr, leaf));
        while !shaking.is_finished() {
            turn(&mut worker);
        }
        let (mut tls, flood) = shaking.join().unwrap();
        turn(&mut worker);
        // The upstream takes nothing more, so that what the client sends fills no buffer.
        let (mut deaf, _) = upstream.accept().unwrap();
        deaf.read_exact(&mut [0; 2]).unwrap();
        deaf.shutdown(Shutdown::Read).unwrap();
        tls.sock.set_nonblocking(true).unwrap();
        let (mut sent, mut taken, mut most) = (0, turn(&mut worker), 0);
        while sent < flood.len() {
            match tls.sock.write(&flood[sent..]) {
                Ok(n) => sent += n,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let now = turn(&mut worker);
                    most = most.max(now - taken);
                    taken = now;
                }
                Err(error) => panic!("{error}"),
            }
        }
        let bound = u64::from(READS_PER_TURN_MAX) * READ_BYTES_MAX as u64;
        assert!(most > bound / 2, "nothing waited to be read: {most} bytes a turn at the most");
        assert!(most <= bound, "{most} bytes in one turn");
    }
}
