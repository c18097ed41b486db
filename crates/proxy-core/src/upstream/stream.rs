//! A connection to an upstream: what is read and written is plaintext, whatever the wire carries.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::mem;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::{Registry, Token};

use crate::io::buffer::Buffer;
use crate::io::socket::{IoResult, Socket};
use crate::tls::{
    ClientEngine, EngineError, PARTIAL_BYTES_MAX, TlsPeer, UpstreamTlsConfig, UpstreamTlsError,
};

/// Plaintext that one write encrypts: what the socket does not take of it waits in the process.
const WRITE_BYTES_MAX: usize = 64 << 10;
/// Ciphertext that one read takes at least, whatever the caller has room for: a record is decrypted as a whole.
const READ_BYTES_MIN: usize = 18 << 10;

/// A connection to an upstream, over TCP or a Unix socket, with TLS or without.
#[derive(Debug)]
pub struct UpstreamStream {
    socket: Socket,
    tls: Option<Box<TlsLayer>>,
    is_connected: bool,
}

/// TLS over a socket.
struct TlsLayer {
    engine: ClientEngine,
    peer: TlsPeer,
    worker: Rc<WorkerTls>,
    /// Plaintext for which the last reader had no room.
    received: Buffer,
    /// Ciphertext that the socket has not taken.
    unsent: Buffer,
    /// Since when it has taken none of it.
    stalled_since: Option<Instant>,
    /// Whether the socket is shut down for writing once it has taken everything.
    is_ending: bool,
    handshake: HandshakeProgress,
}

/// The handshake with an upstream, while it is under way.
#[derive(Debug, Default)]
struct HandshakeProgress {
    /// When the socket was connected.
    began_at: Option<Instant>,
    /// Time inside the TLS library.
    compute: Duration,
}

/// A handshake with an upstream that is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamHandshake {
    /// From the connected socket to the end of the handshake, round trips included.
    pub took: Duration,
    /// Time inside the TLS library, of this.
    pub compute: Duration,
    pub is_resumed: bool,
    /// Whether a session was at hand.
    pub has_offered: bool,
    pub is_tls13: bool,
}

/// What the TLS connections of a worker to upstreams share.
#[derive(Debug, Default)]
pub struct WorkerTls {
    client: RefCell<Option<UpstreamTlsConfig>>,
    scratch: RefCell<TlsScratch>,
}

/// Memory through which all ciphertext of a worker's upstreams passes; none before the first is read.
#[derive(Debug, Default)]
struct TlsScratch {
    received: Box<[u8]>,
    output: Buffer,
}

impl WorkerTls {
    /// Uses a new configuration for further connections, unless it is the present one: sessions stay with that.
    pub(crate) fn update(&self, client: Option<&UpstreamTlsConfig>) {
        let mut current = self.client.borrow_mut();
        let is_present = client.is_some_and(|new| current.as_ref().is_some_and(|old| old.is_same(new)));
        if !is_present {
            *current = client.map(UpstreamTlsConfig::for_worker);
        }
    }

    fn connect(self: &Rc<Self>, index: usize, peer: &TlsPeer) -> io::Result<Box<TlsLayer>> {
        let mut client = self.client.borrow_mut();
        let client = client.as_mut().ok_or(io::ErrorKind::Unsupported)?;
        Ok(Box::new(TlsLayer {
            engine: client.connect(index, peer).map_err(failed)?,
            peer: peer.clone(),
            worker: Rc::clone(self),
            received: Buffer::default(),
            unsent: Buffer::default(),
            stalled_since: None,
            is_ending: false,
            handshake: HandshakeProgress::default(),
        }))
    }
}

impl UpstreamStream {
    /// Takes over a socket that may still be connecting, to the upstream number `index`. `tls` is whom TLS
    /// is spoken with, if it is.
    pub(crate) fn new(
        socket: Socket,
        index: usize,
        tls: Option<&TlsPeer>,
        worker: &Rc<WorkerTls>,
    ) -> io::Result<Self> {
        let tls = tls.map(|peer| worker.connect(index, peer)).transpose()?;
        // A Unix socket is connected at once.
        let is_connected = socket.is_writable();
        Ok(Self { socket, tls, is_connected })
    }

