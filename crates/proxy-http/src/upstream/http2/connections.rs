//! The HTTP/2 connections of a worker.

use std::cell::RefCell;
use std::io;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::client::SendRequest;
use mio::event::Event;
use proxy_core::handler::resources_token;
use proxy_core::{AddressAttempts, UpstreamStream, Upstreams};
use slab::Slab;

use super::connection::{ConnNews, ConnWake, Http2Conn, OpenConn, shake_hands};
use super::io::{Http2Io, Reads};
use super::received::ReceivedContent;
use crate::runtime::tasks::WokenConnections;

/// Set in the keys of tokens, which these sockets share with those of HTTP/1.1.
const KEY_BIT: usize = 1 << 40;

/// The connections, to all upstreams.
#[derive(Debug, Default)]
pub(crate) struct Http2Conns {
    connections: Slab<Http2Conn>,
    woken: WokenConnections,
    /// Whether a connection has lately got room for streams, or has ended.
    has_changed: bool,
    news: Vec<ConnNews>,
}

/// A stream that is counted, and is for one exchange: [`Http2Conns::leave`] must follow.
#[derive(Debug)]
pub(crate) struct Http2Stream {
    pub(in crate::upstream) key: usize,
    /// `None` once the request is sent.
    pub(super) send: Option<SendRequest<Bytes>>,
    /// Whether its connection has had others before.
    pub(crate) is_reused: bool,
}

impl Http2Conns {
    /// The key in tokens of sockets: `None` for one that is not of these connections.
    pub(crate) fn key_of(token_key: usize) -> Option<usize> {
        (token_key & KEY_BIT != 0).then_some(token_key & !KEY_BIT)
    }

