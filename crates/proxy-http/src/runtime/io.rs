//! The plaintext between a client's session and hyper, which owns its I/O object: both share a [`WireBuffers`].

use std::cell::RefCell;
use std::io;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::{Buf as _, BytesMut};
use hyper::rt::{Read, ReadBufCursor, Write};

use crate::guard::http1_tap::{Http1Requests, Http1Tap};
use crate::runtime::written::{LongPieces, WrittenBytes};

/// Unsent bytes of a connection, over all its streams, above which hyper may not write more. hyper's own bound is per
/// stream.
pub(crate) const UNSENT_BYTES_MAX: usize = 64 << 10;

/// Bytes of the client that wait for hyper, above which the client is not read.
const RECEIVED_BYTES_MAX: usize = 64 << 10;

/// The bytes that wait in each direction.
#[derive(Debug, Default)]
pub(crate) struct WireBuffers {
    /// Bytes from the client that hyper has not read.
    pub(crate) received: BytesMut,
    /// Whether the client sends nothing more.
    pub(crate) has_client_ended: bool,
    /// Bytes from hyper that the session has not taken.
    pub(crate) written: WrittenBytes,
    /// Bytes that the session has encrypted and the kernel has not taken.
    pub(crate) unsent_bytes: usize,
    pieces: LongPieces,
    /// The tap and the requests of an HTTP/1.1 connection.
    requests: Option<(Http1Tap, Rc<Http1Requests>)>,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl WireBuffers {
    /// Empty; what hyper writes may lie in `pieces`, and what it reads is `requests`.
    pub(crate) fn new(pieces: LongPieces, requests: Option<Rc<Http1Requests>>) -> Self {
        let requests = requests.map(|requests| (Http1Tap::default(), requests));
        Self { pieces, requests, ..Self::default() }
    }

    /// Bytes that hyper may read; `None`: none before the client or hyper itself has gone on.
    fn readable(&mut self) -> Option<usize> {
        let (len, is_last) = (self.received.len(), self.has_client_ended);
        let readable = match &mut self.requests {
            Some((tap, requests)) => tap.readable(&mut self.received, is_last, requests),
            None => len,
        };
        (readable > 0 || len == 0 && is_last).then_some(readable)
    }

    /// Gives what hyper writes memory of the worker's.
    pub(crate) fn lend(&mut self, spare: &RefCell<WrittenBytes>) {
        if self.written.is_empty() {
            self.written = spare.take();
        }
    }

    /// Takes the memory back. Between two turns there is nothing in it most of the time.
    pub(crate) fn reclaim(&mut self, spare: &RefCell<WrittenBytes>) {
        if self.written.is_empty() {
            spare.replace(mem::take(&mut self.written));
        }
    }

    /// Whether hyper may write.
    fn has_room(&self) -> bool {
        self.written.len() + self.unsent_bytes < UNSENT_BYTES_MAX
    }

    /// Whether what hyper reads next begins another request, as far as that is known.
    pub(crate) fn is_between_requests(&self) -> bool {
        self.requests.as_ref().is_some_and(|(tap, requests)| tap.is_between_requests(requests))
    }

    /// Whether a part of the next request's head has arrived, and not all of it, as far as that is known.
    pub(crate) fn is_within_head(&self) -> bool {
        self.requests.as_ref().is_some_and(|(tap, _)| tap.is_within_head())
    }

    /// Whether hyper waits to write.
    pub(crate) fn is_blocked(&self) -> bool {
        self.writer.is_some()
    }

    /// The number of bytes that it accepts from the client.
    pub(crate) fn room(&self) -> usize {
        RECEIVED_BYTES_MAX.saturating_sub(self.received.len())
    }

    /// Wakes the reader: bytes or the end have arrived.
    pub(crate) fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }

    /// Notes how much the session holds unsent, and wakes the writer if there is room again.
    pub(crate) fn set_unsent(&mut self, bytes: usize) {
        self.unsent_bytes = bytes;
        if self.has_room()
            && let Some(writer) = self.writer.take()
        {
            writer.wake();
        }
    }
}

/// hyper's end of the wire.
#[derive(Clone, Debug)]
pub(crate) struct WireIo(pub(crate) Rc<RefCell<WireBuffers>>);

impl Read for WireIo {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let mut wire = self.0.borrow_mut();
        let Some(readable) = wire.readable() else {
            wire.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let n = buf.remaining().min(readable);
        buf.put_slice(&wire.received[..n]);
        wire.received.advance(n);
        if let Some((tap, _)) = &mut wire.requests {
            tap.consume(n);
        }
        Poll::Ready(Ok(()))
    }
}

impl Write for WireIo {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[io::IoSlice::new(buf)])
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write(cx, &[]).map_ok(|_| ())
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        // The connection ends once everything is sent.
        Poll::Ready(Ok(()))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(cx, bufs)
    }
}

impl WireIo {
    /// Waits until the client has sent something, or has ended.
    pub(crate) fn poll_received(&self, cx: &Context<'_>) -> Poll<()> {
        let mut wire = self.0.borrow_mut();
        if wire.received.is_empty() && !wire.has_client_ended {
            wire.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(())
    }

    fn write(&self, cx: &mut Context<'_>, bufs: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let mut wire = self.0.borrow_mut();
        let wire = &mut *wire;
        if !wire.has_room() {
            wire.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        let mut written = 0;
        for buf in bufs {
            if !wire.has_room() {
                break;
            }
            wire.written.push(buf, &wire.pieces);
            written += buf.len();
        }
        Poll::Ready(Ok(written))
    }
}
