//! A request to an upstream and its response, on a connection of the pool.

use std::io;
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use hyper::header::HeaderMap;
use hyper::{Response, StatusCode, Version};
use records::metrics::RequestFailure;

use super::framing::{Framing, TRAILER_BYTES_MAX};
use super::head;
use crate::request::RequestHandle;
use crate::request::held_bytes::ExchangeBytes;
use crate::request::special_fields::{SpecialField, SpecialFields};
use crate::upstream::content::ContentSource;
use crate::upstream::content::RequestContent;
use crate::upstream::exchange::{ExchangeError, INTERIM_RESPONSES_MAX};
use crate::upstream::lease::Lease;
use crate::upstream::pool::UpstreamPool;

/// Most of a request's content that waits for the upstream.
const UNSENT_BYTES_MAX: usize = 64 << 10;

/// A request and its response on an upstream connection. Dropping it closes the connection;
/// [`Http1Exchange::finish`] keeps the connection if that is possible.
#[derive(Debug)]
pub(crate) struct Http1Exchange {
    lease: Lease,
    request: RequestHandle,
    /// The memory of what its connection has yet to send and to read.
    held: ExchangeBytes,
    content: RequestContent,
    /// Why the content has failed since the response began.
    content_failure: Option<RequestFailure>,
    framing: Option<Framing>,
    special: SpecialFields,
    trailers: Option<Box<HeaderMap>>,
    /// When the upstream's socket took the first byte of the head.
    sent_at: Option<Instant>,
    /// When the response must have begun.
    due_at: Option<Instant>,
    /// Whether any byte of a response has arrived.
    has_answered: bool,
    /// Whether the upstream has stopped reading.
    is_deaf: bool,
    may_be_kept: bool,
    tunnel: TunnelState,
    interim_responses: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TunnelState {
    /// It is none.
    No,
    Open,
    /// The upstream knows that the client has ended.
    ClientEnded,
}

impl Http1Exchange {
    /// Begins a request with its encoded `head`, which says how `content` is framed.
    pub(crate) fn begin(
        lease: Lease,
        request: &RequestHandle,
        head: &[u8],
        mut content: RequestContent,
    ) -> Self {
        // It may have waited for the connection.
        content.note_moved();
        let sent = lease.worker.pool.borrow_mut().begin(lease.key, head);
        Self {
            is_deaf: sent.is_err(),
            may_be_kept: sent.is_ok(),
            sent_at: sent.is_ok_and(|bytes| bytes > 0).then(Instant::now),
            lease,
            held: ExchangeBytes::new(&request.client().held),
            request: request.clone(),
            content,
            content_failure: None,
            framing: None,
            special: SpecialFields::default(),
            trailers: None,
            due_at: None,
            has_answered: false,
            tunnel: TunnelState::No,
            interim_responses: 0,
        }
    }

    /// The content of a request that has failed, if the request may be sent again on a new connection: the upstream had
    /// closed the kept connection before the request arrived. Either nothing of the request was sent, or the request has
    /// the same effect if the upstream gets it twice, and no content.
    pub(crate) fn into_content_to_retry(self) -> Option<RequestContent> {
        let is_unsent = self.sent_at.is_none() && self.content.is_untouched();
        let is_repeatable =
            self.request.method().is_idempotent() && self.content.is_whole() && self.content.is_untouched();
        (self.lease.is_reused() && (is_unsent || is_repeatable)).then_some(self.content)
    }

    fn with_pool<T>(&self, act: impl FnOnce(&mut UpstreamPool, usize) -> T) -> T {
        act(&mut self.lease.worker.pool.borrow_mut(), self.lease.key)
    }

    /// Notes the memory that its connection holds.
    fn settle_held(&mut self) {
        let bytes = self.with_pool(|pool, key| {
            let connection = pool.connection(key);
            connection.unsent.capacity() + connection.received_memory() + connection.stream.held().0
        });
        self.held.set(bytes);
    }

    /// Sends what the client has sent of its content.
    fn pump(&mut self, cx: &mut Context<'_>) -> Result<(), RequestFailure> {
        while !self.is_deaf {
            match self.with_pool(|pool, key| pool.flush(key, cx.waker())) {
                Ok(0) => {}
                Ok(_) => {
                    self.sent_at.get_or_insert_with(Instant::now);
                    self.content.note_moved();
                }
                // An upstream may answer before it has read the request, and reads no more then.
                Err(error) => {
                    (self.is_deaf, self.may_be_kept) = (true, false);
                    self.with_pool(|pool, key| pool.connection(key).unsent.clear());
                    // What was not begun may be sent again, with its content.
                    if self.sent_at.is_some() {
                        self.content.stop();
                    }
                    // Without a reset, what the upstream has sent before it closed is yet to be read.
                    if self.tunnel != TunnelState::No && error.kind() != io::ErrorKind::BrokenPipe {
                        return Err(RequestFailure::UpstreamCut);
                    }
                    break;
                }
            }
            let unsent = self.with_pool(|pool, key| pool.connection(key).unsent.len());
            let has_room = unsent == 0 || unsent < UNSENT_BYTES_MAX && self.held.may_take();
            if self.content.is_whole() || !has_room {
                if self.tunnel == TunnelState::Open && unsent == 0 {
                    self.with_pool(UpstreamPool::shut_down);
                    self.tunnel = TunnelState::ClientEnded;
                }
                return Ok(());
            }
            let piece = match self.content.poll_piece(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(piece) => piece?,
            };
            let content = &self.content;
            self.with_pool(|pool, key| content.encode(piece, &mut pool.connection(key).unsent));
            self.settle_held();
        }
        Ok(())
    }

