//! The handler that forwards bytes between a client and an upstream. Each client has its own upstream connection. The
//! relay does not parse the protocol inside TLS.
//!
//! The two directions end independently: when one peer ends its stream, the relay forwards that end, and the other
//! direction continues.

mod deadline;
mod header;
mod passing;
mod settings;

use std::io;
use std::time::Instant;

use mio::event::Event;
use records::kinds::ConnectionOutcome;
use records::metrics::{ProxyLatency, UpstreamCounter};

pub(crate) use self::passing::{PassingHandler, PassingResources};
pub(crate) use self::settings::RelaySettings;
use crate::accept::proxy_protocol::Endpoints;
use crate::connection::READ_BYTES_MAX;
use crate::connection::handler::{ClientSession, ConnEnd, Handler, NextStep, WorkerContext};
use crate::io::socket::IoResult;
use crate::tls::UpstreamTlsError;
use crate::upstream::balance::choice::{Candidates, UpstreamChoice};
use crate::upstream::counting::{count_connection, count_failed_attempt};
use crate::upstream::dial::{ConnectAttempt, ConnectProgress, DialContext, UpstreamDialer};
use crate::upstream::stream::UpstreamStream;

/// Forwards bytes between a client and an upstream.
pub(crate) struct Relay {
    upstream: UpstreamConn,
    /// When the client last sent data; `None` if the upstream has sent data since.
    unanswered_since: Option<Instant>,
    /// When the upstream ended its stream (sent FIN); `None` before.
    upstream_ended_at: Option<Instant>,
    /// The error with which it broke before its first byte.
    upstream_error: Option<io::Error>,
}

enum UpstreamConn {
    Connecting {
        attempt: Box<ConnectAttempt>,
        /// Whether the next write must advance the attempt, after an event, a wake-up or a deadline.
        is_due: bool,
    },
    Connected {
        stream: UpstreamStream,
        /// The upstream, which may count the connection.
        choice: UpstreamChoice,
    },
}

impl Handler for Relay {
    type Resources = UpstreamDialer;

    fn start(
        session: &mut ClientSession,
        endpoints: Option<Endpoints>,
        context: &mut WorkerContext,
        dialer: &mut UpstreamDialer,
    ) -> Self {
        let destination = context.routes.terminated(session.tls_server_name());
        Self::to(destination, session, endpoints, context, dialer)
    }

    fn note(&mut self, event: &Event) {
        match &mut self.upstream {
            UpstreamConn::Connected { stream, .. } => stream.note(event),
            UpstreamConn::Connecting { attempt, is_due } => {
                attempt.note(event);
                *is_due = true;
            }
        }
    }

    fn wake(&mut self) {
        if let UpstreamConn::Connecting { is_due, .. } = &mut self.upstream {
            *is_due = true;
        }
    }

    #[inline]
    fn read(&mut self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        if session.read(context)? {
            self.unanswered_since = Some(context.now);
        }
        self.read_upstream(session, context)
    }

    #[inline]
    fn write(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
        dialer: &mut UpstreamDialer,
    ) -> Result<NextStep, ConnEnd> {
        if let UpstreamConn::Connecting { is_due: true, .. } = self.upstream {
            self.connect(session, context, dialer)?;
        }
        self.write_upstream(session, context);
        let has_just_sent_end = session.flush(context)?;
        self.next(has_just_sent_end, session, context)
    }

    fn expired(&mut self, session: &mut ClientSession, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        match &mut self.upstream {
            UpstreamConn::Connecting { is_due, .. } => {
                *is_due = true;
                Ok(())
            }
            UpstreamConn::Connected { .. } => self.check_idle(session, context),
        }
    }

    fn limits_changed(&mut self, session: &mut ClientSession, context: &mut WorkerContext) {
        if let UpstreamConn::Connected { .. } = self.upstream {
            self.arm_idle(session, context);
        }
    }

    /// True only if no byte was ever forwarded. After that a response may be under way, even if it pauses: without
    /// parsing the protocol, the relay cannot tell whether it is complete.
    fn is_unused(&self, session: &ClientSession) -> bool {
        matches!(self.upstream, UpstreamConn::Connected { .. })
            && !session.has_client_ended()
            && !session.is_finishing()
            && session.received().is_empty()
            && !session.has_moved_bytes()
    }

    /// Without parsing the protocol, a pause in a response cannot be told from its end.
    fn idle_since(&self, session: &ClientSession) -> Option<Instant> {
        let UpstreamConn::Connected { stream, .. } = &self.upstream else { return None };
        let is_under_way = self.unanswered_since.is_some()
            || session.owes_client()
            || session.is_finishing()
            || session.has_client_ended()
            || !session.received().is_empty()
            || stream.has_unsent();
        (!is_under_way).then(|| session.active_at())
    }

