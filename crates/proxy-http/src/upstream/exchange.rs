//! A request to an upstream and its response, on a connection of the pool.

use std::cell::RefCell;
use std::io;
use std::io::Write as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::{Buf as _, Bytes};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};
use hyper::{Method, Response, StatusCode, Version};

use super::framing::Framing;
use super::pool::Pool;

/// Longest head of a response.
const HEAD_BYTES_MAX: usize = 64 << 10;
/// Most headers of a response.
const HEADERS_MAX: usize = 128;
/// Most interim responses (RFC 9110, section 15.2).
const INTERIM_RESPONSES_MAX: usize = 16;
/// Most of a request's content that waits for the upstream.
const UNSENT_BYTES_MAX: usize = 64 << 10;

/// A request under way. Dropping it closes the connection, unless the exchange is complete.
#[derive(Debug)]
pub(crate) struct Exchange {
    pool: Rc<RefCell<Pool>>,
    key: usize,
    method: Method,
    content: RequestContent,
    framing: Option<Framing>,
    may_be_kept: bool,
    interim_responses: usize,
}

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExchangeError {
    /// The connection ended or broke before the response began.
    #[error("the upstream closed the connection: {0}")]
    Broken(io::Error),
    /// The response's head is malformed.
    #[error("the upstream's response is malformed: {0}")]
    Invalid(io::Error),
}

/// What is left of a request's content.
#[derive(Debug)]
pub(crate) enum RequestContent {
    Length(Incoming),
    Chunked(Incoming),
    Sent,
}

impl Exchange {
    /// Begins a request on a connection of the pool. `head` is its head, which says how `content` is framed.
    pub(crate) fn begin(
        pool: &Rc<RefCell<Pool>>,
        key: usize,
        method: Method,
        head: &[u8],
        content: RequestContent,
    ) -> Self {
        pool.borrow_mut().connection(key).unsent.extend_from_slice(head);
        Self {
            pool: Rc::clone(pool),
            key,
            method,
            content,
            framing: None,
            may_be_kept: true,
            interim_responses: 0,
        }
    }

    /// Whether the request may be sent again on a new connection if this one fails before the response begins: the
    /// upstream may have closed the connection before the request arrived.
    pub(crate) fn is_reused(&self) -> bool {
        self.pool.borrow_mut().connection(self.key).is_reused
    }

    /// Sends what the client has sent of its content.
    fn pump(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        loop {
            let mut pool = self.pool.borrow_mut();
            pool.flush(self.key, cx.waker())?;
            let unsent = &mut pool.connection(self.key).unsent;
            let (body, is_chunked) = match &mut self.content {
                RequestContent::Sent => return Ok(()),
                RequestContent::Length(body) => (body, false),
                RequestContent::Chunked(body) => (body, true),
            };
            if unsent.len() >= UNSENT_BYTES_MAX {
                return Ok(());
            }
            match Pin::new(body).poll_frame(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        if is_chunked && !data.is_empty() {
                            unsent.extend_from_slice(format!("{:x}\r\n", data.len()).as_bytes());
                            unsent.extend_from_slice(&data);
                            unsent.extend_from_slice(b"\r\n");
                        } else {
                            unsent.extend_from_slice(&data);
                        }
                    }
                }
                Poll::Ready(None) => {
                    if is_chunked {
                        unsent.extend_from_slice(b"0\r\n\r\n");
                    }
                    self.content = RequestContent::Sent;
                }
                Poll::Ready(Some(Err(error))) => return Err(io::Error::other(error)),
            }
        }
    }

    /// Waits for the head of the response.
    pub(crate) fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Response<()>, ExchangeError>> {
        self.pump(cx).map_err(ExchangeError::Broken)?;
        loop {
            let mut pool = self.pool.borrow_mut();
            if !pool.read(self.key, cx.waker()).map_err(ExchangeError::Broken)? {
                return Poll::Pending;
            }
            let connection = pool.connection(self.key);
            while let Some((used, head)) = parse_head(&connection.received).map_err(ExchangeError::Invalid)? {
                connection.received.advance(used);
                // An interim response; 100 is hyper's to send. No request asks to switch protocols.
                if head.status().is_informational() {
                    self.interim_responses += 1;
                    let is_unasked = head.status() == StatusCode::SWITCHING_PROTOCOLS;
                    if is_unasked || self.interim_responses > INTERIM_RESPONSES_MAX {
                        let error =
                            io::Error::new(io::ErrorKind::InvalidData, "an interim response too many");
                        return Poll::Ready(Err(ExchangeError::Invalid(error)));
                    }
                    continue;
                }
                let framing = Framing::of(&self.method, head.status(), head.headers())
                    .map_err(|error| ExchangeError::Invalid(error.into()))?;
                self.may_be_kept = head.version() == Version::HTTP_11
                    && framing != Framing::UntilClose
                    && !head.headers().get_all("connection").iter().any(|value| {
                        value.to_str().is_ok_and(|text| {
                            text.split(',').any(|word| word.trim().eq_ignore_ascii_case("close"))
                        })
                    });
                self.framing = Some(framing);
                return Poll::Ready(Ok(head));
            }
            if connection.has_ended {
                // Nothing of a response: the connection may have been closed before the request came.
                return Poll::Ready(Err(if connection.received.is_empty() {
                    ExchangeError::Broken(io::ErrorKind::UnexpectedEof.into())
                } else {
                    ExchangeError::Invalid(io::ErrorKind::UnexpectedEof.into())
                }));
            }
            if connection.received.len() > HEAD_BYTES_MAX {
                let error = io::Error::new(io::ErrorKind::InvalidData, "the head is too long");
                return Poll::Ready(Err(ExchangeError::Invalid(error)));
            }
        }
    }

    fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        let Some(framing) = &mut self.framing else { return Poll::Ready(None) };
        loop {
            let mut pool = self.pool.borrow_mut();
            let connection = pool.connection(self.key);
            match framing.take(&mut connection.received, connection.has_ended) {
                Ok(Some(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                Ok(None) if *framing == Framing::Complete => return Poll::Ready(None),
                Ok(None) => match pool.read(self.key, cx.waker()) {
                    Ok(true) => {}
                    Ok(false) => return Poll::Pending,
                    Err(error) => return Poll::Ready(Some(Err(error))),
                },
                Err(error) => return Poll::Ready(Some(Err(error.into()))),
            }
        }
    }

    /// Whether the response has no content, or none is left.
    fn is_complete(&self) -> bool {
        self.framing == Some(Framing::Complete)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let is_sent = matches!(self.content, RequestContent::Sent);
        let mut pool = self.pool.borrow_mut();
        if self.is_complete() && is_sent && self.may_be_kept {
            pool.give_back(self.key);
        } else {
            pool.close(self.key);
        }
    }
}

