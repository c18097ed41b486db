//! The pool of one worker: connections to each upstream, the one used last first, and requests that wait for one.

mod deadlines;
mod http2;
mod opening;

use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use mio::Registry;
use mio::event::Event;
use proxy_core::{Upstreams, WorkerTls};
use slab::Slab;

use self::http2::{Opening, StreamAttempt};
use super::http1::connection::PooledConn;
use super::http1::read_buffer::ReadBuffer;
use super::http2::connections::{Http2Conns, Http2Stream};
use super::queue::{QueueTicket, RequestQueue};
use crate::config::limits::HttpLimits;

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

/// Which connections a request may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnChoice {
    Any,
    /// A new one. Of HTTP/2 any that is left is as good: one that has ended is not there any more.
    New,
    /// One that it opens itself, if there may be another: those that are left may end as well.
    Own,
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
    pub(crate) fn set_up(&mut self, registry: &Rc<Registry>, tls: &Rc<WorkerTls>) {
        if self.registry.is_none() {
            self.registry = Some(Rc::clone(registry));
            self.tls = Rc::clone(tls);
        }
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

    /// Waits for a connection to an upstream: an idle one if it may be any, or a new one, which may not be connected
    /// yet. `place` is the request's place in the queue; a request that gives up calls [`UpstreamPool::leave_queue`].
    pub(crate) fn poll_acquire(
        &mut self,
        upstream: usize,
        choice: ConnChoice,
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
            match self.try_acquire(upstream, choice).transpose() {
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
    fn try_acquire(&mut self, upstream: usize, choice: ConnChoice) -> io::Result<Option<AcquiredConn>> {
        let is_http2 = self.upstreams.is_http2(upstream);
        if is_http2 {
            match self.attempt_stream(upstream, choice) {
                StreamAttempt::Begin(stream) => return Ok(Some(AcquiredConn::Http2(stream))),
                StreamAttempt::Wait => return Ok(None),
                StreamAttempt::Open => {}
            }
        }
        if choice == ConnChoice::Any
            && let Some(key) = self.pop_idle(upstream)
        {
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
            connection.stream.close_notify();
            let idle = &mut self.of_upstream[connection.upstream].idle;
            // The oldest ones end first.
            if let Some(at) = idle.iter().position(|(other, _)| *other == key) {
                idle.remove(at);
            }
        }
        self.wake_queues();
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
        self.connections[key].stream.shut_down();
    }

    /// Writes the head of a request; returns how much the upstream took. The rest waits.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(crate) fn begin(&mut self, key: usize, head: &[u8]) -> io::Result<usize> {
        self.connections[key].begin(head)
    }

    /// Writes what the upstream has yet to take; returns how much it took.
    ///
    /// # Errors
    /// When the connection is broken.
    pub(crate) fn flush(&mut self, key: usize, waker: &Waker) -> io::Result<usize> {
        self.connections[key].flush(waker)
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
