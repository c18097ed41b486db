//! What a worker does in one turn of its loop, once events are noted.

use std::time::Instant;

use super::{Worker, list};
use crate::connection::Next;

/// What connections may have read, in bytes, before it is written. Peers that are written to in one go are woken together
/// and answer together, so that small messages are best read all before any is written; what is large has left the
/// processor's caches by then.
const BATCH_BYTES: usize = 64 << 10;

impl Worker {
    /// Gives everybody one turn.
    pub(super) fn serve(&mut self) {
        self.expire();
        self.turn();
        self.accept();
    }

    /// Lets every listed connection read and write: those of a batch read, then write.
    fn turn(&mut self) {
        for key in self.again.drain(..) {
            if let Some(connection) = self.connections.get_mut(key) {
                list(&mut self.listed, connection, key);
            }
        }
        let listed = std::mem::take(&mut self.listed);
        let mut waiting = &listed[..];
        while !waiting.is_empty() {
            let (batch, others) = waiting.split_at(self.read(waiting));
            self.write(batch);
            waiting = others;
        }
        self.listed = listed;
        self.listed.clear();
        for key in self.context.ways.take_roused() {
            if let Some(connection) = self.connections.get_mut(key) {
                connection.rouse();
                self.again.push(key);
            }
        }
    }

    /// Lets connections read, at least one and as many as bring enough for a batch; returns their number.
    fn read(&mut self, keys: &[usize]) -> usize {
        let mut bytes = 0;
        for (i, &key) in keys.iter().enumerate() {
            self.context.now = Instant::now();
            let connection = &mut self.connections[key];
            connection.read(&mut self.context);
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
            match connection.write(&mut self.context) {
                Next::Wait => {}
                Next::Again => self.again.push(key),
                Next::Close => self.close(key),
            }
        }
    }
}