/// The content of a response, as the upstream sends it.
#[derive(Debug)]
pub(crate) struct UpstreamBody(Option<Exchange>);

impl UpstreamBody {
    /// No content.
    pub(crate) fn empty() -> Self {
        Self(None)
    }

    /// The content of this exchange, whose connection goes back to the pool at once if there is none.
    pub(crate) fn of(exchange: Exchange) -> Self {
        Self(
            (!exchange.is_complete() || !matches!(exchange.content, RequestContent::Sent))
                .then_some(exchange),
        )
    }
}

impl Body for UpstreamBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let Some(exchange) = &mut self.0 else { return Poll::Ready(None) };
        // An upstream may answer before it has read the request, and reads no more then.
        if exchange.pump(cx).is_err() {
            exchange.may_be_kept = false;
            exchange.content = RequestContent::Sent;
        }
        let polled = exchange.poll_content(cx);
        if exchange.is_complete() && matches!(exchange.content, RequestContent::Sent) {
            self.0 = None;
        }
        polled.map(|content| content.map(|bytes| bytes.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        match self.0.as_ref().and_then(|exchange| exchange.framing) {
            None | Some(Framing::Complete) => SizeHint::with_exact(0),
            Some(Framing::Length(left)) => SizeHint::with_exact(left),
            Some(Framing::Chunked(_) | Framing::UntilClose) => SizeHint::default(),
        }
    }
}

/// Parses the head of a response: the bytes that it takes, and the head; `None` if it is not whole.
fn parse_head(bytes: &[u8]) -> io::Result<Option<(usize, Response<()>)>> {
    let invalid = |problem: &'static str| io::Error::new(io::ErrorKind::InvalidData, problem);
    let mut headers = [httparse::EMPTY_HEADER; HEADERS_MAX];
    let mut parsed = httparse::Response::new(&mut headers);
    let used = match parsed.parse(bytes) {
        Ok(httparse::Status::Partial) => return Ok(None),
        Ok(httparse::Status::Complete(used)) => used,
        Err(error) => return Err(io::Error::new(io::ErrorKind::InvalidData, error)),
    };
    let version = if parsed.version == Some(1) { Version::HTTP_11 } else { Version::HTTP_10 };
    let mut head = Response::builder().status(parsed.code.unwrap_or(0)).version(version);
    for header in parsed.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes())
            .map_err(|_| invalid("a header's name is malformed"))?;
        let value =
            HeaderValue::from_bytes(header.value).map_err(|_| invalid("a header's value is malformed"))?;
        head = head.header(name, value);
    }
    head.body(()).map(|head| Some((used, head))).map_err(|_| invalid("the status is malformed"))
}

/// Writes the head of a request.
pub(crate) fn encode_head<B>(request: &hyper::Request<B>, target: &str, framing: RequestFraming) -> Vec<u8> {
    let mut head = Vec::with_capacity(512);
    // Writing to a vector does not fail.
    let _ = write!(head, "{} {target} HTTP/1.1\r\n", request.method());
    for (name, value) in request.headers() {
        if *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING {
            continue;
        }
        head.extend_from_slice(name.as_str().as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    match framing {
        RequestFraming::None => {}
        RequestFraming::Length(length) => {
            let _ = write!(head, "content-length: {length}\r\n");
        }
        RequestFraming::Chunked => head.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// How a request's content is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestFraming {
    None,
    Length(u64),
    Chunked,
}
