//! Forwards a request: selects its route, prepares it for the upstream, and responds to the client.

mod failure;
mod fields;
mod target;
pub(crate) mod websocket;

use records::kinds::HttpVersion;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::mem;
use std::rc::Rc;
use std::task::Poll;

use hyper::body::{Body as _, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, CONTENT_LENGTH, HeaderValue, UPGRADE};
use hyper::{HeaderMap, Request, Response, StatusCode, Version};
use records::metrics::{HttpCounter, RequestFailure};

use self::failure::RefusedRequest;
use self::target::RequestTarget;
use self::websocket::{PendingTunnel, WebSocketRequest};
use crate::client::ClientConn;
use crate::guard::frame_tap::response_header_bytes;
use crate::guard::http1_tap::Http1Content;
use crate::request::RequestHandle;
use crate::request::check as request_check;
use crate::request::special_fields::{SpecialField, SpecialFields};
use crate::upstream::acquire::acquire;
use crate::upstream::content::RequestContent;
use crate::upstream::exchange::{Exchange, ExchangeError, UpstreamHead};
use crate::upstream::http1::head::RequestHead;
use crate::upstream::http2::head::Http2Head;
use crate::upstream::pool::ConnChoice;
use crate::upstream::request_head::{HeadWriter, RequestFraming};
use crate::upstream::response_body::ResponseBody;

/// How often a request is sent at most, if an upstream may have begun to process it.
const SENDS_MAX: usize = 2;
/// The same, if upstreams refuse to process it: connections of HTTP/2 tend to end together.
const REFUSED_SENDS_MAX: usize = 4;

/// A request that was checked and is ready to be forwarded.
struct PreparedRequest<'a> {
    route: usize,
    /// What its upstream is chosen by, if that is not the number of requests.
    key: Option<u64>,
    /// As the upstream gets it.
    head: UpstreamHead,
    /// `None` while it is sent.
    content: Option<RequestContent>,
    /// Whether its content may be broken already.
    is_chunked: bool,
    websocket: Option<Box<WebSocketRequest<'a>>>,
    /// Empty, with the memory of its own fields, for those of the response.
    fields: HeaderMap,
}

/// Forwards a request, and answers with the upstream's response or with an error. `tunnel` is there for HTTP/1.1.
pub(crate) fn forward(
    client: Rc<ClientConn>,
    tunnel: Option<&PendingTunnel>,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response<ResponseBody>, Infallible>> {
    let handle = RequestHandle::begin(&client, &request);
    if let Some(requests) = &client.http1 {
        requests.content.set(Some(content_behind(&request)));
    }
    // What is done before the future begins is not in its memory.
    let mut prepared = prepare(&client, &handle, tunnel, request);
    async move { Ok(answer(&client, &handle, &mut prepared).await) }
}

/// What follows the head of a request of HTTP/1.1.
fn content_behind(request: &Request<Incoming>) -> Http1Content {
    match RequestFraming::of(request.body()) {
        RequestFraming::None if request.headers().contains_key(UPGRADE) => Http1Content::Unknown,
        RequestFraming::None => Http1Content::Length(0),
        RequestFraming::Length(length) => Http1Content::Length(length),
        RequestFraming::Chunked => Http1Content::Chunked,
    }
}

/// Selects the route and prepares the request for it.
fn prepare<'a>(
    client: &Rc<ClientConn>,
    handle: &RequestHandle,
    tunnel: Option<&'a PendingTunnel>,
    request: Request<Incoming>,
) -> Result<PreparedRequest<'a>, RefusedRequest> {
    let special = request_check::check(&request)?;
    if let Some(client) = fields::client_of_trusted(client, &request, special) {
        handle.set_client(client);
    }
    check_rate(client, handle)?;
    let received = target::received_head(client, &request, special)?;
    if let Some(path) = received.path {
        handle.set_received_path(path);
    }
    let target = target::select(client, &request, handle.received_path(), special)?;
    handle.set_route(target.route);
    let route = target.route;
    let body_framing = RequestFraming::of(request.body());
    // A WebSocket begins behind the request.
    let framing = if received.is_websocket { RequestFraming::None } else { body_framing };
    let is_http2 = client.worker.shared.routing.destinations[route].is_http2;
    let mut websocket = if received.is_websocket {
        Some(Box::new(WebSocketRequest::of_http2(is_http2)))
    } else {
        let upgrade = |tunnel| WebSocketRequest::of_http1(&request, special, framing, is_http2, tunnel);
        tunnel.and_then(upgrade).map(Box::new)
    };
    if websocket.is_some() && client.version == HttpVersion::Http1 {
        // What comes behind a refused upgrade may be meant for the other protocol.
        client.set_ending();
    }
    let head = if is_http2 {
        let mut head = Http2Head::new(request.method(), &target.host, target.path)?;
        write_fields(&mut head, client, handle, &request, special, &target, websocket.as_deref());
        UpstreamHead::Http2(Box::new(head.finish(framing)))
    } else {
        let mut head = RequestHead::new(client.worker.spare_head(), request.method(), target.path);
        write_fields(&mut head, client, handle, &request, special, &target, websocket.as_deref());
        UpstreamHead::Http1(head.finish(request.method(), framing))
    };
    if !client.held.has_room_for_request(head.memory()) {
        return Err(RequestFailure::QueueFull.into());
    }
    handle.set_head_bytes(head.memory());
    let field = |name: &str| Some(request.headers().get(name)?.as_bytes());
    let key = client.worker.upstreams.balance().key(handle.client_id(), field);
    let (parts, body) = request.into_parts();
    let mut content = RequestContent::new(body, body_framing, handle);
    if let Some(websocket) = &mut websocket {
        websocket.content = content.withhold();
    }
    check_size(client, framing)?;
    let fields = emptied(parts.headers);
    let is_chunked = framing == RequestFraming::Chunked
        && client.version == HttpVersion::Http1
        && !special.has(SpecialField::Expect);
    Ok(PreparedRequest { route, key, head, content: Some(content), is_chunked, websocket, fields })
}