    fn close_idle(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        session.close_notify(context);
        Err(ConnEnd::after_sending(ConnectionOutcome::Ended, ""))
    }

    fn stop(
        &mut self,
        outcome: ConnectionOutcome,
        session: &ClientSession,
        context: &mut WorkerContext,
        dialer: &mut UpstreamDialer,
    ) {
        let is_cut = self.is_cut(outcome, session);
        match &mut self.upstream {
            UpstreamConn::Connecting { attempt, .. } => attempt.abandon(dialer),
            UpstreamConn::Connected { stream, choice } => {
                if is_cut {
                    stream.reset_when_closed();
                }
                dialer.upstreams.leave(*choice);
                let upstream = context.stats.upstream(choice.index);
                let (bytes_in, bytes_out) = session.moved_bytes();
                upstream.open_change -= 1;
                upstream.count(UpstreamCounter::BytesIn, bytes_in);
                upstream.count(UpstreamCounter::BytesOut, bytes_out);
                let is_broken = outcome == ConnectionOutcome::UpstreamBroken;
                upstream.count(UpstreamCounter::Broken, u64::from(is_broken));
                // With TLS 1.3 an upstream refuses the proxy's certificate when the handshake is over.
                if let Some(error) = &self.upstream_error
                    && UpstreamTlsError::of(error).is_some()
                {
                    dialer.upstreams.failed(choice.index, error, context.now);
                    count_failed_attempt(upstream, error);
                }
            }
        }
    }

    fn take_woken(dialer: &mut UpstreamDialer) -> Vec<usize> {
        dialer.take_woken()
    }
}

impl Relay {
    /// Begins to connect to an upstream of this destination.
    fn to(
        destination: Option<usize>,
        session: &ClientSession,
        endpoints: Option<Endpoints>,
        context: &WorkerContext,
        dialer: &UpstreamDialer,
    ) -> Self {
        // The client may have sent its first data with the end of the handshake.
        let unanswered_since = (!session.received().is_empty()).then_some(context.now);
        let header = header::encode(session, endpoints, context);
        let upstreams = destination.map_or(0, |destination| dialer.upstreams.upstreams_of(destination));
        let timeout = context.limits.connect_timeout;
        let key = dialer.upstreams.balance().key(session.client(), |_| None);
        let candidates = Candidates::new(upstreams, key);
        let attempt = ConnectAttempt::new(Instant::now(), timeout, candidates, header);
        let upstream = UpstreamConn::Connecting { attempt: Box::new(attempt), is_due: true };
        Self { upstream, unanswered_since, upstream_ended_at: None, upstream_error: None }
    }

    fn connect(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
        dialer: &mut UpstreamDialer,
    ) -> Result<(), ConnEnd> {
        let UpstreamConn::Connecting { attempt, is_due } = &mut self.upstream else { return Ok(()) };
        *is_due = false;
        let began_at = attempt.began_at();
        let (key, token) = (session.key(), session.handler_token());
        let (registry, tls) = (&context.registry, &context.upstream_tls);
        let caller = DialContext { registry, key, token, now: context.now, tls };
        match attempt.advance(dialer, caller, &mut context.stats.delta.upstreams) {
            Ok(ConnectProgress::Established { stream, choice, began_at: tried_at }) => {
                let now = Instant::now();
                context.stats.time(ProxyLatency::Connect, stream.connect_time(began_at, now));
                let upstream = context.stats.upstream(choice.index);
                upstream.open_change += 1;
                // Without the time for which others were tried.
                let took = stream.connect_time(tried_at, now);
                count_connection(upstream, took, stream.handshake(now));
                if !stream.is_tls() {
                    session.prepend(attempt.header());
                }
                self.upstream = UpstreamConn::Connected { stream, choice };
                session.touch(now);
                self.arm_idle(session, context);
                Ok(())
            }
            Ok(ConnectProgress::Wait(until)) => {
                session.set_deadline(until, context);
                Ok(())
            }
            Err(error) => {
                session.close_notify(context);
                Err(ConnEnd::after_sending(ConnectionOutcome::UpstreamConnect, &error))
            }
        }
    }

    #[inline]
    fn read_upstream(
        &mut self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        let UpstreamConn::Connected { stream, choice } = &mut self.upstream else { return Ok(()) };
        while stream.is_readable() && session.has_room() {
            match stream.read(&mut context.scratch[..READ_BYTES_MAX]) {
                Ok(IoResult::Bytes(n)) => {
                    // In passed TLS it does not show.
                    if let Some(sent_at) = self.unanswered_since.take().filter(|_| !session.is_passed()) {
                        session.count_exchange(choice.index, context.now - sent_at, context);
                        session.count_relayed(sent_at, context);
                        context.stats.upstream(choice.index).count(UpstreamCounter::Exchanges, 1);
                    }
                    session.send_scratch(n, context)?;
                }
                // The socket is no longer readable, which ends the loop.
                Ok(IoResult::Blocked) => {}
                Ok(IoResult::End) => {
                    self.upstream_ended_at = Some(context.now);
                    session.finish(context);
                }
                Err(error) => {
                    let has_forwarded_end = has_forwarded_end(stream, session);
                    return Err(self.upstream_failed(error, has_forwarded_end, session));
                }
            }
        }
        Ok(())
    }

