//! The HTTP/2 connections of a worker.

use std::cell::RefCell;
use std::io;
use std::pin::{Pin, pin};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::{Builder, Connection, SendRequest};
use mio::Registry;
use mio::event::Event;
use proxy_core::handler::resources_token;
use proxy_core::{AddressAttempts, UpstreamStream};
use slab::Slab;

use super::io::Http2Io;
use super::unread::UnreadContent;
use crate::runtime::tasks::WokenConnections;

/// Streams of a connection at once, if the upstream allows as many; more requests open another connection.
pub(crate) const STREAMS_MAX: usize = 100;
/// Window of a stream for what the upstream sends.
const STREAM_WINDOW_BYTES: u32 = 256 << 10;
/// Bytes of a request's content that the library holds at most.
pub(super) const SEND_BUFFER_BYTES: usize = 64 << 10;
/// Longest header of a response.
const HEAD_BYTES_MAX: u32 = 64 << 10;
/// Set in the keys of tokens, beside those of HTTP/1.1.
const KEY_BIT: usize = 1 << 40;

/// The connections, to all upstreams.
#[derive(Debug, Default)]
pub(crate) struct Http2Conns {
    connections: Slab<Http2Conn>,
    woken: WokenConnections,
    /// Whether a connection has learned lately how many streams it may have.
    has_settled: bool,
}

#[derive(Debug)]
struct Http2Conn {
    upstream: usize,
    /// The addresses of a TCP upstream, and the one in use.
    addresses: Option<AddressAttempts>,
    /// `None` once it is over. Streams that were not ended then know it from the library.
    open: Option<OpenConn>,
    /// Streams that exchanges own.
    streams: usize,
    /// What clients have not read of the responses that are under way.
    unread: Vec<Weak<UnreadContent>>,
    /// Since when there are none.
    idle_since: Instant,
    /// Whether the upstream has told how many streams it takes. It would refuse those beyond.
    is_settled: bool,
    /// Whether the upstream has ever answered a request.
    has_answered: bool,
    /// Whether it takes no more streams.
    is_ending: bool,
    wake: Arc<ConnWake>,
    waker: Waker,
}

#[derive(Debug)]
struct OpenConn {
    stream: Rc<RefCell<UpstreamStream>>,
    send: SendRequest<Bytes>,
    connection: Connection<Http2Io, Bytes>,
}

/// Wakes a connection: it is polled between two turns.
#[derive(Debug)]
struct ConnWake {
    key: usize,
    is_woken: AtomicBool,
    woken: WokenConnections,
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

/// A stream that is counted, and is for one exchange: [`Http2Conns::leave`] must follow.
#[derive(Debug)]
pub(crate) struct Http2Stream {
    pub(in crate::upstream) key: usize,
    pub(super) send: SendRequest<Bytes>,
    /// Whether its connection has had others before.
    pub(crate) is_reused: bool,
}

/// How a connection has ended that no stream was ever answered on.
#[derive(Debug)]
pub(crate) struct FailedConn {
    pub(crate) upstream: usize,
    pub(crate) error: io::Error,
}

impl Http2Conns {
    /// The key in tokens of sockets: `None` for one that is not of these connections.
    pub(crate) fn key_of(token_key: usize) -> Option<usize> {
        (token_key & KEY_BIT != 0).then_some(token_key & !KEY_BIT)
    }

    /// Open connections.
    pub(crate) fn open(&self) -> usize {
        self.all_open().count()
    }

    /// Open connections without a stream.
    pub(crate) fn idle(&self) -> usize {
        self.all_open().filter(|connection| connection.streams == 0).count()
    }

    /// Open connections to an upstream, and how many of these are without a stream.
    pub(crate) fn conns_of(&self, upstream: usize) -> (usize, usize) {
        let of = || self.all_open().filter(|connection| connection.upstream == upstream);
        (of().count(), of().filter(|connection| connection.streams == 0).count())
    }

    fn all_open(&self) -> impl Iterator<Item = &Http2Conn> {
        self.connections
            .iter()
            .map(|(_, connection)| connection)
            .filter(|connection| connection.open.is_some())
    }

