//! The pool of one worker: connections to each upstream, the one used last first, and requests that wait for one.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::os::unix::net::SocketAddr as UnixAddr;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use mio::Registry;
use mio::event::Event;
use proxy_core::handler::resources_token;
use proxy_core::{IoResult, Socket};
use slab::Slab;

/// Most that is read at once.
const READ_BYTES_MAX: usize = 64 << 10;
/// How soon to try a Unix socket again whose backlog is full, which no event reports. Only the first request in the queue
/// tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Where requests go.
#[derive(Clone, Debug)]
pub(crate) enum UpstreamAddr {
    /// A Unix socket.
    Unix(UnixAddr),
    /// A TCP address.
    Tcp(SocketAddr),
}

/// Bounds of a worker's pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PoolLimits {
    /// Connections to each upstream.
    pub(crate) connections_max: usize,
    /// Requests that wait for a connection to an upstream; further ones are refused.
    pub(crate) queued_max: usize,
    /// How long an unused connection is kept.
    pub(crate) idle_timeout: Duration,
}

/// A worker's connections to its upstreams.
#[derive(Debug)]
pub(crate) struct Pool {
    registry: Option<Registry>,
    limits: PoolLimits,
    upstreams: Vec<UpstreamConns>,
    connections: Slab<PooledConn>,
    scratch: Box<[u8]>,
    next_ticket: u64,
    now: Instant,
}

/// The connections to one upstream.
#[derive(Debug)]
struct UpstreamConns {
    addr: UpstreamAddr,
    /// Idle connections, and since when; the one used last is at the end.
    idle: VecDeque<(usize, Instant)>,
    open: usize,
    /// Requests that wait, first come, first served.
    queue: VecDeque<(QueueTicket, Waker)>,
    /// When a full backlog is tried again.
    retry_at: Option<Instant>,
}

/// A place in the queue for a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueTicket(u64);

/// A connection to an upstream.
#[derive(Debug)]
pub(crate) struct PooledConn {
    socket: Socket,
    upstream: usize,
    is_connecting: bool,
    /// What the upstream has sent and nobody has taken.
    pub(crate) received: BytesMut,
    /// What the upstream has yet to take.
    pub(crate) unsent: BytesMut,
    /// Whether the upstream sends nothing more.
    pub(crate) has_ended: bool,
    /// Who waits for it.
    waker: Option<Waker>,
    /// Whether it has served an exchange: the upstream may have closed it since.
    pub(crate) is_reused: bool,
}

/// Why there is no connection to an upstream.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AcquireError {
    #[error("too many requests wait for a connection to the upstream")]
    QueueFull,
    #[error("cannot connect to the upstream: {0}")]
    Connect(#[from] io::Error),
}

impl Pool {
    pub(crate) fn new(upstreams: Vec<UpstreamAddr>, limits: PoolLimits) -> Self {
        let of = |addr| UpstreamConns {
            addr,
            idle: VecDeque::new(),
            open: 0,
            queue: VecDeque::new(),
            retry_at: None,
        };
        Self {
            registry: None,
            limits,
            upstreams: upstreams.into_iter().map(of).collect(),
            connections: Slab::new(),
            scratch: vec![0; READ_BYTES_MAX].into_boxed_slice(),
            next_ticket: 0,
            now: Instant::now(),
        }
    }

    /// Takes over where sockets are registered.
    pub(crate) fn set_registry(&mut self, registry: &Registry) -> io::Result<()> {
        if self.registry.is_none() {
            self.registry = Some(registry.try_clone()?);
        }
        Ok(())
    }

