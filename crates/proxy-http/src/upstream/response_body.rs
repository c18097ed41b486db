//! The content of a response on its way to the client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http_body::{Body, Frame, SizeHint};

use super::exchange::Exchange;
use super::tunnel::TunnelContent;
use crate::request::RequestHandle;

#[derive(Debug)]
pub(crate) struct ResponseBody {
    source: BodySource,
    request: RequestHandle,
}

#[derive(Debug)]
enum BodySource {
    /// What the upstream sends.
    Upstream(Exchange),
    Tunnel(TunnelContent),
    /// The upstream has broken.
    Broken(io::Error),
    /// The whole content.
    Whole(Bytes),
    End,
}

/// Data that hyper has not framed yet. The request does not end before it is dropped.
#[derive(Debug)]
pub(crate) struct Chunk {
    bytes: Bytes,
    request: RequestHandle,
}

impl ResponseBody {
    /// The content of this exchange, which ends at once if there is none.
    pub(crate) fn of(mut exchange: Exchange, request: &RequestHandle) -> Self {
        let source = if exchange.is_complete() && !exchange.has_trailers() {
            exchange.finish();
            request.set_complete();
            BodySource::End
        } else if let Some(bytes) = exchange.take_whole() {
            exchange.finish();
            BodySource::Whole(bytes)
        } else {
            BodySource::Upstream(exchange)
        };
        Self { source, request: request.clone() }
    }

    /// What a tunnel has for a client of HTTP/2.
    pub(crate) fn of_tunnel(content: TunnelContent, request: &RequestHandle) -> Self {
        Self { source: BodySource::Tunnel(content), request: request.clone() }
    }

    /// A text of the proxy itself.
    pub(crate) fn text(text: &'static str, request: &RequestHandle) -> Self {
        Self { source: BodySource::Whole(Bytes::from_static(text.as_bytes())), request: request.clone() }
    }

    pub(crate) fn empty(request: &RequestHandle) -> Self {
        Self { source: BodySource::End, request: request.clone() }
    }

    fn finish(&mut self) {
        if let BodySource::Upstream(mut exchange) = std::mem::replace(&mut self.source, BodySource::End) {
            exchange.finish();
        }
        self.request.set_complete();
    }

    /// Ends with an error. hyper drops what it has framed and not written when it learns of that: that goes first.
    fn break_off<T>(&mut self, error: io::Error, cx: &Context<'_>) -> Poll<T> {
        self.source = BodySource::Broken(error);
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn data(&self, bytes: Bytes) -> Frame<Chunk> {
        Frame::data(Chunk::new(bytes, &self.request))
    }
}

impl Chunk {
    pub(super) fn new(bytes: Bytes, request: &RequestHandle) -> Self {
        request.client().held.hold(&bytes);
        Self { bytes, request: request.clone() }
    }
}

impl Body for ResponseBody {
    type Data = Chunk;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Chunk>>>> {
        let exchange = match &mut self.source {
            BodySource::End => return Poll::Ready(None),
            BodySource::Broken(error) => {
                let kind = error.kind();
                return Poll::Ready(Some(Err(std::mem::replace(error, kind.into()))));
            }
            BodySource::Whole(bytes) => {
                let bytes = std::mem::take(bytes);
                self.finish();
                return Poll::Ready(Some(Ok(self.data(bytes))));
            }
            BodySource::Upstream(exchange) => exchange,
            BodySource::Tunnel(content) => {
                return match content.poll_data(cx) {
                    Poll::Ready(Some(Err(error))) => self.break_off(error, cx),
                    polled => polled.map_ok(Frame::data),
                };
            }
        };
        match exchange.poll_data(cx) {
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(bytes))) => {
                if exchange.is_complete() && !exchange.has_trailers() {
                    self.finish();
                } else if exchange.content_left() == Some(0) {
                    // Over HTTP/1.1 nobody asks for what ends the stream of an upstream.
                    self.request.set_complete();
                }
                Poll::Ready(Some(Ok(self.data(bytes))))
            }
            Poll::Ready(Some(Err(error))) => {
                let failure = exchange.cut_by();
                self.request.fail(failure);
                self.break_off(error, cx)
            }
            Poll::Ready(None) => {
                let trailers = exchange.take_trailers();
                self.finish();
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.source, BodySource::End)
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            BodySource::End => SizeHint::with_exact(0),
            BodySource::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            BodySource::Broken(_) | BodySource::Tunnel(_) => SizeHint::default(),
            BodySource::Upstream(exchange) => {
                exchange.content_left().map_or_else(SizeHint::default, SizeHint::with_exact)
            }
        }
    }
}

impl Buf for Chunk {
    fn remaining(&self) -> usize {
        self.bytes.len()
    }

    fn chunk(&self) -> &[u8] {
        &self.bytes
    }

    fn advance(&mut self, n: usize) {
        self.bytes.advance(n);
        self.request.client().held.release(n);
        self.request.sent(n as u64);
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        self.request.client().held.drop_piece(&self.bytes);
        if !self.bytes.is_empty() {
            self.request.set_cut();
        }
    }
}
