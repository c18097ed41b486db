//! One connection to the server: the socket, TLS if any, and the answer that is being read.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr};

use mio::net::TcpStream;
use socket2::{Domain, Protocol, Socket, Type};

use crate::http1::{Answer, Malformed, Parser};
use crate::tls::{Engine, Handshake, Outbox};

/// Size of a read. Large reads matter: they save system calls and whole records.
const READ_BYTES: usize = 128 * 1024;
/// Reads of one connection before the others have their turn.
const READS_MAX: usize = 16;
/// Plaintext that is encrypted at a time, so that what the socket cannot take yet stays small.
const SEND_BYTES: usize = 64 * 1024;

/// Buffers that all connections of a thread share: a connection that waits owns none.
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
    /// Forgets what was to be written to a connection that is gone.
    pub(crate) fn clear(&mut self) {
        self.out.clear();
    }
}

#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) socket: TcpStream,
    engine: Option<Box<Engine>>,
    pub(crate) parser: Parser,
    /// Ciphertext that the socket had no room for.
    pending: Vec<u8>,
    is_established: bool,
    inflow: Inflow,
    /// Nothing more is written once `pending` is out.
    closing: bool,
    /// Requests begun on it.
    pub(crate) requests: u32,
    /// Answers that were whole.
    pub(crate) answers: u32,
}

/// How far to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inflow {
    /// A short read has brought all there is; an event tells of more.
    Open,
    /// The server has sent its end, so reading goes on up to it.
    Shut,
    /// A write has failed. What the server said before is read, and then the connection is over.
    Broken,
}

/// What reading has brought.
#[derive(Debug, Default)]
pub(crate) struct Inbound {
    /// The handshake, when it has just been completed.
    pub(crate) handshake: Option<Handshake>,
    /// Plaintext received.
    pub(crate) plaintext_bytes: u64,
    /// The answer, when it has just become whole, or turned out to be none.
    pub(crate) answer: Option<Result<Answer, Malformed>>,
    /// Plaintext came that belongs to no answer.
    pub(crate) has_excess: bool,
    /// The connection is over.
    pub(crate) end: Option<End>,
    /// There may be more to read, and no event will tell.
    pub(crate) has_more: bool,
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// In order: end of file, and with TLS a `close_notify` before it.
    Clean,
    /// Reset, or with TLS cut without a `close_notify`.
    Cut,
    /// By an error in TLS.
    Tls,
}

