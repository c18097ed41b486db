//! A request and its response on a stream.

mod deadline;
mod sending;

use std::future::Future as _;
use std::io;
use std::mem;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{Reason, RecvStream, SendStream};
use hyper::header::{CONTENT_LENGTH, HeaderName};
use hyper::http::response::Parts;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use records::metrics::RequestFailure;

use super::connection::SEND_BUFFER_BYTES;
use super::head::{GrpcCall, Http2Head};
use super::received::ReceivedContent;
use crate::request::RequestHandle;
use crate::request::held_bytes::ExchangeBytes;
use crate::request::special_fields::{SpecialFields, may_be_trailer};
use crate::runtime::timers::Sleep;
use crate::upstream::content::RequestContent;
use crate::upstream::exchange::{ExchangeError, INTERIM_RESPONSES_MAX};
use crate::upstream::lease::StreamLease;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");

/// A request and its response on a stream. Dropping it resets the stream, unless both are complete.
#[derive(Debug)]
pub(crate) struct Http2Exchange {
    request: RequestHandle,
    /// The memory of what the stream has yet to send.
    held: ExchangeBytes,
    content: RequestContent,
    call: Option<GrpcCall>,
    response: StreamResponse,
    /// `None` once the request is complete, or the upstream takes no more of it.
    send: Option<SendStream<Bytes>>,
    /// That of a tunnel to which the upstream has not agreed.
    withheld: Option<SendStream<Bytes>>,
    /// What was taken of the content, and waits for more or for the stream's window.
    unsent: BytesMut,
    /// Whether more of it was looked for since.
    has_looked: bool,
    /// The trailers, once the content has ended; empty if there are none.
    end: Option<HeaderMap>,
    /// All that was taken of the content, for another try; `None` once it is too much.
    kept: Option<BytesMut>,
    /// Bytes of content that were passed to the library.
    passed_bytes: usize,
    /// Why the content has failed since the response began.
    content_failure: Option<RequestFailure>,
    trailers: Option<HeaderMap>,
    /// Bytes of the response's content that are left, if that is known.
    content_left: Option<u64>,
    special: SpecialFields,
    /// Whether the upstream has not begun to process the request.
    is_refused: bool,
    interim_responses: usize,
    sent_at: Instant,
    timer: Option<(Instant, Sleep)>,
    /// Behind the streams, so that these have ended before it.
    lease: StreamLease,
}

#[derive(Debug)]
enum StreamResponse {
    /// A request for a WebSocket, which the upstream may not take.
    Unsent(SendRequest<Bytes>, Box<Request<()>>),
    Awaited(ResponseFuture),
    Begun(ReceivedContent),
    /// It has ended, or there is none.
    Over,
}

impl Http2Exchange {
    /// Begins a request.
    pub(crate) fn begin(
        mut lease: StreamLease,
        request: &RequestHandle,
        head: &Http2Head,
        mut content: RequestContent,
    ) -> Self {
        content.note_moved();
        let is_tls = lease.worker.pool.borrow().http2.is_tls(lease.stream.key);
        let request_head = head.request(is_tls);
        let (response, send) = match lease.stream.send.take() {
            Some(connection) if head.is_websocket => {
                (StreamResponse::Unsent(connection, Box::new(request_head)), None)
            }
            Some(connection) => begin_stream(connection, request_head, content.is_whole()),
            None => (StreamResponse::Over, None),
        };
        // If the connection is over, nothing has arrived there.
        let is_refused = matches!(response, StreamResponse::Over);
        Self {
            held: ExchangeBytes::new(&request.client().held),
            request: request.clone(),
            send: send.filter(|_| !content.is_whole()),
            withheld: None,
            content,
            call: head.call,
            response,
            unsent: BytesMut::new(),
            has_looked: false,
            end: None,
            kept: Some(BytesMut::new()),
            passed_bytes: 0,
            content_failure: None,
            trailers: None,
            content_left: None,
            special: SpecialFields::default(),
            is_refused,
            interim_responses: 0,
            sent_at: Instant::now(),
            timer: None,
            lease,
        }
    }

    /// The content of a request that has failed, if the request may be sent again. Either the upstream has not begun to
    /// process it, or the connection had served others before and has ended, and the request has the same effect if the
    /// upstream gets it twice.
    pub(crate) fn into_content_to_retry(mut self) -> Option<RequestContent> {
        let is_repeatable = self.lease.stream.is_reused && self.request.method().is_idempotent();
        let kept = self.kept.take().filter(|_| self.is_refused || is_repeatable)?;
        self.content.send_again(kept.freeze());
        Some(self.content)
    }

    /// Whether an upstream that speaks HTTP/2 has not begun to process the request (RFC 9113, sections 6.8 and 8.7).
    pub(crate) fn is_refused(&self) -> bool {
        self.is_refused && self.lease.worker.pool.borrow().http2.has_begun(self.lease.stream.key)
    }

