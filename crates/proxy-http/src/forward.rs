//! Forwards a request: headers that stop here, those that are added, and the exchange with the upstream.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;

use http_body::Body as _;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use hyper::{Request, Response, StatusCode, Version};

use crate::request_check::{self, AmbiguousRequest};
use crate::upstream::exchange::{
    Exchange, ExchangeError, RequestContent, RequestFraming, UpstreamBody, encode_head,
};
use crate::upstream::pool::{AcquireError, Pool, QueueTicket};

/// Fields of one connection only (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 6] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Why a request was not answered by an upstream.
#[derive(Debug, thiserror::Error)]
enum ForwardError {
    #[error(transparent)]
    Ambiguous(#[from] AmbiguousRequest),
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
}

impl ForwardError {
    fn status(&self) -> StatusCode {
        match self {
            Self::Ambiguous(_) => StatusCode::BAD_REQUEST,
            Self::Acquire(AcquireError::QueueFull) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Acquire(AcquireError::Connect(_)) | Self::Exchange(_) => StatusCode::BAD_GATEWAY,
        }
    }
}

/// Forwards a request, and answers with what the upstream says, or why it does not.
pub(crate) async fn forward(
    pool: Rc<RefCell<Pool>>,
    request: Request<Incoming>,
) -> Result<Response<UpstreamBody>, Infallible> {
    Ok(exchange(&pool, request).await.unwrap_or_else(|error| {
        let mut response = Response::new(UpstreamBody::empty());
        *response.status_mut() = error.status();
        if let ForwardError::Ambiguous(_) = error {
            // What follows on the connection may be a part of the request.
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }))
}

async fn exchange(
    pool: &Rc<RefCell<Pool>>,
    mut request: Request<Incoming>,
) -> Result<Response<UpstreamBody>, ForwardError> {
    request_check::check(&request)?;
    let framing = match request.body().size_hint().exact() {
        Some(0) => RequestFraming::None,
        Some(length) => RequestFraming::Length(length),
        None => RequestFraming::Chunked,
    };
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    if !request.headers().contains_key(HOST)
        && let Some(host) =
            request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok())
    {
        request.headers_mut().insert(HOST, host);
    }
    remove_hop_by_hop(request.headers_mut());
    let head = encode_head(&request, &target, framing);
    let method = request.method().clone();
    let mut content = match framing {
        RequestFraming::None => RequestContent::Sent,
        RequestFraming::Length(_) => RequestContent::Length(request.into_body()),
        RequestFraming::Chunked => RequestContent::Chunked(request.into_body()),
    };
    // Only such a request has the same effect if the upstream gets it twice.
    let may_be_sent_again = framing == RequestFraming::None && method.is_idempotent();
    let mut must_be_new = false;
    loop {
        let key = Acquire { pool, upstream: 0, place: None }.connection(must_be_new).await?;
        let mut exchange = Exchange::begin(pool, key, method.clone(), &head, content);
        match poll_fn(|cx| exchange.poll_head(cx)).await {
            Ok(mut head) => {
                remove_hop_by_hop(head.headers_mut());
                *head.version_mut() = Version::HTTP_11;
                return Ok(head.map(|()| UpstreamBody::of(exchange)));
            }
            // The upstream has closed the connection before the request arrived.
            Err(ExchangeError::Broken(_)) if may_be_sent_again && exchange.is_reused() => {
                (must_be_new, content) = (true, RequestContent::Sent);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A request that waits for a connection. Dropping it leaves the queue.
struct Acquire<'a> {
    pool: &'a RefCell<Pool>,
    upstream: usize,
    place: Option<QueueTicket>,
}

impl Acquire<'_> {
    async fn connection(mut self, must_be_new: bool) -> Result<usize, AcquireError> {
        poll_fn(|cx| {
            let mut pool = self.pool.borrow_mut();
            pool.poll_acquire(self.upstream, must_be_new, &mut self.place, cx)
        })
        .await
    }
}

impl Drop for Acquire<'_> {
    fn drop(&mut self) {
        if self.place.is_some() {
            self.pool.borrow_mut().leave_queue(self.upstream, &mut self.place);
        }
    }
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let listed: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in listed.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}
