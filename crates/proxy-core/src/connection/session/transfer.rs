//! Bytes between the client's socket, TLS and the handler.

use std::io;
use std::time::{Duration, Instant};

use mio::event::Event;
use records::metrics::ProxyCounter;

use super::{ClientSession, READ_BYTES_MAX};
use crate::connection::ending::{ConnEnd, NextStep};
use crate::io::socket::IoResult;
use crate::worker::context::WorkerContext;
use crate::worker::timers::TimerKind;

/// Reads of a client before other connections have their turn. The bytes may produce nothing that would fill a buffer.
pub(crate) const READS_PER_TURN_MAX: u32 = 4;

/// Bytes from the client. Functions on the path of every request are `#[inline]`, because calls would show in its
/// cost.
impl ClientSession {
    pub(crate) fn note(&mut self, event: &Event) {
        self.socket.note(event);
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    /// Whether there is something to read, and room for it.
    #[inline]
    pub fn wants_read(&self) -> bool {
        self.socket.is_readable() && self.from_client.has_room()
    }

    /// The next need of a session that only reads.
    #[inline]
    pub(crate) fn next_read(&self) -> NextStep {
        if self.wants_read() { NextStep::Again } else { NextStep::Wait }
    }

    /// Bytes that TLS keeps until they are a whole record: they go in front of the next read.
    pub(crate) fn partial_len(&self) -> usize {
        self.tls.partial_len()
    }

    /// Gives both directions memory from the worker's pool.
    pub(crate) fn lend_buffers(&mut self, context: &mut WorkerContext) {
        context.pool.lend(&mut self.from_client.pending);
        context.pool.lend(&mut self.to_client.pending);
    }

    /// Reads once, behind `reserved` bytes of the scratch buffer.
    #[inline]
    pub(crate) fn receive(&mut self, reserved: usize, context: &mut WorkerContext) -> io::Result<IoResult> {
        let result = self.socket.read(&mut context.scratch[reserved..reserved + READ_BYTES_MAX]);
        if let Ok(IoResult::Bytes(n)) = result {
            self.active_at = context.now;
            context.stats.count(ProxyCounter::WireIn, n as u64);
        }
        result
    }

    /// Hands the first `len` bytes of the scratch buffer to TLS. True if that brought plaintext.
    #[inline]
    pub(crate) fn decrypt(&mut self, len: usize, context: &mut WorkerContext) -> Result<bool, ConnEnd> {
        let before = self.from_client.pending.len();
        let bytes = &mut context.scratch[..len];
        let result = self.tls.receive(bytes, &mut self.from_client.pending, &mut self.to_client.pending);
        let has_grown = self.from_client.pending.len() > before;
        if self.from_client.sink_closed {
            self.from_client.pending.clear();
        }
        result.map_err(|error| self.tls_failed(&error))?;
        self.from_client.source_ended |= self.tls.is_peer_closed();
        Ok(has_grown)
    }

    /// Reads and decrypts available bytes, as far as there is room. True if that produced plaintext.
    ///
    /// # Errors
    /// How the connection ends.
    #[inline]
    pub fn read(&mut self, context: &mut WorkerContext) -> Result<bool, ConnEnd> {
        let mut has_grown = false;
        if self.wants_read() {
            context.pool.lend(&mut self.from_client.pending);
        }
        for _ in 0..READS_PER_TURN_MAX {
            if !self.wants_read() {
                break;
            }
            let reserved = self.partial_len();
            match self.receive(reserved, context) {
                Ok(IoResult::Bytes(n)) => has_grown |= self.decrypt(reserved + n, context)?,
                Ok(IoResult::Blocked) => {}
                // An end without close_notify counts as one with it: many clients end so, and only the protocol inside
                // can tell whether something is missing.
                Ok(IoResult::End) => self.from_client.source_ended = true,
                Err(error) => return Err(self.broken(&error)),
            }
        }
        Ok(has_grown)
    }

    /// Plaintext that the client has sent, and that [`ClientSession::consume`] has not taken.
    #[inline]
    pub fn received(&self) -> &[u8] {
        self.from_client.pending.as_slice()
    }

    /// Takes `n` bytes off the front of [`ClientSession::received`].
    #[inline]
    pub fn consume(&mut self, n: usize, context: &mut WorkerContext) {
        self.from_client.consume(n);
        self.active_at = context.now;
        let prefix = n.min(self.prefix_bytes);
        self.prefix_bytes -= prefix;
        let n = (n - prefix) as u64;
        context.stats.bytes_in(self.account.slot, n);
        self.account.bytes_in += n;
    }

    /// Puts bytes of the handler before the received bytes, so both are sent in one write.
    pub(crate) fn prepend(&mut self, bytes: &[u8]) {
        self.from_client.pending.prepend(bytes);
        self.prefix_bytes = bytes.len();
    }

    /// Drops the client's received and future bytes: its end has been forwarded, or the upstream accepts no more.
    pub fn stop_receiving(&mut self) {
        self.from_client.pending.clear();
        self.from_client.sink_closed = true;
    }

    /// Whether received bytes are dropped.
    pub fn has_stopped_receiving(&self) -> bool {
        self.from_client.sink_closed
    }

    /// Whether the client sends nothing more.
    pub fn has_client_ended(&self) -> bool {
        self.from_client.source_ended
    }
}

/// Bytes to the client.
impl ClientSession {
    /// Whether the client accepts bytes, so more may be produced for it.
    #[inline]
    pub fn has_room(&self) -> bool {
        self.to_client.has_room()
    }

