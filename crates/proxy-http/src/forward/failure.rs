//! The response to a request that failed: a status and a short text that names no address.

use std::time::Duration;

use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Response, StatusCode};
use records::metrics::RequestFailure;

use crate::guard::frame_tap::Refusal;
use crate::request::RequestHandle;
use crate::request::check::AmbiguousRequest;
use crate::route::SelectError;
use crate::upstream::response_body::ResponseBody;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RefusedRequest {
    pub(super) failure: RequestFailure,
    pub(super) status: StatusCode,
    /// The text of the answer, if it is not that of the failure.
    text: Option<&'static str>,
    /// When the client may try again.
    retry_after: Option<Duration>,
}

impl RefusedRequest {
    /// A request for a tunnel to another host.
    pub(super) const CONNECT: Self = Self {
        failure: RequestFailure::Malformed,
        status: StatusCode::METHOD_NOT_ALLOWED,
        text: Some("the method is not allowed\n"),
        retry_after: None,
    };

    /// An extended CONNECT for a protocol that the proxy does not know (RFC 9220, section 3).
    const PROTOCOL: Self = Self {
        failure: RequestFailure::Malformed,
        status: StatusCode::NOT_IMPLEMENTED,
        text: Some("the protocol is not supported\n"),
        retry_after: None,
    };

    /// A request for a WebSocket to an upstream that takes none.
    pub(super) const WEBSOCKET: Self = Self {
        failure: RequestFailure::UpstreamInvalid,
        status: StatusCode::BAD_GATEWAY,
        text: Some("the upstream does not accept WebSockets\n"),
        retry_after: None,
    };

    /// A request beyond its client's rate.
    #[cold]
    pub(super) fn beyond_rate(retry_after: Duration) -> Self {
        Self { retry_after: Some(retry_after), ..RequestFailure::RequestRate.into() }
    }
}

impl From<RequestFailure> for RefusedRequest {
    fn from(failure: RequestFailure) -> Self {
        Self { failure, status: status(failure), text: None, retry_after: None }
    }
}

impl From<AmbiguousRequest> for RefusedRequest {
    fn from(_: AmbiguousRequest) -> Self {
        RequestFailure::Malformed.into()
    }
}

impl From<Refusal> for RefusedRequest {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Malformed => RequestFailure::Malformed.into(),
            Refusal::Connect => Self::CONNECT,
            Refusal::Protocol => Self::PROTOCOL,
            Refusal::HeaderTooLarge => RequestFailure::HeaderTooLarge.into(),
            Refusal::UriTooLong => RequestFailure::UriTooLong.into(),
        }
    }
}

impl From<SelectError> for RefusedRequest {
    fn from(error: SelectError) -> Self {
        match error {
            SelectError::NotFound => RequestFailure::NoRoute.into(),
            SelectError::Passed => RequestFailure::Misdirected.into(),
            SelectError::Ambiguous => RequestFailure::Ambiguous.into(),
        }
    }
}

/// The status of a failure. After a status was sent, or on a connection that has ended, it goes nowhere.
pub(crate) fn status(failure: RequestFailure) -> StatusCode {
    use RequestFailure as F;
    match failure {
        F::NoRoute => StatusCode::NOT_FOUND,
        F::Ambiguous | F::Malformed => StatusCode::BAD_REQUEST,
        F::ClientGone | F::DrainTimeout | F::IdleTimeout | F::SendTimeout | F::PendingBound => {
            StatusCode::BAD_REQUEST
        }
        F::Misdirected => StatusCode::MISDIRECTED_REQUEST,
        F::HeadTimeout | F::BodyTimeout => StatusCode::REQUEST_TIMEOUT,
        F::BodyTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        F::UriTooLong => StatusCode::URI_TOO_LONG,
        F::HeaderTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
        F::RequestRate => StatusCode::TOO_MANY_REQUESTS,
        F::QueueFull | F::QueueTimeout | F::UpstreamsDrained => StatusCode::SERVICE_UNAVAILABLE,
        F::Connect | F::UpstreamClosed | F::UpstreamInvalid | F::UpstreamCut => StatusCode::BAD_GATEWAY,
        F::ConnectTimeout | F::UpstreamTimeout => StatusCode::GATEWAY_TIMEOUT,
    }
}

fn text(failure: RequestFailure) -> &'static str {
    use RequestFailure as F;
    match failure {
        F::NoRoute => "no route serves this host and path\n",
        F::Ambiguous => "the path is ambiguous\n",
        F::Malformed => "the request is malformed\n",
        F::ClientGone | F::DrainTimeout | F::IdleTimeout | F::SendTimeout | F::PendingBound => {
            "the request is not complete\n"
        }
        F::Misdirected => "this connection does not serve the requested host\n",
        F::HeadTimeout | F::BodyTimeout => "the request did not arrive in time\n",
        F::BodyTooLarge => "the request's body is too large\n",
        F::UriTooLong => "the request's target is too long\n",
        F::HeaderTooLarge => "the request's header is too large\n",
        F::RequestRate => "too many requests\n",
        F::QueueFull | F::QueueTimeout => "too many requests wait for the upstream\n",
        F::UpstreamsDrained => "the upstream is out of service\n",
        F::Connect => "the upstream cannot be reached\n",
        F::ConnectTimeout => "the upstream cannot be reached in time\n",
        F::UpstreamClosed => "the upstream closed the connection without a response\n",
        F::UpstreamInvalid | F::UpstreamCut => "the upstream's response is malformed\n",
        F::UpstreamTimeout => "the upstream did not respond in time\n",
    }
}

/// The answer to a request that is refused.
pub(super) fn response(refusal: RefusedRequest, handle: &RequestHandle) -> Response<ResponseBody> {
    let text = refusal.text.unwrap_or_else(|| text(refusal.failure));
    handle.set_own_response();
    // Over HTTP/2 hyper sends what content there is, also for HEAD (RFC 9110, section 9.3.2).
    let is_head = *handle.method() == Method::HEAD;
    let body = if is_head { ResponseBody::empty(handle) } else { ResponseBody::text(text, handle) };
    let mut response = Response::new(body);
    *response.status_mut() = refusal.status;
    let fields = response.headers_mut();
    if is_head {
        fields.insert(CONTENT_LENGTH, text.len().into());
    }
    fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    if refusal.status == StatusCode::METHOD_NOT_ALLOWED {
        fields.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
    }
    if let Some(time) = refusal.retry_after {
        // Whole seconds (RFC 9110, section 10.2.3), and not too early.
        fields.insert(RETRY_AFTER, time.as_secs().saturating_add(1).into());
    }
    response
}
