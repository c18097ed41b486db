//! The transport of a connection: the socket, and TLS if any.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Ipv4Addr;

use records::values::LoadEvent;

use crate::clock::now_ns;
use crate::protocol::{ConnectionEnd, Failure};
use crate::tls::{Handshake, Outbox, TlsEngine, TlsError};
use crate::worker::socket::{Address, ClientSocket};

/// Size of a read. Large reads matter: they save system calls and whole records.
const READ_BYTES: usize = 128 * 1024;
/// Reads of one connection in a turn.
const READS_MAX: usize = 16;
/// Plaintext that is encrypted at a time, so the unsent ciphertext stays small.
const SEND_BYTES: usize = 64 * 1024;

/// Buffers that all connections of a thread share, so that an idle connection needs none.
#[derive(Debug)]
pub(crate) struct Scratch {
    read: Box<[u8]>,
    out: Outbox,
}

impl Default for Scratch {
    fn default() -> Self {
        Self { read: vec![0; READ_BYTES].into_boxed_slice(), out: Outbox::default() }
    }
}

impl Scratch {
    /// Discards pending bytes of a connection that has ended.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
    }
}

/// A connection below its application protocol: socket and TLS.
#[derive(Debug)]
pub(crate) struct Transport {
    pub(crate) socket: ClientSocket,
    engine: Option<Box<TlsEngine>>,
    /// Ciphertext that the socket had no room for.
    pending: Vec<u8>,
    is_established: bool,
    inflow: ReadMode,
    closing: Closing,
    /// The TLS error.
    trouble: Option<Failure>,
    /// When connecting began.
    pub(crate) opened_ns: u64,
    /// When TCP was connected.
    pub(crate) established_ns: u64,
}

/// How far the sending side is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Closing {
    Open,
    /// Nothing more is written once `pending` is out.
    Due,
    /// Shut down, once: each time would be an event that the socket is writable.
    Shut,
}

/// Whether a short read ends reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ReadMode {
    /// A short read has emptied the socket; an event announces more.
    Open,
    /// The server has shut down its side: read up to the end.
    Shut,
    /// A write has failed: read bytes that the server sent before, then end the connection.
    Broken,
}

/// The result of a read, besides plaintext.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadOutcome {
    /// The handshake, when it has just been completed.
    pub(crate) handshake: Option<Handshake>,
    /// Plaintext received.
    pub(crate) plaintext_bytes: u64,
    pub(crate) end: Option<ConnectionEnd>,
    /// There may be more to read, and no event will announce it.
    pub(crate) has_more: bool,
}

impl Transport {
    pub(crate) fn open(to: &Address, from: Option<Ipv4Addr>, now_ns: u64) -> io::Result<Self> {
        ClientSocket::open(to, from).map(|socket| Self::new(socket, now_ns))
    }

    fn new(socket: ClientSocket, now_ns: u64) -> Self {
        Self {
            socket,
            engine: None,
            pending: Vec::new(),
            is_established: false,
            inflow: ReadMode::Open,
            closing: Closing::Open,
            trouble: None,
            opened_ns: now_ns,
            established_ns: now_ns,
        }
    }

    /// True once TCP is connected; asks the socket until then.
    pub(crate) fn establish(&mut self) -> io::Result<bool> {
        self.is_established = self.socket.is_connected()?;
        if self.is_established {
            self.established_ns = now_ns();
        }
        Ok(self.is_established)
    }

    pub(crate) fn is_established(&self) -> bool {
        self.is_established
    }

    pub(crate) fn drive_handshake(
        &mut self,
        engine: TlsEngine,
        scratch: &mut Scratch,
    ) -> Result<(), ConnectionEnd> {
        let engine = self.engine.insert(Box::new(engine));
        if let Err(error) = engine.receive(&mut [], &mut scratch.out, |_| {}) {
            self.record_tls_error(&error);
            return Err(ConnectionEnd::Tls);
        }
        self.flush(scratch)
    }

    pub(crate) fn record_tls_error(&mut self, error: &TlsError) {
        self.trouble.get_or_insert_with(|| Failure::new(error.event(), error.to_string()));
    }

    /// The failure that a TLS error leads to.
    pub(crate) fn take_trouble(&mut self) -> Failure {
        self.trouble.take().unwrap_or_else(|| Failure::new(LoadEvent::Tls, ""))
    }

    pub(crate) fn handshake_failure(&mut self, end: ConnectionEnd, scratch: &mut Scratch) -> Failure {
        let failure = match end {
            ConnectionEnd::Tls => self.take_trouble(),
            ConnectionEnd::Clean | ConnectionEnd::Cut => {
                Failure::new(LoadEvent::HandshakeCut, "the connection ended during the handshake")
            }
        };
        // The alert may explain the reason; its arrival makes no difference here.
        let _ = self.flush(scratch);
        failure
    }

    /// Notes that the server has shut down its side.
    pub(crate) fn note_peer_shut(&mut self) {
        if self.inflow == ReadMode::Open {
            self.inflow = ReadMode::Shut;
        }
    }

    pub(crate) fn note_broken(&mut self) {
        self.inflow = ReadMode::Broken;
    }

