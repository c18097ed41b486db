//! The first state of a connection: the PROXY header of a trusted peer, then the TLS handshake, or the decision to pass TLS
//! to an upstream unread.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use records::kinds::ConnectionOutcome;

use super::handler::ConnEnd;
use super::handshake_timer::{HandshakeTimer, TimedRead};
use super::passing::{AwaitedHello, HelloDecision};
use super::session::{ClientSession, READS_PER_TURN_MAX};
use crate::accept::proxy_protocol::{self, Endpoints, ParsedHeader};
use crate::io::socket::IoResult;
use crate::tls::{CryptoTime, PassedTls};
use crate::worker::context::WorkerContext;

/// How long a session ticket waits for the first answer to go out with. A client that has had it together with
/// the answer saves itself a wake-up, and the proxy a system call.
const TICKET_PATIENCE: Duration = Duration::from_millis(100);

/// State of a connection that is needed only until its handshake is complete.
pub(super) struct HandshakeState {
    /// Only where the PROXY protocol is used.
    header: Option<Box<PeerHeader>>,
    /// Only where TLS of some names is passed, or challenges of ACME are answered, until that is decided.
    hello: Option<Box<AwaitedHello>>,
    /// Whether it answers a challenge of ACME: such a connection ends with its handshake.
    pub(super) is_challenge: bool,
    time: HandshakeTimer,
}

struct PeerHeader {
    endpoints: Endpoints,
    /// The received part of the header that the peer must send; `None` once it is complete, or if none is expected.
    awaited: Option<Vec<u8>>,
}

impl HandshakeState {
    pub(super) fn new(socket: &TcpStream, peer: SocketAddr, context: &WorkerContext) -> io::Result<Self> {
        let is_trusted = !context.trusted.is_empty() && context.trusted.contains(peer.ip());
        let header = if context.sends_header.is_none() && !is_trusted {
            None
        } else {
            let endpoints = Endpoints::new(peer, socket.local_addr()?);
            Some(Box::new(PeerHeader { endpoints, awaited: is_trusted.then(Vec::new) }))
        };
        let hello = context.awaits_hello.then(Box::default);
        Ok(Self { header, hello, is_challenge: false, time: HandshakeTimer::default() })
    }

    /// Whether the peer must still send a PROXY header: until then the client is unknown.
    pub(super) fn awaits_header(&self) -> bool {
        self.awaited().is_some()
    }

    fn awaited(&self) -> Option<&Vec<u8>> {
        self.header.as_ref().and_then(|header| header.awaited.as_ref())
    }

    /// Bytes that came before and go in front of the next read.
    fn reserved_bytes(&self, session: &ClientSession) -> usize {
        match (self.awaited(), &self.hello) {
            (Some(header), _) => header.len(),
            (None, Some(hello)) => hello.len(),
            (None, None) => session.partial_len(),
        }
    }

    /// Reads available bytes. The handshake may be complete afterwards, also if this fails.
    ///
    /// # Errors
    /// How the connection ends.
    pub(super) fn read(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        session.lend_buffers(context);
        for _ in 0..READS_PER_TURN_MAX {
            if !session.wants_read() || !session.is_handshaking() {
                break;
            }
            let reserved = self.reserved_bytes(session);
            match session.receive(reserved, context) {
                Ok(IoResult::Bytes(n)) => self.take(reserved + n, session, context)?,
                Ok(IoResult::Blocked) => {}
                Ok(IoResult::End) => {
                    return Err(ConnEnd::at_once(ConnectionOutcome::HandshakeEof, "the client went away"));
                }
                Err(error) => return Err(session.broken(&error)),
            }
        }
        Ok(())
    }

    /// Takes the first `len` bytes of the scratch buffer.
    fn take(
        &mut self,
        len: usize,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        let len = self.take_header(len, session, context)?;
        if len == 0 || self.awaits_hello(len, session, context)? {
            return Ok(());
        }
        if !session.has_begun_tls() {
            session.begin_handshake(&context.tls, context)?;
        }
        let is_http = starts_an_http_request(&context.scratch[..len]);
        let waiting_bytes = session.pending_bytes();
        let began_at = Instant::now();
        let result = session.decrypt(len, context);
        self.time.add(TimedRead {
            ready_at: context.ready_at,
            began_at,
            ended_at: Instant::now(),
            crypto: CryptoTime::take(),
            has_answered: session.pending_bytes() > waiting_bytes,
        });
        result.map(|_| ()).map_err(|end| match end.outcome {
            ConnectionOutcome::NotTls if is_http => {
                ConnEnd { detail: "the client sent an HTTP request without TLS".to_owned(), ..end }
            }
            _ => end,
        })
    }