    /// Sends these bytes in the clear before the handshake; without TLS the caller sends them.
    #[must_use]
    pub(crate) fn after(mut self, header: &[u8]) -> Self {
        if let Some(tls) = &mut self.tls {
            tls.unsent.extend(header);
        }
        self
    }

    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }

    /// Prepares it for a long life, in which it may be silent, with another token.
    ///
    /// # Errors
    /// If the kernel refuses.
    pub fn keep(&mut self, token: Token, registry: &Registry) -> io::Result<()> {
        self.socket.keep_alive()?;
        self.socket.set_token(token, registry)
    }

    pub fn note(&mut self, event: &Event) {
        self.socket.note(event);
    }

    /// Advances connecting; true once bytes can be sent and received.
    ///
    /// # Errors
    /// If it has failed.
    pub fn establish(&mut self, registry: &Registry) -> io::Result<bool> {
        if !self.is_connected {
            // An error is an event too.
            if !self.socket.is_writable() {
                return Ok(false);
            }
            self.is_connected = self.socket.connected()?;
        }
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => tls.shake_hands(&mut self.socket, registry),
        }
    }

    /// How long ago the socket was connected, of the time since `began_at`.
    pub fn connect_time(&self, began_at: Instant, now: Instant) -> Duration {
        let connected_at = self.tls.as_ref().and_then(|tls| tls.handshake.began_at).unwrap_or(now);
        connected_at.saturating_duration_since(began_at)
    }

    /// The handshake that has just been completed; `None` without TLS.
    pub fn handshake(&self, now: Instant) -> Option<UpstreamHandshake> {
        let tls = self.tls.as_ref()?;
        let HandshakeProgress { began_at, compute } = tls.handshake;
        Some(UpstreamHandshake {
            took: now.saturating_duration_since(began_at?),
            compute,
            is_resumed: tls.engine.is_resumed(),
            has_offered: tls.engine.has_offered(),
            is_tls13: tls.engine.is_tls13(),
        })
    }

    /// Whether a read may find something.
    #[inline]
    pub fn is_readable(&self) -> bool {
        self.socket.is_readable() || self.tls.as_ref().is_some_and(|tls| tls.has_more())
    }

    /// Whether a write may be taken.
    #[inline]
    pub fn is_writable(&self) -> bool {
        self.socket.is_writable()
    }

    /// Whether it is known that the upstream takes nothing more.
    pub fn is_write_closed(&self) -> bool {
        self.socket.is_write_closed()
    }

    /// Reads once.
    ///
    /// # Errors
    /// If the connection is broken, or ends without the end of TLS.
    #[inline]
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<IoResult> {
        match &mut self.tls {
            None => self.socket.read(buffer),
            Some(tls) => tls.read(&mut self.socket, buffer),
        }
    }

    /// Writes as much as fits, and asks for an event when more does.
    ///
    /// # Errors
    /// When the connection is broken.
    #[inline]
    pub fn write(&mut self, bytes: &[u8], registry: &Registry) -> io::Result<IoResult> {
        match &mut self.tls {
            None => self.socket.write(bytes, registry),
            Some(tls) => tls.write(&mut self.socket, bytes, registry),
        }
    }

    /// Writes what an earlier write has left in the process; returns how many bytes the socket has taken.
    ///
    /// # Errors
    /// When the connection is broken.
    #[inline]
    pub fn flush(&mut self, registry: &Registry) -> io::Result<usize> {
        match &mut self.tls {
            None => Ok(0),
            Some(tls) => tls.flush(&mut self.socket, registry),
        }
    }

    /// Announces to the upstream that nothing more is sent. A later read detects a vanished peer.
    pub fn shut_down(&mut self, registry: &Registry) {
        match &mut self.tls {
            None => self.socket.shut_down(),
            // If that fails, reading finds out.
            Some(tls) => {
                let _ = tls.shut_down(&mut self.socket, registry);
            }
        }
    }

    /// Announces the end of TLS, before the connection is closed in both directions.
    pub fn close_notify(&mut self, registry: &Registry) {
        if let Some(tls) = &mut self.tls {
            // After a failure TLS has sent an alert already; an upstream need not learn of the end.
            let _ = tls.engine.close_notify(&mut tls.unsent);
            let _ = tls.flush(&mut self.socket, registry);
        }
    }

    /// Whether something that was written waits in the process.
    pub fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| !tls.unsent.is_empty())
    }

    /// Memory that it holds for bytes that wait, and since when the upstream has taken none of them.
    #[inline]
    pub fn held(&self) -> (usize, Option<Instant>) {
        self.tls.as_ref().map_or((0, None), |tls| tls.held())
    }
}

impl TlsLayer {
    fn shake_hands(&mut self, socket: &mut Socket, registry: &Registry) -> io::Result<bool> {
        let advanced = self.advance_handshake(socket);
        // A failure leaves an alert, which tells the upstream why. Whether it arrives makes no difference.
        let flushed = self.flush(socket, registry);
        let is_done = advanced?;
        flushed?;
        Ok(is_done)
    }

    fn advance_handshake(&mut self, socket: &mut Socket) -> io::Result<bool> {
        if self.handshake.began_at.is_none() {
            self.handshake.began_at = Some(Instant::now());
            self.decrypt(&mut [], &mut [])?;
        }
        while self.engine.is_handshaking() && socket.is_readable() {
            self.receive(socket, &mut [])?;
        }
        if self.engine.is_handshaking() {
            return Ok(false);
        }
        self.peer.check_protocol(self.engine.alpn()).map_err(failed)?;
        Ok(true)
    }

    fn has_more(&self) -> bool {
        !self.received.is_empty() || self.engine.is_peer_closed()
    }

