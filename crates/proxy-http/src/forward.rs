//! Forwards a request: headers that stop here, those that are added, and the exchange with the upstream.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::rc::Rc;

use http_body::Body as _;
use hyper::body::Incoming;
use hyper::header::{CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use hyper::{Request, Response, StatusCode};

use crate::upstream::exchange::{Exchange, RequestFraming, UpstreamBody, encode_head};
use crate::upstream::pool::Pool;

/// Fields of one connection only (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 6] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// What the client gets: the upstream's content, or a short text of the proxy's own.
pub(crate) type Answer = Response<UpstreamBody>;

/// Forwards a request, and answers with what the upstream says, or why it does not.
pub(crate) async fn forward(
    pool: Rc<RefCell<Pool>>,
    mut request: Request<Incoming>,
) -> Result<Response<MaybeUpstream>, Infallible> {
    let framing = match request.body().size_hint().exact() {
        Some(0) => RequestFraming::None,
        Some(length) => RequestFraming::Length(length),
        None => RequestFraming::Chunked,
    };
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str()).to_owned();
    if !request.headers().contains_key(HOST)
        && let Some(host) = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok())
    {
        request.headers_mut().insert(HOST, host);
    }
    remove_hop_by_hop(request.headers_mut());
    let head = encode_head(&request, &target, framing);
    let method = request.method().clone();
    let content = match framing {
        RequestFraming::None => None,
        RequestFraming::Length(_) => Some((request.into_body(), false)),
        RequestFraming::Chunked => Some((request.into_body(), true)),
    };
    let Ok(mut exchange) = Exchange::begin(&pool, 0, method, &head, content) else {
        return Ok(refuse(StatusCode::BAD_GATEWAY));
    };
    match poll_fn(|cx| exchange.poll_head(cx)).await {
        Ok(mut head) => {
            remove_hop_by_hop(head.headers_mut());
            *head.version_mut() = hyper::Version::HTTP_11;
            Ok(head.map(|()| UpstreamBody::of(exchange)))
        }
        Err(_) => Ok(refuse(StatusCode::BAD_GATEWAY)),
    }
}

pub(crate) type MaybeUpstream = UpstreamBody;

fn refuse(status: StatusCode) -> Response<MaybeUpstream> {
    let mut response = Response::new(UpstreamBody::empty());
    *response.status_mut() = status;
    response
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