/// Writes the fields that the upstream gets, without those that frame the content.
fn write_fields(
    head: &mut impl HeadWriter,
    client: &ClientConn,
    handle: &RequestHandle,
    request: &Request<Incoming>,
    special: SpecialFields,
    target: &RequestTarget<'_>,
    websocket: Option<&WebSocketRequest<'_>>,
) {
    fields::write_request(head, client, request, special, target, websocket);
    client.worker.shared.request_rules.write(head, &client.tls, handle.client_id());
}

/// Takes one of the requests that the client may make.
fn check_rate(client: &ClientConn, handle: &RequestHandle) -> Result<(), RefusedRequest> {
    let Some(rate) = client.worker.limits().request_rate else { return Ok(()) };
    let rates = &client.worker.shared.request_rates;
    rates.take(handle.client_id(), rate, client.worker.now()).map_err(RefusedRequest::beyond_rate)
}

/// A request's fields without what is in them, unless that leaves much memory.
fn emptied(mut fields: HeaderMap) -> HeaderMap {
    const FIELDS_MAX: usize = 32;
    if fields.capacity() > FIELDS_MAX {
        return HeaderMap::new();
    }
    fields.clear();
    fields
}

async fn answer(
    client: &Rc<ClientConn>,
    handle: &RequestHandle,
    prepared: &mut Result<PreparedRequest<'_>, RefusedRequest>,
) -> Response<ResponseBody> {
    let answered = match prepared {
        Ok(prepared) => match exchange(client, handle, prepared).await {
            Err(refusal) if client.version == HttpVersion::Http1 => {
                give_up_content(prepared).await;
                Err(refusal)
            }
            answered => answered,
        },
        Err(refusal) => Err(*refusal),
    };
    let mut response = answered.unwrap_or_else(|refusal| {
        handle.fail(refusal.failure);
        if refusal.failure == RequestFailure::Malformed && client.version == HttpVersion::Http1 {
            // What follows on the connection may be a part of the request.
            client.set_ending();
        }
        failure::response(refusal, handle)
    });
    client.worker.shared.response_rules.apply(response.headers_mut(), &client.tls, handle.client_id());
    // A client that is gone gets no status.
    if !handle.is_abandoned() {
        handle.begin_response(response.status().as_u16());
    }
    client.count_header2(HttpCounter::PlainHeaderBytesOut, || response_header_bytes(&response));
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    if client.version == HttpVersion::Http1 && !switches {
        // HTTP/1.0 has no chunks.
        let ends_by_close =
            handle.version() == Version::HTTP_10 && response.body().size_hint().exact().is_none();
        if client.is_ending() || ends_by_close {
            response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            // To a response of a later version than the request's hyper adds `keep-alive`.
            *response.version_mut() = handle.version();
        }
    }
    response
}

