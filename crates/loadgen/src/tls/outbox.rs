//! A buffer for what is to be written to a socket.

use std::io;

/// What is to be written to sockets. One serves all connections of a thread, and is empty between them.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Kept at its full length, so that room in it needs no clearing.
    bytes: Vec<u8>,
    used: usize,
}

impl Outbox {
    /// What is to be written.
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Room for so many bytes at least; what is written there counts once it is [taken](Self::take).
    pub(super) fn room(&mut self, at_least: usize) -> &mut [u8] {
        if self.bytes.len() < self.used + at_least {
            self.bytes.resize(self.used + at_least, 0);
        }
        &mut self.bytes[self.used..]
    }

    /// Counts bytes that were written to the room.
    pub(super) fn take(&mut self, len: usize) {
        self.used += len;
    }
}

impl io::Write for Outbox {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.room(bytes.len())[..bytes.len()].copy_from_slice(bytes);
        self.take(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