    /// Reads up to a bound, and passes the plaintext on. What TLS itself answers stays in `scratch` until
    /// [`Self::flush`].
    pub(crate) fn receive(&mut self, scratch: &mut Scratch, mut plaintext: impl FnMut(&[u8])) -> ReadOutcome {
        let mut received = ReadOutcome::default();
        for _ in 0..READS_MAX {
            let kept = self.engine.as_ref().map_or(0, |engine| engine.restore(&mut scratch.read));
            match self.socket.read(&mut scratch.read[kept..]) {
                Ok(0) => {
                    received.end =
                        Some(if self.engine.is_none() { ConnectionEnd::Clean } else { ConnectionEnd::Cut });
                    return received;
                }
                Ok(len) => {
                    let is_short = kept + len < scratch.read.len();
                    self.process(scratch, kept + len, &mut received, &mut plaintext);
                    if received.end.is_some() || (is_short && self.inflow == ReadMode::Open) {
                        return received;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let is_drained = error.kind() == ErrorKind::WouldBlock;
                    received.end =
                        (!is_drained || self.inflow == ReadMode::Broken).then_some(ConnectionEnd::Cut);
                    return received;
                }
            }
        }
        received.has_more = true;
        received
    }

    fn process(
        &mut self,
        scratch: &mut Scratch,
        len: usize,
        received: &mut ReadOutcome,
        plaintext: &mut impl FnMut(&[u8]),
    ) {
        let input = &mut scratch.read[..len];
        let mut counted = |piece: &[u8]| {
            received.plaintext_bytes += piece.len() as u64;
            plaintext(piece);
        };
        let Some(engine) = &mut self.engine else { return counted(input) };
        let taken_in = engine.receive(input, &mut scratch.out, counted);
        received.handshake = received.handshake.or_else(|| engine.new_handshake());
        if let Err(error) = taken_in {
            self.record_tls_error(&error);
            received.end = Some(ConnectionEnd::Tls);
        } else if engine.peer_has_closed() {
            received.end = Some(ConnectionEnd::Clean);
        }
    }

    /// Sends as much of the plaintext as the socket takes now, and returns its length.
    pub(crate) fn send(&mut self, plaintext: &[u8], scratch: &mut Scratch) -> Result<usize, ConnectionEnd> {
        let mut handed = 0;
        while handed < plaintext.len() && self.pending.is_empty() {
            let rest = &plaintext[handed..];
            let Some(engine) = &mut self.engine else {
                match write_some(&mut self.socket, rest)? {
                    0 => break,
                    len => handed += len,
                }
                continue;
            };
            let piece = &rest[..rest.len().min(SEND_BYTES)];
            engine.send(piece, &mut scratch.out).map_err(|_| ConnectionEnd::Tls)?;
            handed += piece.len();
            self.flush(scratch)?;
        }
        Ok(handed)
    }

    /// Writes earlier pending bytes, then those in `scratch`.
    pub(crate) fn flush(&mut self, scratch: &mut Scratch) -> Result<(), ConnectionEnd> {
        let written = self.write_out(scratch.out.filled());
        scratch.out.clear();
        written?;
        if self.closing == Closing::Due && self.pending.is_empty() {
            self.closing = Closing::Shut;
            self.socket.shut_writing();
        }
        Ok(())
    }

    fn write_out(&mut self, new: &[u8]) -> Result<(), ConnectionEnd> {
        if !self.pending.is_empty() {
            let mut at = 0;
            while at < self.pending.len() {
                match write_some(&mut self.socket, &self.pending[at..])? {
                    0 => break,
                    len => at += len,
                }
            }
            self.pending.drain(..at);
        }
        let mut at = 0;
        while at < new.len() && self.pending.is_empty() {
            match write_some(&mut self.socket, &new[at..])? {
                0 => break,
                len => at += len,
            }
        }
        self.pending.extend_from_slice(&new[at..]);
        Ok(())
    }

    /// Closes the sending side, in TLS and in TCP.
    pub(crate) fn close(&mut self, scratch: &mut Scratch) -> Result<(), ConnectionEnd> {
        if self.closing != Closing::Open {
            return Ok(());
        }
        self.closing = Closing::Due;
        if let Some(engine) = &mut self.engine {
            engine.close(&mut scratch.out).map_err(|_| ConnectionEnd::Tls)?;
        }
        self.flush(scratch)
    }
}

/// Writes as much as the socket accepts; 0 if it accepts nothing now.
fn write_some(socket: &mut ClientSocket, bytes: &[u8]) -> Result<usize, ConnectionEnd> {
    loop {
        match socket.write(bytes) {
            Ok(0) => return Err(ConnectionEnd::Cut),
            Ok(len) => return Ok(len),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(_) => return Err(ConnectionEnd::Cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use mio::event::Source as _;
    use mio::{Events, Interest, Poll, Token};

    use super::*;

    #[test]
    fn the_wait_for_a_server_that_closes_late_is_no_work() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let to = Address::Tcp(listener.local_addr().unwrap());
        let mut transport = Transport::open(&to, None, 0).unwrap();
        let _server = listener.accept().unwrap();
        let mut poll = Poll::new().unwrap();
        transport.socket.register(poll.registry(), Token(0), Interest::WRITABLE).unwrap();
        let mut scratch = Scratch::default();
        transport.close(&mut scratch).unwrap();
        let (mut events, mut wakes) = (Events::with_capacity(8), 0);
        while wakes < 100 {
            poll.poll(&mut events, Some(Duration::from_millis(100))).unwrap();
            if events.is_empty() {
                break;
            }
            transport.flush(&mut scratch).unwrap();
            wakes += 1;
        }
        assert!(wakes < 5, "woken {wakes} times");
    }
}
