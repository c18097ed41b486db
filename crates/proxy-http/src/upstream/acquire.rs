//! Acquires an upstream connection for a request: chooses the upstream, and waits if necessary.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use proxy_core::{Candidates, UpstreamChoice};
use records::metrics::RequestFailure;

use super::lease::{Acquired, Lease, StreamLease};
use super::pool::{AcquireError, AcquiredConn, ConnChoice};
use super::queue::QueueTicket;
use crate::request::RequestHandle;
use crate::route::destination::Destination;
use crate::route::timeouts::RouteTimeouts;
use crate::runtime::timers::Sleep;
use crate::worker::HttpWorker;

/// How long a connection to an upstream that is known to be down may take: the client should learn soon.
const DOWN_PATIENCE: Duration = Duration::from_millis(500);

/// An upstream that was chosen, and counts one request more until this is dropped.
struct ChosenUpstream<'a> {
    worker: &'a HttpWorker,
    choice: UpstreamChoice,
    is_leased: bool,
}

/// The wait for a connection to one upstream.
struct ConnectionWait<'a> {
    worker: &'a HttpWorker,
    handle: &'a RequestHandle,
    upstream: usize,
    timeouts: RouteTimeouts,
    conns: ConnChoice,
    place: Option<QueueTicket>,
    /// When it joined the queue, while it waits there.
    queued_at: Option<Instant>,
    /// When it gives up, however often it has waited.
    queued_until: Option<Instant>,
    /// A new connection that is not connected yet.
    connecting: Option<usize>,
    connect_timeout: Duration,
    timer: Option<Sleep>,
}

/// Waits for a connection to one of the upstreams of a destination: the one with the fewest requests in flight, or that of
/// the key, and if it cannot be reached the others.
///
/// # Errors
/// With the last upstream's failure, or that of the queue.
pub(crate) async fn acquire(
    handle: &RequestHandle,
    destination: &Destination,
    key: Option<u64>,
    conns: ConnChoice,
) -> Result<Acquired, RequestFailure> {
    let worker = &handle.client().worker;
    let mut candidates = Candidates::new(worker.upstreams.upstreams_of(destination.index), key);
    // Without a choice all of them are drained.
    let mut failure = RequestFailure::UpstreamsDrained;
    while let Some(mut chosen) = ChosenUpstream::choose(worker, candidates) {
        candidates.tried |= 1 << chosen.choice.index;
        let may_be_idle = conns == ConnChoice::Any;
        let idle = may_be_idle.then(|| worker.pool.borrow_mut().take_idle(chosen.choice.index)).flatten();
        let acquired = if let Some(key) = idle {
            Ok(AcquiredConn::Http1(key))
        } else {
            let mut waiting = ConnectionWait::new(&chosen, handle, destination.timeouts, conns);
            poll_fn(|cx| waiting.poll(cx)).await
        };
        match acquired {
            Ok(conn) => {
                // An upstream of HTTP/2 has yet to say its first word on a new connection.
                if !matches!(&conn, AcquiredConn::Http2(stream) if !stream.is_reused) {
                    worker.upstreams.succeeded(chosen.choice.index, worker.now());
                }
                let (worker, choice) = (Rc::clone(worker), chosen.choice);
                chosen.is_leased = true;
                return Ok(match conn {
                    AcquiredConn::Http1(key) => {
                        Acquired::Http1(Lease { worker, key, choice, may_be_kept: false })
                    }
                    AcquiredConn::Http2(stream) => Acquired::Http2(StreamLease { worker, choice, stream }),
                });
            }
            Err(WaitError::Acquire(AcquireError::Opening(kind))) => failure = failure_of(kind),
            Err(WaitError::Acquire(AcquireError::QueueFull)) => return Err(RequestFailure::QueueFull),
            Err(WaitError::QueueTimeout) => return Err(RequestFailure::QueueTimeout),
            Err(WaitError::Acquire(AcquireError::Connect(error))) => {
                worker.count_connect_failed(chosen.choice.index, &error);
                worker.upstreams.failed(chosen.choice.index, &error, worker.now());
                failure = failure_of(error.kind());
            }
        }
    }
    Err(failure)
}

fn failure_of(kind: io::ErrorKind) -> RequestFailure {
    if kind == io::ErrorKind::TimedOut { RequestFailure::ConnectTimeout } else { RequestFailure::Connect }
}

#[derive(Debug, thiserror::Error)]
enum WaitError {
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    #[error("no connection to the upstream became free in time")]
    QueueTimeout,
}

impl<'a> ChosenUpstream<'a> {
    fn choose(worker: &'a HttpWorker, candidates: Candidates) -> Option<Self> {
        let choice = worker.upstreams.choose(candidates, worker.turn.get(), worker.now())?;
        worker.turn.set(worker.turn.get().wrapping_add(1));
        Some(Self { worker, choice, is_leased: false })
    }
}

impl Drop for ChosenUpstream<'_> {
    fn drop(&mut self) {
        if !self.is_leased {
            self.worker.upstreams.leave(self.choice);
        }
    }
}

