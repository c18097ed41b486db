//! The deadlines of a connection.

use records::kinds::HttpVersion;
use std::time::{Duration, Instant};

use proxy_core::handler::{ClientSession, ConnEnd, WorkerContext};
use records::kinds::ConnectionOutcome;
use records::metrics::RequestFailure;

use super::HttpConnection;

/// How long a client may take to end an HTTP/2 connection after a GOAWAY.
const GOAWAY_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a connection is idle before hyper's memory for it is given back, which the next request takes anew.
const REST_AFTER: Duration = Duration::from_secs(2);
/// The response to a client whose request head was not complete in time.
const HEAD_TIMEOUT_ANSWER: &[u8] =
    b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConnectionDeadline {
    /// The head of a request must be complete.
    Head(Instant),
    /// A connection that is idle until then rests.
    Rest(Instant),
    /// Another request must begin.
    Request(Instant),
    /// Bytes must move in either direction.
    Movement(Instant),
    /// The client must take something of what waits for it.
    Taken(Instant),
}

impl ConnectionDeadline {
    fn at(self) -> Instant {
        match self {
            Self::Head(at) | Self::Rest(at) | Self::Request(at) | Self::Movement(at) | Self::Taken(at) => at,
        }
    }
}

impl HttpConnection {
    fn due(&self, session: &ClientSession, context: &WorkerContext) -> ConnectionDeadline {
        let (client, limits) = (&self.client, self.client.worker.limits());
        if let Some(began_at) = client.head_began_at().filter(|_| client.is_idle()) {
            return ConnectionDeadline::Head(began_at + limits.header_timeout);
        }
        if !client.is_idle() {
            let moved_by = session.active_at() + context.limits.idle_timeout;
            let stalled_since = client.held.stalled_since();
            let taken_by = stalled_since.map(|since| since + context.limits.send_timeout);
            return taken_by
                .filter(|at| *at < moved_by)
                .map_or(ConnectionDeadline::Movement(moved_by), ConnectionDeadline::Taken);
        }
        let idle_since = client.idle_since();
        let keep_alive = idle_since + limits.keep_alive_timeout;
        if !client.is_ending() {
            let rest = Some(idle_since + REST_AFTER).filter(|at| *at < keep_alive && client.may_rest());
            return rest.map_or(ConnectionDeadline::Request(keep_alive), ConnectionDeadline::Rest);
        }
        let grace =
            if client.version == HttpVersion::Http2 { GOAWAY_TIMEOUT } else { context.limits.drain_quiet };
        ConnectionDeadline::Request(keep_alive.min(idle_since.max(session.active_at()) + grace))
    }

    /// Makes sure that the deadline is noticed. A deadline that comes too early is put off when it comes.
    pub(super) fn arm_deadline(&self, session: &mut ClientSession, context: &mut WorkerContext) {
        let due = self.due(session, context);
        session.set_earlier_deadline(due.at(), context);
    }

    /// Acts on the deadline, unless it was put off.
    pub(super) fn check_deadline(
        &self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        let due = self.due(session, context);
        if due.at() > context.now {
            session.set_deadline(due.at(), context);
            return Ok(());
        }
        match due {
            ConnectionDeadline::Head(_) => {
                self.client.count_refused(RequestFailure::HeadTimeout, Some(408), context.now);
                session.send(HEAD_TIMEOUT_ANSWER, context)?;
                session.close_notify(context);
                Err(ConnEnd::after_sending(
                    ConnectionOutcome::IdleTimeout,
                    "the head of a request was not complete in time",
                ))
            }
            ConnectionDeadline::Rest(_) => {
                // Another connection of hyper's takes what it reads first for a request.
                self.client.rest(self.wire.borrow().is_between_requests());
                session.set_deadline(self.due(session, context).at(), context);
                Ok(())
            }
            // Other frames of the client, such as PING, do not put this off.
            ConnectionDeadline::Taken(_) => Err(ConnEnd::reset(
                ConnectionOutcome::SendTimeout,
                "the client took nothing for the send timeout",
            )),
            ConnectionDeadline::Movement(_) => Err(ConnEnd::after_sending(
                ConnectionOutcome::IdleTimeout,
                "nothing moved for the idle timeout",
            )),
            ConnectionDeadline::Request(_) => self.end_idle(session, context),
        }
    }

    /// Ends the idle connection: HTTP/2 with GOAWAY, so a request that is on its way is not lost.
    pub(super) fn end_idle(
        &self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        if self.client.version == HttpVersion::Http2 && !self.client.is_ending() {
            self.client.set_ending();
            self.client.shut_down();
            session.set_deadline(context.now + GOAWAY_TIMEOUT, context);
            return Ok(());
        }
        session.close_notify(context);
        Err(ConnEnd::after_sending(ConnectionOutcome::Ended, ""))
    }
}