    /// Takes over a connection, and begins its first stream.
    ///
    /// # Errors
    /// If the kernel refuses, or the connection has broken.
    pub(crate) fn insert(
        &mut self,
        mut stream: UpstreamStream,
        upstream: usize,
        addresses: Option<AddressAttempts>,
        registry: &Rc<Registry>,
        now: Instant,
    ) -> io::Result<Http2Stream> {
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        stream.keep(resources_token(key | KEY_BIT), registry)?;
        let stream = Rc::new(RefCell::new(stream));
        let (send, connection) = shake_hands(Http2Io {
            stream: Rc::clone(&stream),
            registry: Rc::clone(registry),
            has_read: false,
        })?;
        let wake = Arc::new(ConnWake { key, is_woken: AtomicBool::new(false), woken: self.woken.clone() });
        let waker = Waker::from(Arc::clone(&wake));
        // It polls for the first time, and learns of what has arrived already.
        waker.wake_by_ref();
        let begun = Http2Stream { key, send: send.clone(), is_reused: false };
        entry.insert(Http2Conn {
            upstream,
            addresses,
            open: Some(OpenConn { stream, send, connection }),
            streams: 1,
            unread: Vec::new(),
            idle_since: now,
            is_settled: false,
            has_answered: false,
            is_ending: false,
            wake,
            waker,
        });
        Ok(begun)
    }

    /// Begins a stream on the least used connection to an upstream that has room, once there is one for each of its
    /// `addresses`.
    pub(crate) fn join(&mut self, upstream: usize, addresses: usize) -> Option<Http2Stream> {
        let mut usable = 0;
        let mut least: Option<(usize, usize)> = None;
        for (key, connection) in &mut self.connections {
            if connection.upstream == upstream && connection.is_usable() {
                usable += 1;
                let streams = connection.streams;
                if streams < connection.streams_max() && least.is_none_or(|(fewest, _)| streams < fewest) {
                    least = Some((streams, key));
                }
            }
        }
        let (_, key) = least.filter(|_| usable >= addresses)?;
        let connection = &mut self.connections[key];
        let open = connection.open.as_ref()?;
        connection.streams += 1;
        Some(Http2Stream { key, send: open.send.clone(), is_reused: true })
    }

    /// Whether what exchanges have sent waits in the process, as the upstream's socket is full.
    pub(super) fn is_blocked(&self, key: usize) -> bool {
        self.connections[key].open.as_ref().is_some_and(|open| !open.stream.borrow().is_writable())
    }

    /// Whether it is spoken to with TLS.
    pub(super) fn is_tls(&self, key: usize) -> bool {
        self.connections[key].open.as_ref().is_some_and(|open| open.stream.borrow().is_tls())
    }

    /// Looks at this content from now on whenever something has arrived.
    pub(super) fn watch(&mut self, key: usize, unread: &Rc<UnreadContent>) {
        self.connections[key].unread.push(Rc::downgrade(unread));
    }

    /// Notes that the upstream has answered a request.
    pub(super) fn set_answered(&mut self, key: usize) {
        self.connections[key].has_answered = true;
    }

    /// Begins no more streams on it: the upstream has not answered in time.
    pub(super) fn set_ending(&mut self, key: usize) {
        self.connections[key].is_ending = true;
    }

    /// Whether there is a connection to an upstream that may soon have room.
    pub(crate) fn is_settling(&self, upstream: usize) -> bool {
        self.all_open().any(|connection| connection.upstream == upstream && !connection.is_settled)
    }

    /// Whether a connection has learned since the last call how many streams it may have.
    pub(crate) fn take_settled(&mut self) -> bool {
        std::mem::take(&mut self.has_settled)
    }

    /// Ends the stream of an exchange.
    pub(crate) fn leave(&mut self, key: usize, now: Instant) {
        let connection = &mut self.connections[key];
        connection.streams -= 1;
        connection.idle_since = now;
        if connection.streams == 0 && !connection.is_usable() {
            self.close(key);
        }
    }

    /// Closes a connection without streams: the library tells the upstream.
    fn close(&mut self, key: usize) {
        let mut connection = self.connections.remove(key);
        if let Some(OpenConn { send, connection: mut ending, .. }) = connection.open.take() {
            drop(send);
            let _ = Pin::new(&mut ending).poll(&mut Context::from_waker(Waker::noop()));
        }
    }

