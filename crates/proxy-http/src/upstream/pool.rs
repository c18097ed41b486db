//! The pool of one worker: connections to each upstream, the one used last first, and requests that wait for one.

mod http2;

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mio::Registry;
use mio::event::Event;
use proxy_core::handler::resources_token;
use proxy_core::{Socket, UpstreamTarget, Upstreams, WorkerTls};
use slab::Slab;

use self::http2::{Opening, StreamAttempt};
use super::http1::connection::PooledConn;
use super::http1::read_buffer::ReadBuffer;
use super::http2::connections::{Http2Conns, Http2Stream};
use super::queue::{QueueTicket, RequestQueue};
use crate::limits::HttpLimits;

/// How soon to try a Unix socket again whose backlog is full, which no event reports. Only the first request in the queue
/// tries.
const RETRY_INTERVAL: Duration = Duration::from_millis(5);

/// Bytes of a turn that are read from upstreams as soon as an event reports them. Reading many connections one after
/// another finds its code in the processor's caches, as long as what was read before is still there when it is used.
const READ_AHEAD_BYTES: usize = 64 << 10;

/// A worker's connections to its upstreams.
#[derive(Debug)]
pub(crate) struct UpstreamPool {
    registry: Option<Rc<Registry>>,
    tls: Rc<WorkerTls>,
    upstreams: Arc<Upstreams>,
    /// When the turn began.
    now: Instant,
    /// Connections of the worker, to all upstreams.
    connections_max: usize,
    /// Requests that may wait for a connection to an upstream.
    queued_max: usize,
    /// How long an unused connection is kept.
    idle_timeout: Duration,
    of_upstream: Vec<UpstreamConns>,
    connections: Slab<PooledConn>,
    /// Connections of HTTP/2, which are opened as the others are.
    pub(crate) http2: Http2Conns,
    /// Whether any upstream speaks HTTP/2.
    pub(crate) has_http2: bool,
    buffer: ReadBuffer,
    /// Bytes that were read ahead in this turn.
    ahead_bytes: usize,
    /// No connection's `wake_at` is earlier. Nearly all exchanges end in time, and leave this as it is.
    next_wake: Option<Instant>,
    queued: usize,
    /// The generation of the upstreams' addresses at the last look.
    address_generation: u64,
}

