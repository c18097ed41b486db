//! One client connection, from accept to close.
//!
//! ```text
//! Handshake ──▶ Serving (a handler) ──▶ Closing ──▶ Closed
//!     └─────────────────┴────────────────────┴────────▲
//! ```
//!
//! A handshake that fails with a TLS error also goes through `Closing`, so the client gets the alert.
//!
//! In each iteration of its loop, the worker passes events to [`Connection::note`], then calls [`Connection::read`] and
//! [`Connection::write`]. Established connections are served in batches: all of a batch read before any of them writes.

mod ending;
mod half_duplex;
pub mod handler;
mod handshake;
mod handshake_timer;
mod passing;
mod session;
mod socket_role;

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mio::event::Event;
use mio::net::TcpStream;
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;

use self::ending::CloseMode;
use self::handler::{ConnEnd, Handler, NextStep};
use self::handshake::HandshakeState;
use self::session::ClientSession;
#[cfg(test)]
pub(crate) use self::session::READS_PER_TURN_MAX;
pub(crate) use self::session::{READ_BYTES_MAX, SCRATCH_BYTES};
pub(crate) use self::socket_role::{SocketRole, parse_token};
use crate::worker::context::WorkerContext;
use crate::worker::timers::TimerKind;

/// How long a client has to read the last bytes and close once the proxy has decided to close. The time starts again
/// whenever the client reads something. Closing at once would reset a connection on which the client still sends, and
/// the client would lose bytes that it has not read yet.
pub(crate) const LINGER_TIMEOUT: Duration = Duration::from_secs(1);

/// The connection's state, with the data that only this state has.
enum ConnState<H> {
    Handshake(HandshakeState),
    Serving(H),
    /// The last bytes are sent; input from the client is discarded.
    Closing(EndReason),
    Closed(EndReason),
}

/// Why a connection ended. Later reasons do not replace the first.
struct EndReason {
    outcome: ConnectionOutcome,
    detail: String,
}

/// A client connection. A handler of type `H` serves it once the handshake is complete.
pub(crate) struct Connection<H> {
    session: ClientSession,
    state: ConnState<H>,
    /// Whether the connection is in the worker's ready queue.
    pub(crate) is_listed: bool,
}

impl<H: Handler> Connection<H> {
    /// Takes over an accepted connection. Its events carry [`token`](socket_role::token)s made from `key`.
    pub(crate) fn accept(
        socket: TcpStream,
        peer: SocketAddr,
        key: usize,
        context: &mut WorkerContext,
        resources: &mut H::Resources,
    ) -> io::Result<Self> {
        let handshake = HandshakeState::new(&socket, peer, context)?;
        // A trusted peer's connection is counted once its PROXY header names the client.
        let is_client_known = !handshake.awaits_header();
        let session = ClientSession::accept(socket, peer, key, context)?;
        context.handshaking += 1;
        let mut connection = Self { session, state: ConnState::Handshake(handshake), is_listed: false };
        if is_client_known && let Err(end) = connection.session.admit(context) {
            connection.end(end, context, resources);
        }
        Ok(connection)
    }

    #[cfg(test)]
    pub(crate) fn has_begun_tls(&self) -> bool {
        self.session.has_begun_tls()
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        matches!(self.state, ConnState::Handshake(_))
    }

