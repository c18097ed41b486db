//! The memory that a session holds for bytes that wait, and how long they have waited.

use super::ClientSession;
use crate::worker::context::WorkerContext;

impl ClientSession {
    /// Frees the memory of empty buffers, and accounts for the rest. A handshake has its own deadline, so the send
    /// timeout does not apply to it.
    pub(crate) fn settle_pending(&mut self, in_handshake: bool, context: &mut WorkerContext) {
        let pool = &mut context.pool;
        let held = pool.reclaim(&mut self.from_client.pending) + pool.reclaim(&mut self.to_client.pending);
        // Nothing is and nothing was left: both peers keep up.
        if held != 0 || self.held_bytes != 0 {
            self.note_pending(held, in_handshake, context);
        }
    }

    #[cold]
    fn note_pending(&mut self, held: usize, in_handshake: bool, context: &mut WorkerContext) {
        let pending = &mut context.pending;
        pending.held_bytes = pending.held_bytes + held - self.held_bytes;
        self.held_bytes = held;
        self.from_client.note_stall(&mut pending.to_upstream, self.key, context.now);
        if !in_handshake {
            self.to_client.note_stall(&mut pending.to_client, self.key, context.now);
        }
    }

    /// Drops the pending bytes of both directions.
    pub(crate) fn drop_pending(&mut self, context: &mut WorkerContext) {
        self.from_client.pending.clear();
        self.to_client.pending.clear();
        self.note_pending(0, false, context);
    }

    /// Bytes that wait to be written, both ways.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.from_client.pending.len() + self.to_client.pending.len()
    }
}