    /// The end that an error of the upstream leads to, without `close_notify`, so the client can tell that data may be
    /// missing.
    #[cold]
    fn upstream_failed(
        &mut self,
        error: io::Error,
        has_forwarded_end: bool,
        session: &ClientSession,
    ) -> ConnEnd {
        // Many servers answer the end of TLS with a FIN only.
        let is_over = has_forwarded_end
            && error.kind() == io::ErrorKind::UnexpectedEof
            && self.unanswered_since.is_none();
        let outcome = if is_over { ConnectionOutcome::Ended } else { ConnectionOutcome::UpstreamBroken };
        let end = ConnEnd::after_sending(outcome, &error);
        self.upstream_error = Some(error).filter(|_| session.moved_bytes().1 == 0);
        end
    }

    #[inline]
    fn write_upstream(&mut self, session: &mut ClientSession, context: &mut WorkerContext) {
        let UpstreamConn::Connected { stream, .. } = &mut self.upstream else { return };
        let flushed = stream.flush();
        if matches!(flushed, Ok(1..)) {
            session.touch(context.now);
        }
        let mut is_write_closed = stream.is_write_closed() || flushed.is_err();
        while !is_write_closed && !session.received().is_empty() && stream.is_writable() {
            match stream.write(session.received()) {
                Ok(IoResult::Bytes(n)) => session.consume(n, context),
                Ok(_) => {}
                Err(_) => is_write_closed = true,
            }
        }
        // The upstream accepts no more data, but may have sent a response before. Reading finds that, and the error.
        if is_write_closed {
            session.stop_receiving();
        }
        let has_forwarded_all = session.has_client_ended() && session.received().is_empty();
        if has_forwarded_all && !session.has_stopped_receiving() {
            session.stop_receiving();
            match self.upstream_ended_at {
                None => stream.shut_down(),
                // Both have ended, so closing implies a FIN.
                Some(_) => stream.close_notify(),
            }
        }
        let (bytes, stalled_since) = stream.held();
        session.set_handler_bytes(bytes, stalled_since);
    }

    #[inline]
    fn next(
        &mut self,
        has_just_sent_end: bool,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<NextStep, ConnEnd> {
        let UpstreamConn::Connected { stream, .. } = &self.upstream else { return Ok(session.next_read()) };
        let can_read_upstream = stream.is_readable() && session.has_room();
        if has_just_sent_end || context.is_draining || session.has_failed() {
            self.arm_idle(session, context);
        }
        // The client has the end of the upstream's stream, and nothing it still sends can be forwarded.
        if session.has_sent_end() && session.has_stopped_receiving() {
            if !session.has_client_ended() {
                return Err(ConnEnd::after_sending(ConnectionOutcome::Ended, ""));
            }
            if session.is_done() && (!stream.has_unsent() || stream.is_write_closed()) {
                return Ok(NextStep::Close);
            }
        }
        Ok(if can_read_upstream { NextStep::Again } else { session.next_read() })
    }

    /// Whether nothing is owed in either direction, as far as that shows without parsing the protocol.
    fn is_between_exchanges(&self, session: &ClientSession) -> bool {
        !session.owes_client() && self.unanswered_since.is_none()
    }

    /// Whether the end of the connection cuts off the client's direction, which a FIN would let look complete.
    fn is_cut(&self, outcome: ConnectionOutcome, session: &ClientSession) -> bool {
        let UpstreamConn::Connected { stream, .. } = &self.upstream else { return false };
        if has_forwarded_end(stream, session) {
            return false;
        }
        match outcome {
            // The upstream has ended the connection itself.
            ConnectionOutcome::UpstreamBroken => false,
            ConnectionOutcome::Ended | ConnectionOutcome::IdleTimeout => {
                let has_all = session.received().is_empty() && !stream.has_unsent();
                session.has_failed() || !has_all || !self.is_between_exchanges(session)
            }
            _ => true,
        }
    }
}

/// Whether the client has ended, and the upstream has been sent everything with that end.
fn has_forwarded_end(stream: &UpstreamStream, session: &ClientSession) -> bool {
    session.has_client_ended() && session.has_stopped_receiving() && !stream.has_unsent()
}
