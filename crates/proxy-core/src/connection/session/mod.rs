//! The client's end of a connection: its socket, TLS, and the pending bytes of both directions. It is used by the
//! handshake, the handler that follows it, and the closing.

mod closing;
mod pending;
mod transfer;

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Instant;

use hello::handshake::End;
use mio::Token;
use mio::net::TcpStream;
use records::ids::{ClientId, ConnId};
use records::kinds::ConnectionOutcome;
use records::values::ConnectionMix;

pub(crate) use self::transfer::READS_PER_TURN_MAX;
use super::ending::ConnEnd;
use super::half_duplex::HalfDuplex;
use super::socket_role::{SocketRole, token};
use crate::io::socket::Socket;
use crate::io::socket_options::PathInfo;
use crate::memory::MemoryLevel;
use crate::stats::clients::ClientSlot;
use crate::stats::handshake_time::HandshakeTime;
use crate::stats::usage::UsageSlots;
use crate::tls::{ClientTls, Engine, PARTIAL_BYTES_MAX, PassedTls, PassedVerdict, TlsConfig};
use crate::worker::context::WorkerContext;
use crate::worker::timers::{Deadline, TimerKind};

/// Most that is read at once. Smaller reads cost up to a third of the throughput of large bodies.
pub(crate) const READ_BYTES_MAX: usize = 64 << 10;
/// Room that the worker's scratch buffer needs.
pub(crate) const SCRATCH_BYTES: usize = READ_BYTES_MAX + PARTIAL_BYTES_MAX;

/// The client's side of a connection.
pub struct ClientSession {
    key: usize,
    socket: Socket,
    tls: ClientTls,
    /// Plaintext that the handler has not taken.
    from_client: HalfDuplex,
    /// Ciphertext that the client has not taken.
    to_client: HalfDuplex,
    /// Bytes of the handler at the front of the received bytes, which no client sent.
    prefix_bytes: usize,
    /// Whether anything is pending for the client but TLS's own messages.
    owes_client: bool,
    /// Memory that the handler holds for the connection.
    handler_bytes: usize,
    /// Since when the client has taken none of it.
    handler_stalled_since: Option<Instant>,
    /// Memory that both directions and the handler hold, as counted in the worker's pending bytes.
    held_bytes: usize,
    /// When the state or the handler must act if nothing happens before.
    deadline: Deadline,
    /// Armed while a session ticket is held back because nothing else is pending for the client.
    ticket: Deadline,
    /// When a byte last moved, in either direction.
    active_at: Instant,
    account: Account,
}

/// The counters of a connection, and the client that they belong to.
struct Account {
    id: ConnId,
    client: ClientId,
    slot: ClientSlot,
    /// Whether it counts towards the limit of its client.
    holds_place: bool,
    accepted_at: Instant,
    bytes_in: u64,
    bytes_out: u64,
    mix: ConnectionMix,
    /// Once its handshake has been counted.
    usage: Option<UsageSlots>,
}

impl ClientSession {
    pub(crate) fn accept(
        socket: TcpStream,
        peer: SocketAddr,
        key: usize,
        context: &mut WorkerContext,
    ) -> io::Result<Self> {
        let socket = Socket::accepted(socket, &context.registry, token(key, SocketRole::Client))?;
        let client = ClientId::from(peer.ip());
        let account = Account {
            id: context.stats.accepted(&context.control.ids),
            client,
            slot: context.stats.clients.hold(client),
            holds_place: false,
            accepted_at: context.now,
            bytes_in: 0,
            bytes_out: 0,
            mix: ConnectionMix::default(),
            usage: None,
        };
        let mut session = Self {
            key,
            socket,
            tls: ClientTls::Awaited,
            from_client: HalfDuplex::default(),
            to_client: HalfDuplex::default(),
            prefix_bytes: 0,
            owes_client: false,
            handler_bytes: 0,
            handler_stalled_since: None,
            held_bytes: 0,
            deadline: Deadline::default(),
            ticket: Deadline::default(),
            active_at: context.now,
            account,
        };
        session.await_handshake(context);
        Ok(session)
    }

    /// Sets the deadline of the handshake, by the limits as they are.
    pub(crate) fn await_handshake(&mut self, context: &mut WorkerContext) {
        self.set_deadline(self.account.accepted_at + context.limits.handshake_timeout, context);
    }

