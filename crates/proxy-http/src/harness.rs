//! The parsers of HTTP mode without sockets, for fuzz targets.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http_body::Body as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, HeaderName, TRANSFER_ENCODING};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use records::metrics::{Counters, HttpCounter, Metric as _};

use crate::config::limits::HttpLimits;
use crate::guard::frame_tap::{BlockFields, FrameTap};
use crate::request::check as request_check;
use crate::request::special_fields::SpecialFields;
use crate::route::{Route, RouteTable};
use crate::runtime::io::{WireBuffers, WireIo};
use crate::runtime::tasks::{SpareTasks, Tasks, WokenConnections};
use crate::upstream::http1::connection::append;
use crate::upstream::http1::framing::Framing;
use crate::upstream::http1::head::{self, RequestHead};
use crate::upstream::request_head::HeadWriter as _;
use crate::upstream::request_head::RequestFraming;

/// The result of [`tap_frames`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FrameTapResult {
    /// Each counter with its name.
    pub counts: Vec<(&'static str, u64)>,
    pub is_flood: bool,
    /// What hyper gets of what was received.
    pub passed: Vec<u8>,
}

/// Counts the frames of what a client has sent and is sent, in these pieces.
pub fn tap_frames<'a>(
    received: impl IntoIterator<Item = &'a [u8]>,
    sent: impl IntoIterator<Item = &'a [u8]>,
) -> FrameTapResult {
    let now = Instant::now();
    let mut tap = FrameTap::new(&HttpLimits::default(), now);
    let mut counters = Counters::<HttpCounter>::default();
    let (mut passed, mut fields) = (BytesMut::new(), BlockFields::default());
    for bytes in received {
        tap.receive(bytes, &mut passed, now, &mut counters, &mut fields);
    }
    for bytes in sent {
        tap.note_sent(bytes, now, &mut counters);
    }
    let counts = counters.iter().map(|(counter, n)| (&*counter.field().name, n)).collect();
    FrameTapResult { counts, is_flood: tap.is_flood(), passed: passed.into() }
}

#[derive(Debug)]
pub struct RouteHarness(RouteTable);

impl RouteHarness {
    /// # Errors
    /// What is wrong with the routes.
    pub fn new(routes: &[&str]) -> Result<Self, String> {
        let routes: Result<Vec<Route>, _> = routes.iter().map(|route| route.parse()).collect();
        let table = RouteTable::new(&routes.map_err(|error| error.to_string())?, &[]);
        table.map(Self).map_err(|error| error.to_string())
    }