    /// Waits for the head of the response, which takes the memory of `fields`.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        fields: &mut HeaderMap,
    ) -> Poll<Result<Response<()>, ExchangeError>> {
        let polled = match self.pump(cx) {
            Ok(()) => self.poll_whole_head(cx, fields),
            Err(failure) => Poll::Ready(Err(ExchangeError::Failed(failure))),
        };
        self.settle_held();
        polled
    }

    fn poll_whole_head(
        &mut self,
        cx: &mut Context<'_>,
        fields: &mut HeaderMap,
    ) -> Poll<Result<Response<()>, ExchangeError>> {
        loop {
            let held = &self.request.client().held;
            // The first read does not wait for room: it shows when the upstream has answered.
            let is_first = self.with_pool(|pool, key| pool.connection(key).received.is_empty());
            if !is_first && !held.may_read(cx.waker()) {
                return Poll::Pending;
            }
            match self.with_pool(|pool, key| pool.read(key, held.read_bytes_max(), cx.waker())) {
                Ok(false) => return self.poll_timeout(cx).map(|failure| Err(ExchangeError::Failed(failure))),
                Ok(true) => {}
                Err(error) => {
                    self.lease.worker.count_tls_failure(self.lease.choice.index, &error);
                    self.with_pool(|pool, key| pool.connection(key).has_ended = true);
                }
            }
            if let Some(head) = self.take_head(fields)? {
                self.request.set_answered(self.sent_at, Instant::now());
                return Poll::Ready(Ok(head));
            }
            if self.with_pool(|pool, key| pool.connection(key).has_ended) {
                return Poll::Ready(Err(if self.has_answered {
                    ExchangeError::Failed(RequestFailure::UpstreamInvalid)
                } else {
                    ExchangeError::Closed
                }));
            }
        }
    }

    /// Takes the head of the final response, if it has arrived.
    fn take_head(&mut self, fields: &mut HeaderMap) -> Result<Option<Response<()>>, ExchangeError> {
        let invalid = |_| ExchangeError::Failed(RequestFailure::UpstreamInvalid);
        loop {
            let mut pool = self.lease.worker.pool.borrow_mut();
            let received = &mut pool.connection(self.lease.key).received;
            self.has_answered |= !received.is_empty();
            let before = received.len();
            // An alert or another handshake record: the upstream takes a request for a broken ClientHello.
            let is_tls = matches!(received.first_chunk(), Some([0x15 | 0x16, 3]));
            let head = head::take(received, fields).map_err(|error| {
                if is_tls {
                    let Lease { worker, choice, .. } = &self.lease;
                    worker.upstreams.answered_with_tls(choice.index, worker.now());
                }
                invalid(error)
            })?;
            let Some(head) = head else { return Ok(None) };
            let head_bytes = before - received.len();
            drop(pool);
            let status = head.status();
            // An interim response; hyper sends 100 when the content is asked for.
            if status.is_informational() && status != StatusCode::SWITCHING_PROTOCOLS {
                self.interim_responses += 1;
                if self.interim_responses > INTERIM_RESPONSES_MAX {
                    return Err(ExchangeError::Failed(RequestFailure::UpstreamInvalid));
                }
                continue;
            }
            self.special = SpecialFields::of(head.headers());
            // RFC 9112, section 6.1: its framing is faulty.
            if head.version() == Version::HTTP_10 && self.special.has(SpecialField::TransferEncoding) {
                return Err(ExchangeError::Failed(RequestFailure::UpstreamInvalid));
            }
            let framing = Framing::of(self.request.method(), status, head.headers(), self.special)
                .map_err(|error| invalid(error.into()))?;
            self.may_be_kept &= framing != Framing::UntilClose && head::keeps_alive(&head, self.special);
            self.framing = Some(framing);
            self.request.client().held.hold_head(head_bytes);
            return Ok(Some(head));
        }
    }

