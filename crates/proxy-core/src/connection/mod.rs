//! One connection, from accept to close.
//!
//! Two half-duplex copies that know of each other only through their ends: what the client sends goes to the
//! upstream, what the upstream sends goes to the client, and the end of one direction is passed on without
//! touching the other. Each direction holds at most [`direction::HIGH_WATER_BYTES`] and one read, then its source waits.
//!
//! A turn of the worker's loop has three steps for a connection: [`Connection::note`] what events tell,
//! [`Connection::read`] both sides, and, once all others have read, [`Connection::write`] both sides.

mod deadline;
mod direction;
mod ending;
mod header;
mod link;
mod stall;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::Token;
use mio::event::Event;
use mio::net::TcpStream;
use telemetry::{ClientId, ConnId, Outcome, ProxyCounter};

use self::direction::Direction;
use self::header::Header;
use crate::io::socket::{IoResult, Socket};
use crate::stats::clients::ClientSlot;
use crate::tls::{Engine, PARTIAL_BYTES_MAX};
use crate::upstream::dial::ConnectAttempt;
use crate::worker::context::Context;
use crate::worker::timers::{Armed, Kind};

/// Most that is read at once. Smaller reads cost up to a third of the throughput of large bodies.
pub(crate) const READ_BYTES_MAX: usize = 64 << 10;
/// Reads of a client before the others have their turn. What is read may lead to nothing that would fill a buffer.
pub(crate) const READS_PER_TURN_MAX: u32 = 4;
/// Room that the worker's scratch buffer needs.
pub(crate) const SCRATCH_BYTES: usize = READ_BYTES_MAX + PARTIAL_BYTES_MAX;
/// How long a session ticket waits for the first answer to go out with. A client that has had it together with
/// the answer saves itself a wake-up, and the proxy a system call.
const TICKET_PATIENCE: Duration = Duration::from_millis(100);
/// How long a client has to take the last bytes and end its side, once the proxy has decided to end. Closing at
/// once would reset a connection on which the client is still sending, and lose what it has not read yet.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// How far a connection has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Handshake,
    /// The upstream is being connected to.
    Connect,
    /// Bytes are forwarded.
    Open,
    /// The proxy has decided to end: the last bytes go out, and what the client sends is dropped.
    Closing,
    /// To be closed now.
    Done,
}

/// The connection to the upstream.
#[derive(Debug)]
enum Link {
    None,
    Dialling(Box<ConnectAttempt>),
    Open(Socket),
}

/// Which socket of a connection an event is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    Client,
    Upstream,
}

/// What a connection needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// An event or a deadline.
    Wait,
    /// Another turn, since there is more to read.
    Again,
    /// To be closed.
    Close,
}

#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub(crate) struct Connection {
    key: usize,
    id: ConnId,
    client_id: ClientId,
    slot: ClientSlot,
    client: Socket,
    /// Only where the PROXY protocol is used, and until its header is on its way to the upstream.
    header: Option<Box<Header>>,
    /// How much of what waits for the upstream is our header, which is nobody's payload.
    header_left: usize,
    link: Link,
    /// Which upstream it is counted at, as long as `link` is open.
    upstream: usize,
    /// Whether the attempt to connect has something to do.
    dial_is_due: bool,
    engine: Engine,
    /// Client to upstream; plaintext is pending.
    inward: Direction,
    /// Upstream to client; ciphertext is pending.
    outward: Direction,
    phase: Phase,
    deadline: Armed,
    /// Armed while what is pending outward is held back because it is nothing but a session ticket.
    ticket: Armed,
    accepted_at: Instant,
    hello_at: Option<Instant>,
    /// Time spent in rustls during the handshake.
    compute: Duration,
    /// When the client last sent something that the upstream has not answered yet.
    asked_at: Option<Instant>,
    /// When a byte last moved, in either direction.
    moved_at: Instant,
    /// When the upstream ended its side, if it has.
    upstream_ended_at: Option<Instant>,
    /// Memory of both directions, as it is counted in what all connections hold.
    held_bytes: usize,
    /// Whether anything is pending outward that the upstream has sent.
    owes_client: bool,
    bytes_in: u64,
    bytes_out: u64,
    /// How it ended, as soon as that is certain.
    ending: Option<(Outcome, String)>,
    /// Whether it has one of the places of its client.
    is_bounded: bool,
    /// Whether the worker has it on the list of this turn.
    pub(crate) is_listed: bool,
}

