//! The deadlines of a relay.

use std::time::{Duration, Instant};

use records::kinds::ConnectionOutcome;

use super::Relay;
use crate::connection::handler::{ClientSession, ConnEnd, Handler, WorkerContext};

/// How long an upstream may read none of a client's bytes after the client has reset its connection.
const LAST_BYTES_TIMEOUT: Duration = Duration::from_secs(1);

impl Relay {
    /// When it has been idle for too long, unless something moves before.
    fn idle_deadline(&self, session: &ClientSession, context: &WorkerContext) -> Instant {
        let (limits, active_at) = (&context.limits, session.active_at());
        let idle = active_at + limits.idle_timeout;
        if session.has_failed() {
            // The client's earlier bytes are forwarded while the upstream accepts them.
            return idle.min(active_at + LAST_BYTES_TIMEOUT);
        }
        let half_closed = self.half_closed_deadline(session, context);
        let deadline = half_closed.map_or(idle, |half_closed| idle.min(half_closed));
        if context.is_draining && (session.has_sent_close_notify() || self.is_unused(session)) {
            return deadline.min(active_at + limits.drain_quiet);
        }
        deadline
    }

    /// When a client whose upstream has ended is closed, however much it still sends.
    fn half_closed_deadline(&self, session: &ClientSession, context: &WorkerContext) -> Option<Instant> {
        let ended_at = self.upstream_ended_at.filter(|_| session.has_sent_close_notify())?;
        Some(ended_at + context.limits.half_closed_timeout)
    }

    /// When to check again, in a drain, a client to which the kernel still sends the end of its answer: closing might
    /// reset the connection before it arrives.
    fn still_sending_until(&self, session: &ClientSession, context: &WorkerContext) -> Option<Instant> {
        let limits = &context.limits;
        let idle = session.active_at() + limits.idle_timeout;
        let last = self.half_closed_deadline(session, context)?.min(idle);
        let may_wait = context.is_draining && last > context.now;
        let is_sending = may_wait && !session.is_end_acknowledged();
        is_sending.then(|| last.min(context.now + limits.drain_quiet))
    }

    /// Ensures that the idle timeout is noticed. A deadline that comes too early is postponed when it comes, so moving
    /// a byte costs nothing here.
    pub(super) fn arm_idle(&self, session: &mut ClientSession, context: &mut WorkerContext) {
        let due = self.idle_deadline(session, context);
        session.set_earlier_deadline(due, context);
    }

    /// Acts on the idle deadline: either something has moved since it was set, or the connection has been idle.
    pub(super) fn check_idle(
        &self,
        session: &mut ClientSession,
        context: &mut WorkerContext,
    ) -> Result<(), ConnEnd> {
        let due = self.idle_deadline(session, context);
        if due > context.now {
            session.set_deadline(due, context);
            return Ok(());
        }
        if session.has_failed() {
            return Err(session.failure());
        }
        if let Some(until) = self.still_sending_until(session, context) {
            session.set_deadline(until, context);
            return Ok(());
        }
        if session.has_sent_close_notify() {
            return Err(ConnEnd::at_once(ConnectionOutcome::Ended, ""));
        }
        // An incomplete answer is cut, and must not look complete.
        let is_unused = self.is_unused(session);
        if self.is_between_exchanges(session) {
            session.close_notify(context);
        }
        Err(if context.is_draining && is_unused {
            ConnEnd::after_sending(ConnectionOutcome::Ended, "")
        } else {
            ConnEnd::after_sending(ConnectionOutcome::IdleTimeout, "nothing moved for the idle timeout")
        })
    }
}
