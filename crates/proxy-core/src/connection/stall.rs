//! Bytes that a peer does not take: what they cost, and the end of connections that wait too long.

use telemetry::Outcome;

use super::{Connection, Phase};
use crate::worker::context::Context;

impl Connection {
    /// Gives memory back in which nothing waits, and notes what is left.
    pub(super) fn settle_pending(&mut self, context: &mut Context) {
        let held =
            context.pool.reclaim(&mut self.inward.pending) + context.pool.reclaim(&mut self.outward.pending);
        // Nothing is and nothing was left: both peers keep up.
        if held != 0 || self.held_bytes != 0 {
            self.note_pending(held, context);
        }
    }

    #[cold]
    fn note_pending(&mut self, held: usize, context: &mut Context) {
        let pending = &mut context.pending;
        pending.held_bytes = pending.held_bytes + held - self.held_bytes;
        self.held_bytes = held;
        self.inward.note_stall(&mut pending.to_upstream, self.key, context.now);
        // A handshake has a deadline of its own.
        if self.phase != Phase::Handshake {
            self.outward.note_stall(&mut pending.to_client, self.key, context.now);
        }
    }

    /// Drops what waits.
    pub(super) fn drop_pending(&mut self, context: &mut Context) {
        self.inward.pending.clear();
        self.outward.pending.clear();
        self.note_pending(0, context);
    }

    /// Cuts it, as its client has taken nothing for the send timeout; [`Connection::write`] must follow.
    pub(crate) fn send_timed_out(&mut self, context: &mut Context) {
        self.reset(Outcome::SendTimeout, "the client took nothing for the send timeout", context);
    }

    /// Cuts it to make room for the bytes of others; [`Connection::write`] must follow.
    pub(crate) fn cut_for_room(&mut self, context: &mut Context) {
        let detail = "too many bytes waited to be sent, and its own had waited longest";
        self.reset(Outcome::PendingBound, detail, context);
    }

    /// Ends it at once and without a word, and lets the kernel drop what it still holds for the client.
    fn reset(&mut self, outcome: Outcome, detail: &str, context: &mut Context) {
        self.end(outcome, detail, context);
        self.client.reset_when_closed();
        self.drop_pending(context);
        self.phase = Phase::Done;
    }
}