    /// Closes the connection that was without streams longest; false if there is none.
    pub(crate) fn close_oldest_idle(&mut self) -> bool {
        let idle = self.connections.iter().filter(|(_, connection)| connection.streams == 0);
        let oldest = idle.min_by_key(|(_, connection)| connection.idle_since).map(|(key, _)| key);
        oldest.inspect(|&key| self.close(key)).is_some()
    }

    /// When [`Http2Conns::expire`] is due.
    pub(crate) fn next_deadline(&self, idle_timeout: Duration) -> Option<Instant> {
        let idle = self.connections.iter().filter(|(_, connection)| connection.streams == 0);
        idle.map(|(_, connection)| connection.idle_since + idle_timeout).min()
    }

    /// Closes connections that were without streams for too long.
    pub(crate) fn expire(&mut self, idle_timeout: Duration, now: Instant) {
        while self.next_deadline(idle_timeout).is_some_and(|at| at <= now) && self.close_oldest_idle() {}
    }

    /// Begins no more streams on connections to addresses that their upstreams no longer have.
    pub(crate) fn end_vanished(&mut self) {
        for (_, connection) in &mut self.connections {
            connection.is_ending |= connection.addresses.as_ref().is_some_and(AddressAttempts::has_vanished);
        }
        while let Some((key, _)) =
            self.connections.iter().find(|(_, connection)| connection.streams == 0 && connection.is_ending)
        {
            self.close(key);
        }
    }

    /// Notes an event of a connection's socket.
    pub(crate) fn note(&mut self, key: usize, event: &Event) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let Some(open) = &connection.open {
            open.stream.borrow_mut().note(event);
            connection.waker.wake_by_ref();
        }
    }

    /// Polls the connections that were woken: they read, write, and wake exchanges.
    pub(crate) fn run(&mut self) -> Vec<FailedConn> {
        let mut failed = Vec::new();
        for key in self.woken.take() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let was_settled = connection.is_settled;
            failed.extend(connection.run());
            self.has_settled |= connection.is_settled != was_settled;
            if connection.streams == 0 && !connection.is_usable() {
                self.close(key);
            }
        }
        failed
    }
}

impl Http2Conn {
    /// Whether it takes more streams at all. The library knows when the upstream has announced the end.
    fn is_usable(&mut self) -> bool {
        if self.is_ending {
            return false;
        }
        let polled =
            self.open.as_mut().map(|open| open.send.poll_ready(&mut Context::from_waker(Waker::noop())));
        self.is_ending = matches!(polled, None | Some(Poll::Ready(Err(_))));
        !self.is_ending
    }

    fn streams_max(&self) -> usize {
        self.open.as_ref().map_or(0, |open| open.send.current_max_send_streams().min(STREAMS_MAX))
    }

    fn run(&mut self) -> Option<FailedConn> {
        self.wake.is_woken.store(false, Ordering::Relaxed);
        let open = self.open.as_mut()?;
        let polled = Pin::new(&mut open.connection).poll(&mut Context::from_waker(&self.waker));
        self.unread.retain(|unread| unread.upgrade().inspect(|unread| unread.look()).is_some());
        self.is_settled |= open.send.current_max_send_streams() > 0;
        let Poll::Ready(ended) = polled else { return None };
        self.open = None;
        (self.is_ending, self.is_settled) = (true, true);
        let error = ended.err().filter(|_| !self.has_answered)?;
        Some(FailedConn { upstream: self.upstream, error: why(error) })
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
fn shake_hands(io: Http2Io) -> io::Result<(SendRequest<Bytes>, Connection<Http2Io, Bytes>)> {
    let mut builder = Builder::new();
    builder
        .enable_push(false)
        .initial_max_send_streams(0)
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(STREAM_WINDOW_BYTES * STREAMS_MAX as u32)
        .max_send_buffer_size(SEND_BUFFER_BYTES)
        .max_header_list_size(HEAD_BYTES_MAX);
    let handshake = pin!(builder.handshake(io));
    match handshake.poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(begun) => begun.map_err(why),
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}