    /// Whether the worker can close the connection now.
    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state, ConnState::Closed(_))
    }

    /// Bytes that wait to be written, in both directions.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.session.pending_bytes()
    }

    /// The memory held for peers that do not read, and since when a peer has read nothing.
    pub(crate) fn pending_memory(&self) -> (usize, Option<Instant>) {
        (self.session.held_bytes(), self.session.stalled_since())
    }

    /// Records what an event reports. Reads and writes nothing.
    pub(crate) fn note(&mut self, role: SocketRole, event: &Event) {
        match (role, &mut self.state) {
            (SocketRole::Client, _) => self.session.note(event),
            (SocketRole::Handler, ConnState::Serving(handler)) => handler.note(event),
            // The event may belong to a socket that was closed earlier in this iteration.
            (SocketRole::Handler, ConnState::Handshake(_) | ConnState::Closing(_) | ConnState::Closed(_))
            | (SocketRole::Resources, _) => {}
        }
    }

    /// Notifies the handler that the worker's shared resources have woken it.
    pub(crate) fn wake(&mut self) {
        if let ConnState::Serving(handler) = &mut self.state {
            handler.wake();
        }
    }

    /// Reads available bytes, as far as there is room.
    pub(crate) fn read(&mut self, context: &mut WorkerContext, resources: &mut H::Resources) {
        let result = match &mut self.state {
            ConnState::Serving(handler) => handler.read(&mut self.session, context),
            ConnState::Handshake(_) => self.drive_handshake(context, resources),
            ConnState::Closing(_) => self
                .session
                .drop_input(context)
                .map_err(|error| ConnEnd::at_once(ConnectionOutcome::Ended, error)),
            ConnState::Closed(_) => Ok(()),
        };
        if let Err(end) = result {
            self.end(end, context, resources);
        }
    }

    /// Continues the handshake. Out of line, so requests do not pass through its code.
    #[inline(never)]
    fn drive_handshake(
        &mut self,
        context: &mut WorkerContext,
        resources: &mut H::Resources,
    ) -> Result<(), ConnEnd> {
        let ConnState::Handshake(handshake) = &mut self.state else { return Ok(()) };
        let result = handshake.read(&mut self.session, context);
        // To the client the handshake is complete, even if bad data came right behind it.
        if !self.session.is_handshaking() {
            let endpoints = handshake.complete(&mut self.session, context);
            if handshake.is_challenge {
                self.end_challenge(context);
                return Ok(());
            }
            self.state = ConnState::Serving(H::start(&mut self.session, endpoints, context, resources));
        }
        result
    }

    /// Ends a connection that has answered a challenge of ACME. No handler starts: the client has shown no certificate, even
    /// where each needs one.
    #[cold]
    fn end_challenge(&mut self, context: &mut WorkerContext) {
        self.session.close_notify(context);
        self.session.begin_closing(context);
        let detail = "answered a challenge of ACME".to_owned();
        self.state = ConnState::Closing(EndReason { outcome: ConnectionOutcome::Ended, detail });
    }

    /// Writes pending bytes, and returns the next need.
    pub(crate) fn write(&mut self, context: &mut WorkerContext, resources: &mut H::Resources) -> NextStep {
        let next = loop {
            let written = match &mut self.state {
                ConnState::Serving(handler) => handler.write(&mut self.session, context, resources),
                ConnState::Handshake(_) => self.session.flush(context).map(|_| self.session.next_read()),
                ConnState::Closing(_) => self.session.flush(context).map(|_| self.session.next_closing()),
                ConnState::Closed(_) => Ok(NextStep::Close),
            };
            match written {
                Ok(next) => break next,
                // Each pass moves the state closer to `Closed`.
                Err(end) => self.end(end, context, resources),
            }
        };
        self.session.settle_pending(self.is_handshaking(), context);
        next
    }

    /// Handles a deadline that has passed. The caller must call [`Connection::write`] afterwards.
    pub(crate) fn expired(
        &mut self,
        kind: TimerKind,
        context: &mut WorkerContext,
        resources: &mut H::Resources,
    ) {
        // The TLS session ticket was held back for the first response, which has not come in time.
        if kind == TimerKind::Ticket {
            return self.session.release_ticket(context);
        }
        // The timer has fired. If its deadline stayed set, no later one could be armed.
        self.session.clear_deadline(context);
        let result = match &mut self.state {
            ConnState::Handshake(_) => Err(ConnEnd::at_once(
                ConnectionOutcome::HandshakeTimeout,
                "the handshake was not done in time",
            )),
            ConnState::Serving(handler) => handler.expired(&mut self.session, context),
            // A client that still reads pending bytes gets more time.
            ConnState::Closing(_) => match self.session.linger_until(context) {
                Some(until) => {
                    self.session.set_deadline(until, context);
                    Ok(())
                }
                None => Err(ConnEnd::at_once(ConnectionOutcome::Ended, "")),
            },
            ConnState::Closed(_) => Ok(()),
        };
        if let Err(end) = result {
            self.end(end, context, resources);
        }
    }

    /// Applies the current limits, after a change or at the start of a drain.
    pub(crate) fn limits_changed(&mut self, context: &mut WorkerContext) {
        match &mut self.state {
            ConnState::Handshake(_) => self.session.await_handshake(context),
            ConnState::Serving(handler) => handler.limits_changed(&mut self.session, context),
            ConnState::Closing(_) | ConnState::Closed(_) => {}
        }
    }

    /// Since when nothing is under way on it; `None` while something may be.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let ConnState::Serving(handler) = &self.state else { return None };
        handler.idle_since(&self.session)
    }

    /// Ends the idle connection to free memory. The caller must call [`Connection::write`] afterwards.
    pub(crate) fn close_idle(&mut self, context: &mut WorkerContext, resources: &mut H::Resources) {
        let ConnState::Serving(handler) = &mut self.state else { return };
        context.stats.count(ProxyCounter::IdleClosed, 1);
        if let Err(end) = handler.close_idle(&mut self.session, context) {
            self.end(end, context, resources);
        }
    }

    /// Resets the connection because its client has read nothing for the send timeout. The caller must call
    /// [`Connection::write`] afterwards.
    pub(crate) fn send_timed_out(&mut self, context: &mut WorkerContext, resources: &mut H::Resources) {
        let detail = "the client took nothing for the send timeout";
        self.end(ConnEnd::reset(ConnectionOutcome::SendTimeout, detail), context, resources);
    }

    /// Resets the connection to free memory, because the worker holds too many pending bytes. The caller must call
    /// [`Connection::write`] afterwards.
    pub(crate) fn cut_for_room(&mut self, context: &mut WorkerContext, resources: &mut H::Resources) {
        let detail = "connections hold too much memory, this one most of all or for the longest time";
        self.end(ConnEnd::reset(ConnectionOutcome::PendingBound, detail), context, resources);
    }

    /// Ends the connection because the worker ends, in any state. The caller must call [`Connection::write`] and
    /// [`Connection::close`] afterwards.
    pub(crate) fn cut(&mut self, context: &mut WorkerContext, resources: &mut H::Resources) {
        let is_unused =
            matches!(&self.state, ConnState::Serving(handler) if handler.is_unused(&self.session));
        let end = if is_unused {
            self.session.close_notify(context);
            ConnEnd::after_sending(ConnectionOutcome::Ended, "")
        } else {
            ConnEnd::at_once(ConnectionOutcome::DrainTimeout, "cut when the proxy ended")
        };
        self.end(end, context, resources);
    }

    /// Enters `Closing` or `Closed`. No other function does, but for the end of a challenge.
    #[cold]
    fn end(&mut self, end: ConnEnd, context: &mut WorkerContext, resources: &mut H::Resources) {
        let ConnEnd { outcome, detail, mode } = end;
        let ending = match &mut self.state {
            ConnState::Closing(ending) | ConnState::Closed(ending) => std::mem::take(ending),
            ConnState::Handshake(handshake) => {
                handshake.abandon(&self.session, context);
                self.session.count_error(outcome, true, context);
                EndReason { outcome, detail }
            }
            ConnState::Serving(handler) => {
                handler.stop(outcome, &self.session, context, resources);
                self.session.set_handler_bytes(0, None);
                self.session.count_error(outcome, false, context);
                EndReason { outcome, detail }
            }
        };
        self.state = match mode {
            CloseMode::AfterSending => {
                self.session.begin_closing(context);
                ConnState::Closing(ending)
            }
            CloseMode::AtOnce => ConnState::Closed(ending),
            CloseMode::Reset => {
                self.session.reset(context);
                ConnState::Closed(ending)
            }
        };
    }

    /// Records the outcome, and closes the sockets.
    pub(crate) fn close(self, context: &mut WorkerContext, resources: &mut H::Resources) {
        let ending = match self.state {
            ConnState::Closing(ending) | ConnState::Closed(ending) => ending,
            ConnState::Serving(mut handler) => {
                handler.stop(ConnectionOutcome::Ended, &self.session, context, resources);
                EndReason::default()
            }
            ConnState::Handshake(_) => EndReason::default(),
        };
        self.session.close(ending.outcome, ending.detail, context);
    }
}

impl Default for EndReason {
    fn default() -> Self {
        Self { outcome: ConnectionOutcome::Ended, detail: String::new() }
    }
}