    /// Ciphertext that the client's socket has not taken, in bytes.
    #[inline]
    pub fn unsent_bytes(&self) -> usize {
        self.to_client.pending.len()
    }

    /// Encrypts all of `plaintext` for the client.
    ///
    /// # Errors
    /// How the connection ends.
    pub fn send(&mut self, plaintext: &[u8], context: &mut WorkerContext) -> Result<(), ConnEnd> {
        self.count_sent(plaintext.len(), context);
        let result = self.tls.encrypt(plaintext, &mut self.to_client.pending);
        result.map_err(|error| self.tls_failed(&error))
    }

    /// Encrypts the first `n` bytes of the scratch buffer for the client.
    #[inline]
    pub(crate) fn send_scratch(&mut self, n: usize, context: &mut WorkerContext) -> Result<(), ConnEnd> {
        self.count_sent(n, context);
        let result = self.tls.encrypt(&context.scratch[..n], &mut self.to_client.pending);
        result.map_err(|error| self.tls_failed(&error))
    }

    #[inline]
    fn count_sent(&mut self, n: usize, context: &mut WorkerContext) {
        self.active_at = context.now;
        context.stats.bytes_out(self.account.slot, n as u64);
        self.account.bytes_out += n as u64;
        self.owes_client = true;
        self.release_ticket(context);
        context.pool.lend(&mut self.to_client.pending);
    }

    /// Counts an exchange: a request of the client, and the first byte of the answer of the upstream at this index.
    pub fn count_exchange(&mut self, upstream: usize, took: Duration, context: &mut WorkerContext) {
        context.stats.exchange(self.account.slot, upstream, took);
    }

    /// Counts a request that began then; sizes are the handler's.
    pub fn count_request(&mut self, began_at: Instant, context: &mut WorkerContext) {
        context.stats.mix_request(&mut self.account.mix, began_at, None);
    }

    /// Counts bytes of the client that began then, and that the upstream answers now, as a request.
    pub(crate) fn count_relayed(&mut self, began_at: Instant, context: &mut WorkerContext) {
        let carried = [self.account.bytes_in, self.account.bytes_out];
        context.stats.mix_request(&mut self.account.mix, began_at, Some(carried));
    }

    /// Counts the client's failed requests on a connection that continues.
    pub fn count_failed_requests(&mut self, n: u64, context: &mut WorkerContext) {
        context.stats.failed_requests(self.account.slot, n);
    }

    pub fn close_notify(&mut self, context: &mut WorkerContext) {
        self.release_ticket(context);
        context.pool.lend(&mut self.to_client.pending);
        // After a failure TLS has sent an alert already.
        let _ = self.tls.close_notify(&mut self.to_client.pending);
    }

    /// Ends the stream to the client, once it has read its pending bytes; it may continue to send.
    pub fn finish(&mut self, context: &mut WorkerContext) {
        self.to_client.source_ended = true;
        self.close_notify(context);
    }

    /// Whether the end of data has been announced to the client.
    pub fn has_sent_close_notify(&self) -> bool {
        self.to_client.sink_closed
    }

    /// Whether [`ClientSession::finish`] was called.
    pub fn is_finishing(&self) -> bool {
        self.to_client.source_ended
    }

    /// Whether both sides have ended, and nothing waits.
    pub fn is_done(&self) -> bool {
        self.from_client.is_done() && self.to_client.is_done()
    }

    /// Whether the end of data has been announced to the client, and everything before it has been written.
    pub fn has_sent_end(&self) -> bool {
        self.to_client.is_done()
    }

    /// Writes the client's pending bytes. True if that has just announced the end.
    ///
    /// # Errors
    /// How the connection ends.
    #[inline]
    pub fn flush(&mut self, context: &mut WorkerContext) -> Result<bool, ConnEnd> {
        if self.ticket.at().is_some() {
            return Ok(false);
        }
        // If both have ended, closing implies it.
        let ends =
            self.to_client.source_ended && !self.to_client.sink_closed && !self.from_client.source_ended;
        while !self.to_client.pending.is_empty() && self.socket.is_writable() {
            let bytes = self.to_client.pending.as_slice();
            let written = if ends { self.socket.write_last(bytes) } else { self.socket.write(bytes) };
            match written {
                Ok(IoResult::Bytes(n)) => {
                    self.to_client.consume(n);
                    self.active_at = context.now;
                    context.stats.count(ProxyCounter::WireOut, n as u64);
                }
                Ok(_) => {}
                Err(error) => return Err(self.broken(&error)),
            }
        }
        if !self.to_client.pending.is_empty() {
            return Ok(false);
        }
        self.owes_client = false;
        if self.to_client.sink_closed || !self.to_client.source_ended {
            return Ok(false);
        }
        self.to_client.sink_closed = true;
        if ends {
            self.socket.shut_down();
        }
        Ok(ends)
    }

    pub(crate) fn release_ticket(&mut self, context: &mut WorkerContext) {
        context.timers.disarm(&mut self.ticket, self.key, TimerKind::Ticket);
    }
}
