//! One connection to an upstream.

use std::io;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes, BytesMut};
use mio::event::Event;
use proxy_core::{AddressAttempts, IoResult, UpstreamHandshake, UpstreamStream};

use super::read_buffer::ReadBuffer;

#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else")]
pub(crate) struct PooledConn {
    pub(in crate::upstream) stream: UpstreamStream,
    pub(in crate::upstream) upstream: usize,
    opened_at: Instant,
    /// The addresses of a TCP upstream, and the one in use.
    pub(in crate::upstream) addresses: Option<AddressAttempts>,
    /// Whether it is closed rather than kept: its upstream is gone, or no longer has its address.
    pub(in crate::upstream) is_withdrawn: bool,
    /// How long connecting took, without TLS; `None` before.
    connect_time: Option<Duration>,
    handshake: Option<UpstreamHandshake>,
    /// Bytes received from the upstream and not consumed yet.
    pub(in crate::upstream) received: Bytes,
    /// The size of the memory in which they lie.
    pub(in crate::upstream) received_memory: usize,
    /// Bytes to send to the upstream.
    pub(in crate::upstream) unsent: BytesMut,
    /// Whether the upstream sends nothing more.
    pub(in crate::upstream) has_ended: bool,
    /// Most bytes that an exchange waits for; 0 if none does.
    wanted_bytes: usize,
    /// The result of reading ahead, for the exchange: whether anything was read, or an error.
    ahead: Option<io::Result<bool>>,
    pub(in crate::upstream) is_idle: bool,
    /// Wakes the task that waits for it.
    waker: Option<Waker>,
    /// When to wake the waiting task if nothing was received by then.
    pub(in crate::upstream) wake_at: Option<Instant>,
    /// Whether it has served an exchange: the upstream may have closed it since.
    is_reused: bool,
}

impl PooledConn {
    pub(in crate::upstream) fn new(
        stream: UpstreamStream,
        upstream: usize,
        opened_at: Instant,
        addresses: Option<AddressAttempts>,
    ) -> Self {
        Self {
            stream,
            opened_at,
            upstream,
            addresses,
            is_withdrawn: false,
            connect_time: None,
            handshake: None,
            received: Bytes::new(),
            received_memory: 0,
            unsent: BytesMut::new(),
            has_ended: false,
            wanted_bytes: 0,
            ahead: None,
            is_idle: false,
            waker: None,
            wake_at: None,
            is_reused: false,
        }
    }

    /// Whether it has served a request before.
    pub(crate) fn is_reused(&self) -> bool {
        self.is_reused
    }

    /// Whether it is established, with TLS if the upstream speaks it.
    pub(in crate::upstream) fn is_connected(&self) -> bool {
        self.connect_time.is_some()
    }

    /// How long connecting took, without TLS.
    pub(crate) fn connect_time(&self) -> Duration {
        self.connect_time.unwrap_or_default()
    }

    /// The handshake with which it began; `None` without TLS.
    pub(crate) fn handshake(&self) -> Option<UpstreamHandshake> {
        self.handshake
    }

    pub(in crate::upstream) fn note(&mut self, event: &Event) {
        self.stream.note(event);
        self.wake();
    }

    pub(in crate::upstream) fn wake(&mut self) {
        if let Some(waker) = self.waker.take() {
            waker.wake();
        }
    }

    pub(in crate::upstream) fn set_waker(&mut self, waker: &Waker) {
        if !self.waker.as_ref().is_some_and(|other| other.will_wake(waker)) {
            self.waker = Some(waker.clone());
        }
    }

    /// Reads at most `bytes_max` for an exchange; true if bytes or the end have arrived. Otherwise the exchange waits.
    pub(in crate::upstream) fn read(
        &mut self,
        buffer: &mut ReadBuffer,
        bytes_max: usize,
        waker: &Waker,
    ) -> io::Result<bool> {
        if let Some(ahead) = self.ahead.take() {
            return ahead;
        }
        let has_read = self.read_now(buffer, bytes_max)?;
        if !has_read {
            self.wanted_bytes = bytes_max;
            self.set_waker(waker);
        }
        Ok(has_read)
    }

