//! One HTTP/2 connection to an upstream.

use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use proxy_core::{AddressAttempts, UpstreamStream};

use super::io::{Http2Io, Reads};
use super::received::Received;
use crate::runtime::tasks::WokenConnections;

/// Streams of a connection at once, if the upstream allows as many; more requests open another connection.
pub(crate) const STREAMS_MAX: usize = 100;
/// Window of a stream for what the upstream sends.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of a request's content that the library holds at most.
pub(super) const SEND_BUFFER_BYTES: usize = 16 << 10;
/// Bytes that are read of a connection in a turn.
const READ_BYTES_MAX: usize = 256 << 10;
/// Short frames that the library may keep: those of two turns. It counts 256 bytes for each, of which the shortest has 10.
const SHORT_FRAME_BYTES_MAX: usize = 2 * READ_BYTES_MAX / 10 * 256;
/// Streams that were reset and of which frames may still come: those of a client that leaves, ten times.
const RESET_STREAMS_MAX: usize = 10 * STREAMS_MAX;
/// Errors of single streams of a connection that do not end it.
const STREAM_ERRORS_MAX: usize = 100_000;
/// Longest header of a response.
const HEAD_BYTES_MAX: u32 = 64 << 10;
#[derive(Debug)]
pub(super) struct Http2Conn {
    pub(super) upstream: usize,
    /// The addresses of a TCP upstream, and the one in use.
    pub(super) addresses: Option<AddressAttempts>,
    /// `None` once it is over. Streams that were not ended then know it from the library.
    pub(super) open: Option<OpenConn>,
    /// Streams that exchanges own.
    pub(super) streams: usize,
    /// The content of the responses that are under way.
    pub(super) received: Vec<Weak<RefCell<Received>>>,
    /// Since when there are none.
    pub(super) idle_since: Instant,
    /// When HTTP/2 must have begun.
    pub(super) begin_by: Instant,
    /// When the upstream last sent something.
    pub(super) read_at: Instant,
    /// Whether the upstream's SETTINGS have arrived.
    pub(super) has_begun: bool,
    /// Wakes the first stream, which may wait for them.
    pub(super) begin_waker: Option<Waker>,
    /// How many streams the upstream takes at once; it would refuse those beyond.
    pub(super) streams_max: usize,
    /// Whether the upstream has ever answered a request.
    pub(super) has_answered: bool,
    /// Whether it takes no more streams.
    pub(super) is_ending: bool,
    pub(super) wake: Arc<ConnWake>,
    pub(super) waker: Waker,
}

#[derive(Debug)]
pub(super) struct OpenConn {
    pub(super) stream: Rc<RefCell<UpstreamStream>>,
    pub(super) reads: Rc<Reads>,
    pub(super) send: SendRequest<Bytes>,
    pub(super) connection: Connection<Http2Io, Bytes>,
}

/// Wakes a connection: it is polled between two turns.
#[derive(Debug)]
pub(super) struct ConnWake {
    pub(super) key: usize,
    pub(super) is_woken: AtomicBool,
    pub(super) woken: WokenConnections,
}

impl Wake for ConnWake {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_woken.swap(true, Ordering::Relaxed) {
            self.woken.push(self.key);
        }
    }
}

/// What has become of a connection.
#[derive(Debug)]
pub(crate) enum ConnNews {
    /// The upstream speaks HTTP/2 on it.
    Begun(usize),
    /// It has ended, and no stream was ever answered on it.
    Failed { upstream: usize, error: io::Error, has_others: bool },
}

impl Http2Conn {
    /// Whether it takes more streams at all. The library knows when the upstream has announced the end.
    pub(super) fn is_usable(&mut self) -> bool {
        if self.is_ending {
            return false;
        }
        let polled =
            self.open.as_mut().map(|open| open.send.poll_ready(&mut Context::from_waker(Waker::noop())));
        self.is_ending = matches!(polled, None | Some(Poll::Ready(Err(_))));
        !self.is_ending
    }

    /// When HTTP/2 must have begun, if it has not.
    pub(super) fn late_at(&self) -> Option<Instant> {
        (self.open.is_some() && !self.has_begun).then_some(self.begin_by)
    }

    /// Ends it, before any stream was answered on it.
    pub(super) fn fail(&mut self, error: io::Error, now: Instant) -> ConnNews {
        (self.open, self.is_ending) = (None, true);
        self.begin_waker.take().into_iter().for_each(Waker::wake);
        self.addresses.iter().for_each(|addresses| addresses.failed(now));
        ConnNews::Failed { upstream: self.upstream, error, has_others: false }
    }

    pub(super) fn run(&mut self, now: Instant) -> Option<ConnNews> {
        self.wake.is_woken.store(false, Ordering::Relaxed);
        let open = self.open.as_mut()?;
        let reads = open.reads.count.get();
        open.reads.budget.set(READ_BYTES_MAX);
        let polled = Pin::new(&mut open.connection).poll(&mut Context::from_waker(&self.waker));
        self.received
            .retain(|content| content.upgrade().inspect(|content| content.borrow_mut().look()).is_some());
        if open.reads.count.get() > reads {
            self.read_at = now;
        }
        self.streams_max = open.send.current_max_send_streams().min(STREAMS_MAX);
        let begins = !self.has_begun && self.streams_max > 0;
        self.has_begun |= begins;
        if begins || polled.is_ready() {
            self.begin_waker.take().into_iter().for_each(Waker::wake);
        }
        match polled {
            Poll::Ready(Err(error)) if !self.has_answered => Some(self.fail(why(error), now)),
            Poll::Ready(_) => {
                (self.open, self.is_ending) = (None, true);
                None
            }
            Poll::Pending => begins.then_some(ConnNews::Begun(self.upstream)),
        }
    }
}

/// Why the upstream has answered nothing.
#[cold]
fn why(error: h2::Error) -> io::Error {
    if error.is_io() {
        return error.into_io().unwrap_or_else(|| io::ErrorKind::ConnectionReset.into());
    }
    let text = if error.is_remote() {
        format!("it ends HTTP/2: {error}")
    } else {
        format!("it does not speak HTTP/2: {error}; name it without a scheme, or with tls://, for HTTP/1.1")
    };
    io::Error::other(text)
}

/// Begins HTTP/2 on a new connection, whose socket has room for what that sends.
pub(super) fn shake_hands(io: Http2Io) -> io::Result<(SendRequest<Bytes>, Connection<Http2Io, Bytes>)> {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(0)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(STREAM_WINDOW_BYTES * STREAMS_MAX as u32)
        .max_send_buffer_size(SEND_BUFFER_BYTES)
        .data_frame_budget(SHORT_FRAME_BYTES_MAX)
        .max_concurrent_reset_streams(RESET_STREAMS_MAX)
        .max_local_error_reset_streams(Some(STREAM_ERRORS_MAX))
        .max_header_list_size(HEAD_BYTES_MAX);
    let handshake = pin!(builder.handshake(io));
    match handshake.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(begun) => begun.map_err(why),
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