    /// Waits until the client or the upstream has made no progress for too long.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<RequestFailure> {
        let worker = &self.lease.worker;
        let is_sending = !self.is_deaf && !self.content.is_whole();
        let due_at = if is_sending {
            self.content.stalled_at()
        } else {
            *self.due_at.get_or_insert_with(|| {
                let own = self.request.timeouts().response;
                worker.now() + own.unwrap_or_else(|| worker.limits().response_timeout)
            })
        };
        if due_at > worker.now() {
            self.with_pool(|pool, key| pool.wake_at(key, due_at, cx.waker()));
            return Poll::Pending;
        }
        // While content is sent, either the client does not send, or the upstream does not take.
        let is_upstream = !is_sending || self.with_pool(|pool, key| !pool.connection(key).unsent.is_empty());
        Poll::Ready(if is_upstream { RequestFailure::UpstreamTimeout } else { RequestFailure::BodyTimeout })
    }

    /// The next data of the response's content; `None` once it is complete.
    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        if let Err(failure) = self.pump(cx) {
            self.give_content_up(failure);
            if self.tunnel != TunnelState::No {
                return Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into())));
            }
        }
        let polled = self.poll_piece(cx);
        self.settle_held();
        polled
    }

    /// Tells the upstream, which has begun its response, that the rest of the content never comes. It may still complete the
    /// response, if that does not depend on it.
    fn give_content_up(&mut self, failure: RequestFailure) {
        self.may_be_kept = false;
        self.content.stop();
        self.content_failure = Some(failure);
        self.with_pool(UpstreamPool::shut_down);
    }

    /// Why the response is cut.
    pub(crate) fn cut_by(&self) -> RequestFailure {
        self.content_failure.unwrap_or(RequestFailure::UpstreamCut)
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let Some(framing) = &mut self.framing else { return Poll::Ready(None) };
        loop {
            let mut pool = self.lease.worker.pool.borrow_mut();
            let connection = pool.connection(self.lease.key);
            match framing.take(&mut connection.received, connection.has_ended, &mut self.trailers) {
                Ok(Some(bytes)) => {
                    let memory = connection.received_memory.max(bytes.len());
                    let received = &mut connection.received;
                    let piece =
                        framing.merge(bytes, memory, received, connection.has_ended, &mut self.trailers);
                    return Poll::Ready(Some(Ok(piece)));
                }
                Ok(None) if *framing == Framing::Complete => return Poll::Ready(None),
                Ok(None) if !self.request.client().held.may_read(cx.waker()) => return Poll::Pending,
                Ok(None) => {
                    match pool.read(self.lease.key, self.request.client().held.read_bytes_max(), cx.waker()) {
                        Ok(true) => {}
                        Ok(false) => return Poll::Pending,
                        Err(error) => return Poll::Ready(Some(Err(error))),
                    }
                }
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
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
        let trailers = *self.trailers.take()?;
        self.request.client().held.hold_head(TRAILER_BYTES_MAX);
        Some(trailers)
    }

    /// Whether the response has trailers that were not taken.
    pub(crate) fn has_trailers(&self) -> bool {
        self.trailers.is_some()
    }

    /// How many bytes of content are left; `None` if that is not known.
    pub(crate) fn content_left(&self) -> Option<u64> {
        match self.framing {
            None | Some(Framing::Complete) => Some(0),
            Some(Framing::Length(left)) => Some(left),
            Some(Framing::Chunked(_) | Framing::UntilClose) => None,
        }
    }

    /// Whether the response has no content, or none is left.
    pub(crate) fn is_complete(&self) -> bool {
        self.framing == Some(Framing::Complete)
    }

    /// The content of the response, if all of it arrived with the head.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        let mut pool = self.lease.worker.pool.borrow_mut();
        let received = &mut pool.connection(self.lease.key).received;
        let Some(Framing::Length(length)) = self.framing else { return None };
        let length = usize::try_from(length).ok().filter(|length| *length <= received.len())?;
        self.framing = Some(Framing::Complete);
        Some(received.split_to(length))
    }

    /// Ends the exchange, whose response is complete. Once this is dropped, the connection goes back to the pool, if another
    /// request may use it.
    pub(crate) fn finish(&mut self) {
        self.lease.may_be_kept = self.may_be_kept && self.content.is_whole();
    }

    /// Begins a tunnel: the connection ends with it.
    pub(crate) fn open_tunnel(&mut self, source: Option<ContentSource>) {
        self.content.open_tunnel(source);
        self.framing = Some(Framing::UntilClose);
        (self.tunnel, self.may_be_kept) = (TunnelState::Open, false);
    }

    /// Sends what the client has sent in a tunnel; ready once the upstream gets no more.
    pub(crate) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RequestFailure>> {
        let pumped = self.pump(cx);
        self.settle_held();
        pumped?;
        if self.is_deaf || self.tunnel == TunnelState::ClientEnded {
            Poll::Ready(Ok(()))
        } else {
            Poll::Pending
        }
    }
}
