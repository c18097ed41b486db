//! The content of a request on its way to the upstream.

use records::kinds::HttpVersion;
use std::error::Error as _;
use std::fmt::Write as _;
use std::future::poll_fn;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http_body::{Body as _, Frame};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName};
use hyper::rt::{Read as _, ReadBuf};
use records::metrics::RequestFailure;

use super::request_head::RequestFraming;
use crate::guard::frame_tap::VERDICT;
use crate::request::RequestHandle;
use crate::request::special_fields::may_be_trailer;
use crate::runtime::io::WireIo;

/// Most that is taken from a client of HTTP/1.1 at once.
const READ_BYTES_MAX: usize = 16 << 10;

/// The rest of a request's content.
#[derive(Debug)]
pub(crate) struct RequestContent {
    /// `None` once it is whole.
    body: Option<ContentSource>,
    /// Whether it is the client's part of a tunnel, of any length.
    is_tunnel: bool,
    framing: RequestFraming,
    request: RequestHandle,
    /// Pieces that were taken and are to be sent, or sent again; the last one is the first.
    taken: Vec<Piece>,
    /// The client may still send content that nobody reads.
    is_given_up: bool,
    received: u64,
    /// When a byte of it last moved, from the client or to the upstream.
    moved_at: Instant,
}

/// Where the bytes of a client come from.
#[derive(Debug)]
pub(crate) enum ContentSource {
    Body(Incoming),
    Wire(Box<WireContent>),
}

/// What a client of HTTP/1.1 sends after `101 Switching Protocols`.
#[derive(Debug)]
pub(crate) struct WireContent {
    pub(super) io: WireIo,
    /// What came behind the request.
    pub(super) received: Bytes,
}

#[derive(Debug)]
pub(super) enum Piece {
    Data(Bytes),
    Trailers(HeaderMap),
    End,
}

impl WireContent {
    /// The next bytes; `None` once the client has ended.
    pub(super) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.received.is_empty() {
            return Poll::Ready(Some(mem::take(&mut self.received)));
        }
        let mut bytes = [0; READ_BYTES_MAX];
        let mut buf = ReadBuf::new(&mut bytes);
        // What the wire holds can always be read.
        let _ = ready!(Pin::new(&mut self.io).poll_read(cx, buf.unfilled()));
        Poll::Ready((!buf.filled().is_empty()).then(|| Bytes::copy_from_slice(buf.filled())))
    }
}

impl ContentSource {
    /// Whether it is known that nothing follows.
    pub(super) fn is_at_end(&self) -> bool {
        matches!(self, Self::Body(body) if body.is_end_stream())
    }
}

impl RequestContent {
    pub(crate) fn new(body: Incoming, framing: RequestFraming, request: &RequestHandle) -> Self {
        let mut content = Self {
            body: Some(ContentSource::Body(body)),
            is_tunnel: false,
            framing,
            request: request.clone(),
            taken: Vec::new(),
            is_given_up: false,
            received: 0,
            moved_at: request.client().worker.now(),
        };
        if framing == RequestFraming::None {
            content.stop();
        }
        content
    }

    /// Takes the rest out, for a tunnel that has not begun.
    pub(crate) fn withhold(&mut self) -> Option<ContentSource> {
        self.framing = RequestFraming::None;
        self.body.take()
    }

    /// Continues with what the client sends in a tunnel.
    pub(super) fn open_tunnel(&mut self, source: Option<ContentSource>) {
        (self.body, self.is_tunnel) = (source, true);
    }

    /// Whether nothing of it is left to send.
    pub(crate) fn is_whole(&self) -> bool {
        self.body.is_none() && self.taken.is_empty()
    }

    /// Whether nothing of it was sent, so that it can still be sent elsewhere.
    pub(crate) fn is_untouched(&self) -> bool {
        self.received == 0 || !self.taken.is_empty()
    }

    /// Whether it is known that no data is left, and no trailers.
    pub(super) fn is_at_end(&self) -> bool {
        self.taken.is_empty() && self.body.as_ref().is_none_or(ContentSource::is_at_end)
    }

    /// Sends this data once more, before the rest.
    pub(super) fn send_again(&mut self, data: Bytes) {
        if !data.is_empty() {
            self.taken.push(Piece::Data(data));
        }
    }

    /// Looks at what has come with the head: an upstream need not learn of a request that is broken. hyper reads content
    /// once it was asked for it.
    ///
    /// # Errors
    /// If it is broken.
    pub(crate) async fn look_ahead(&mut self) -> Result<(), RequestFailure> {
        let mut has_asked = false;
        let first = poll_fn(|cx| match self.poll_piece(cx) {
            Poll::Pending if !mem::replace(&mut has_asked, true) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Poll::Pending => Poll::Ready(Ok(None)),
            Poll::Ready(piece) => Poll::Ready(piece.map(Some)),
        })
        .await?;
        self.taken.extend(first);
        Ok(())
    }

