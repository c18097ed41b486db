//! The responses of the demo upstream.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::{Method, Request, Response, StatusCode};

/// Largest answer of `/bytes/N`.
const BYTES_MAX: u64 = 1 << 30;
/// Answers are cut from this, piece by piece.
static PATTERN: LazyLock<Bytes> = LazyLock::new(|| (b'a'..=b'z').cycle().take(64 * 1024).collect());

/// The body of an answer, streamed.
#[derive(Debug)]
pub(super) enum DemoBody {
    /// This many bytes.
    Bytes(u64),
    /// The body of the request, as it arrives.
    Echo(Incoming),
    Text(&'static str),
}

pub(super) async fn answer(mut request: Request<Incoming>) -> Result<Response<DemoBody>, Infallible> {
    if !is_echo(&request) {
        // An earlier answer would overlap with the rest of the request.
        while let Some(Ok(_)) = poll_fn(|context| Pin::new(request.body_mut()).poll_frame(context)).await {}
    }
    let (status, body) = choose(request);
    let mut response = Response::new(body);
    *response.status_mut() = status;
    Ok(response)
}

/// The path without the prefix of a route of the demo.
fn path_of(request: &Request<Incoming>) -> &str {
    let path = request.uri().path();
    ["/api", "/files"].iter().find_map(|prefix| path.strip_prefix(prefix)).unwrap_or(path)
}

fn is_echo(request: &Request<Incoming>) -> bool {
    path_of(request) == "/echo" && matches!(*request.method(), Method::POST | Method::PUT)
}

fn choose(request: Request<Incoming>) -> (StatusCode, DemoBody) {
    let path = path_of(&request);
    let is_get = matches!(*request.method(), Method::GET | Method::HEAD);
    match path.strip_prefix("/bytes/").map(str::parse::<u64>) {
        Some(Ok(bytes)) if bytes <= BYTES_MAX => return (StatusCode::OK, DemoBody::Bytes(bytes)),
        Some(_) => {
            return (StatusCode::BAD_REQUEST, DemoBody::Text("expected /bytes/N with N up to 1073741824\n"));
        }
        None => {}
    }
    match path {
        "/" if is_get => (StatusCode::OK, DemoBody::Text("hello from the demo upstream\n")),
        "/echo" if is_echo(&request) => (StatusCode::OK, DemoBody::Echo(request.into_body())),
        "/" | "/echo" => (StatusCode::METHOD_NOT_ALLOWED, DemoBody::Text("GET /, or POST or PUT /echo\n")),
        _ => (
            StatusCode::NOT_FOUND,
            DemoBody::Text("there are /, /bytes/N and /echo, also below /api and /files\n"),
        ),
    }
}

impl Body for DemoBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let data = match &mut *self {
            Self::Echo(incoming) => return Pin::new(incoming).poll_frame(context),
            Self::Bytes(0) | Self::Text("") => return Poll::Ready(None),
            Self::Bytes(left) => {
                let len = PATTERN.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                *left -= len as u64;
                PATTERN.slice(..len)
            }
            Self::Text(text) => Bytes::from_static(std::mem::take(text).as_bytes()),
        };
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Bytes(left) => SizeHint::with_exact(*left),
            Self::Echo(incoming) => incoming.size_hint(),
            Self::Text(text) => SizeHint::with_exact(text.len() as u64),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Bytes(left) => *left == 0,
            Self::Echo(incoming) => incoming.is_end_stream(),
            Self::Text(text) => text.is_empty(),
        }
    }
}