impl Connection {
    /// Takes over a connection that was accepted; events for it carry [`token`]s of `key`.
    pub(crate) fn accept(
        socket: TcpStream,
        peer: SocketAddr,
        key: usize,
        context: &mut Context,
    ) -> io::Result<Self> {
        let engine = Engine::new(&context.tls).map_err(io::Error::other)?;
        let header = Header::of(&socket, peer, context)?;
        let client = Socket::accepted(socket, &context.registry, token(key, Which::Client))?;
        let client_id = ClientId::from(peer.ip());
        let id = context.account.accepted(&context.control.ids);
        let slot = context.account.clients.hold(client_id);
        context.handshaking += 1;
        let mut deadline = Armed::default();
        let at = context.now + context.limits.handshake_timeout;
        context.timers.arm(&mut deadline, key, Kind::Phase, at);
        let mut connection = Self {
            key,
            id,
            client_id,
            slot,
            client,
            header,
            header_left: 0,
            link: Link::None,
            upstream: 0,
            dial_is_due: false,
            engine,
            inward: Direction::default(),
            outward: Direction::default(),
            phase: Phase::Handshake,
            deadline,
            ticket: Armed::default(),
            accepted_at: context.now,
            hello_at: None,
            compute: Duration::ZERO,
            asked_at: None,
            moved_at: context.now,
            upstream_ended_at: None,
            held_bytes: 0,
            owes_client: false,
            bytes_in: 0,
            bytes_out: 0,
            ending: None,
            is_listed: false,
            is_bounded: false,
        };
        // Of a peer that speaks for others it is not known yet whose connection this is.
        if !connection.awaits_header() {
            connection.admit(context);
        }
        Ok(connection)
    }

    /// Counts it as its client's, unless that has too many.
    fn admit(&mut self, context: &mut Context) {
        context.account.clients.open(self.slot);
        let Some(max) = context.limits.connections_per_client else { return };
        self.is_bounded = context.control.per_client.enter(self.client_id, max);
        if !self.is_bounded {
            let detail = format_args!("the client has {max} connections, and may have no more");
            self.end(Outcome::HandshakeOther, detail, context);
            self.phase = Phase::Done;
        }
    }