    /// Counts it as its client's.
    pub(crate) fn count_open(&self, context: &mut WorkerContext) {
        context.stats.clients.open(self.account.slot);
    }

    /// Counts it as its client's, if the client may connect, and takes one of the connections that it may open and have.
    pub(crate) fn admit(&mut self, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        self.count_open(context);
        if context.memory == MemoryLevel::Exhausted {
            return Err(ConnEnd::reset(ConnectionOutcome::MemoryMax, "hardly any memory is left"));
        }
        if let ClientId::Addr(address) = self.account.client
            && !context.access.admits(address)
        {
            let detail = "the client's address is denied, or not allowed";
            return Err(ConnEnd::reset(ConnectionOutcome::AddressRefused, detail));
        }
        if let Some(rate) = context.limits.connection_rate
            && context.control.connection_rates.take(self.account.client, rate, context.now).is_err()
        {
            let detail = format_args!("the client may open {rate} connections, and no more");
            return Err(ConnEnd::reset(ConnectionOutcome::ConnectionRate, detail));
        }
        let Some(max) = context.limits.connections_per_client else { return Ok(()) };
        self.account.holds_place = context.control.per_client.enter(self.account.client, max);
        if self.account.holds_place {
            return Ok(());
        }
        let detail = format_args!("the client has {max} connections, and may have no more");
        Err(ConnEnd::at_once(ConnectionOutcome::ConnectionsPerClient, detail))
    }

    /// Whether TLS has memory, or is passed. Without bytes of a client that may connect it has none.
    pub(crate) fn has_begun_tls(&self) -> bool {
        !matches!(self.tls, ClientTls::Awaited)
    }

    /// Takes one of the handshakes that the client may begin, and begins it.
    pub(crate) fn begin_handshake(
        &mut self,
        tls: &TlsConfig,
        context: &WorkerContext,
    ) -> Result<(), ConnEnd> {
        if let Some(rate) = context.limits.handshake_rate {
            let taken = context.control.handshake_rates.take(self.account.client, rate, context.now);
            taken.map_err(|_| {
                let detail = format_args!("the client may begin {rate} handshakes, and no more");
                ConnEnd::reset(ConnectionOutcome::HandshakeRate, detail)
            })?;
        }
        let engine = Engine::new(tls);
        let engine = engine.map_err(|error| ConnEnd::at_once(ConnectionOutcome::HandshakeOther, error))?;
        self.tls = ClientTls::Terminated(engine);
        Ok(())
    }

    /// Counts the connection for `client`, which the peer's PROXY header names.
    pub(crate) fn rename_client(
        &mut self,
        client: IpAddr,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        let clients = &mut context.stats.clients;
        clients.release(self.account.slot);
        self.account.client = ClientId::from(client);
        self.account.slot = clients.hold(self.account.client);
        self.admit(context)
    }

    pub(crate) fn count_handshake(&mut self, time: &HandshakeTime, context: &mut WorkerContext) {
        let Account { slot, client, accepted_at, .. } = self.account;
        let is_http2 = self.alpn() == b"h2";
        context.stats.mix_connection(&mut self.account.mix, accepted_at, is_http2);
        let session = self.tls.session();
        self.account.usage = Some(context.stats.handshake(slot, client, &session, time));
        self.tls.forget_handshake();
    }

    /// Passes the client's TLS to an upstream unread, beginning with the first `len` bytes of the scratch buffer.
    pub(crate) fn pass(&mut self, mut passed: PassedTls, len: usize, context: &mut WorkerContext) {
        let bytes = &context.scratch[..len];
        passed.read(End::Client, bytes);
        self.from_client.pending.extend(bytes);
        self.tls = ClientTls::Passed(passed);
        self.account.usage = Some(context.stats.passed(&self.tls.session()));
    }

    /// Whether an upstream terminates the client's TLS.
    pub(crate) fn is_passed(&self) -> bool {
        self.tls.is_passed()
    }

    /// How the handshake of passed TLS went, once that is known.
    pub(crate) fn passed_verdict(&self) -> Option<PassedVerdict> {
        self.tls.passed_verdict()
    }

    /// The kernel's knowledge of the path to the client.
    pub(crate) fn path_info(&self) -> PathInfo {
        self.socket.path_info()
    }