    /// The upstream of each open connection, and whether it has no stream.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, bool)> {
        self.all_open().map(|connection| (connection.upstream, connection.streams == 0))
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
        (now, begin_timeout): (Instant, Duration),
    ) -> io::Result<Http2Stream> {
        let entry = self.connections.vacant_entry();
        let key = entry.key();
        stream.keep(resources_token(key | KEY_BIT))?;
        let (stream, reads) = (Rc::new(RefCell::new(stream)), Rc::new(Reads::default()));
        let (send, connection) =
            shake_hands(Http2Io { stream: Rc::clone(&stream), reads: Rc::clone(&reads) })?;
        let wake = Arc::new(ConnWake { key, is_woken: AtomicBool::new(false), woken: self.woken.clone() });
        let waker = Waker::from(Arc::clone(&wake));
        // It polls for the first time, and learns of what has arrived already.
        waker.wake_by_ref();
        let begun = Http2Stream { key, send: Some(send.clone()), is_reused: false };
        // Its address may have vanished while it was opened.
        let is_ending = addresses.as_ref().is_some_and(AddressAttempts::is_withdrawn);
        entry.insert(Http2Conn {
            upstream,
            addresses,
            open: Some(OpenConn { stream, reads, send, connection }),
            streams: 1,
            received: Vec::new(),
            idle_since: now,
            begin_by: now + begin_timeout,
            read_at: now,
            has_begun: false,
            begin_waker: None,
            streams_max: 0,
            has_answered: false,
            is_ending,
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
                if streams < connection.streams_max && least.is_none_or(|(fewest, _)| streams < fewest) {
                    least = Some((streams, key));
                }
            }
        }
        let (_, key) = least.filter(|_| usable >= addresses)?;
        let connection = &mut self.connections[key];
        let open = connection.open.as_ref()?;
        connection.streams += 1;
        Some(Http2Stream { key, send: Some(open.send.clone()), is_reused: true })
    }

    /// Whether what exchanges have sent waits in the process, as the upstream's socket is full.
    pub(super) fn is_blocked(&self, key: usize) -> bool {
        self.connections[key].open.as_ref().is_some_and(|open| !open.stream.borrow().is_writable())
    }

    /// Whether the upstream has begun to speak HTTP/2 on it.
    pub(super) fn has_begun(&self, key: usize) -> bool {
        self.connections[key].has_begun
    }

    /// Waits for the upstream's SETTINGS: whether it takes extended CONNECTs (RFC 8441); `None` if the connection is over.
    pub(super) fn poll_settings(&mut self, key: usize, cx: &Context<'_>) -> Poll<Option<bool>> {
        let connection = &mut self.connections[key];
        let Some(open) = &connection.open else { return Poll::Ready(None) };
        if connection.has_begun {
            return Poll::Ready(Some(open.send.is_extended_connect_protocol_enabled()));
        }
        connection.begin_waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Whether it is spoken to with TLS.
    pub(super) fn is_tls(&self, key: usize) -> bool {
        self.connections[key].open.as_ref().is_some_and(|open| open.stream.borrow().is_tls())
    }

    /// Looks at this content from now on whenever something has arrived.
    pub(super) fn watch(&mut self, key: usize, content: &ReceivedContent) {
        self.connections[key].received.push(Rc::downgrade(&content.0));
    }

    /// Notes that the upstream has answered a request.
    pub(super) fn set_answered(&mut self, key: usize) {
        self.connections[key].has_answered = true;
    }

    /// Begins no more streams on a connection if the upstream has sent nothing since then.
    pub(super) fn set_silent(&mut self, key: usize, since: Instant) {
        let connection = &mut self.connections[key];
        connection.is_ending |= connection.read_at < since;
    }

    /// Whether there is a connection to an upstream that may soon have room.
    pub(crate) fn is_beginning(&self, upstream: usize) -> bool {
        self.all_open().any(|connection| connection.upstream == upstream && !connection.has_begun)
    }

    /// Whether there is a connection to an upstream that has begun, and whose streams may become free.
    pub(crate) fn has_begun_conn(&mut self, upstream: usize) -> bool {
        let of = |connection: &Http2Conn| connection.upstream == upstream && connection.has_begun;
        self.connections.iter_mut().any(|(_, connection)| of(connection) && connection.is_usable())
    }

    /// Whether a connection has got room for streams since the last call, or has ended.
    pub(crate) fn take_changed(&mut self) -> bool {
        mem::take(&mut self.has_changed)
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
    pub(crate) fn close(&mut self, key: usize) {
        let mut connection = self.connections.remove(key);
        self.has_changed = true;
        if let Some(OpenConn { send, connection: mut ending, .. }) = connection.open.take() {
            drop(send);
            let mut cx = Context::from_waker(Waker::noop());
            // The first one may only write what the last streams have left.
            for _ in 0..2 {
                if Pin::new(&mut ending).poll(&mut cx).is_ready() {
                    break;
                }
            }
        }
    }

    /// Closes the connections that have had no stream since `until`.
    pub(crate) fn close_unused_since(&mut self, until: Instant) {
        while let Some((since, key)) = self.oldest_idle()
            && since <= until
        {
            self.close(key);
        }
    }

    /// The connection that was without streams longest, since when, and its key.
    pub(crate) fn oldest_idle(&self) -> Option<(Instant, usize)> {
        let idle = self.connections.iter().filter(|(_, connection)| connection.streams == 0);
        idle.map(|(key, connection)| (connection.idle_since, key)).min()
    }

    /// When a connection is to be closed or given up, or polled.
    pub(crate) fn next_deadline(&self, idle_timeout: Duration, now: Instant) -> Option<Instant> {
        if self.has_changed || !(self.news.is_empty() && self.woken.is_empty()) {
            return Some(now);
        }
        let late = self.connections.iter().filter_map(|(_, connection)| connection.late_at());
        late.chain(self.oldest_idle().map(|(since, _)| since + idle_timeout)).min()
    }

    /// Gives up connections on which HTTP/2 has not begun in time.
    pub(crate) fn expire(&mut self, now: Instant) {
        let is_due = |connection: &Http2Conn| connection.late_at().is_some_and(|at| at <= now);
        while let Some((key, connection)) =
            self.connections.iter_mut().find(|(_, connection)| is_due(connection))
        {
            let late = io::Error::new(io::ErrorKind::TimedOut, "it does not begin HTTP/2 in time");
            self.news.push(connection.fail(late, now));
            self.has_changed = true;
            if connection.streams == 0 {
                self.close(key);
            }
        }
    }

    /// Begins no more streams on connections to upstreams that are gone, or to addresses that they no longer have.
    pub(crate) fn end_vanished(&mut self, upstreams: &Upstreams) {
        for (_, connection) in &mut self.connections {
            connection.is_ending |= connection.addresses.as_ref().is_some_and(AddressAttempts::is_withdrawn)
                || upstreams.is_gone(connection.upstream);
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
    pub(crate) fn run(&mut self, now: Instant) -> Vec<ConnNews> {
        for key in self.woken.take() {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            let before = connection.streams_max;
            self.news.extend(connection.run(now));
            self.has_changed |= connection.streams_max > before || connection.open.is_none();
            if connection.streams == 0 && !connection.is_usable() {
                self.close(key);
            }
        }
        mem::take(&mut self.news)
    }
}
