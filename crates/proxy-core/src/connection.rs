//! One connection, from accept to close.
//!
//! Two half-duplex copies that know of each other only through their ends: what the client sends goes to the
//! upstream, what the upstream sends goes to the client, and the end of one direction is passed on without
//! touching the other. Each direction holds at most [`HIGH_WATER_BYTES`] and one read, then its source waits.
//!
//! A turn of the worker's loop has three steps for a connection: [`Connection::note`] what events tell,
//! [`Connection::read`] both sides, and, once all others have read, [`Connection::write`] both sides.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Registry, Token};
use telemetry::{ClientId, ConnId, ConnectionRecord, Outcome, ProxyCounter, ProxyLatency, clean};

use crate::account::Account;
use crate::buffer::{Buffer, Pool};
use crate::clients::ClientSlot;
use crate::config::Limits;
use crate::dial::{Dial, Dialled};
use crate::stream::{Moved, Side};
use crate::timers::{Armed, Kind, Timers};
use crate::tls::{Engine, EngineError, PARTIAL_BYTES_MAX, TlsConfig};
use crate::upstream::Target;

/// Most that is read at once. Smaller reads cost up to a third of the throughput of large bodies.
const READ_BYTES_MAX: usize = 64 << 10;
/// Bytes that wait in one direction before its source is no longer read.
const HIGH_WATER_BYTES: usize = 64 << 10;
/// Room that the worker's scratch buffer needs.
pub(crate) const SCRATCH_BYTES: usize = READ_BYTES_MAX + PARTIAL_BYTES_MAX;
/// How long a session ticket waits for the first answer to go out with. A client that has had it together with
/// the answer saves itself a wake-up, and the proxy a system call.
const TICKET_PATIENCE: Duration = Duration::from_millis(100);
/// How long a client has to take the last bytes and end its side, once the proxy has decided to end. Closing at
/// once would reset a connection on which the client is still sending, and lose what it has not read yet.
const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// What the connections of a worker share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) registry: Registry,
    pub(crate) target: Target,
    pub(crate) tls: TlsConfig,
    pub(crate) limits: Arc<Limits>,
    pub(crate) timers: Timers,
    pub(crate) pool: Pool,
    pub(crate) account: Account,
    /// [`SCRATCH_BYTES`] that every read goes through.
    pub(crate) scratch: Box<[u8]>,
    pub(crate) is_draining: bool,
    /// When the worker last looked at the clock, which it does once for each connection that it turns to.
    pub(crate) now: Instant,
}

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
    Dialling(Dial),
    Open(Side),
}

/// What goes one way.
#[derive(Debug, Default)]
struct Direction {
    /// What its sink has not taken yet.
    pending: Buffer,
    /// Its source will send nothing more.
    ended: bool,
    /// Its sink has been told so, or takes nothing any more.
    passed_on: bool,
}

impl Direction {
    fn has_room(&self) -> bool {
        !self.ended && self.pending.len() < HIGH_WATER_BYTES
    }

    fn is_done(&self) -> bool {
        self.ended && self.passed_on && self.pending.is_empty()
    }
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

pub(crate) struct Connection {
    key: usize,
    id: ConnId,
    client_id: ClientId,
    slot: ClientSlot,
    client: Side,
    link: Link,
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
    /// Whether anything is pending outward that the upstream has sent.
    owes_client: bool,
    bytes_in: u64,
    bytes_out: u64,
    /// How it ended, as soon as that is certain.
    ending: Option<(Outcome, String)>,
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
        let client = Side::accepted(socket, &context.registry, token(key, Which::Client))?;
        let client_id = ClientId::from(peer.ip());
        let (id, slot) = context.account.accepted(client_id);
        let mut deadline = Armed::default();
        let at = context.now + context.limits.handshake_timeout;
        context.timers.arm(&mut deadline, key, Kind::Phase, at);
        Ok(Self {
            key,
            id,
            client_id,
            slot,
            client,
            link: Link::None,
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
            owes_client: false,
            bytes_in: 0,
            bytes_out: 0,
            ending: None,
            is_listed: false,
        })
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