#[derive(Debug, Default)]
struct UpstreamConns {
    /// Idle connections, and since when; the one used last is at the end.
    idle: VecDeque<(usize, Instant)>,
    queue: RequestQueue,
    /// Of an upstream of HTTP/2.
    opening: Opening,
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum AcquireError {
    #[error("too many requests wait for a connection to the upstream")]
    QueueFull,
    #[error("cannot connect to the upstream: {0}")]
    Connect(#[from] io::Error),
    /// Another request has tried to open the connection.
    #[error("cannot connect to the upstream: {0}")]
    Opening(io::ErrorKind),
}

/// What a request gets.
#[derive(Debug)]
pub(crate) enum AcquiredConn {
    /// A connection of its own, which may not be connected yet.
    Http1(usize),
    Http2(Http2Stream),
}

impl UpstreamPool {
    pub(crate) fn new(upstreams: Arc<Upstreams>) -> Self {
        Self {
            registry: None,
            tls: Rc::default(),
            connections_max: 1,
            queued_max: 0,
            idle_timeout: Duration::ZERO,
            address_generation: upstreams.address_generation(),
            of_upstream: (0..upstreams.len()).map(|_| UpstreamConns::default()).collect(),
            has_http2: (0..upstreams.len()).any(|index| upstreams.is_http2(index)),
            upstreams,
            now: Instant::now(),
            connections: Slab::new(),
            http2: Http2Conns::default(),
            buffer: ReadBuffer::default(),
            ahead_bytes: 0,
            next_wake: None,
            queued: 0,
        }
    }

    /// Takes over where sockets are registered, and how TLS is spoken with upstreams.
    pub(crate) fn set_up(&mut self, registry: &Registry, tls: &Rc<WorkerTls>) -> io::Result<()> {
        if self.registry.is_none() {
            self.registry = Some(Rc::new(registry.try_clone()?));
            self.tls = Rc::clone(tls);
        }
        Ok(())
    }

    /// Takes over limits; `connections_max` is the worker's share.
    pub(crate) fn set_limits(&mut self, limits: &HttpLimits, connections_max: usize) {
        self.connections_max = connections_max;
        self.queued_max = limits.queue_max;
        self.idle_timeout = limits.upstream_idle_timeout;
        self.wake_queues();
    }

    /// Requests that wait for a connection.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Established connections to each upstream, idle ones included, and idle ones.
    pub(crate) fn conns(&self) -> Vec<(i64, i64)> {
        let mut conns: Vec<_> = self.of_upstream.iter().map(|of| (0, of.idle.len() as i64)).collect();
        for (_, connection) in self.connections.iter().filter(|(_, connection)| connection.is_connected()) {
            conns[connection.upstream].0 += 1;
        }
        for (upstream, is_idle) in self.http2.all() {
            conns[upstream].0 += 1;
            conns[upstream].1 += i64::from(is_idle);
        }
        conns
    }

    /// Connections of the worker, established or not.
    fn open(&self) -> usize {
        self.connections.len() + self.http2.all().count()
    }

    /// Waits for a connection to an upstream: an idle one unless `must_be_new`, or a new one, which may not be connected
    /// yet. `place` is the request's place in the queue; a request that gives up calls [`UpstreamPool::leave_queue`].
    pub(crate) fn poll_acquire(
        &mut self,
        upstream: usize,
        must_be_new: bool,
        place: &mut Option<QueueTicket>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<AcquiredConn, AcquireError>> {
        if self.of_upstream.len() <= upstream {
            self.grow();
        }
        if let Some(kind) = place.and_then(|ticket| self.of_upstream[upstream].queue.failure(ticket)) {
            self.leave_queue(upstream, place);
            return Poll::Ready(Err(AcquireError::Opening(kind)));
        }
        if self.of_upstream[upstream].queue.is_next(*place) {
            match self.try_acquire(upstream, must_be_new).transpose() {
                None => {}
                Some(acquired) => {
                    self.leave_queue(upstream, place);
                    return Poll::Ready(acquired.map_err(AcquireError::Connect));
                }
            }
        }
        let queue = &mut self.of_upstream[upstream].queue;
        if let Some(ticket) = place {
            queue.set_waker(*ticket, cx.waker());
            return Poll::Pending;
        }
        if self.queued >= self.queued_max {
            return Poll::Ready(Err(AcquireError::QueueFull));
        }
        self.queued += 1;
        *place = Some(queue.join(cx.waker()));
        Poll::Pending
    }

    /// Leaves the queue, and lets the next request try.
    pub(crate) fn leave_queue(&mut self, upstream: usize, place: &mut Option<QueueTicket>) {
        if let Some(ticket) = place.take() {
            self.queued -= 1;
            self.of_upstream[upstream].queue.leave(ticket);
        }
    }

    /// An idle connection, if nobody waits for one.
    pub(crate) fn take_idle(&mut self, upstream: usize) -> Option<usize> {
        // A reload within the turn may have added the upstream.
        self.of_upstream.get(upstream)?.queue.is_next(None).then(|| self.pop_idle(upstream)).flatten()
    }

    fn pop_idle(&mut self, upstream: usize) -> Option<usize> {
        while let Some((key, _)) = self.of_upstream[upstream].idle.pop_back() {
            let connection = &mut self.connections[key];
            connection.is_idle = false;
            if connection.is_still_open(self.buffer.room(1)) {
                return Some(key);
            }
            self.close(key);
        }
        None
    }

    /// An idle connection or a stream, or a new connection; `None` if there may be no more, one is being opened, or the
    /// backlog is full.
    fn try_acquire(&mut self, upstream: usize, must_be_new: bool) -> io::Result<Option<AcquiredConn>> {
        let is_http2 = self.upstreams.is_http2(upstream);
        if is_http2 {
            // A connection that has ended is not there any more: another one is as good as a new one.
            match self.attempt_stream(upstream) {
                StreamAttempt::Begin(stream) => return Ok(Some(AcquiredConn::Http2(stream))),
                StreamAttempt::Wait => return Ok(None),
                StreamAttempt::Open => {}
            }
        }
        if !must_be_new && let Some(key) = self.pop_idle(upstream) {
            return Ok(Some(AcquiredConn::Http1(key)));
        }
        if self.open() >= self.connections_max && !self.close_oldest_idle() {
            return Ok(None);
        }
        let connecting = self.connect(upstream)?;
        if is_http2 && connecting.is_some() {
            self.of_upstream[upstream].opening = Opening::UnderWay;
        }
        Ok(connecting.map(AcquiredConn::Http1))
    }

    /// Closes the connection that was idle longest, of whichever upstream.
    fn close_oldest_idle(&mut self) -> bool {
        let front = |of: &UpstreamConns| of.idle.front().map(|&(key, since)| (since, key));
        let oldest = self.of_upstream.iter().filter_map(front).min();
        let of_http2 = self.http2.oldest_idle().filter(|(since, _)| oldest.is_none_or(|(at, _)| *since < at));
        match (of_http2, oldest) {
            (Some((_, key)), _) => self.http2.close(key),
            (None, Some((_, key))) => self.close(key),
            (None, None) => return false,
        }
        true
    }

    /// Closes all connections that no request uses.
    pub(crate) fn close_idle(&mut self) {
        while self.close_oldest_idle() {}
    }

    fn connect(&mut self, upstream: usize) -> io::Result<Option<usize>> {
        let Some(registry) = &self.registry else { return Err(io::ErrorKind::NotConnected.into()) };
        let opened_at = Instant::now();
        let entry = self.connections.vacant_entry();
        let (key, token) = (entry.key(), resources_token(entry.key()));
        let connected = match self.upstreams.target(upstream) {
            UpstreamTarget::Unix(addr) => {
                Socket::connect_unix(addr, registry, token).map(|socket| (socket, None))
            }
            UpstreamTarget::Tcp(addresses) => {
                let mut attempts = addresses.attempts();
                self.upstreams
                    .connect_next(upstream, &mut attempts, (registry, token), None, self.now)
                    .map(|socket| (socket, Some(attempts)))
            }
        };
        match connected {
            Ok((socket, addresses)) => {
                let stream = self.upstreams.stream(upstream, socket, &self.tls)?;
                entry.insert(PooledConn::new(stream, upstream, opened_at, addresses));
                Ok(Some(key))
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.of_upstream[upstream].queue.retry_at = Some(self.now + RETRY_INTERVAL);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Waits until a new connection is connected.
    pub(crate) fn poll_connected(&mut self, key: usize, cx: &Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let registry = self.registry.as_ref().ok_or(io::ErrorKind::NotConnected)?;
            match self.connections[key].poll_connected(registry, cx) {
                Poll::Ready(Err(error)) => self.connect_next(key, error)?,
                polled => {
                    let connection = &mut self.connections[key];
                    connection.is_withdrawn =
                        connection.has_address_vanished() || self.upstreams.is_gone(connection.upstream);
                    return polled;
                }
            }
        }
    }

    /// Tries the next address of an upstream whose last one has failed.
    ///
    /// # Errors
    /// With `error` if there is none.
    pub(crate) fn connect_next(&mut self, key: usize, error: io::Error) -> io::Result<()> {
        let connection = &mut self.connections[key];
        let (Some(registry), Some(attempts)) = (&self.registry, &mut connection.addresses) else {
            return Err(error);
        };
        let (upstream, at) = (connection.upstream, (&**registry, resources_token(key)));
        let socket = self.upstreams.connect_next(upstream, attempts, at, Some(error), self.now)?;
        connection.stream = self.upstreams.stream(upstream, socket, &self.tls)?;
        Ok(())
    }

    /// How many addresses a new connection may try.
    pub(crate) fn addresses(&self, key: usize) -> u32 {
        let attempts = self.connections[key].addresses.as_ref();
        attempts.map_or(1, |attempts| u32::try_from(attempts.len()).unwrap_or(u32::MAX))
    }

    /// Closes the idle connections to upstreams that are gone, and to addresses that they no longer have. Those in use are
    /// not kept.
    #[cold]
    fn close_vanished(&mut self) {
        self.grow();
        for (_, connection) in &mut self.connections {
            connection.is_withdrawn =
                connection.has_address_vanished() || self.upstreams.is_gone(connection.upstream);
        }
        let vanished =
            self.connections.iter().filter(|(_, connection)| connection.is_idle && connection.is_withdrawn);
        for key in vanished.map(|(key, _)| key).collect::<Vec<_>>() {
            self.close(key);
        }
        self.http2.end_vanished(&self.upstreams);
    }

    /// Takes over that there are more upstreams.
    #[cold]
    fn grow(&mut self) {
        self.of_upstream.resize_with(self.upstreams.len(), UpstreamConns::default);
    }

    /// Takes back a connection whose exchange is complete.
    pub(crate) fn give_back(&mut self, key: usize) {
        let is_too_many = self.open() > self.connections_max;
        let connection = &mut self.connections[key];
        if is_too_many || !connection.may_be_kept() {
            return self.close(key);
        }
        connection.rest();
        let of = &mut self.of_upstream[connection.upstream];
        of.idle.push_back((key, self.now));
        // It serves the first request that waits, whatever the backlog is like.
        of.queue.retry_at = None;
        self.wake_queues();
    }

    pub(crate) fn close(&mut self, key: usize) {
        let mut connection = self.connections.remove(key);
        let of = &mut self.of_upstream[connection.upstream];
        if of.opening == Opening::UnderWay {
            of.opening = Opening::No;
        }
        if connection.is_idle {
            if let Some(registry) = &self.registry {
                connection.stream.close_notify(registry);
            }
            let idle = &mut self.of_upstream[connection.upstream].idle;
            // The oldest ones end first.
            if let Some(at) = idle.iter().position(|(other, _)| *other == key) {
                idle.remove(at);
            }
        }
        self.wake_queues();
    }

    /// When [`UpstreamPool::expire`] is due.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let of = |of: &UpstreamConns| {
            let idle = of.idle.front().map(|(_, since)| *since + self.idle_timeout);
            let put_off = if let Opening::PutOff(until) = of.opening { Some(until) } else { None };
            [of.queue.retry_at, idle, put_off].into_iter().flatten().min()
        };
        let of_http2 = || self.http2.next_deadline(self.idle_timeout, self.now);
        let of_http2 = self.has_http2.then(of_http2).flatten();
        self.of_upstream.iter().filter_map(of).chain(self.next_wake).chain(of_http2).min()
    }

    /// Begins a turn: closes connections that were idle for too long, wakes exchanges whose time is up, and tries full
    /// backlogs again.
    pub(crate) fn expire(&mut self, now: Instant) {
        (self.now, self.ahead_bytes) = (now, 0);
        if self.next_wake.is_some_and(|next| next <= now) {
            self.wake_late(now);
        }
        let generation = self.upstreams.address_generation();
        if generation != self.address_generation {
            self.address_generation = generation;
            self.close_vanished();
        }
        for of in &mut self.of_upstream {
            of.queue.expire(now);
        }
        if self.has_http2 {
            self.http2.expire(now);
            self.end_put_off(now);
        }
        if let Some(until) = now.checked_sub(self.idle_timeout) {
            self.close_unused_since(until);
        }
    }

    /// Closes the connections that no request has used since `until`.
    pub(crate) fn close_unused_since(&mut self, until: Instant) {
        self.http2.close_unused_since(until);
        for upstream in 0..self.of_upstream.len() {
            while let Some(&(key, since)) = self.of_upstream[upstream].idle.front()
                && since <= until
            {
                self.close(key);
            }
        }
    }

    fn wake_late(&mut self, now: Instant) {
        for (_, connection) in &mut self.connections {
            if connection.wake_at.take_if(|at| *at <= now).is_some() {
                connection.wake();
            }
        }
        self.next_wake = self.connections.iter().filter_map(|(_, connection)| connection.wake_at).min();
    }

    /// Wakes the exchange of a connection at this moment, if it still waits then.
    pub(crate) fn wake_at(&mut self, key: usize, at: Instant, waker: &Waker) {
        let connection = &mut self.connections[key];
        connection.set_waker(waker);
        connection.wake_at = Some(at);
        self.next_wake = Some(self.next_wake.map_or(at, |next| next.min(at)));
    }

    /// Notes an event of a connection. An idle one that the upstream has ended is closed.
    pub(crate) fn note(&mut self, key: usize, event: &Event) {
        if let Some(key) = Http2Conns::key_of(key) {
            return self.http2.note(key, event);
        }
        let Some(connection) = self.connections.get_mut(key) else { return };
        connection.note(event);
        if connection.is_idle && !connection.is_still_open(self.buffer.room(1)) {
            self.close(key);
        } else if self.ahead_bytes < READ_AHEAD_BYTES {
            self.ahead_bytes += connection.read_ahead(&mut self.buffer);
        }
    }

    /// The connection of an exchange.
    pub(crate) fn connection(&mut self, key: usize) -> &mut PooledConn {
        &mut self.connections[key]
    }

    /// Announces to the upstream that nothing more is sent.
    pub(crate) fn shut_down(&mut self, key: usize) {
        if let Some(registry) = &self.registry {
            self.connections[key].stream.shut_down(registry);
        }
    }

    /// Writes the head of a request; returns how much the upstream took. The rest waits.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(crate) fn begin(&mut self, key: usize, head: &[u8]) -> io::Result<usize> {
        let Some(registry) = &self.registry else { return Err(io::ErrorKind::NotConnected.into()) };
        self.connections[key].begin(head, registry)
    }

    /// Writes what the upstream has yet to take; returns how much it took.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(crate) fn flush(&mut self, key: usize, waker: &Waker) -> io::Result<usize> {
        let Some(registry) = &self.registry else { return Err(io::ErrorKind::NotConnected.into()) };
        self.connections[key].flush(registry, waker)
    }

    /// Reads once, at most `bytes_max`; true if bytes or the end have arrived.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(crate) fn read(&mut self, key: usize, bytes_max: usize, waker: &Waker) -> io::Result<bool> {
        self.connections[key].read(&mut self.buffer, bytes_max, waker)
    }

    /// Lets the first request of each queue try: the bound on connections is one for all upstreams.
    fn wake_queues(&self) {
        if self.queued > 0 {
            for of in &self.of_upstream {
                of.queue.wake_first();
            }
        }
    }
}
