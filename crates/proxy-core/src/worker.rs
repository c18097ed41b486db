//! One worker: a thread with an event loop, listening sockets and connections of its own.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;
use telemetry::{ProxyCounter, ProxyDelta, Reporter};

use crate::account::Account;
use crate::buffer::Pool;
use crate::connection::{Connection, Next, SCRATCH_BYTES, untoken};
use crate::context::Context;
use crate::control::Control;
use crate::timers::Timers;
use crate::upstream::Target;

/// Events taken from the kernel in one turn. All of a turn's connections read before any of them writes, so this
/// also bounds the memory that is on its way.
const EVENTS_MAX: usize = 256;
/// Connections accepted in one turn, so that a flood of new ones does not keep the others waiting.
const ACCEPTS_PER_TURN_MAX: usize = 64;
/// How long to wait before accepting again when the process or the system is out of descriptors or memory.
const ACCEPT_BACK_OFF: Duration = Duration::from_millis(100);
/// How soon to look again for a place when all are taken, in case another worker's connection leaves one.
const FULL_BACK_OFF: Duration = Duration::from_millis(10);

const WAKER: Token = Token(usize::MAX);
/// Listeners have the tokens from here downwards.
const FIRST_LISTENER: usize = usize::MAX - 1;

/// What tells one worker from another, and what they share.
#[derive(Debug)]
pub(crate) struct Setup {
    pub(crate) index: usize,
    pub(crate) workers: usize,
    pub(crate) clients_max: usize,
    pub(crate) listeners: Vec<std::net::TcpListener>,
    pub(crate) target: Target,
    pub(crate) control: Arc<Control>,
}

struct Listener {
    socket: TcpListener,
    token: Token,
    /// Whether connections may be waiting.
    is_ready: bool,
}

pub(crate) struct Worker {
    poll: Poll,
    control: Arc<Control>,
    listeners: Vec<Listener>,
    /// Not to accept before this moment, unless a connection leaves its place.
    accept_at: Option<Instant>,
    connections: Slab<Box<Connection>>,
    context: Context,
    /// Connections to turn to in this turn, and in the next one without waiting for an event.
    listed: Vec<usize>,
    again: Vec<usize>,
    /// Generation of the limits and of TLS in use.
    generation: u64,
    /// Once a drain has begun, when it ends.
    drain_until: Option<Instant>,
}

impl Worker {
    /// Prepares everything that can fail; returns the worker and what wakes it.
    pub(crate) fn new(setup: Setup) -> io::Result<(Self, Waker)> {
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let waker = Waker::new(&registry, WAKER)?;
        let mut listeners = Vec::new();
        for (i, socket) in setup.listeners.into_iter().enumerate() {
            let (mut socket, token) = (TcpListener::from_std(socket), Token(FIRST_LISTENER - i));
            registry.register(&mut socket, token, Interest::READABLE)?;
            listeners.push(Listener { socket, token, is_ready: true });
        }
        let context = Context {
            registry,
            target: setup.target,
            tls: setup.control.tls(),
            limits: setup.control.limits(),
            timers: Timers::default(),
            pool: Pool::default(),
            account: Account::new(setup.index, setup.workers, setup.clients_max),
            scratch: vec![0; SCRATCH_BYTES].into_boxed_slice(),
            is_draining: false,
            now: Instant::now(),
        };
        let generation = setup.control.generation();
        let worker = Self {
            poll,
            control: setup.control,
            listeners,
            accept_at: None,
            connections: Slab::new(),
            context,
            listed: Vec::new(),
            again: Vec::new(),
            generation,
            drain_until: None,
        };
        Ok((worker, waker))
    }

    /// Serves until a drain has ended, and hands over whenever the collector asks.
    pub(crate) fn run(mut self, reporter: Reporter<ProxyDelta>) {
        let mut events = Events::with_capacity(EVENTS_MAX);
        while !self.is_over() {
            let timeout = self.timeout();
            if self.wait(&mut events, timeout) {
                self.obey();
                let account = &mut self.context.account;
                let clients = &mut account.clients;
                reporter.answer(&mut account.delta, |delta| clients.hand_over(delta));
            }
            self.serve();
        }
        self.cut();
        let Account { delta, mut clients, .. } = self.context.account;
        reporter.finish(delta, |delta| clients.hand_over(delta));
    }

