//! Tunnels: bytes both ways, once an upstream has agreed to a WebSocket. The exchange takes bytes from the client and from
//! the upstream; a client of HTTP/1.1 gets the latter on its connection, a client of HTTP/2 as the content of a response.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::mem;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf as _, Bytes};
use h2::Reason;
use hyper::rt::Write as _;

use super::content::{ContentSource, WireContent};
use super::exchange::Exchange;
use super::response_body::Chunk;
use crate::client::ClientConn;
use crate::request::RequestHandle;
use crate::runtime::io::WireIo;

/// A tunnel between a client and an upstream.
#[derive(Debug)]
pub(crate) struct Tunnel {
    exchange: Exchange,
    request: RequestHandle,
    has_upstream_ended: bool,
}

/// Where the bytes for a client go.
#[derive(Debug)]
enum ClientSink {
    Wire(WireIo, Option<Chunk>),
    Body(Rc<RefCell<TunnelBuffer>>),
}

/// What a tunnel has for the content of a response.
#[derive(Debug, Default)]
struct TunnelBuffer {
    piece: Option<Chunk>,
    end: Option<io::Result<()>>,
    /// Whether nobody wants the content any more.
    is_dropped: bool,
    tunnel: Option<Waker>,
    content: Option<Waker>,
}

/// The content of the response to a client of HTTP/2.
#[derive(Debug)]
pub(crate) struct TunnelContent(Rc<RefCell<TunnelBuffer>>);

/// The upstream has broken, of which hyper tells a client by the reason of the source (RFC 8441, section 5).
#[derive(Debug, thiserror::Error)]
#[error("the upstream has broken the tunnel")]
struct TunnelReset(#[source] h2::Error);

impl Tunnel {
    pub(crate) fn new(exchange: Exchange, request: &RequestHandle) -> Self {
        Self { exchange, request: request.clone(), has_upstream_ended: false }
    }

    /// Passes bytes of a client of HTTP/1.1 until the upstream has ended. `received` came behind its request.
    ///
    /// # Errors
    /// When the upstream breaks.
    pub(crate) async fn run(mut self, io: WireIo, received: Bytes) -> io::Result<()> {
        let content = WireContent { io: io.clone(), received };
        self.exchange.open_tunnel(Some(ContentSource::Wire(Box::new(content))));
        let mut sink = ClientSink::Wire(io, None);
        poll_fn(|cx| self.poll(&mut sink, cx)).await
    }

    /// Passes bytes of a client of HTTP/2, as a task of its connection, until both sides have ended.
    pub(crate) fn spawn(mut self, client: &ClientConn) -> TunnelContent {
        let buffer = Rc::new(RefCell::new(TunnelBuffer::default()));
        let content = TunnelContent(Rc::clone(&buffer));
        if let Some(tasks) = client.tasks.get() {
            tasks.spawn(async move {
                let mut sink = ClientSink::Body(Rc::clone(&buffer));
                if poll_fn(|cx| self.poll(&mut sink, cx)).await.is_err() {
                    buffer.borrow_mut().end(Err(io::Error::other(TunnelReset(Reason::CANCEL.into()))));
                }
            });
        }
        content
    }

    fn poll(&mut self, sink: &mut ClientSink, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            // A client that does not read may still send.
            if !sink.poll_sent(cx)? || self.has_upstream_ended {
                return self.poll_from_client(sink, cx);
            }
            match ready!(self.exchange.poll_data(cx)) {
                Some(Ok(bytes)) => sink.put(Chunk::new(bytes, &self.request)),
                Some(Err(error)) => {
                    self.request.fail(self.exchange.cut_by());
                    return Poll::Ready(Err(error));
                }
                None => {
                    self.has_upstream_ended = true;
                    self.request.set_complete();
                    sink.end();
                }
            }
        }
    }

    fn poll_from_client(&mut self, sink: &ClientSink, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // What a client of HTTP/1.1 sends after its end would have no reader.
        if self.has_upstream_ended && matches!(sink, ClientSink::Wire(..)) {
            return Poll::Ready(Ok(()));
        }
        match self.exchange.poll_content(cx) {
            Poll::Ready(Err(failure)) if !self.has_upstream_ended => {
                self.request.fail(failure);
                Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into()))
            }
            Poll::Ready(_) if self.has_upstream_ended => Poll::Ready(Ok(())),
            Poll::Ready(_) | Poll::Pending => Poll::Pending,
        }
    }
}

impl ClientSink {
    /// Sends what was put; false if some of it waits.
    ///
    /// # Errors
    /// If the client has left.
    fn poll_sent(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        match self {
            Self::Wire(io, piece) => {
                while let Some(chunk) = piece
                    && chunk.has_remaining()
                {
                    match Pin::new(&mut *io).poll_write(cx, chunk.chunk())? {
                        Poll::Ready(n) => chunk.advance(n),
                        Poll::Pending => return Ok(false),
                    }
                }
                *piece = None;
                Ok(true)
            }
            Self::Body(buffer) => {
                let buffer = &mut *buffer.borrow_mut();
                if buffer.is_dropped && buffer.end.is_none() {
                    return Err(io::ErrorKind::ConnectionAborted.into());
                }
                buffer.tunnel = Some(cx.waker().clone());
                Ok(buffer.piece.is_none())
            }
        }
    }

    /// Puts the next piece, after everything before it was sent.
    fn put(&mut self, next: Chunk) {
        match self {
            Self::Wire(_, piece) => *piece = Some(next),
            Self::Body(buffer) => {
                let buffer = &mut *buffer.borrow_mut();
                buffer.piece = Some(next);
                buffer.wake_content();
            }
        }
    }

    fn end(&self) {
        if let Self::Body(buffer) = self {
            buffer.borrow_mut().end(Ok(()));
        }
    }
}

impl TunnelBuffer {
    fn end(&mut self, end: io::Result<()>) {
        self.end = Some(end);
        self.wake_content();
    }

    fn wake_content(&mut self) {
        if let Some(waker) = self.content.take() {
            waker.wake();
        }
    }
}

impl TunnelContent {
    /// The next bytes; `None` once the upstream has ended.
    pub(super) fn poll_data(&self, cx: &Context<'_>) -> Poll<Option<io::Result<Chunk>>> {
        let buffer = &mut *self.0.borrow_mut();
        if let Some(piece) = buffer.piece.take() {
            buffer.tunnel.take().into_iter().for_each(Waker::wake);
            return Poll::Ready(Some(Ok(piece)));
        }
        if let Some(end) = &mut buffer.end {
            return Poll::Ready(mem::replace(end, Ok(())).err().map(Err));
        }
        buffer.content = Some(cx.waker().clone());
        Poll::Pending
    }
}

impl Drop for TunnelContent {
    fn drop(&mut self) {
        let buffer = &mut *self.0.borrow_mut();
        (buffer.is_dropped, buffer.piece) = (true, None);
        buffer.tunnel.take().into_iter().for_each(Waker::wake);
    }
}