    /// Waits for a connection to an upstream: an idle one unless `must_be_new`, or a new one. `place` is the request's
    /// place in the queue; whoever gives up must [`Pool::leave_queue`].
    pub(crate) fn poll_acquire(
        &mut self,
        upstream: usize,
        must_be_new: bool,
        place: &mut Option<QueueTicket>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<usize, AcquireError>> {
        let is_first = self.upstreams[upstream].queue.front().map(|(ticket, _)| *ticket) == *place;
        if is_first {
            match self.try_acquire(upstream, must_be_new) {
                Ok(Some(key)) => {
                    self.leave_queue(upstream, place);
                    return Poll::Ready(Ok(key));
                }
                Ok(None) => {}
                Err(error) => {
                    self.leave_queue(upstream, place);
                    return Poll::Ready(Err(error.into()));
                }
            }
        }
        let connections = &mut self.upstreams[upstream];
        if let Some(ticket) = place {
            if let Some((_, waker)) = connections.queue.iter_mut().find(|(other, _)| other == ticket) {
                waker.clone_from(cx.waker());
            }
            return Poll::Pending;
        }
        if connections.queue.len() >= self.limits.queued_max {
            return Poll::Ready(Err(AcquireError::QueueFull));
        }
        self.next_ticket += 1;
        let ticket = QueueTicket(self.next_ticket);
        connections.queue.push_back((ticket, cx.waker().clone()));
        *place = Some(ticket);
        Poll::Pending
    }

    /// Leaves the queue, and lets the next request try.
    pub(crate) fn leave_queue(&mut self, upstream: usize, place: &mut Option<QueueTicket>) {
        if let Some(ticket) = place.take() {
            self.upstreams[upstream].queue.retain(|(other, _)| *other != ticket);
        }
        self.upstreams[upstream].wake_first();
    }

    /// An idle connection, or a new one; `None` if there may be no more, or the backlog is full.
    fn try_acquire(&mut self, upstream: usize, must_be_new: bool) -> io::Result<Option<usize>> {
        while !must_be_new && let Some((key, _)) = self.upstreams[upstream].idle.pop_back() {
            if self.is_still_open(key) {
                return Ok(Some(key));
            }
            self.close(key);
        }
        if self.upstreams[upstream].open >= self.limits.connections_max {
            // One that nobody uses makes room for a new one.
            let Some((key, _)) = self.upstreams[upstream].idle.pop_front() else { return Ok(None) };
            self.close(key);
        }
        self.connect(upstream)
    }

    fn connect(&mut self, upstream: usize) -> io::Result<Option<usize>> {
        let Some(registry) = &self.registry else { return Err(io::ErrorKind::NotConnected.into()) };
        let entry = self.connections.vacant_entry();
        let (key, token) = (entry.key(), resources_token(entry.key()));
        let connections = &mut self.upstreams[upstream];
        let (connected, is_connecting) = match &connections.addr {
            UpstreamAddr::Unix(addr) => (Socket::connect_unix(addr, registry, token), false),
            UpstreamAddr::Tcp(addr) => (Socket::connect_tcp(*addr, registry, token), true),
        };
        let socket = match connected {
            Ok(socket) => socket,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                connections.retry_at = Some(self.now + RETRY_INTERVAL);
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        connections.open += 1;
        entry.insert(PooledConn {
            socket,
            upstream,
            is_connecting,
            received: BytesMut::new(),
            unsent: BytesMut::new(),
            has_ended: false,
            waker: None,
            is_reused: false,
        });
        Ok(Some(key))
    }

    /// Whether an idle connection can take a request: the upstream has neither closed it nor sent anything.
    fn is_still_open(&mut self, key: usize) -> bool {
        let connection = &mut self.connections[key];
        if !connection.socket.is_readable() {
            return true;
        }
        matches!(connection.socket.read(&mut self.scratch), Ok(IoResult::Blocked))
    }

    /// Takes back a connection whose exchange is complete.
    pub(crate) fn give_back(&mut self, key: usize) {
        let connection = &mut self.connections[key];
        if !connection.received.is_empty() || !connection.unsent.is_empty() || connection.has_ended {
            return self.close(key);
        }
        connection.waker = None;
        connection.is_reused = true;
        // An idle connection holds no memory for bytes.
        connection.received = BytesMut::new();
        connection.unsent = BytesMut::new();
        let connections = &mut self.upstreams[connection.upstream];
        connections.idle.push_back((key, self.now));
        connections.wake_first();
    }

    /// Closes a connection.
    pub(crate) fn close(&mut self, key: usize) {
        let connection = self.connections.remove(key);
        let connections = &mut self.upstreams[connection.upstream];
        connections.open -= 1;
        connections.wake_first();
    }

    /// When [`Pool::expire`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let of = |connections: &UpstreamConns| {
            let idle = connections.idle.front().map(|(_, since)| *since + self.limits.idle_timeout);
            [connections.retry_at, idle].into_iter().flatten().min()
        };
        self.upstreams.iter().filter_map(of).min()
    }

    /// Closes connections that were idle for too long, and tries full backlogs again.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.now = now;
        for upstream in 0..self.upstreams.len() {
            let connections = &mut self.upstreams[upstream];
            if connections.retry_at.take_if(|at| *at <= now).is_some() {
                connections.wake_first();
            }
            let idle_timeout = self.limits.idle_timeout;
            while let Some(&(key, since)) = self.upstreams[upstream].idle.front()
                && since + idle_timeout <= now
            {
                self.upstreams[upstream].idle.pop_front();
                self.close(key);
            }
        }
    }

    pub(crate) fn note(&mut self, key: usize, event: &Event) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.socket.note(event);
        if let Some(waker) = connection.waker.take() {
            waker.wake();
        }
    }

    pub(crate) fn connection(&mut self, key: usize) -> &mut PooledConn {
        &mut self.connections[key]
    }

    /// Writes what the upstream has yet to take.
    pub(crate) fn flush(&mut self, key: usize, waker: &Waker) -> io::Result<()> {
        let Some(registry) = &self.registry else { return Err(io::ErrorKind::NotConnected.into()) };
        let connection = &mut self.connections[key];
        if connection.is_connecting {
            if !connection.socket.connected()? {
                connection.waker = Some(waker.clone());
                return Ok(());
            }
            connection.is_connecting = false;
        }
        while !connection.unsent.is_empty() && connection.socket.is_writable() {
            match connection.socket.write(&connection.unsent, registry)? {
                IoResult::Bytes(n) => drop(connection.unsent.split_to(n)),
                IoResult::Blocked | IoResult::End => {}
            }
        }
        if !connection.unsent.is_empty() {
            connection.waker = Some(waker.clone());
        }
        Ok(())
    }

    /// Reads once; true if anything has come, or the end.
    pub(crate) fn read(&mut self, key: usize, waker: &Waker) -> io::Result<bool> {
        let connection = &mut self.connections[key];
        if connection.socket.is_readable() {
            match connection.socket.read(&mut self.scratch)? {
                IoResult::Bytes(n) => {
                    connection.received.extend_from_slice(&self.scratch[..n]);
                    return Ok(true);
                }
                IoResult::End => {
                    connection.has_ended = true;
                    return Ok(true);
                }
                IoResult::Blocked => {}
            }
        }
        connection.waker = Some(waker.clone());
        Ok(false)
    }
}

impl UpstreamConns {
    /// Lets the first request in the queue try.
    fn wake_first(&self) {
        if self.retry_at.is_none()
            && let Some((_, waker)) = self.queue.front()
        {
            waker.wake_by_ref();
        }
    }
}