    /// Waits for events and notes them; true if the handle or the collector wants something.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) -> bool {
        let is_woken = match self.poll.poll(events, timeout) {
            Ok(()) => self.note(events),
            // Interrupted by a signal; anything else a loop of its own could not mend either.
            Err(_) => false,
        };
        self.context.now = Instant::now();
        is_woken
    }

    /// Gives everybody one turn.
    fn serve(&mut self) {
        self.expire();
        self.turn();
        self.accept();
    }

    fn is_over(&self) -> bool {
        if self.control.is_stopping() {
            return true;
        }
        self.drain_until.is_some_and(|until| {
            (self.connections.is_empty() && self.listeners.is_empty()) || until <= self.context.now
        })
    }

    fn timeout(&self) -> Option<Duration> {
        if !self.again.is_empty() {
            return Some(Duration::ZERO);
        }
        let may_accept = self.listeners.iter().any(|listener| listener.is_ready);
        let accept_at = may_accept.then(|| self.accept_at.unwrap_or(self.context.now));
        let next = [self.context.timers.next(), accept_at, self.drain_until].into_iter().flatten().min()?;
        Some(next.saturating_duration_since(Instant::now()))
    }

    /// Notes what the events tell; true if the handle or the collector wants something.
    fn note(&mut self, events: &Events) -> bool {
        let mut is_woken = false;
        for event in events {
            let token = event.token();
            if token == WAKER {
                is_woken = true;
            } else if let Some(listener) = self.listeners.iter_mut().find(|listener| listener.token == token)
            {
                listener.is_ready = true;
            } else {
                let (key, which) = untoken(token);
                // An event may be left over from a connection that has been closed in this turn's beginning.
                if let Some(connection) = self.connections.get_mut(key) {
                    connection.note(which, event);
                    list(&mut self.listed, connection, key);
                }
            }
        }
        is_woken
    }

    /// Looks at what the handle wants.
    fn obey(&mut self) {
        let generation = self.control.generation();
        let begins_drain = self.control.is_draining() && self.drain_until.is_none();
        if generation == self.generation && !begins_drain {
            return;
        }
        self.generation = generation;
        self.context.limits = self.control.limits();
        self.context.tls = self.control.tls();
        if begins_drain {
            self.context.is_draining = true;
            self.drain_until = Some(self.context.now + self.context.limits.drain_timeout);
            for listener in &mut self.listeners {
                listener.is_ready = true;
            }
        }
        for (_, connection) in &mut self.connections {
            connection.limits_changed(&mut self.context);
        }
        self.accept_at = None;
    }

    fn expire(&mut self) {
        while let Some((key, kind)) = self.context.timers.expired(self.context.now) {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.expired(kind, &mut self.context);
                list(&mut self.listed, connection, key);
            }
        }
    }

    /// Lets every listed connection read, then every one write.
    fn turn(&mut self) {
        for key in self.again.drain(..) {
            if let Some(connection) = self.connections.get_mut(key) {
                list(&mut self.listed, connection, key);
            }
        }
        let listed = std::mem::take(&mut self.listed);
        for &key in &listed {
            self.context.now = Instant::now();
            self.connections[key].read(&mut self.context);
        }
        for &key in &listed {
            let connection = &mut self.connections[key];
            connection.is_listed = false;
            match connection.write(&mut self.context) {
                Next::Wait => {}
                Next::Again => self.again.push(key),
                Next::Close => self.close(key),
            }
        }
        self.listed = listed;
        self.listed.clear();
    }

    fn close(&mut self, key: usize) {
        self.connections.remove(key).close(&mut self.context);
        self.control.gate.leave();
        self.accept_at = None;
    }

    /// Takes connections from the backlog, as long as there are places and descriptors for them.
    fn accept(&mut self) {
        if self.accept_at.is_some_and(|at| self.context.now < at) {
            return;
        }
        self.accept_at = None;
        let open_before = self.connections.len();
        let mut left = ACCEPTS_PER_TURN_MAX;
        for i in 0..self.listeners.len() {
            while self.listeners[i].is_ready && self.accept_at.is_none() && left > 0 {
                self.accept_one(i);
                left -= 1;
            }
        }
        if self.connections.len() > open_before {
            // A crowd at one address must not keep those at the others waiting: who was first is last next time.
            self.listeners.rotate_left(1);
        }
        if self.context.is_draining {
            // A backlog that has been taken is closed; one that has not is left open until there are places.
            self.listeners.retain(|listener| listener.is_ready);
        }
    }

    fn accept_one(&mut self, listener: usize) {
        if !self.control.gate.enter() {
            self.accept_at = Some(self.context.now + FULL_BACK_OFF);
            return;
        }
        let accepted = self.listeners[listener].socket.accept().and_then(|(socket, peer)| {
            let entry = self.connections.vacant_entry();
            let connection = Connection::accept(socket, peer, entry.key(), &mut self.context)?;
            entry.insert(Box::new(connection));
            Ok(())
        });
        let Err(error) = accepted else { return };
        self.control.gate.leave();
        match error.kind() {
            io::ErrorKind::WouldBlock => self.listeners[listener].is_ready = false,
            // The client has left the backlog before its turn came.
            io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted => {}
            // Out of descriptors or memory: trying again at once would spin, since the backlog stays as it is.
            _ => {
                self.context.account.count(ProxyCounter::AcceptErrors, 1);
                self.accept_at = Some(self.context.now + ACCEPT_BACK_OFF);
            }
        }
    }

    /// Ends what is still open.
    fn cut(&mut self) {
        self.context.now = Instant::now();
        for mut connection in std::mem::take(&mut self.connections).drain() {
            connection.cut(&mut self.context);
            connection.write(&mut self.context);
            connection.close(&mut self.context);
            self.control.gate.leave();
        }
    }
}

fn list(listed: &mut Vec<usize>, connection: &mut Connection, key: usize) {
    if !connection.is_listed {
        connection.is_listed = true;
        listed.push(key);
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
            worker.wait(&mut events, Some(Duration::from_millis(10)));
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