    /// The index of the route that serves a request; `None` if none does, or not for certain.
    pub fn select(&self, host: &str, path: &str) -> Option<usize> {
        self.0.select(host, path).ok()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParsedResponse {
    /// The status, once the head is whole.
    pub status: Option<u16>,
    /// The content so far.
    pub content: Vec<u8>,
    pub is_complete: bool,
    /// Whether it is malformed, or was cut.
    pub is_refused: bool,
}

/// Reads what an upstream sends in answer to a GET, in these pieces, and then closes.
pub fn parse_response<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> ParsedResponse {
    let mut response = ParsedResponse::default();
    let mut reader = ResponseReader::default();
    for piece in pieces {
        append(&mut reader.received, piece);
        reader.read(&mut response, false);
    }
    reader.read(&mut response, true);
    response
}

#[derive(Default)]
struct ResponseReader {
    received: Bytes,
    framing: Option<Framing>,
}

impl ResponseReader {
    fn read(&mut self, response: &mut ParsedResponse, has_ended: bool) {
        while !response.is_refused && !response.is_complete && self.step(response, has_ended) {}
        response.is_refused |= has_ended && !response.is_complete;
    }

    /// True if there may be more to read.
    fn step(&mut self, response: &mut ParsedResponse, has_ended: bool) -> bool {
        let Some(framing) = &mut self.framing else {
            let Ok(head) = head::take(&mut self.received, &mut HeaderMap::new()) else {
                response.is_refused = true;
                return false;
            };
            let Some(head) = head else { return false };
            if head.status().is_informational() && head.status() != StatusCode::SWITCHING_PROTOCOLS {
                return true;
            }
            response.status = Some(head.status().as_u16());
            let special = SpecialFields::of(head.headers());
            self.framing = Framing::of(&Method::GET, head.status(), head.headers(), special).ok();
            response.is_refused = self.framing.is_none();
            return true;
        };
        let taken = framing.take(&mut self.received, has_ended, &mut None);
        response.is_complete = *framing == Framing::Complete;
        match taken {
            Ok(Some(bytes)) => response.content.extend_from_slice(&bytes),
            Ok(None) => return false,
            Err(_) => response.is_refused = true,
        }
        true
    }
}

/// What the proxy did with a client's bytes.
#[derive(Clone, Debug, Default)]
pub struct SessionResult {
    /// The heads that an upstream would be sent.
    pub heads: Vec<Vec<u8>>,
    /// Bytes for the client.
    pub written_bytes: usize,
    /// Most bytes that waited for the client.
    pub written_bytes_max: usize,
}

/// Serves a client that sends these pieces, as a worker does: hyper and its tasks are polled, requests are checked and
/// encoded for an upstream, and answered with 204.
pub fn serve<'a>(pieces: impl IntoIterator<Item = &'a [u8]>, is_http2: bool) -> SessionResult {
    let wire = Rc::new(RefCell::new(WireBuffers::default()));
    let tasks = Tasks::new(0, WokenConnections::default(), SpareTasks::default());
    let served = Rc::new(RefCell::new(SessionResult::default()));
    let heads = Rc::clone(&served);
    let service = service_fn(move |request| answer(Rc::clone(&heads), request));
    let io = WireIo(Rc::clone(&wire));
    let limits = HttpLimits::default();
    if is_http2 {
        let connection = http2::Builder::new(tasks.clone())
            .max_concurrent_streams(limits.streams_max as u32)
            .max_header_list_size(limits.header_bytes_max as u32)
            .serve_connection(io, service);
        tasks.spawn(async move { drop(connection.await) });
    } else {
        let mut builder = http1::Builder::new();
        builder.header_read_timeout(None);
        let connection = builder.serve_connection(io, service);
        tasks.spawn(async move { drop(connection.await) });
    }
    let (mut tap, mut fields) = (FrameTap::new(&limits, Instant::now()), BlockFields::default());
    let mut counters = Counters::<HttpCounter>::default();
    for piece in pieces {
        if is_http2 {
            let received = &mut wire.borrow_mut().received;
            tap.receive(piece, received, Instant::now(), &mut counters, &mut fields);
        } else {
            wire.borrow_mut().received.extend_from_slice(piece);
        }
        wire.borrow_mut().wake_reader();
        run(&tasks, &wire, &served);
    }
    wire.borrow_mut().has_client_ended = true;
    wire.borrow_mut().wake_reader();
    run(&tasks, &wire, &served);
    tasks.clear();
    served.take()
}

fn run(tasks: &Tasks, wire: &RefCell<WireBuffers>, served: &RefCell<SessionResult>) {
    const ROUNDS_MAX: usize = 10_000;
    for _ in 0..ROUNDS_MAX {
        let is_again = tasks.run(1);
        let mut wire = wire.borrow_mut();
        let written = std::mem::take(&mut wire.written).len();
        wire.set_unsent(0);
        let mut served = served.borrow_mut();
        served.written_bytes += written;
        served.written_bytes_max = served.written_bytes_max.max(written);
        if !is_again && written == 0 {
            return;
        }
    }
    panic!("a session that never comes to rest");
}

async fn answer(
    served: Rc<RefCell<SessionResult>>,
    request: Request<Incoming>,
) -> Result<Response<String>, Infallible> {
    let mut response = Response::new(String::new());
    *response.status_mut() = StatusCode::NO_CONTENT;
    if request_check::check(&request).is_err() {
        *response.status_mut() = StatusCode::BAD_REQUEST;
        return Ok(response);
    }
    let framing = RequestFraming::of(request.body());
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let mut head = RequestHead::new(Vec::new(), request.method(), target);
    let frames = |name: &HeaderName| *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING;
    for (name, value) in request.headers().iter().filter(|(name, _)| !frames(name)) {
        head.field(name.as_str(), value.as_bytes());
    }
    let head = head.finish(request.method(), framing);
    served.borrow_mut().heads.push(head);
    let mut body = request.into_body();
    while let Some(Ok(_)) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {}
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_in_pieces_is_the_same_as_whole() {
        let bytes = b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nx: y\r\n\r\n";
        let whole = parse_response([&bytes[..]]);
        assert_eq!((whole.status, &*whole.content), (Some(200), &b"hello"[..]));
        assert!(whole.is_complete && !whole.is_refused);
        for step in [1, 2, 7] {
            assert_eq!(parse_response(bytes.chunks(step)), whole, "{step}");
        }
    }

    #[test]
    fn requests_of_either_protocol_become_heads_for_an_upstream() {
        let http1 =
            b"GET /x HTTP/1.1\r\nhost: a\r\n\r\nPOST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
        let session = serve(http1.chunks(3), false);
        let heads: Vec<_> = session.heads.iter().map(|head| String::from_utf8_lossy(head)).collect();
        assert_eq!(
            heads,
            ["GET /x HTTP/1.1\r\nhost: a\r\n\r\n", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\n"]
        );
        // GET / of https://a, from HPACK's static table.
        let http2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\x06\x01\x05\0\0\0\x01\x82\x84\x87\x01\x01a";
        let session = serve(http2.chunks(3), true);
        assert_eq!(session.heads, [b"GET / HTTP/1.1\r\n\r\n"]);
        assert!(session.written_bytes > 0);
    }
}