    fn wants_client(&self) -> bool {
        self.client.is_readable() && self.inward.has_room()
    }

    fn wants_upstream(&self) -> bool {
        matches!(&self.link, Link::Open(side) if side.is_readable()) && self.outward.has_room()
    }

    fn read_client(&mut self, context: &mut Context) {
        while matches!(self.phase, Phase::Handshake | Phase::Connect | Phase::Open) && self.wants_client() {
            let reserved = self.engine.partial_len();
            match self.client.read(&mut context.scratch[reserved..reserved + READ_BYTES_MAX]) {
                Ok(Moved::Bytes(n)) => {
                    self.moved_at = context.now;
                    context.account.count(ProxyCounter::WireIn, n as u64);
                    self.receive(reserved + n, context);
                }
                Ok(Moved::Blocked) => {}
                // An end without close_notify is passed on like one with it: many clients end so, and only the
                // protocol inside can tell whether something is missing.
                Ok(Moved::End) if self.phase == Phase::Handshake => {
                    self.end(Outcome::HandshakeEof, "the client went away", context);
                    self.phase = Phase::Done;
                }
                Ok(Moved::End) => self.inward.ended = true,
                Err(error) => self.client_broke(&error, context),
            }
        }
    }

    /// Hands the first `len` bytes of the scratch buffer to the engine.
    fn receive(&mut self, len: usize, context: &mut Context) {
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
        if let Err(error) = result {
            return self.engine_failed(&error, context);
        }
        if in_handshake && !self.engine.is_handshaking() {
            self.handshake_done(context);
        }
        self.inward.ended |= self.engine.is_peer_closed();
    }

    fn handshake_done(&mut self, context: &mut Context) {
        let now = Instant::now();
        let session = self.engine.session();
        let took = now - self.hello_at.unwrap_or(now);
        context.account.handshake(self.slot, &session, took, self.compute);
        // The client has finished its handshake before the server has with TLS 1.3, so that only a ticket can be
        // waiting. With TLS 1.2 it waits for what is in the buffer.
        if session.is_tls13() && !self.outward.pending.is_empty() {
            context.timers.arm(&mut self.ticket, self.key, Kind::Ticket, now + TICKET_PATIENCE);
        }
        context.timers.disarm(&mut self.deadline, self.key, Kind::Phase);
        self.phase = Phase::Connect;
        self.link = Link::Dialling(Dial::new(now, context.limits.connect_timeout));
        self.dial_is_due = true;
    }

    fn engine_failed(&mut self, error: &EngineError, context: &mut Context) {
        let outcome = match self.phase {
            Phase::Handshake => error.handshake_outcome(self.engine.has_answered()),
            _ => Outcome::ClientBroken,
        };
        self.begin_closing(outcome, error, context);
    }

    fn client_broke(&mut self, error: &io::Error, context: &mut Context) {
        // A client that has said or been told that this is the end, and has all it was owed, may leave as it likes.
        let is_over = !self.owes_client && (self.inward.ended || self.outward.ended);
        let outcome = match self.phase {
            Phase::Handshake => Outcome::HandshakeEof,
            _ if is_over => Outcome::Ended,
            _ => Outcome::ClientBroken,
        };
        self.end(outcome, error, context);
        self.phase = Phase::Done;
    }