    #[inline(never)]
    fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<IoResult> {
        if !self.received.is_empty() {
            let n = self.received.len().min(buffer.len());
            buffer[..n].copy_from_slice(&self.received.as_slice()[..n]);
            self.received.consume(n);
            self.received.release();
            return Ok(IoResult::Bytes(n));
        }
        if self.engine.is_peer_closed() {
            return Ok(IoResult::End);
        }
        match self.receive(socket, buffer)? {
            0 if self.engine.is_peer_closed() => Ok(IoResult::End),
            0 => Ok(IoResult::Blocked),
            n => Ok(IoResult::Bytes(n)),
        }
    }

    /// Reads ciphertext once, and returns how much plaintext of it lies in `buffer`. What has no room there is kept.
    fn receive(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<usize> {
        let worker = Rc::clone(&self.worker);
        let mut scratch = worker.scratch.borrow_mut();
        let ciphertext = scratch.ciphertext();
        let reserved = self.engine.partial_len();
        let until = buffer.len().max(reserved + READ_BYTES_MIN).min(ciphertext.len());
        match socket.read(&mut ciphertext[reserved..until])? {
            IoResult::Bytes(n) => self.decrypt(&mut ciphertext[..reserved + n], buffer),
            IoResult::Blocked => Ok(0),
            // Without a close_notify bytes may be missing.
            IoResult::End => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn decrypt(&mut self, ciphertext: &mut [u8], buffer: &mut [u8]) -> io::Result<usize> {
        let began_at = self.engine.is_handshaking().then(Instant::now);
        let (mut filled, kept) = (0, &mut self.received);
        let plaintext = |bytes: &[u8]| {
            let fits = bytes.len().min(buffer.len() - filled);
            buffer[filled..filled + fits].copy_from_slice(&bytes[..fits]);
            filled += fits;
            kept.extend(&bytes[fits..]);
        };
        let result = self.engine.receive(ciphertext, plaintext, &mut self.unsent);
        if let Some(began_at) = began_at {
            self.handshake.compute += began_at.elapsed();
        }
        result.map_err(failed)?;
        Ok(filled)
    }

    #[inline(never)]
    fn write(&mut self, socket: &mut Socket, bytes: &[u8], registry: &Registry) -> io::Result<IoResult> {
        self.flush(socket, registry)?;
        if !self.unsent.is_empty() {
            return Ok(IoResult::Blocked);
        }
        let taken = bytes.len().min(WRITE_BYTES_MAX);
        let worker = Rc::clone(&self.worker);
        let output = &mut worker.scratch.borrow_mut().output;
        output.clear();
        self.engine.encrypt(&bytes[..taken], output).map_err(failed)?;
        let sent = match socket.write(output.as_slice(), registry)? {
            IoResult::Bytes(n) => n,
            IoResult::Blocked | IoResult::End => 0,
        };
        let rest = &output.as_slice()[sent..];
        if !rest.is_empty() {
            self.unsent.extend(rest);
            self.stalled_since = Some(Instant::now());
        }
        Ok(IoResult::Bytes(taken))
    }

    fn flush(&mut self, socket: &mut Socket, registry: &Registry) -> io::Result<usize> {
        let mut taken = 0;
        while !self.unsent.is_empty() && socket.is_writable() {
            match socket.write(self.unsent.as_slice(), registry) {
                Ok(IoResult::Bytes(n)) => {
                    taken += n;
                    self.unsent.consume(n);
                    self.stalled_since = Some(Instant::now());
                }
                Ok(IoResult::Blocked | IoResult::End) => {}
                Err(error) => {
                    self.unsent.clear();
                    return Err(error);
                }
            }
        }
        if self.unsent.is_empty() {
            self.unsent.release();
            self.stalled_since = None;
            if mem::take(&mut self.is_ending) {
                socket.shut_down();
            }
        }
        Ok(taken)
    }

    fn shut_down(&mut self, socket: &mut Socket, registry: &Registry) -> io::Result<()> {
        // After a failure TLS has sent an alert already.
        let _ = self.engine.close_notify(&mut self.unsent);
        self.is_ending = true;
        self.flush(socket, registry).map(drop)
    }

    fn held(&self) -> (usize, Option<Instant>) {
        let bytes = self.unsent.memory_len() + self.received.memory_len() + self.engine.partial_len();
        (bytes, self.stalled_since)
    }
}

impl TlsScratch {
    fn ciphertext(&mut self) -> &mut [u8] {
        if self.received.is_empty() {
            self.received = vec![0; PARTIAL_BYTES_MAX + READ_BYTES_MIN].into_boxed_slice();
        }
        &mut self.received
    }
}

fn failed(error: EngineError) -> io::Error {
    io::Error::other(UpstreamTlsError::from(error))
}

impl fmt::Debug for TlsLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsLayer").field("handshake", &self.handshake).finish_non_exhaustive()
    }
}