    /// Whether the client may still send content, read or not.
    pub(super) fn is_incomplete(&self) -> bool {
        self.is_given_up || !self.is_at_end()
    }

    /// Sends no more of it.
    pub(super) fn stop(&mut self) {
        self.is_given_up |= !self.is_at_end();
        self.end();
    }

    fn end(&mut self) {
        if self.body.take().is_some() {
            self.request.client().end_content();
        }
    }

    /// Notes that the upstream has taken some of it.
    pub(super) fn note_moved(&mut self) {
        self.moved_at = self.request.client().worker.now();
    }

    /// Takes what the client has sent of it.
    pub(super) fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Piece, RequestFailure>> {
        if let Some(piece) = self.taken.pop() {
            return Poll::Ready(Ok(piece));
        }
        let polled = match &mut self.body {
            None => return Poll::Ready(Ok(Piece::End)),
            Some(ContentSource::Body(body)) => Pin::new(body).poll_frame(cx),
            Some(ContentSource::Wire(wire)) => {
                wire.poll_data(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
            }
        };
        let frame = match polled {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => {
                self.end();
                return Poll::Ready(Ok(Piece::End));
            }
            Poll::Ready(Some(Err(error))) => return Poll::Ready(Err(failure_of(&error))),
            Poll::Ready(Some(Ok(frame))) => frame,
        };
        self.note_moved();
        let data = match frame.into_data() {
            Ok(data) => data,
            Err(frame) => {
                self.end();
                let trailers = frame.into_trailers().unwrap_or_default();
                let is_http2 = self.request.client().version == HttpVersion::Http2;
                // A tunnel has none (RFC 9113, section 8.5).
                let is_refused = self.is_tunnel || is_http2 && trailers.contains_key(VERDICT);
                let piece = (!is_refused).then_some(Piece::Trailers(trailers));
                return Poll::Ready(piece.ok_or(RequestFailure::Malformed));
            }
        };
        self.received += data.len() as u64;
        self.request.received(data.len() as u64);
        let is_too_long = self.received > self.request.client().worker.limits().body_bytes_max as u64;
        if is_too_long && !self.is_tunnel {
            return Poll::Ready(Err(RequestFailure::BodyTooLarge));
        }
        Poll::Ready(Ok(Piece::Data(data)))
    }

    pub(super) fn encode(&self, piece: Piece, unsent: &mut BytesMut) {
        let is_chunked = self.framing == RequestFraming::Chunked;
        // Writing to memory does not fail.
        match piece {
            Piece::Data(data) if !is_chunked => unsent.extend_from_slice(&data),
            Piece::Data(data) if data.is_empty() => {}
            Piece::Data(data) => {
                let _ = write!(unsent, "{:x}\r\n", data.len());
                unsent.extend_from_slice(&data);
                unsent.extend_from_slice(b"\r\n");
            }
            Piece::Trailers(trailers) if is_chunked => {
                unsent.extend_from_slice(b"0\r\n");
                let rules = &self.request.client().worker.shared.request_rules;
                let passes = |name: &HeaderName| may_be_trailer(name.as_str()) && !rules.replace(name);
                for (name, value) in trailers.iter().filter(|(name, _)| passes(name)) {
                    let _ = write!(unsent, "{name}: ");
                    unsent.extend_from_slice(value.as_bytes());
                    unsent.extend_from_slice(b"\r\n");
                }
                unsent.extend_from_slice(b"\r\n");
            }
            Piece::End if is_chunked => unsent.extend_from_slice(b"0\r\n\r\n"),
            Piece::Trailers(_) | Piece::End => {}
        }
    }

    /// When a byte of it last moved, or it was to be sent.
    pub(super) fn moved_at(&self) -> Instant {
        self.moved_at
    }

    /// When nothing will have moved for the timeout.
    pub(super) fn stalled_at(&self) -> Instant {
        let worker = &self.request.client().worker;
        let own = self.request.timeouts().body;
        self.moved_at + own.unwrap_or_else(|| worker.limits().body_timeout)
    }
}

/// Why the client's content has failed: HTTP/2 finds a wrong `content-length` itself.
fn failure_of(error: &hyper::Error) -> RequestFailure {
    let is_own_verdict = || {
        error
            .source()
            .and_then(|source| source.downcast_ref::<h2::Error>())
            .is_some_and(h2::Error::is_library)
    };
    let is_invalid = || {
        let kind = error
            .source()
            .and_then(|source| source.downcast_ref::<std::io::Error>())
            .map(std::io::Error::kind);
        matches!(kind, Some(std::io::ErrorKind::InvalidInput | std::io::ErrorKind::InvalidData))
    };
    if error.is_parse() || is_own_verdict() || is_invalid() {
        RequestFailure::Malformed
    } else {
        RequestFailure::ClientGone
    }
}
