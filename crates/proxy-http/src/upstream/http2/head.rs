//! Heads of requests over HTTP/2.

use std::time::Duration;

use bytes::Bytes;
use h2::ext::Protocol;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, TE};
use hyper::http::uri::{Authority, Parts, PathAndQuery, Scheme};
use hyper::{HeaderMap, Method, Request, Uri, Version};
use records::metrics::RequestFailure;

use crate::upstream::request_head::HeadWriter;
use crate::upstream::request_head::RequestFraming;

/// What a field takes in a map, besides its bytes.
const FIELD_BYTES: usize = 64;

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The head of a request, without the scheme: that is the upstream's.
#[derive(Debug)]
pub(crate) struct Http2Head {
    method: Method,
    authority: Authority,
    path: PathAndQuery,
    fields: HeaderMap,
    /// How long a call of gRPC may take.
    pub(super) call: Option<GrpcCall>,
    /// Whether it is an extended CONNECT (RFC 8441).
    pub(super) is_websocket: bool,
}

/// A request that is a call of gRPC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GrpcCall {
    /// How long the client waits; `None`: as long as it takes.
    pub(crate) timeout: Option<Duration>,
}

impl Http2Head {
    /// Begins with the method and the target.
    ///
    /// # Errors
    /// When HTTP/2 cannot carry the host or the path.
    pub(crate) fn new(method: &Method, host: &str, path: &str) -> Result<Self, RequestFailure> {
        let authority = Authority::from_maybe_shared(Bytes::copy_from_slice(host.as_bytes()));
        let path = PathAndQuery::from_maybe_shared(Bytes::copy_from_slice(path.as_bytes()));
        Ok(Self {
            method: method.clone(),
            authority: authority.map_err(|_| RequestFailure::Malformed)?,
            path: path.map_err(|_| RequestFailure::Malformed)?,
            fields: HeaderMap::new(),
            call: None,
            is_websocket: false,
        })
    }

    /// Ends with the length of the content, if that is known.
    pub(crate) fn finish(mut self, framing: RequestFraming) -> Self {
        let is_expected = matches!(self.method, Method::POST | Method::PUT | Method::PATCH);
        match framing {
            RequestFraming::Length(length) => drop(self.fields.insert(CONTENT_LENGTH, length.into())),
            RequestFraming::None if is_expected => drop(self.fields.insert(CONTENT_LENGTH, 0.into())),
            RequestFraming::None | RequestFraming::Chunked => {}
        }
        self.call = grpc_call(&self.fields).filter(|_| self.method == Method::POST);
        self
    }

    /// The memory that it takes.
    pub(crate) fn memory(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD_BYTES);
        fields.sum::<usize>() + self.path.as_str().len()
    }

    /// The request, for an upstream that is spoken to with TLS or without.
    pub(super) fn request(&self, is_tls: bool) -> Request<()> {
        let mut uri = Parts::default();
        uri.scheme = Some(if is_tls { Scheme::HTTPS } else { Scheme::HTTP });
        uri.authority = Some(self.authority.clone());
        uri.path_and_query = Some(self.path.clone());
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        // All parts are there that belong together.
        *request.uri_mut() = Uri::from_parts(uri).unwrap_or_default();
        *request.version_mut() = Version::HTTP_2;
        *request.headers_mut() = self.fields.clone();
        if self.is_websocket {
            request.extensions_mut().insert(Protocol::from_static("websocket"));
        }
        request
    }
}

impl HeadWriter for Http2Head {
    fn host(&mut self, _: &str) {}

    fn field(&mut self, name: &str, value: &[u8]) {
        // Both were a field of the client's, or are the proxy's own.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_bytes(value))
        {
            self.fields.append(name, value);
        }
    }

    fn copied_field(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.fields.append(name.clone(), value.clone());
    }

    fn joined_field<'a>(&mut self, name: &str, values: impl Iterator<Item = &'a [u8]>, separator: &str) {
        let values: Vec<_> = values.collect();
        self.field(name, &values.join(separator.as_bytes()));
    }

    fn encoded_fields(&mut self, fields: &[u8]) {
        let text = std::str::from_utf8(fields).unwrap_or_default();
        for (name, value) in text.split("\r\n").filter_map(|line| line.split_once(": ")) {
            self.field(name, value.as_bytes());
        }
    }

    fn trailers_wanted(&mut self) {
        self.fields.insert(TE, HeaderValue::from_static("trailers"));
    }

    fn websocket(&mut self, _: Option<&HeaderValue>) {
        (self.method, self.is_websocket) = (Method::CONNECT, true);
    }
}

/// The call that a request with these fields is, if it is one of gRPC.
fn grpc_call(fields: &HeaderMap) -> Option<GrpcCall> {
    let media_type = fields.get(CONTENT_TYPE)?.as_bytes();
    let rest = media_type.strip_prefix(b"application/grpc")?;
    let is_grpc = matches!(rest.first(), None | Some(b'+' | b';'));
    let timeout = || fields.get(GRPC_TIMEOUT).and_then(|value| grpc_timeout(value.to_str().ok()?));
    is_grpc.then(|| GrpcCall { timeout: timeout() })
}

/// A timeout such as `250m`: at most eight digits, and a unit.
fn grpc_timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let is_number = (1..=8).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let n: u64 = digits.parse().ok().filter(|_| is_number)?;
    match unit {
        "H" => Some(Duration::from_secs(n * 3_600)),
        "M" => Some(Duration::from_secs(n * 60)),
        "S" => Some(Duration::from_secs(n)),
        "m" => Some(Duration::from_millis(n)),
        "u" => Some(Duration::from_micros(n)),
        "n" => Some(Duration::from_nanos(n)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grpc_timeout_has_eight_digits_and_a_unit() {
        for (text, expected) in [
            ("1H", Some(3_600_000)),
            ("2M", Some(120_000)),
            ("3S", Some(3_000)),
            ("250m", Some(250)),
            ("99999999H", Some(359_999_996_400_000)),
            ("4000u", Some(4)),
            ("4000000n", Some(4)),
            ("100000000n", None),
            ("", None),
            ("S", None),
            ("1", None),
            ("-1S", None),
            ("+1S", None),
            ("1 S", None),
            ("1x", None),
            ("1é", None),
        ] {
            assert_eq!(grpc_timeout(text), expected.map(Duration::from_millis), "{text}");
        }
    }

    #[test]
    fn a_call_of_grpc_is_known_by_its_media_type() {
        for (media_type, is_call) in [
            ("application/grpc", true),
            ("application/grpc+proto", true),
            ("application/grpc;x=y", true),
            ("application/grpc-web", false),
            ("application/grpcx", false),
            ("text/plain", false),
        ] {
            let fields = HeaderMap::from_iter([(CONTENT_TYPE, media_type.parse().unwrap())]);
            assert_eq!(grpc_call(&fields).is_some(), is_call, "{media_type}");
        }
    }
}
