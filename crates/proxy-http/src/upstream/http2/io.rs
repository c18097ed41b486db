//! What h2 reads and writes.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use proxy_core::{IoResult, UpstreamStream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Most that is read at once.
const READ_BYTES_MAX: usize = 16 << 10;

/// The library's end of a connection. Every event of the socket has the connection polled, so that no waker is kept.
pub(super) struct Http2Io {
    pub(super) stream: Rc<RefCell<UpstreamStream>>,
    pub(super) reads: Rc<Reads>,
}

/// What was read of a connection.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// How often.
    pub(super) count: Cell<u64>,
    /// Bytes that may be read in this turn: other connections must have theirs.
    pub(super) budget: Cell<usize>,
}

impl fmt::Debug for Http2Io {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http2Io").finish_non_exhaustive()
    }
}

impl AsyncRead for Http2Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let Self { stream, reads, .. } = &*self;
        let mut stream = stream.borrow_mut();
        let n = loop {
            if !stream.is_readable() {
                return Poll::Pending;
            }
            if reads.budget.get() == 0 {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            let room = buf.remaining().min(READ_BYTES_MAX);
            match stream.read(buf.initialize_unfilled_to(room))? {
                IoResult::Bytes(n) => break n,
                IoResult::End => break 0,
                // TLS may have read what holds no data.
                IoResult::Blocked => {}
            }
        };
        reads.budget.set(reads.budget.get().saturating_sub(n));
        let is_first = reads.count.replace(reads.count.get() + 1) == 0;
        if is_first && buf.initialize_unfilled_to(n).starts_with(b"HTTP/1.") {
            let problem = "it answers with HTTP/1.1: name it without h2c:// or h2://";
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, problem)));
        }
        buf.advance(n);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Http2Io {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let mut stream = self.stream.borrow_mut();
        if !stream.is_writable() {
            return Poll::Pending;
        }
        match stream.write(bytes) {
            Ok(IoResult::Bytes(n)) => Poll::Ready(Ok(n)),
            Ok(IoResult::Blocked | IoResult::End) => Poll::Pending,
            // Its last words may wait to be read; then its end.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Poll::Ready(Ok(bytes.len())),
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut stream = self.stream.borrow_mut();
        match stream.flush() {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Poll::Ready(Err(error)),
            _ => {}
        }
        if stream.has_unsent() { Poll::Pending } else { Poll::Ready(Ok(())) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.as_mut().poll_flush(cx))?;
        self.stream.borrow_mut().shut_down();
        Poll::Ready(Ok(()))
    }
}