    /// Whether its handshake is not done yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.phase == Phase::Handshake
    }

    /// Whether it is to be closed at once.
    pub(crate) fn is_over(&self) -> bool {
        self.phase == Phase::Done
    }

    /// Notes what an event tells.
    pub(crate) fn note(&mut self, which: Which, event: &Event) {
        match (which, &mut self.link) {
            (Which::Client, _) => self.client.note(event),
            (Which::Upstream, Link::Open(side)) => side.note(event),
            (Which::Upstream, Link::Dialling(dial)) => {
                dial.note(event);
                self.dial_is_due = true;
            }
            (Which::Upstream, Link::None) => {}
        }
    }

    /// Reads what has come, as far as there is room for it.
    pub(crate) fn read(&mut self, context: &mut Context) {
        if self.phase == Phase::Closing {
            return self.drop_input(context);
        }
        context.pool.lend(&mut self.inward.pending);
        context.pool.lend(&mut self.outward.pending);
        self.read_client(context);
        if self.phase == Phase::Open {
            self.read_upstream(context);
        }
    }

    /// What waits to be written, both dialer.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.inward.pending.len() + self.outward.pending.len()
    }

    fn wants_client(&self) -> bool {
        self.client.is_readable() && self.inward.has_room()
    }

    fn wants_upstream(&self) -> bool {
        matches!(&self.link, Link::Open(side) if side.is_readable()) && self.outward.has_room()
    }

    fn read_client(&mut self, context: &mut Context) {
        for _ in 0..READS_PER_TURN_MAX {
            if !matches!(self.phase, Phase::Handshake | Phase::Connect | Phase::Open) || !self.wants_client()
            {
                return;
            }
            let reserved = self.partial_len();
            match self.client.read(&mut context.scratch[reserved..reserved + READ_BYTES_MAX]) {
                Ok(IoResult::Bytes(n)) => {
                    self.moved_at = context.now;
                    context.account.count(ProxyCounter::WireIn, n as u64);
                    self.receive(reserved + n, context);
                }
                Ok(IoResult::Blocked) => {}
                // An end without close_notify is passed on like one with it: many clients end so, and only the
                // protocol inside can tell whether something is missing.
                Ok(IoResult::End) if self.phase == Phase::Handshake => {
                    self.end(Outcome::HandshakeEof, "the client went away", context);
                    self.phase = Phase::Done;
                }
                Ok(IoResult::End) => self.inward.ended = true,
                Err(error) => self.client_broke(&error, context),
            }
        }
    }

    /// Hands the first `len` bytes of the scratch buffer to the engine, but for a header that stands before them.
    fn receive(&mut self, mut len: usize, context: &mut Context) {
        if self.awaits_header() {
            len = self.receive_header(len, context);
            if len == 0 {
                return;
            }
        }
        let in_handshake = self.phase == Phase::Handshake;
        let asked_before = self.inward.pending.len();
        let clock = in_handshake.then(Instant::now);
        let result = self.engine.receive(
            &mut context.scratch[..len],
            &mut self.inward.pending,
            &mut self.outward.pending,
        );
        if let Some(began_at) = clock {
            self.hello_at.get_or_insert(context.now);
            self.compute += began_at.elapsed();
        }
        if self.inward.pending.len() > asked_before {
            self.asked_at = Some(context.now);
        }
        if self.inward.passed_on {
            self.inward.pending.clear();
        }
        // Also when what came right behind it was bad: to the client the handshake is done.
        if in_handshake && !self.engine.is_handshaking() {
            self.handshake_done(context);
        }
        if let Err(error) = result {
            return self.engine_failed(&error, context);
        }
        self.inward.ended |= self.engine.is_peer_closed();
    }

    fn handshake_done(&mut self, context: &mut Context) {
        let now = Instant::now();
        let session = self.engine.session();
        let took = now - self.hello_at.unwrap_or(now);
        context.handshaking -= 1;
        context.account.handshake(self.slot, &session, took, self.compute);
        // The client has finished its handshake before the server has with TLS 1.3, so that only a ticket can be
        // waiting. With TLS 1.2 it waits for what is in the buffer.
        if session.is_tls13() && context.tls.holds_tickets() && !self.outward.pending.is_empty() {
            context.timers.arm(&mut self.ticket, self.key, Kind::Ticket, now + TICKET_PATIENCE);
            // A client with Nagle's algorithm on sends its request only once its Finished is acknowledged, which
            // the ticket would have done on its way.
            if self.inward.pending.is_empty() {
                self.client.acknowledge();
            }
        }
        context.timers.disarm(&mut self.deadline, self.key, Kind::Phase);
        self.write_header(context);
        self.phase = Phase::Connect;
        self.link = Link::Dialling(Box::new(ConnectAttempt::new(now, context.limits.connect_timeout)));
        self.dial_is_due = true;
    }

    fn read_upstream(&mut self, context: &mut Context) {
        while self.phase == Phase::Open && self.wants_upstream() {
            let Link::Open(upstream) = &mut self.link else { return };
            match upstream.read(&mut context.scratch[..READ_BYTES_MAX]) {
                Ok(IoResult::Bytes(n)) => self.answer(n, context),
                Ok(IoResult::Blocked) => {}
                Ok(IoResult::End) => {
                    self.outward.ended = true;
                    self.upstream_ended_at = Some(context.now);
                    self.release_ticket(context);
                    self.notify_close();
                }
                // Without close_notify, so that the client can tell that something may be missing.
                Err(error) => self.begin_closing(Outcome::UpstreamBroken, &error, context),
            }
        }
    }

    /// Encrypts the first `n` bytes of the scratch buffer for the client.
    fn answer(&mut self, n: usize, context: &mut Context) {
        self.moved_at = context.now;
        if let Some(asked_at) = self.asked_at.take() {
            context.account.exchange(self.slot, context.now - asked_at);
        }
        context.account.bytes_out(self.slot, n as u64);
        self.bytes_out += n as u64;
        self.owes_client = true;
        self.release_ticket(context);
        if let Err(error) = self.engine.encrypt(&context.scratch[..n], &mut self.outward.pending) {
            self.engine_failed(&error, context);
        }
    }

    fn release_ticket(&mut self, context: &mut Context) {
        context.timers.disarm(&mut self.ticket, self.key, Kind::Ticket);
    }

    fn notify_close(&mut self) {
        // An engine that cannot say it any more has said something worse already.
        let _ = self.engine.close_notify(&mut self.outward.pending);
    }

    /// Writes what waits, passes ends on, and tells what is needed next.
    pub(crate) fn write(&mut self, context: &mut Context) -> Next {
        if self.phase == Phase::Connect && self.dial_is_due {
            self.dial(context);
        }
        if self.phase == Phase::Open {
            self.write_upstream(context);
        }
        if self.phase != Phase::Done && self.ticket.at().is_none() {
            self.write_client(context);
        }
        self.settle_pending(context);
        self.next(context)
    }

    fn write_upstream(&mut self, context: &mut Context) {
        let Link::Open(upstream) = &mut self.link else { return };
        let mut is_gone = upstream.is_write_closed();
        while !is_gone && !self.inward.pending.is_empty() && upstream.is_writable() {
            match upstream.write(self.inward.pending.as_slice(), &context.registry) {
                Ok(IoResult::Bytes(n)) => {
                    self.inward.pending.consume(n);
                    self.inward.has_moved = true;
                    self.moved_at = context.now;
                    let header = n.min(self.header_left);
                    self.header_left -= header;
                    let n = n - header;
                    context.account.bytes_in(self.slot, n as u64);
                    self.bytes_in += n as u64;
                }
                Ok(_) => {}
                Err(_) => is_gone = true,
            }
        }
        // It takes nothing more, but may have answered before; reading from it tells how it ended.
        if is_gone {
            self.inward.pending.clear();
            self.inward.passed_on = true;
        }
        if self.inward.ended && self.inward.pending.is_empty() && !self.inward.passed_on {
            self.inward.passed_on = true;
            if !self.outward.ended {
                upstream.shut_down();
            }
        }
    }

    fn write_client(&mut self, context: &mut Context) {
        while !self.outward.pending.is_empty() && self.client.is_writable() {
            match self.client.write(self.outward.pending.as_slice(), &context.registry) {
                Ok(IoResult::Bytes(n)) => {
                    self.outward.pending.consume(n);
                    self.outward.has_moved = true;
                    self.moved_at = context.now;
                    context.account.count(ProxyCounter::WireOut, n as u64);
                }
                Ok(_) => {}
                Err(error) => return self.client_broke(&error, context),
            }
        }
        if !self.outward.pending.is_empty() {
            return;
        }
        self.owes_client = false;
        if !self.outward.passed_on && (self.outward.ended || self.phase == Phase::Closing) {
            self.outward.passed_on = true;
            // Where both have ended, closing says it.
            if !self.inward.ended {
                self.client.shut_down();
                if self.phase == Phase::Open {
                    self.arm_idle(context);
                }
            }
        }
    }

    fn next(&mut self, context: &mut Context) -> Next {
        if self.phase == Phase::Open {
            if context.is_draining || self.client.has_failed() {
                self.arm_idle(context);
            }
            // The client has been told that the upstream has ended, and what it still sends would reach nobody.
            if self.outward.is_done() && self.inward.passed_on && !self.inward.ended {
                self.begin_closing(Outcome::Ended, "", context);
            }
        }
        match self.phase {
            Phase::Done => Next::Close,
            Phase::Closing if self.inward.ended && self.outward.passed_on => Next::Close,
            Phase::Open if self.inward.is_done() && self.outward.is_done() => Next::Close,
            Phase::Closing if self.client.is_readable() && !self.inward.ended => Next::Again,
            Phase::Closing => Next::Wait,
            _ if self.wants_client() || self.wants_upstream() => Next::Again,
            _ => Next::Wait,
        }
    }
}

/// The token of one of a connection's sockets.
pub(crate) fn token(key: usize, which: Which) -> Token {
    Token(key * 2 + usize::from(which == Which::Upstream))
}

/// The connection and socket that a token of [`token`] is for.
pub(crate) fn untoken(token: Token) -> (usize, Which) {
    (token.0 / 2, if token.0.is_multiple_of(2) { Which::Client } else { Which::Upstream })
}
