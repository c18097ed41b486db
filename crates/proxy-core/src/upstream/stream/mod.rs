//! A connection to an upstream: what is read and written is plaintext, whatever the wire carries.

mod tls;

use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mio::Token;
use mio::event::Event;

use crate::io::socket::{IoResult, Socket};
use crate::tls::TlsPeer;

pub use tls::WorkerTls;
use tls::{HandshakeProgress, TlsLayer};

/// A connection to an upstream, over TCP or a Unix socket, with TLS or without.
#[derive(Debug)]
pub struct UpstreamStream {
    socket: Socket,
    tls: Option<Box<TlsLayer>>,
    is_connected: bool,
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
    pub fn keep(&mut self, token: Token) -> io::Result<()> {
        self.socket.keep_alive()?;
        self.socket.set_token(token)
    }

    pub fn note(&mut self, event: &Event) {
        self.socket.note(event);
    }

    /// Advances connecting; true once bytes can be sent and received.
    ///
    /// # Errors
    /// If it has failed.
    pub fn establish(&mut self) -> io::Result<bool> {
        if !self.is_connected {
            // An error is an event too.
            if !self.socket.is_writable() {
                return Ok(false);
            }
            self.is_connected = self.socket.connected()?;
        }
        match &mut self.tls {
            None => Ok(true),
            Some(tls) => tls.shake_hands(&mut self.socket),
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
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<IoResult> {
        match &mut self.tls {
            None => self.socket.write(bytes),
            Some(tls) => tls.write(&mut self.socket, bytes),
        }
    }

    /// Writes what an earlier write has left in the process; returns how many bytes the socket has taken.
    ///
    /// # Errors
    /// When the connection is broken.
    #[inline]
    pub fn flush(&mut self) -> io::Result<usize> {
        match &mut self.tls {
            None => Ok(0),
            Some(tls) => tls.flush(&mut self.socket),
        }
    }

    /// Announces to the upstream that nothing more is sent. A later read detects a vanished peer.
    pub fn shut_down(&mut self) {
        match &mut self.tls {
            None => self.socket.shut_down(),
            // If that fails, reading finds out.
            Some(tls) => {
                let _ = tls.shut_down(&mut self.socket);
            }
        }
    }

    /// Announces the end of TLS, before the connection is closed in both directions.
    pub fn close_notify(&mut self) {
        if let Some(tls) = &mut self.tls {
            // After a failure TLS has sent an alert already; an upstream need not learn of the end.
            let _ = tls.engine.close_notify(&mut tls.unsent);
            let _ = tls.flush(&mut self.socket);
        }
    }

    /// Makes closing a reset, so the upstream does not take what it has for complete. A Unix socket cannot be reset.
    pub(crate) fn reset_when_closed(&self) {
        self.socket.reset_when_closed();
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