    fn read_upstream(&mut self, context: &mut Context) {
        while self.phase == Phase::Open && self.wants_upstream() {
            let Link::Open(upstream) = &mut self.link else { return };
            match upstream.read(&mut context.scratch[..READ_BYTES_MAX]) {
                Ok(Moved::Bytes(n)) => self.answer(n, context),
                Ok(Moved::Blocked) => {}
                Ok(Moved::End) => {
                    self.outward.ended = true;
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
        context.pool.reclaim(&mut self.inward.pending);
        context.pool.reclaim(&mut self.outward.pending);
        self.next(context)
    }

    fn dial(&mut self, context: &mut Context) {
        self.dial_is_due = false;
        let Link::Dialling(dial) = &mut self.link else { return };
        let began_at = dial.began_at();
        let token = token(self.key, Which::Upstream);
        match dial.advance(&context.target, &context.registry, token, context.now) {
            Ok(Dialled::Established(side)) => {
                let now = Instant::now();
                context.account.count(ProxyCounter::UpstreamConnects, 1);
                context.account.time(ProxyLatency::Connect, now - began_at);
                self.link = Link::Open(side);
                self.phase = Phase::Open;
                self.moved_at = now;
                self.arm_idle(context);
            }
            Ok(Dialled::Wait(until)) => {
                context.timers.arm(&mut self.deadline, self.key, Kind::Phase, until);
            }
            Err(error) => {
                self.release_ticket(context);
                self.notify_close();
                self.begin_closing(Outcome::UpstreamConnect, &error, context);
            }
        }
    }

    fn write_upstream(&mut self, context: &mut Context) {
        let Link::Open(upstream) = &mut self.link else { return };
        while !self.inward.pending.is_empty() && upstream.is_writable() {
            match upstream.write(self.inward.pending.as_slice(), &context.registry) {
                Ok(Moved::Bytes(n)) => {
                    self.inward.pending.consume(n);
                    self.moved_at = context.now;
                    context.account.bytes_in(self.slot, n as u64);
                    self.bytes_in += n as u64;
                }
                Ok(_) => {}
                // It takes nothing more, but may have answered before; reading from it tells how it ended.
                Err(_) => {
                    self.inward.pending.clear();
                    self.inward.passed_on = true;
                }
            }
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
                Ok(Moved::Bytes(n)) => {
                    self.outward.pending.consume(n);
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
        if context.is_draining && self.phase == Phase::Open {
            self.arm_idle(context);
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

    /// Takes notice of a deadline that has passed. [`Connection::write`] must follow.
    pub(crate) fn expired(&mut self, kind: Kind, context: &mut Context) {
        match (kind, self.phase) {
            (Kind::Ticket, _) => self.release_ticket(context),
            (Kind::Phase, Phase::Handshake) => {
                self.end(Outcome::HandshakeTimeout, "the handshake was not done in time", context);
                self.phase = Phase::Done;
            }
            (Kind::Phase, Phase::Connect) => self.dial_is_due = true,
            (Kind::Phase, Phase::Open) => self.rested(context),
            (Kind::Phase, Phase::Closing | Phase::Done) => self.phase = Phase::Done,
        }
    }

    /// How long nothing may move from now on.
    fn idle_timeout(&self, context: &Context) -> Duration {
        let limits = &context.limits;
        if self.outward.passed_on {
            limits.idle_timeout.min(limits.half_closed_timeout)
        } else if context.is_draining && self.is_between_exchanges() {
            limits.idle_timeout.min(limits.drain_quiet)
        } else {
            limits.idle_timeout
        }
    }

    /// Nobody owes anybody anything, as far as can be told without knowing the protocol.
    fn is_between_exchanges(&self) -> bool {
        self.phase == Phase::Open
            && !self.inward.ended
            && !self.outward.ended
            && self.inward.pending.is_empty()
            && !self.owes_client
            && self.asked_at.is_none()
    }

    /// Makes sure that the idle timeout is noticed. A deadline that comes too early is put off when it comes, so
    /// that a byte that moves costs nothing here.
    pub(crate) fn arm_idle(&mut self, context: &mut Context) {
        let due = self.moved_at + self.idle_timeout(context);
        if self.phase == Phase::Open && self.deadline.at().is_none_or(|at| at > due) {
            context.timers.arm(&mut self.deadline, self.key, Kind::Phase, due);
        }
    }

    /// The idle deadline has come: either something has moved since it was set, or the connection has been idle.
    fn rested(&mut self, context: &mut Context) {
        let due = self.moved_at + self.idle_timeout(context);
        if due > context.now {
            context.timers.arm(&mut self.deadline, self.key, Kind::Phase, due);
        } else if self.outward.passed_on {
            self.end(Outcome::Ended, "", context);
            self.phase = Phase::Done;
        } else {
            let may_end = context.is_draining && self.is_between_exchanges();
            self.release_ticket(context);
            if !self.owes_client {
                self.notify_close();
            }
            if may_end {
                self.begin_closing(Outcome::Ended, "", context);
            } else {
                self.begin_closing(Outcome::IdleTimeout, "nothing moved for the idle timeout", context);
            }
        }
    }

    /// Takes the limits as they are after a change, or at the beginning of a drain.
    pub(crate) fn limits_changed(&mut self, context: &mut Context) {
        match self.phase {
            Phase::Handshake => {
                let at = self.accepted_at + context.limits.handshake_timeout;
                context.timers.arm(&mut self.deadline, self.key, Kind::Phase, at);
            }
            Phase::Open => self.arm_idle(context),
            Phase::Connect | Phase::Closing | Phase::Done => {}
        }
    }

    /// Ends it now, whatever it is doing; [`Connection::write`] and [`Connection::close`] must follow.
    pub(crate) fn cut(&mut self, context: &mut Context) {
        if self.is_between_exchanges() {
            self.release_ticket(context);
            self.notify_close();
            self.begin_closing(Outcome::Ended, "", context);
        } else {
            self.end(Outcome::DrainTimeout, "cut at the end of the drain", context);
            self.phase = Phase::Done;
        }
    }

    /// Decides how it ends, unless that is decided already, and counts it if it is an error.
    fn end(&mut self, outcome: Outcome, detail: impl Display, context: &mut Context) {
        if self.ending.is_none() {
            let in_handshake = self.phase == Phase::Handshake;
            if outcome.is_error() {
                context.account.error(self.slot, outcome, in_handshake);
            }
            self.ending = Some((outcome, clean::text(&detail.to_string())));
        }
    }

    /// Ends it, after what waits for the client has been sent.
    fn begin_closing(&mut self, outcome: Outcome, detail: impl Display, context: &mut Context) {
        self.end(outcome, detail, context);
        self.release_ticket(context);
        self.link = Link::None;
        self.inward.pending.clear();
        self.phase = Phase::Closing;
        let at = context.now + LINGER_TIMEOUT;
        context.timers.arm(&mut self.deadline, self.key, Kind::Phase, at);
    }

    /// Reads and drops what the client still sends, so that closing does not reset the connection.
    fn drop_input(&mut self, context: &mut Context) {
        if !self.client.is_readable() {
            return;
        }
        match self.client.read(&mut context.scratch[..READ_BYTES_MAX]) {
            Ok(Moved::Bytes(n)) => context.account.count(ProxyCounter::WireIn, n as u64),
            Ok(Moved::Blocked) => {}
            Ok(Moved::End) => self.inward.ended = true,
            Err(_) => self.phase = Phase::Done,
        }
    }

    /// Counts its end and closes its sockets.
    pub(crate) fn close(mut self, context: &mut Context) {
        context.timers.disarm(&mut self.deadline, self.key, Kind::Phase);
        context.timers.disarm(&mut self.ticket, self.key, Kind::Ticket);
        let lifetime = context.now.saturating_duration_since(self.accepted_at);
        context.account.closed(self.slot, self.bytes_in > 0, lifetime);
        let (outcome, detail) = self.ending.take().unwrap_or((Outcome::Ended, String::new()));
        let now = context.now;
        context.account.record(outcome, now, || self.record(outcome, detail, lifetime));
    }

    fn record(&self, outcome: Outcome, detail: String, lifetime: Duration) -> ConnectionRecord {
        let session = self.engine.session();
        ConnectionRecord {
            conn: self.id,
            client: self.client_id,
            outcome,
            detail,
            tls_version: session.version_name().to_owned(),
            cipher: session.cipher_name(),
            group: session.group_name().to_owned(),
            sni: session.server_name(),
            alpn: session.alpn(),
            resumed: session.is_resumed(),
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            lifetime_us: u64::try_from(lifetime.as_micros()).unwrap_or(u64::MAX),
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
