//! A request to an upstream and its response, in either protocol.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::Response;
use hyper::header::HeaderMap;
use records::metrics::RequestFailure;

use super::content::{ContentSource, RequestContent};
use super::http1::exchange::Http1Exchange;
use super::http2::exchange::Http2Exchange;
use super::http2::head::Http2Head;
use super::lease::Acquired;
use crate::request::RequestHandle;
use crate::request::special_fields::SpecialFields;

/// Most interim responses (RFC 9110, section 15.2).
pub(super) const INTERIM_RESPONSES_MAX: usize = 16;

/// A head that is complete.
#[derive(Debug)]
pub(crate) enum UpstreamHead {
    /// Encoded.
    Http1(Vec<u8>),
    Http2(Box<Http2Head>),
}

/// A request and its response. Dropping it ends both.
#[derive(Debug)]
pub(crate) enum Exchange {
    Http1(Box<Http1Exchange>),
    Http2(Box<Http2Exchange>),
}

/// An error before the response begins.
#[derive(Debug)]
pub(crate) enum ExchangeError {
    /// The upstream has closed the connection before any byte of a response, or has refused the stream.
    Closed,
    Failed(RequestFailure),
    /// The upstream does not take a request for a WebSocket over HTTP/2 (RFC 8441, section 3).
    NoWebSocket,
}

impl UpstreamHead {
    /// The memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        match self {
            Self::Http1(head) => head.capacity(),
            Self::Http2(head) => head.memory(),
        }
    }
}

/// The same of either protocol.
macro_rules! of_each {
    ($exchange:expr, $name:ident => $value:expr) => {
        match $exchange {
            Self::Http1($name) => $value,
            Self::Http2($name) => $value,
        }
    };
}

impl Exchange {
    /// Begins a request. Its `head` is one for the protocol of all upstreams of its route.
    pub(crate) fn begin(
        acquired: Acquired,
        request: &RequestHandle,
        head: &UpstreamHead,
        content: RequestContent,
    ) -> Option<Self> {
        Some(match (acquired, head) {
            (Acquired::Http1(lease), UpstreamHead::Http1(head)) => {
                Self::Http1(Box::new(Http1Exchange::begin(lease, request, head, content)))
            }
            (Acquired::Http2(lease), UpstreamHead::Http2(head)) => {
                Self::Http2(Box::new(Http2Exchange::begin(lease, request, head, content)))
            }
            (Acquired::Http1(_) | Acquired::Http2(_), _) => return None,
        })
    }

    /// Whether the upstream is known not to have begun to process the request.
    pub(crate) fn is_refused(&self) -> bool {
        match self {
            Self::Http1(_) => false,
            Self::Http2(exchange) => exchange.is_refused(),
        }
    }

    /// The content of a request that has failed, if the request may be sent again on a new connection.
    pub(crate) fn into_content_to_retry(self) -> Option<RequestContent> {
        of_each!(self, exchange => exchange.into_content_to_retry())
    }

    /// Waits for the head of the response, which may take the memory of `fields`.
    pub(crate) fn poll_head(
        &mut self,
        cx: &mut Context<'_>,
        fields: &mut HeaderMap,
    ) -> Poll<Result<Response<()>, ExchangeError>> {
        match self {
            Self::Http1(exchange) => exchange.poll_head(cx, fields),
            Self::Http2(exchange) => exchange.poll_head(cx),
        }
    }

    /// Whether the client may still send content.
    pub(crate) fn lacks_content(&self) -> bool {
        of_each!(self, exchange => exchange.lacks_content())
    }

    /// Begins to pass what the client sends, once the upstream has agreed to a tunnel. What the upstream sends is the
    /// response's content.
    pub(crate) fn open_tunnel(&mut self, source: Option<ContentSource>) {
        of_each!(self, exchange => exchange.open_tunnel(source));
    }

    /// Sends what the client has sent in a tunnel; ready once it has ended.
    pub(super) fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), RequestFailure>> {
        of_each!(self, exchange => exchange.poll_content(cx))
    }

    /// The next data of the response's content; `None` once it is complete.
    pub(crate) fn poll_data(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        of_each!(self, exchange => exchange.poll_data(cx))
    }

    /// Why the response is cut.
    pub(crate) fn cut_by(&self) -> RequestFailure {
        of_each!(self, exchange => exchange.cut_by())
    }

    /// Which fields the response has that must be looked at.
    pub(crate) fn special_fields(&self) -> SpecialFields {
        of_each!(self, exchange => exchange.special_fields())
    }

    /// The response's trailers, once its content is complete.
    pub(crate) fn take_trailers(&mut self) -> Option<HeaderMap> {
        of_each!(self, exchange => exchange.take_trailers())
    }

    /// Whether the response has trailers that were not taken.
    pub(crate) fn has_trailers(&self) -> bool {
        of_each!(self, exchange => exchange.has_trailers())
    }

    /// How many bytes of content are left; `None` if that is not known.
    pub(crate) fn content_left(&self) -> Option<u64> {
        of_each!(self, exchange => exchange.content_left())
    }

    /// Whether the response has no content, or none is left.
    pub(crate) fn is_complete(&self) -> bool {
        of_each!(self, exchange => exchange.is_complete())
    }

    /// The content of the response, if all of it arrived with the head.
    pub(crate) fn take_whole(&mut self) -> Option<Bytes> {
        match self {
            Self::Http1(exchange) => exchange.take_whole(),
            Self::Http2(_) => None,
        }
    }

    /// Ends the exchange, whose response is complete. Once this is dropped, a connection of HTTP/1.1 goes back to the pool,
    /// if another request may use it.
    pub(crate) fn finish(&mut self) {
        if let Self::Http1(exchange) = self {
            exchange.finish();
        }
    }
}
