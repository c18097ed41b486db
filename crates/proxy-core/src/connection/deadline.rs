//! What happens to a connection when time passes.

use std::time::Instant;

use telemetry::Outcome;

use super::{Connection, LINGER_TIMEOUT, Phase};
use crate::worker::context::Context;
use crate::worker::timers::Kind;

impl Connection {
    /// Takes notice of a deadline that has passed. [`Connection::write`] must follow.
    pub(crate) fn expired(&mut self, kind: Kind, context: &mut Context) {
        if kind == Kind::Phase {
            // It is no longer armed, and must not be taken for one that comes soon enough.
            context.timers.disarm(&mut self.deadline, self.key, kind);
        }
        match (kind, self.phase) {
            (Kind::Ticket, _) => self.release_ticket(context),
            (Kind::Phase, Phase::Handshake) => {
                self.end(Outcome::HandshakeTimeout, "the handshake was not done in time", context);
                self.phase = Phase::Done;
            }
            (Kind::Phase, Phase::Connect) => self.dial_is_due = true,
            (Kind::Phase, Phase::Open) => self.rested(context),
            // A client that is still taking what waits for it gets it.
            (Kind::Phase, Phase::Closing) if self.is_being_taken(context) => {
                let due = self.moved_at + LINGER_TIMEOUT;
                context.timers.arm(&mut self.deadline, self.key, Kind::Phase, due);
            }
            (Kind::Phase, Phase::Closing | Phase::Done) => self.phase = Phase::Done,
        }
    }

    fn is_being_taken(&self, context: &Context) -> bool {
        !self.outward.pending.is_empty() && self.moved_at + LINGER_TIMEOUT > context.now
    }

    /// When it has been idle for too long, unless something moves before.
    fn idle_deadline(&self, context: &Context) -> Instant {
        let limits = &context.limits;
        let idle = self.moved_at + limits.idle_timeout;
        if self.client.has_failed() {
            // What it sent before goes on as long as the upstream takes it.
            return idle.min(self.moved_at + LINGER_TIMEOUT);
        }
        let deadline = self.half_closed_deadline(context).map_or(idle, |half_closed| idle.min(half_closed));
        if context.is_draining && (self.outward.passed_on || self.is_unused()) {
            return deadline.min(self.moved_at + limits.drain_quiet);
        }
        deadline
    }

    /// When a client whose upstream has ended is closed, however much it still sends.
    fn half_closed_deadline(&self, context: &Context) -> Option<Instant> {
        let ended_at = self.upstream_ended_at.filter(|_| self.outward.passed_on)?;
        Some(ended_at + context.limits.half_closed_timeout)
    }

    /// When to look again, in a drain, at a client to which the kernel still sends the end of its answer: closing might
    /// reset the connection before it is there.
    fn still_sending_until(&self, context: &Context) -> Option<Instant> {
        let limits = &context.limits;
        let idle = self.moved_at + limits.idle_timeout;
        let last = self.half_closed_deadline(context)?.min(idle);
        let may_wait = context.is_draining && last > context.now;
        let is_sending = may_wait && !self.client.is_end_acknowledged();
        is_sending.then(|| last.min(context.now + limits.drain_quiet))
    }

    /// Nothing has ever moved, so that nobody can owe anybody anything. Once something has, an answer may be going on
    /// that only pauses: without knowing the protocol nobody can tell.
    pub(super) fn is_unused(&self) -> bool {
        self.phase == Phase::Open
            && !self.inward.ended
            && !self.outward.ended
            && self.inward.pending.is_empty()
            && self.bytes_in == 0
            && self.bytes_out == 0
    }

    /// Makes sure that the idle timeout is noticed. A deadline that comes too early is put off when it comes, so
    /// that a byte that moves costs nothing here.
    pub(crate) fn arm_idle(&mut self, context: &mut Context) {
        let due = self.idle_deadline(context);
        if self.phase == Phase::Open && self.deadline.at().is_none_or(|at| at > due) {
            context.timers.arm(&mut self.deadline, self.key, Kind::Phase, due);
        }
    }

    /// The idle deadline has come: either something has moved since it was set, or the connection has been idle.
    fn rested(&mut self, context: &mut Context) {
        let due = self.idle_deadline(context);
        if due > context.now {
            context.timers.arm(&mut self.deadline, self.key, Kind::Phase, due);
        } else if self.client.has_failed() {
            self.client_broke(&self.client.failure(), context);
        } else if let Some(until) = self.still_sending_until(context) {
            context.timers.arm(&mut self.deadline, self.key, Kind::Phase, until);
        } else if self.outward.passed_on {
            self.end(Outcome::Ended, "", context);
            self.phase = Phase::Done;
        } else {
            let may_end = context.is_draining && self.is_unused();
            self.release_ticket(context);
            // What the client has asked for and not got is cut off, and must not look like a whole answer.
            if !self.owes_client && self.asked_at.is_none() {
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
}
