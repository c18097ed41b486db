//! TLS over the socket of an upstream.

use std::cell::RefCell;
use std::fmt;
use std::io;
use std::mem;
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::io::buffer::Buffer;
use crate::io::socket::{IoResult, Socket};
use crate::tls::{
    ClientEngine, EngineError, PARTIAL_BYTES_MAX, TlsPeer, UpstreamTlsConfig, UpstreamTlsError,
};

/// Plaintext that one write encrypts: what the socket does not take of it waits in the process.
const WRITE_BYTES_MAX: usize = 64 << 10;
/// Ciphertext that one read takes at least, whatever the caller has room for: a record is decrypted as a whole.
const READ_BYTES_MIN: usize = 18 << 10;

/// TLS over a socket.
pub(super) struct TlsLayer {
    pub(super) engine: ClientEngine,
    peer: TlsPeer,
    worker: Rc<WorkerTls>,
    /// Plaintext for which the last reader had no room.
    received: Buffer,
    /// Ciphertext that the socket has not taken.
    pub(super) unsent: Buffer,
    /// Since when it has taken none of it.
    stalled_since: Option<Instant>,
    /// Whether the socket is shut down for writing once it has taken everything.
    is_ending: bool,
    pub(super) handshake: HandshakeProgress,
}

/// The handshake with an upstream, while it is under way.
#[derive(Debug, Default)]
pub(super) struct HandshakeProgress {
    /// When the socket was connected.
    pub(super) began_at: Option<Instant>,
    /// Time inside the TLS library.
    pub(super) compute: Duration,
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

    pub(super) fn connect(self: &Rc<Self>, index: usize, peer: &TlsPeer) -> io::Result<Box<TlsLayer>> {
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

impl TlsLayer {
    pub(super) fn shake_hands(&mut self, socket: &mut Socket) -> io::Result<bool> {
        let advanced = self.advance_handshake(socket);
        // A failure leaves an alert, which tells the upstream why. Whether it arrives makes no difference.
        let flushed = self.flush(socket);
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

    pub(super) fn has_more(&self) -> bool {
        !self.received.is_empty() || self.engine.is_peer_closed()
    }

    #[inline(never)]
    pub(super) fn read(&mut self, socket: &mut Socket, buffer: &mut [u8]) -> io::Result<IoResult> {
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
    pub(super) fn write(&mut self, socket: &mut Socket, bytes: &[u8]) -> io::Result<IoResult> {
        self.flush(socket)?;
        if !self.unsent.is_empty() {
            return Ok(IoResult::Blocked);
        }
        let taken = bytes.len().min(WRITE_BYTES_MAX);
        let worker = Rc::clone(&self.worker);
        let output = &mut worker.scratch.borrow_mut().output;
        output.clear();
        self.engine.encrypt(&bytes[..taken], output).map_err(failed)?;
        let sent = match socket.write(output.as_slice())? {
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

    pub(super) fn flush(&mut self, socket: &mut Socket) -> io::Result<usize> {
        let mut taken = 0;
        while !self.unsent.is_empty() && socket.is_writable() {
            match socket.write(self.unsent.as_slice()) {
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

    pub(super) fn shut_down(&mut self, socket: &mut Socket) -> io::Result<()> {
        // After a failure TLS has sent an alert already.
        let _ = self.engine.close_notify(&mut self.unsent);
        self.is_ending = true;
        self.flush(socket).map(drop)
    }

    pub(super) fn held(&self) -> (usize, Option<Instant>) {
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
