//! The memory that a session holds for bytes that wait, and how long they have waited.

use std::time::Instant;

use records::metrics::ProxyCounter;

use super::ClientSession;
use crate::worker::context::WorkerContext;

impl ClientSession {
    /// Notes how much memory the handler holds for the connection, besides what the session has, and since when the client
    /// has taken none of it.
    #[inline]
    pub fn set_handler_bytes(&mut self, bytes: usize, stalled_since: Option<Instant>) {
        self.handler_bytes = bytes;
        self.handler_stalled_since = stalled_since;
    }

    /// Memory that counts towards the bound of the worker.
    pub(crate) fn held_bytes(&self) -> usize {
        self.held_bytes
    }

    /// Since when its socket, or that of its upstream, has taken none of what waits for it.
    pub(crate) fn stalled_since(&self) -> Option<Instant> {
        let halves = [&self.from_client, &self.to_client].into_iter().filter_map(|half| half.stalled.since());
        halves.chain(self.handler_stalled_since).min()
    }

    /// Frees the memory of empty buffers, and accounts for the rest. A handshake has its own deadline, so the send
    /// timeout does not apply to it.
    pub(crate) fn settle_pending(&mut self, in_handshake: bool, context: &mut WorkerContext) {
        let pool = &mut context.pool;
        let waiting = pool.reclaim(&mut self.from_client.pending) + pool.reclaim(&mut self.to_client.pending);
        let held = waiting + self.handler_bytes;
        // Nothing is and nothing was left: both peers keep up.
        if held != 0 || self.held_bytes != 0 {
            let pending = &mut context.pending;
            pending.held_bytes = pending.held_bytes + held - self.held_bytes;
            self.held_bytes = held;
            self.update_stalls(in_handshake, context);
        }
    }

    fn update_stalls(&mut self, in_handshake: bool, context: &mut WorkerContext) {
        let pending = &mut context.pending;
        self.from_client.update_stall(&mut pending.to_upstream, self.key, context.now);
        if !in_handshake {
            self.to_client.update_stall(&mut pending.to_client, self.key, context.now);
        }
    }

    /// Drops the pending bytes of both directions.
    pub(crate) fn drop_pending(&mut self, context: &mut WorkerContext) {
        self.from_client.pending.clear();
        // Their plaintext is counted too.
        context.stats.count(ProxyCounter::WireOut, self.unsent_bytes() as u64);
        self.to_client.pending.clear();
        self.handler_bytes = 0;
        self.settle_pending(false, context);
    }

    /// Bytes that wait to be written, both ways.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.from_client.pending.len() + self.to_client.pending.len()
    }
}