    /// Takes an awaited header off the front of the first `len` bytes of the scratch buffer, where room was left for
    /// what came of it before. Returns how many bytes behind it have been moved to the front, for TLS.
    fn take_header(
        &mut self,
        len: usize,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<usize, ConnEnd> {
        let Some(header) = &mut self.header else { return Ok(len) };
        let Some(awaited) = &mut header.awaited else { return Ok(len) };
        let bytes = &mut context.scratch[..len];
        bytes[..awaited.len()].copy_from_slice(awaited);
        match proxy_protocol::parse(bytes) {
            Ok(ParsedHeader::Partial) => {
                awaited.clear();
                awaited.extend_from_slice(bytes);
                Ok(0)
            }
            Ok(ParsedHeader::Header(endpoints, used)) => {
                header.awaited = None;
                header.endpoints = endpoints.unwrap_or(header.endpoints);
                bytes.copy_within(used.., 0);
                session.rename_client(header.endpoints.source.ip(), context)?;
                Ok(len - used)
            }
            Err(error) => Err(ConnEnd::at_once(ConnectionOutcome::HandshakeOther, error)),
        }
    }

    /// Decides from the first `len` bytes of the scratch buffer whether they are passed to an upstream. False if they are
    /// for TLS here.
    fn awaits_hello(
        &mut self,
        len: usize,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<bool, ConnEnd> {
        let Some(hello) = &mut self.hello else { return Ok(false) };
        let decision = hello.decide(&mut context.scratch[..len], &context.routes, &context.tls);
        if let HelloDecision::Wait = decision {
            // The time of the handshake begins with its first byte.
            let now = Instant::now();
            self.time.add(TimedRead {
                ready_at: context.ready_at,
                began_at: now,
                ended_at: now,
                crypto: CryptoTime::default(),
                has_answered: false,
            });
            session.set_handler_bytes(hello.held_bytes(), None);
            return Ok(true);
        }
        self.hello = None;
        session.set_handler_bytes(0, None);
        match decision {
            HelloDecision::Pass(name) => {
                let began_at = self.time.first().unwrap_or(context.ready_at);
                session.pass(PassedTls::new(name, began_at), len, context);
                return Ok(true);
            }
            HelloDecision::Challenge(config) => {
                session.begin_handshake(&config, context)?;
                self.is_challenge = true;
            }
            HelloDecision::Terminate | HelloDecision::Wait => {}
        }
        Ok(false)
    }

    /// Counts the handshake, unless TLS is passed, and delays a session ticket. Returns the addresses of a PROXY header.
    pub(super) fn complete(
        &self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Option<Endpoints> {
        context.handshaking -= 1;
        session.clear_deadline(context);
        if !session.is_passed() {
            session.count_handshake(&self.time.parts(session.path_info()), context);
            session.hold_ticket(self.time.until().unwrap_or(context.now) + TICKET_PATIENCE, context);
        }
        self.header.as_ref().map(|header| header.endpoints)
    }

    /// Counts its end before it was complete.
    pub(super) fn abandon(&self, session: &ClientSession, context: &mut WorkerContext) {
        context.handshaking -= 1;
        if self.awaits_header() {
            // No client was named, so it counts as the peer's own.
            session.count_open(context);
        }
    }
}

/// Whether the first bytes, of which there may be few, are those of a request of HTTP/1.1 or HTTP/2.
fn starts_an_http_request(bytes: &[u8]) -> bool {
    const METHODS: [&[u8]; 9] =
        [b"GET ", b"HEAD ", b"POST ", b"PUT ", b"DELETE", b"CONNECT", b"OPTIONS", b"PATCH ", b"PRI *"];
    METHODS.iter().any(|method| bytes.starts_with(method))
}
