//! One turn of a worker's loop, after its events were noted.

use std::time::Instant;

use super::Worker;
use super::ready::handshakes_until;
use crate::connection::handler::{Handler, NextStep};

/// Bytes that connections read before any of them is written. Peers that are written to together wake and
/// answer together, so small messages are best read all before any is written. Large ones have left the
/// processor's caches by then.
const BATCH_BYTES: usize = 64 << 10;

impl<H: Handler> Worker<H> {
    /// Serves every ready connection but handshakes, then handshakes for a while, then accepts.
    pub(super) fn serve(&mut self) {
        let began_at = self.context.now;
        if self.memory_sample != self.control.memory.samples() {
            self.relieve_memory();
        }
        self.expire();
        for key in H::take_woken(&mut self.resources) {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.wake();
                self.ready.push(connection, key, self.context.now);
            }
        }
        self.serve_established();
        if self.ready.handshakes() > 0 {
            self.context.now = Instant::now();
            self.serve_handshakes(began_at, handshakes_until(began_at, self.context.now));
        }
        self.wake();
        self.accept();
    }

    /// Serves every ready connection but handshakes, in batches: all of a batch read, then all write.
    fn serve_established(&mut self) {
        if !self.again.is_empty() {
            self.push_again();
        }
        let established = std::mem::take(&mut self.ready.established);
        let mut waiting = &established[..];
        while !waiting.is_empty() {
            let (batch, others) = waiting.split_at(self.read(waiting));
            self.write(batch);
            waiting = others;
            if !waiting.is_empty() {
                self.context.now = Instant::now();
            }
        }
        self.ready.established = established;
        self.ready.established.clear();
    }

    /// Makes those ready that wanted another turn. Out of line, since most turns leave none: inlined it costs a small
    /// request 1 %.
    #[inline(never)]
    fn push_again(&mut self) {
        for key in self.again.drain(..) {
            if let Some(connection) = self.connections.get_mut(key) {
                self.ready.push(connection, key, self.context.now);
            }
        }
    }

    /// Continues handshakes in the turn that began at `began_at`: at least one, and no further one after
    /// `until`.
    fn serve_handshakes(&mut self, began_at: Instant, until: Instant) {
        while let Some((key, ready_at)) = self.ready.take_handshake(began_at) {
            self.context.ready_at = ready_at;
            self.connections[key].read(&mut self.context, &mut self.resources);
            self.write(&[key]);
            self.context.now = Instant::now();
            if self.context.now >= until {
                break;
            }
        }
    }

    /// Serves the connections that handlers have woken in the next turn.
    fn wake(&mut self) {
        for key in H::take_woken(&mut self.resources) {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.wake();
                self.again.push(key);
            }
        }
    }

    /// Reads from connections, at least one and as many as fill a batch; returns how many have read.
    fn read(&mut self, keys: &[usize]) -> usize {
        let mut bytes = 0;
        for (i, &key) in keys.iter().enumerate() {
            // The first one uses the start of its batch, which saves a clock read if few are ready.
            if i > 0 {
                self.context.now = Instant::now();
            }
            let connection = &mut self.connections[key];
            connection.read(&mut self.context, &mut self.resources);
            bytes += connection.pending_bytes();
            if bytes >= BATCH_BYTES {
                return i + 1;
            }
        }
        keys.len()
    }

    fn write(&mut self, keys: &[usize]) {
        for &key in keys {
            let connection = &mut self.connections[key];
            connection.is_listed = false;
            match connection.write(&mut self.context, &mut self.resources) {
                NextStep::Wait => {}
                NextStep::Again => self.again.push(key),
                NextStep::Close => self.close(key),
            }
        }
        if !self.context.pending.is_empty() {
            self.bound_pending();
        }
    }
}

#[cfg(test)]
mod tests;
