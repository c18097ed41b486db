//! The buffer for bytes to write to a socket.

use std::io;

/// Bytes to write to a socket. All connections of a thread share one, which is empty between them.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    /// Kept at its full length, so it need not be cleared again.
    bytes: Vec<u8>,
    used: usize,
}

impl Outbox {
    pub(crate) fn filled(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    pub(crate) fn clear(&mut self) {
        self.used = 0;
    }

    /// Room for at least this many bytes. Bytes written there count once they are [taken](Self::take).
    pub(super) fn room(&mut self, at_least: usize) -> &mut [u8] {
        if self.bytes.len() < self.used + at_least {
            self.bytes.resize(self.used + at_least, 0);
        }
        &mut self.bytes[self.used..]
    }

    /// Adds bytes that were written to the room.
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