impl<'a> ConnectionWait<'a> {
    fn new(
        chosen: &ChosenUpstream<'a>,
        handle: &'a RequestHandle,
        timeouts: RouteTimeouts,
        conns: ConnChoice,
    ) -> Self {
        let worker = chosen.worker;
        let timeout = timeouts.connect.unwrap_or_else(|| worker.connect_timeout.get());
        Self {
            worker,
            handle,
            upstream: chosen.choice.index,
            timeouts,
            conns,
            place: None,
            queued_at: None,
            queued_until: None,
            connecting: None,
            connect_timeout: if chosen.choice.is_up { timeout } else { timeout.min(DOWN_PATIENCE) },
            timer: None,
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<AcquiredConn, WaitError>> {
        loop {
            let polled = match self.connecting {
                Some(key) => self.poll_connected(key, cx),
                None => match self.poll_acquire(cx)? {
                    Poll::Ready(Ok(AcquiredConn::Http1(key))) => {
                        self.connecting = Some(key);
                        continue;
                    }
                    polled => polled,
                },
            };
            let error = match ready!(polled) {
                Ok(acquired) => return Poll::Ready(Ok(acquired)),
                Err(error) => error,
            };
            self.timer = None;
            let mut pool = self.worker.pool.borrow_mut();
            if let Some(key) = self.connecting.take() {
                pool.close(key);
            }
            // A stream that becomes free is as good.
            if !pool.has_other_conns(self.upstream, error.kind()) {
                return Poll::Ready(Err(AcquireError::Connect(error).into()));
            }
            self.worker.count_connect_failed(self.upstream, &error);
        }
    }

    /// Waits for what the pool has, which may be a connection that is not connected yet.
    fn poll_acquire(&mut self, cx: &mut Context<'_>) -> Result<Poll<io::Result<AcquiredConn>>, WaitError> {
        let mut pool = self.worker.pool.borrow_mut();
        let polled = pool.poll_acquire(self.upstream, self.conns, &mut self.place, cx);
        drop(pool);
        let Poll::Ready(acquired) = polled else {
            return match self.poll_queue_timeout(cx) {
                Poll::Ready(error) => Err(error),
                Poll::Pending => Ok(Poll::Pending),
            };
        };
        self.timer = None;
        self.count_queued();
        match acquired {
            Err(AcquireError::Connect(error)) => Ok(Poll::Ready(Err(error))),
            acquired => Ok(Poll::Ready(Ok(acquired?))),
        }
    }

    fn poll_connected(&mut self, key: usize, cx: &mut Context<'_>) -> Poll<io::Result<AcquiredConn>> {
        loop {
            let connected = self.worker.pool.borrow_mut().poll_connected(key, cx);
            if let Poll::Ready(connected) = connected {
                connected?;
                self.count_connect(key);
                self.connecting = None;
                return Poll::Ready(self.worker.pool.borrow_mut().established(key, self.connect_timeout));
            }
            ready!(self.poll_connect_timeout(key, cx));
            self.timer = None;
            let late = io::ErrorKind::TimedOut.into();
            self.worker.pool.borrow_mut().connect_next(key, late)?;
        }
    }

    /// Counts the connection if it is new.
    fn count_connect(&self, key: usize) {
        let mut pool = self.worker.pool.borrow_mut();
        let connection = pool.connection(key);
        if !connection.is_reused() {
            self.worker.count_connect(self.upstream, connection);
        }
    }

    fn poll_queue_timeout(&mut self, cx: &mut Context<'_>) -> Poll<WaitError> {
        let timers = &self.worker.timers;
        let timeout = self.timeouts.queue.unwrap_or_else(|| self.worker.limits().queue_timeout);
        let now = self.worker.now();
        self.queued_at.get_or_insert(now);
        let until = *self.queued_until.get_or_insert(now + timeout);
        let timer = self.timer.get_or_insert_with(|| timers.at(until));
        Pin::new(timer).poll(cx).map(|()| WaitError::QueueTimeout)
    }

    /// Counts its time in the queue, once, however that has ended.
    fn count_queued(&mut self) {
        if let Some(since) = self.queued_at.take() {
            self.handle.add_queued(self.worker.now().saturating_duration_since(since));
        }
    }

    /// An address that never answers must leave time for the others.
    fn poll_connect_timeout(&mut self, key: usize, cx: &mut Context<'_>) -> Poll<()> {
        let addrs = self.worker.pool.borrow().addresses(key);
        let timers = &self.worker.timers;
        let timer = self.timer.get_or_insert_with(|| timers.after(self.connect_timeout / addrs));
        Pin::new(timer).poll(cx)
    }
}

impl Drop for ConnectionWait<'_> {
    fn drop(&mut self) {
        self.count_queued();
        let mut pool = self.worker.pool.borrow_mut();
        pool.leave_queue(self.upstream, &mut self.place);
        if let Some(key) = self.connecting {
            pool.close(key);
        }
    }
}