    /// Notes the memory that its stream holds.
    fn settle_held(&mut self) {
        let is_full = || self.lease.worker.pool.borrow().http2.is_blocked(self.lease.stream.key);
        let passed = self.passed_bytes.min(SEND_BUFFER_BYTES);
        let passed = if passed > 0 && (self.send.is_some() || is_full()) { passed } else { 0 };
        let kept = self.kept.as_ref().map_or(0, BytesMut::capacity);
        self.held.set(self.unsent.capacity() + kept + passed);
    }

    /// Waits for the head of the response.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<()>, ExchangeError>> {
        let polled = match self.pump(cx) {
            Ok(()) => self.poll_whole_head(cx),
            Err(failure) => Poll::Ready(Err(ExchangeError::Failed(failure))),
        };
        self.settle_held();
        polled
    }

    fn poll_whole_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<()>, ExchangeError>> {
        if let StreamResponse::Unsent(..) = self.response {
            match self.poll_unsent(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => {
                    return self.poll_timeout(cx).map(|failure| Err(ExchangeError::Failed(failure)));
                }
            }
        }
        let StreamResponse::Awaited(response) = &mut self.response else {
            return Poll::Ready(Err(ExchangeError::Closed));
        };
        while let Poll::Ready(Some(Ok(_))) = response.poll_informational(cx) {
            self.interim_responses += 1;
            if self.interim_responses > INTERIM_RESPONSES_MAX {
                return Poll::Ready(Err(ExchangeError::Failed(RequestFailure::UpstreamInvalid)));
            }
        }
        match Pin::new(response).poll(cx) {
            Poll::Pending => self.poll_timeout(cx).map(|failure| Err(ExchangeError::Failed(failure))),
            Poll::Ready(Err(error)) => {
                self.response = StreamResponse::Over;
                Poll::Ready(Err(self.failed(&error)))
            }
            Poll::Ready(Ok(response)) => Poll::Ready(Ok(self.begin_response(response, cx))),
        }
    }

    /// Sends a request for a WebSocket, once the upstream is known to take it.
    fn poll_unsent(&mut self, cx: &Context<'_>) -> Poll<Result<(), ExchangeError>> {
        let polled = self.lease.worker.pool.borrow_mut().http2.poll_settings(self.lease.stream.key, cx);
        let takes_connect = ready!(polled);
        let StreamResponse::Unsent(connection, head) = mem::replace(&mut self.response, StreamResponse::Over)
        else {
            return Poll::Ready(Ok(()));
        };
        if takes_connect == Some(false) {
            return Poll::Ready(Err(ExchangeError::NoWebSocket));
        }
        (self.response, self.withheld) = begin_stream(connection, *head, false);
        self.is_refused = matches!(self.response, StreamResponse::Over);
        Poll::Ready(Ok(()))
    }

    fn begin_response(&mut self, response: Response<RecvStream>, cx: &Context<'_>) -> Response<()> {
        self.request.set_answered(Some(self.sent_at), Instant::now());
        (self.kept, self.timer) = (None, None);
        if self.send.is_none() {
            self.content.stop();
        }
        let (Parts { status, headers, .. }, body) = response.into_parts();
        self.special = SpecialFields::of(&headers);
        self.request.client().held.hold_head(field_bytes(&headers));
        let length = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
        self.note_status(&headers);
        let http2 = &mut self.lease.worker.pool.borrow_mut().http2;
        http2.set_answered(self.lease.stream.key);
        let is_without_content = *self.request.method() == Method::HEAD
            || matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        if is_without_content || body.is_end_stream() {
            (self.response, self.content_left) = (StreamResponse::Over, Some(0));
        } else {
            let held = ExchangeBytes::new(&self.request.client().held);
            let content = ReceivedContent::new(body, held, cx);
            http2.watch(self.lease.stream.key, &content);
            (self.response, self.content_left) = (StreamResponse::Begun(content), length);
        }
        let mut head = Response::new(());
        *head.status_mut() = status;
        *head.headers_mut() = headers;
        head
    }

    /// Notes the status of a call of gRPC, which stands in the trailers, or in the head if there are none.
    fn note_status(&self, fields: &HeaderMap) {
        if self.call.is_some()
            && let Some(status) = fields.get(GRPC_STATUS)
        {
            self.request.set_grpc_status(status.to_str().ok().and_then(|text| text.parse().ok()));
        }
    }

    /// Why there is no response.
    #[cold]
    fn failed(&mut self, error: &h2::Error) -> ExchangeError {
        let is_refused = error.is_reset() && error.reason() == Some(Reason::REFUSED_STREAM);
        // Streams that the upstream may have begun go on after a GOAWAY.
        let is_refused = error.is_remote() && (is_refused || error.is_go_away());
        // Without the upstream's SETTINGS nothing was sent.
        self.is_refused =
            is_refused || !self.lease.worker.pool.borrow().http2.has_begun(self.lease.stream.key);
        if self.is_refused || error.is_io() {
            ExchangeError::Closed
        } else if error.is_remote() {
            ExchangeError::Failed(RequestFailure::UpstreamClosed)
        } else {
            ExchangeError::Failed(RequestFailure::UpstreamInvalid)
        }
    }

    /// The next data of the response's content; `None` once it is complete.
    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Err(failure) = self.pump(cx) {
            // The response depends on what never comes.
            self.content_failure = Some(failure);
            self.content.stop();
            if let Some(mut send) = self.send.take() {
                send.send_reset(Reason::CANCEL);
            }
        }
        let polled = self.poll_piece(cx);
        self.settle_held();
        // A call has an end even if its response has begun.
        if polled.is_pending() && self.call.is_some() && self.poll_timeout(cx).is_ready() {
            self.content_failure = Some(RequestFailure::UpstreamTimeout);
            return Poll::Ready(Some(Err(io::ErrorKind::TimedOut.into())));
        }
        polled
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let StreamResponse::Begun(content) = &self.response else { return Poll::Ready(None) };
        if !self.request.client().held.may_read(cx.waker()) {
            return Poll::Pending;
        }
        match ready!(content.poll_data(cx)) {
            Some(Ok(data)) => {
                if let Some(left) = &mut self.content_left {
                    *left = left.saturating_sub(data.len() as u64);
                }
                if content.is_end() {
                    self.response = StreamResponse::Over;
                }
                Poll::Ready(Some(Ok(data)))
            }
            // All has come; how the stream has ended does not matter.
            Some(Err(_)) if self.content_left == Some(0) => {
                self.response = StreamResponse::Over;
                Poll::Ready(None)
            }
            Some(Err(error)) => Poll::Ready(Some(Err(io::Error::other(error)))),
            None => {
                let trailers = ready!(content.poll_trailers(cx));
                (self.response, self.content_left) = (StreamResponse::Over, Some(0));
                Poll::Ready(match trailers {
                    Ok(trailers) => {
                        self.set_trailers(trailers);
                        None
                    }
                    Err(error) => Some(Err(io::Error::other(error))),
                })
            }
        }
    }

    fn set_trailers(&mut self, trailers: Option<HeaderMap>) {
        if let Some(trailers) = trailers {
            self.note_status(&trailers);
            let trailers = passed(trailers, |_| true);
            self.trailers = (!trailers.is_empty()).then_some(trailers);
        }
    }

    /// Why the response is cut.
    pub(crate) fn cut_by(&self) -> RequestFailure {
        self.content_failure.unwrap_or(RequestFailure::UpstreamCut)
    }

    /// Whether the client may still send content.
    pub(crate) fn lacks_content(&self) -> bool {
        self.content.is_incomplete()
    }

    /// Which fields the response has that must be looked at.
    pub(crate) fn special_fields(&self) -> SpecialFields {
        self.special
    }

    /// The response's trailers, once its content is complete.
    pub(crate) fn take_trailers(&mut self) -> Option<HeaderMap> {
        let trailers = self.trailers.take()?;
        self.request.client().held.hold_head(field_bytes(&trailers));
        Some(trailers)
    }

    /// Whether the response has trailers that were not taken.
    pub(crate) fn has_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    /// How many bytes of content are left; `None` if that is not known.
    pub(crate) fn content_left(&self) -> Option<u64> {
        self.content_left
    }

    /// Whether the response has no content, or none is left.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.response, StreamResponse::Over)
    }
}

/// Begins the stream of a request, without content if it `ends` at once.
fn begin_stream(
    mut connection: SendRequest<Bytes>,
    head: Request<()>,
    ends: bool,
) -> (StreamResponse, Option<SendStream<Bytes>>) {
    match connection.send_request(head, ends) {
        Ok((response, send)) => (StreamResponse::Awaited(response), Some(send)),
        Err(_) => (StreamResponse::Over, None),
    }
}

/// Bytes of names and values.
fn field_bytes(fields: &HeaderMap) -> usize {
    fields.iter().map(|(name, value)| name.as_str().len() + value.len()).sum()
}

/// The fields of a trailer section that may stand there (RFC 9110, section 6.5.1).
fn passed(mut trailers: HeaderMap, also: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let stops = |name: &&HeaderName| !(may_be_trailer(name.as_str()) && also(name));
    let names: Vec<HeaderName> = trailers.keys().filter(stops).cloned().collect();
    for name in names {
        trailers.remove(name);
    }
    trailers
}