    /// Reads what an exchange waits for, before it is polled; returns how much.
    pub(in crate::upstream) fn read_ahead(&mut self, buffer: &mut ReadBuffer) -> usize {
        let bytes_max = std::mem::take(&mut self.wanted_bytes);
        if bytes_max == 0 {
            return 0;
        }
        let before = self.received.len();
        // What was not read now is read when the exchange is polled.
        self.ahead = Some(self.read_now(buffer, bytes_max)).filter(|ahead| !matches!(ahead, Ok(false)));
        self.received.len() - before
    }

    fn read_now(&mut self, buffer: &mut ReadBuffer, bytes_max: usize) -> io::Result<bool> {
        if !self.stream.is_readable() {
            return Ok(false);
        }
        match self.stream.read(buffer.room(bytes_max))? {
            IoResult::Bytes(n) if self.received.is_empty() => {
                (self.received, self.received_memory) = (buffer.take(n), ReadBuffer::memory(n));
            }
            IoResult::Bytes(n) => {
                append(&mut self.received, buffer.bytes(n));
                self.received_memory = self.received.len();
            }
            IoResult::End => self.has_ended = true,
            IoResult::Blocked => return Ok(false),
        }
        Ok(true)
    }

    /// The memory of what was received and not consumed.
    pub(in crate::upstream) fn received_memory(&self) -> usize {
        if self.received.is_empty() { 0 } else { self.received_memory }
    }

    /// Waits until the address that is being tried has answered.
    pub(in crate::upstream) fn poll_connected(&mut self, cx: &Context<'_>) -> Poll<io::Result<()>> {
        if self.connect_time.is_none() {
            if !self.stream.establish()? {
                self.set_waker(cx.waker());
                return Poll::Pending;
            }
            let now = Instant::now();
            self.connect_time = Some(self.stream.connect_time(self.opened_at, now));
            self.handshake = self.stream.handshake(now);
            self.addresses.iter().for_each(AddressAttempts::succeeded);
        }
        Poll::Ready(Ok(()))
    }

    /// Whether an idle connection can take a request: the upstream has neither closed it nor sent anything.
    pub(in crate::upstream) fn is_still_open(&mut self, scratch: &mut [u8]) -> bool {
        !self.stream.is_readable() || matches!(self.stream.read(scratch), Ok(IoResult::Blocked))
    }

    /// Whether its upstream no longer has the address to which it is connected.
    pub(in crate::upstream) fn has_address_vanished(&self) -> bool {
        self.addresses.as_ref().is_some_and(AddressAttempts::is_withdrawn)
    }

    /// Whether it can take another request after an exchange.
    pub(in crate::upstream) fn may_be_kept(&self) -> bool {
        let has_nothing_pending =
            self.received.is_empty() && self.unsent.is_empty() && self.stream.held().0 == 0;
        has_nothing_pending && !self.has_ended && !self.is_withdrawn
    }

    /// Becomes idle. It holds no memory for bytes then.
    pub(in crate::upstream) fn rest(&mut self) {
        self.waker = None;
        self.wake_at = None;
        self.is_reused = true;
        self.is_idle = true;
        self.wanted_bytes = 0;
        self.ahead = None;
        self.received = Bytes::new();
        self.unsent = BytesMut::new();
    }

    /// Writes the head of a request; returns how much the upstream took. The rest waits.
    pub(in crate::upstream) fn begin(&mut self, head: &[u8]) -> io::Result<usize> {
        let taken = match self.stream.write(head)? {
            IoResult::Bytes(n) => n,
            IoResult::Blocked | IoResult::End => 0,
        };
        self.unsent.extend_from_slice(&head[taken..]);
        Ok(taken)
    }

    pub(in crate::upstream) fn flush(&mut self, waker: &Waker) -> io::Result<usize> {
        let mut taken = self.stream.flush()?;
        while !self.unsent.is_empty() && self.stream.is_writable() {
            match self.stream.write(&self.unsent)? {
                IoResult::Bytes(n) => {
                    self.unsent.advance(n);
                    taken += n;
                }
                IoResult::Blocked | IoResult::End => {}
            }
        }
        if !self.unsent.is_empty() || self.stream.has_unsent() {
            self.set_waker(waker);
        }
        Ok(taken)
    }
}

/// Appends what the upstream has sent to what it had sent before, which is empty, or the beginning of a head or a line.
pub(crate) fn append(received: &mut Bytes, bytes: &[u8]) {
    if received.is_empty() {
        *received = Bytes::copy_from_slice(bytes);
        return;
    }
    let mut joined = BytesMut::from(std::mem::take(received));
    joined.extend_from_slice(bytes);
    *received = joined.freeze();
}