impl Connection {
    /// Begins to connect.
    pub(crate) fn open(to: SocketAddr, from: Option<Ipv4Addr>) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(to), Type::STREAM.nonblocking(), Some(Protocol::TCP))?;
        socket.set_tcp_nodelay(true)?;
        if let Some(from) = from {
            // The port is chosen at connect, where only the pair of ends must be unique: otherwise the ports of
            // an address run out under many short connections.
            nix::sys::socket::setsockopt(&socket, nix::sys::socket::sockopt::IpBindAddressNoPort, &true)?;
            socket.bind(&SocketAddr::from((from, 0)).into())?;
        }
        match socket.connect(&to.into()) {
            Err(error) if error.raw_os_error() != Some(nix::errno::Errno::EINPROGRESS as i32) => Err(error),
            _ => Ok(Self::new(TcpStream::from_std(socket.into()))),
        }
    }

    fn new(socket: TcpStream) -> Self {
        Self {
            socket,
            engine: None,
            parser: Parser::default(),
            pending: Vec::new(),
            is_established: false,
            inflow: Inflow::Open,
            closing: false,
            requests: 0,
            answers: 0,
        }
    }

    /// True once the TCP connection stands; asks the socket while it is being made.
    pub(crate) fn establish(&mut self) -> io::Result<bool> {
        match self.socket.peer_addr() {
            Ok(_) => self.is_established = true,
            Err(error) if error.kind() == ErrorKind::NotConnected => {
                if let Some(error) = self.socket.take_error()? {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        Ok(self.is_established)
    }

    pub(crate) fn is_established(&self) -> bool {
        self.is_established
    }

    /// Begins the handshake.
    pub(crate) fn shake_hands(&mut self, engine: Engine, scratch: &mut Scratch) -> Result<(), End> {
        let engine = self.engine.insert(Box::new(engine));
        engine.receive(&mut [], &mut scratch.out, |_| {}).map_err(|_| End::Tls)?;
        self.flush(scratch)
    }

    /// Notes that the server has sent its end.
    pub(crate) fn note_peer_shut(&mut self) {
        if self.inflow == Inflow::Open {
            self.inflow = Inflow::Shut;
        }
    }

    /// Notes that a write has failed.
    pub(crate) fn note_broken(&mut self) {
        self.inflow = Inflow::Broken;
    }

    /// Reads what there is, up to a bound. What TLS answers by itself stays in `scratch` until [`Self::flush`].
    pub(crate) fn receive(&mut self, scratch: &mut Scratch) -> Inbound {
        let mut inbound = Inbound::default();
        for _ in 0..READS_MAX {
            let kept = self.engine.as_ref().map_or(0, |engine| engine.restore(&mut scratch.read));
            match self.socket.read(&mut scratch.read[kept..]) {
                Ok(0) => {
                    inbound.end = Some(if self.engine.is_none() { End::Clean } else { End::Cut });
                    return inbound;
                }
                Ok(len) => {
                    let is_short = kept + len < scratch.read.len();
                    self.take_in(scratch, kept + len, &mut inbound);
                    if inbound.end.is_some() || (is_short && self.inflow == Inflow::Open) {
                        return inbound;
                    }
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    let is_drained = error.kind() == ErrorKind::WouldBlock;
                    inbound.end = (!is_drained || self.inflow == Inflow::Broken).then_some(End::Cut);
                    return inbound;
                }
            }
        }
        inbound.has_more = true;
        inbound
    }

    fn take_in(&mut self, scratch: &mut Scratch, len: usize, inbound: &mut Inbound) {
        let input = &mut scratch.read[..len];
        let parser = &mut self.parser;
        let Some(engine) = &mut self.engine else {
            inbound.plaintext(parser, input);
            return;
        };
        let received =
            engine.receive(input, &mut scratch.out, |plaintext| inbound.plaintext(parser, plaintext));
        inbound.handshake = inbound.handshake.or_else(|| engine.new_handshake());
        if received.is_err() {
            inbound.end = Some(End::Tls);
        } else if engine.peer_has_closed() {
            inbound.end = Some(End::Clean);
        }
    }

    /// Hands over what the socket takes for now of a request, and gives its length.
    pub(crate) fn send(&mut self, request: &[u8], scratch: &mut Scratch) -> Result<usize, End> {
        let mut handed = 0;
        while handed < request.len() && self.pending.is_empty() {
            let rest = &request[handed..];
            let Some(engine) = &mut self.engine else {
                match write_some(&mut self.socket, rest)? {
                    0 => break,
                    len => handed += len,
                }
                continue;
            };
            let piece = &rest[..rest.len().min(SEND_BYTES)];
            engine.send(piece, &mut scratch.out).map_err(|_| End::Tls)?;
            handed += piece.len();
            self.flush(scratch)?;
        }
        Ok(handed)
    }

    /// Writes out what waits in `scratch`, and before it what waited from earlier.
    pub(crate) fn flush(&mut self, scratch: &mut Scratch) -> Result<(), End> {
        let written = self.write_out(scratch.out.filled());
        scratch.out.clear();
        written?;
        if self.closing && self.pending.is_empty() {
            // The peer may have gone meanwhile; then there is nothing to shut.
            let _ = self.socket.shutdown(Shutdown::Write);
        }
        Ok(())
    }

    fn write_out(&mut self, new: &[u8]) -> Result<(), End> {
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

    /// Says that nothing more is sent, in TLS and in TCP.
    pub(crate) fn close(&mut self, scratch: &mut Scratch) -> Result<(), End> {
        if self.closing {
            return Ok(());
        }
        self.closing = true;
        if let Some(engine) = &mut self.engine {
            engine.close(&mut scratch.out).map_err(|_| End::Tls)?;
        }
        self.flush(scratch)
    }
}

impl Inbound {
    fn plaintext(&mut self, parser: &mut Parser, plaintext: &[u8]) {
        self.plaintext_bytes += plaintext.len() as u64;
        if self.answer.is_some() {
            self.has_excess = true;
            return;
        }
        match parser.feed(plaintext) {
            Err(malformed) => self.answer = Some(Err(malformed)),
            Ok(fed) => {
                self.answer = fed.answer.map(Ok);
                self.has_excess = fed.consumed < plaintext.len();
            }
        }
    }
}

/// Writes what the socket takes; 0 when it takes nothing for now.
fn write_some(socket: &mut TcpStream, bytes: &[u8]) -> Result<usize, End> {
    loop {
        match socket.write(bytes) {
            Ok(0) => return Err(End::Cut),
            Ok(len) => return Ok(len),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(0),
            Err(_) => return Err(End::Cut),
        }
    }
}