    /// Holds a session ticket back until it can go out with the first answer.
    pub(crate) fn hold_ticket(&mut self, until: Instant, context: &mut WorkerContext) {
        // With TLS 1.3 the client has finished its handshake before the server has, so only a ticket can be waiting.
        // With TLS 1.2 the client waits for the buffered bytes.
        let is_waiting = context.tls.holds_tickets() && !self.to_client.pending.is_empty();
        if is_waiting && self.tls.session().is_tls13() {
            context.timers.arm(&mut self.ticket, self.key, TimerKind::Ticket, until);
            // A client with Nagle's algorithm on sends its request only once its Finished is acknowledged, which
            // the ticket would have done on its way.
            if self.from_client.pending.is_empty() {
                self.socket.acknowledge();
            }
        }
    }
}

impl ClientSession {
    /// Sets the deadline, and replaces the former one.
    pub fn set_deadline(&mut self, at: Instant, context: &mut WorkerContext) {
        context.timers.arm(&mut self.deadline, self.key, TimerKind::State, at);
    }

    /// Sets the deadline unless an earlier one is armed. Activity need not put a deadline off: it is set
    /// again when it passes.
    pub fn set_earlier_deadline(&mut self, at: Instant, context: &mut WorkerContext) {
        if self.deadline.at().is_none_or(|armed| armed > at) {
            self.set_deadline(at, context);
        }
    }

    pub(crate) fn clear_deadline(&mut self, context: &mut WorkerContext) {
        context.timers.disarm(&mut self.deadline, self.key, TimerKind::State);
    }

    /// When a byte last moved, in either direction.
    pub fn active_at(&self) -> Instant {
        self.active_at
    }

    /// Notes activity other than a byte.
    pub fn touch(&mut self, now: Instant) {
        self.active_at = now;
    }
}

impl ClientSession {
    /// The token for a socket of the handler; its events come to [`Handler::note`](super::Handler::note).
    pub fn handler_token(&self) -> Token {
        token(self.key, SocketRole::Handler)
    }

    /// The connection, as [`Handler::take_woken`](super::Handler::take_woken) names it.
    pub fn key(&self) -> usize {
        self.key
    }

    pub(crate) fn negotiated(&self) -> crate::tls::NegotiatedTls<'_> {
        self.tls.session()
    }

    /// Its number within the run.
    pub fn id(&self) -> ConnId {
        self.account.id
    }

    pub fn client(&self) -> ClientId {
        self.account.client
    }

    /// The version of TLS, such as `TLSv1.3`.
    pub fn tls_version(&self) -> &'static str {
        self.tls.session().version_name()
    }

    /// The IANA name of the cipher suite.
    pub fn tls_cipher(&self) -> String {
        self.tls.session().cipher_name()
    }

    /// The server name that the client asked for, as it was sent; empty without one.
    pub fn tls_server_name(&self) -> &str {
        self.tls.session().raw_server_name()
    }

    /// Whether the client may ask for the host of its server name only: it has a verified certificate, or needs one for
    /// other names.
    pub fn is_bound_to_name(&self) -> bool {
        self.tls.is_bound_to_name()
    }

    /// The client's verified certificate, in DER.
    pub fn client_certificate(&self) -> Option<&[u8]> {
        self.tls.session().client_certificate()
    }

    /// The common name of the client's verified certificate; `None` without one, or where it cannot be passed on.
    pub fn client_common_name(&self) -> Option<String> {
        self.tls.session().common_name().ok().flatten()
    }

    /// The application protocol that was negotiated, empty if there is none.
    pub fn alpn(&self) -> &[u8] {
        self.tls.session().raw_alpn()
    }

    /// Whether any plaintext has moved, either way.
    pub fn has_moved_bytes(&self) -> bool {
        self.moved_bytes() != (0, 0)
    }

    /// Bytes from the client that were forwarded, and bytes for the client.
    pub(crate) fn moved_bytes(&self) -> (u64, u64) {
        (self.account.bytes_in, self.account.bytes_out)
    }

    /// Whether anything waits for the client but TLS's own messages.
    pub fn owes_client(&self) -> bool {
        self.owes_client
    }

    /// Whether the client has reset the connection, or the kernel has given up on it. Earlier bytes can still be read.
    pub fn has_failed(&self) -> bool {
        self.socket.has_failed()
    }

    /// The end of a connection that has failed.
    pub fn failure(&self) -> ConnEnd {
        self.broken(&self.socket.failure())
    }

    /// Whether the client has acknowledged everything, its end included.
    pub fn is_end_acknowledged(&self) -> bool {
        self.socket.is_end_acknowledged()
    }
}