/// Lets hyper see before the answer that nobody reads the content: it takes what has arrived, or announces that the
/// connection ends.
async fn give_up_content(request: &mut PreparedRequest<'_>) {
    request.content = None;
    let mut has_waited = false;
    poll_fn(|cx| {
        if mem::replace(&mut has_waited, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Sends a request to an upstream, again if it could not take it, and begins its response.
async fn exchange(
    client: &Rc<ClientConn>,
    handle: &RequestHandle,
    request: &mut PreparedRequest<'_>,
) -> Result<Response<ResponseBody>, RefusedRequest> {
    let worker = &client.worker;
    let destination = &worker.shared.routing.destinations[request.route];
    let (mut sends, mut conns) = (0, ConnChoice::Any);
    if let Some(content) = request.content.as_mut().filter(|_| request.is_chunked) {
        content.look_ahead().await?;
    }
    loop {
        let acquired = acquire(handle, destination, request.key, conns).await?;
        sends += 1;
        handle.set_upstream(acquired.upstream(), acquired.is_reused());
        let Some(content) = request.content.take() else { return Err(RequestFailure::UpstreamClosed.into()) };
        let begun = Exchange::begin(acquired, handle, &request.head, content);
        let Some(mut exchange) = begun else { return Err(RequestFailure::UpstreamInvalid.into()) };
        match poll_fn(|cx| exchange.poll_head(cx, &mut request.fields)).await {
            Ok(response) => {
                if let UpstreamHead::Http1(head) = &mut request.head {
                    worker.keep_head(mem::take(head));
                }
                handle.set_head_bytes(0);
                return respond(client, handle, response, exchange, request.websocket.take());
            }
            Err(ExchangeError::Failed(failure)) => return Err(failure.into()),
            Err(ExchangeError::NoWebSocket) => return Err(RefusedRequest::WEBSOCKET),
            Err(ExchangeError::Closed) => {
                let sends_max = if exchange.is_refused() { REFUSED_SENDS_MAX } else { SENDS_MAX };
                request.content = exchange.into_content_to_retry().filter(|_| sends < sends_max);
                if request.content.is_none() {
                    return Err(RequestFailure::UpstreamClosed.into());
                }
                handle.set_retried();
                conns = if sends == 1 { ConnChoice::New } else { ConnChoice::Own };
            }
        }
    }
}

/// Refuses content whose announced length exceeds the bound.
fn check_size(client: &ClientConn, framing: RequestFraming) -> Result<(), RequestFailure> {
    let max = client.worker.limits().body_bytes_max as u64;
    match framing {
        RequestFraming::Length(length) if length > max => Err(RequestFailure::BodyTooLarge),
        RequestFraming::Length(_) | RequestFraming::Chunked | RequestFraming::None => Ok(()),
    }
}

/// The upstream's response, as the client gets it.
fn respond(
    client: &ClientConn,
    handle: &RequestHandle,
    mut response: Response<()>,
    exchange: Exchange,
    websocket: Option<Box<WebSocketRequest<'_>>>,
) -> Result<Response<ResponseBody>, RefusedRequest> {
    let switches = response.status() == StatusCode::SWITCHING_PROTOCOLS;
    fields::remove_hop_by_hop(response.headers_mut(), exchange.special_fields());
    let has_no_length = match response.status() {
        // RFC 9110, section 8.6.
        StatusCode::NO_CONTENT => true,
        // Clients take it for the length of the frames that follow.
        StatusCode::NOT_MODIFIED => client.version == HttpVersion::Http2,
        _ => false,
    };
    if has_no_length {
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    *response.version_mut() = Version::HTTP_11;
    if response.status().canonical_reason().is_none() {
        // hyper would write "<none>".
        response.extensions_mut().insert(ReasonPhrase::from_static(b""));
    }
    let has_agreed = match exchange {
        Exchange::Http1(_) => switches,
        Exchange::Http2(_) => response.status().is_success(),
    };
    match websocket {
        None if switches => return Err(RequestFailure::UpstreamInvalid.into()),
        Some(request) if has_agreed => return request.begin(client, handle, response, exchange),
        // The client would take it for an agreement.
        Some(_) if client.version == HttpVersion::Http2 && response.status().is_success() => {
            return Err(RefusedRequest::WEBSOCKET);
        }
        None | Some(_) => {}
    }
    if client.version == HttpVersion::Http1 && exchange.lacks_content() {
        // An early answer: what follows on the connection may be content.
        client.set_ending();
    }
    Ok(response.map(|()| ResponseBody::of(exchange, handle)))
}
