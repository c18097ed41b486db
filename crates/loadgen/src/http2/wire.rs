//! A stream that counts what goes over it: bytes each way, and those of header blocks as they come compressed.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Length of the head of a frame (RFC 9113, section 4.1).
const HEAD_BYTES: usize = 9;
/// Frames that carry a header block: `HEADERS`, `PUSH_PROMISE` and `CONTINUATION`.
const HEADER_FRAMES: [u8; 3] = [1, 5, 9];

/// What went over one connection since it was last asked.
#[derive(Debug, Default)]
pub(super) struct Wire {
    bytes_in: Cell<u64>,
    bytes_out: Cell<u64>,
    head_bytes: Cell<u64>,
    ended: Cell<bool>,
    frames: RefCell<Frames>,
}

/// Where in the frames that are received reading stands.
#[derive(Debug, Default)]
struct Frames {
    head: [u8; HEAD_BYTES],
    head_len: usize,
    payload_left: usize,
    is_header: bool,
}

impl Wire {
    /// Bytes to the server, from the server, and of header blocks from it.
    pub(super) fn take(&self) -> (u64, u64, u64) {
        (self.bytes_in.take(), self.bytes_out.take(), self.head_bytes.take())
    }

    pub(super) fn end(&self) {
        self.ended.set(true);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.get()
    }

    fn received(&self, bytes: &[u8]) {
        self.bytes_out.set(self.bytes_out.get() + bytes.len() as u64);
        let head_bytes = self.frames.borrow_mut().feed(bytes);
        self.head_bytes.set(self.head_bytes.get() + head_bytes);
    }

    fn sent(&self, bytes: usize) {
        self.bytes_in.set(self.bytes_in.get() + bytes as u64);
    }
}

impl Frames {
    /// Takes in the next bytes, and gives how many of them belong to header blocks.
    fn feed(&mut self, mut bytes: &[u8]) -> u64 {
        let mut head_bytes = 0;
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let len = self.payload_left.min(bytes.len());
                head_bytes += if self.is_header { len as u64 } else { 0 };
                self.payload_left -= len;
                bytes = &bytes[len..];
                continue;
            }
            let len = (HEAD_BYTES - self.head_len).min(bytes.len());
            self.head[self.head_len..self.head_len + len].copy_from_slice(&bytes[..len]);
            self.head_len += len;
            bytes = &bytes[len..];
            if self.head_len == HEAD_BYTES {
                let [high, middle, low, kind, ..] = self.head;
                self.payload_left = u32::from_be_bytes([0, high, middle, low]) as usize;
                self.is_header = HEADER_FRAMES.contains(&kind);
                self.head_len = 0;
            }
        }
        head_bytes
    }
}

/// A stream whose traffic is counted.
#[derive(Debug)]
pub(super) struct Counted<S> {
    pub(super) inner: S,
    pub(super) wire: Rc<Wire>,
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        self.wire.received(&buffer.filled()[before..]);
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write(context, bytes);
        self.note(polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.inner).poll_write_vectored(context, pieces);
        self.note(polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(context)
    }
}

impl<S> Counted<S> {
    fn note(&self, polled: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if let Poll::Ready(Ok(bytes)) = &polled {
            self.wire.sent(*bytes);
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_blocks_are_counted_however_the_bytes_come() {
        let frame = |kind: u8, len: u8| {
            let mut frame = vec![0, 0, len, kind, 0, 0, 0, 0, 1];
            frame.resize(HEAD_BYTES + usize::from(len), 7);
            frame
        };
        let bytes =
            [frame(4, 6), frame(1, 30), frame(0, 200), frame(9, 5), frame(4, 0), frame(1, 1)].concat();
        for piece in [1, 2, 9, 10, 1_000] {
            let mut frames = Frames::default();
            let head_bytes: u64 = bytes.chunks(piece).map(|piece| frames.feed(piece)).sum();
            assert_eq!(head_bytes, 36, "in pieces of {piece}");
        }
    }
}
