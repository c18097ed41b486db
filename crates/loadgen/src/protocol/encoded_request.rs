//! Requests, encoded once before the load starts.

use std::sync::Arc;

use super::response::ExpectedResponse;
use crate::protocol::Protocol;
use crate::protocol::http2::{FieldNumbers, Http2Request};
use crate::script::Script;
use crate::target::{Expect, RequestBody, Scheme, Target, Template};

/// Largest body of a request, which is kept in memory.
pub(crate) const BODY_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Most header fields of a template.
const HEADERS_MAX: usize = 100;
/// Most places in the sequence of requests.
const WEIGHTS_MAX: u64 = 10_000;

/// An error in the requests of a load.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    #[error("request {method} {path}: {reason}")]
    Template { method: String, path: String, reason: &'static str },
    /// The weights of the requests are out of range.
    #[error("the weights of the requests must be at least 1 and add up to at most {most}, not {sum}")]
    Weights { sum: u64, most: u64 },
}

/// A request as it goes over a connection.
#[derive(Debug)]
pub(crate) struct EncodedRequest {
    /// The bytes for a connection that carries more requests after this one.
    keep: Box<[u8]>,
    /// The bytes that also ask the server to close, if the protocol can.
    close: Option<Box<[u8]>>,
    pub(crate) body_bytes: u64,
    pub(crate) expected: ExpectedResponse,
    /// Its name in messages.
    pub(crate) name: String,
    /// The request for HTTP/2; empty for an echo.
    pub(crate) http2: Http2Request,
}

impl EncodedRequest {
    /// Writes a template for a target; all requests of a load share `numbers`.
    pub(crate) fn new(
        template: &Template,
        target: &Target,
        numbers: &mut FieldNumbers,
    ) -> Result<Self, RequestError> {
        check_template(template, target.scheme())?;
        let body = body(&template.body);
        let body_bytes = body.len() as u64;
        let Template { method, path, .. } = template;
        if target.scheme().is_raw() {
            let name = format!("{body_bytes} bytes");
            let expected = ExpectedResponse {
                body: Some(Arc::clone(&body)),
                is_raw: true,
                ..ExpectedResponse::default()
            };
            let http2 = Http2Request::default();
            return Ok(Self { keep: (*body).into(), close: None, body_bytes, expected, name, http2 });
        }
        let (echo, answer_bytes) = match template.expect {
            Expect::Announced => (None, None),
            Expect::Bytes(bytes) => (None, Some(bytes)),
            Expect::Echo => (Some(Arc::clone(&body)), None),
        };
        let head_only = method == "HEAD";
        Ok(Self {
            keep: write(template, target, &body, ""),
            close: Some(write(template, target, &body, "Connection: close\r\n")),
            body_bytes,
            expected: ExpectedResponse {
                head_only,
                body: echo,
                body_bytes: answer_bytes,
                status: template.expect_status,
                is_raw: false,
            },
            name: format!("{method} {path}"),
            http2: Http2Request::new(template, target, &body, numbers),
        })
    }

    /// All bytes of the request.
    pub(crate) fn bytes(&self, close: bool) -> &[u8] {
        self.close.as_deref().filter(|_| close).unwrap_or(&self.keep)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct RequestSource {
    pub(crate) target: Target,
    pub(crate) templates: Vec<Template>,
    pub(crate) protocol: Protocol,
    /// The trusted certificates, in words; `None` without TLS.
    pub(crate) trust: Option<String>,
    /// What says what is sent when.
    pub(crate) script: Option<Arc<Script>>,
}

impl RequestSource {
    /// Writes all requests out.
    pub(crate) fn prepare(&self) -> Result<Arc<[EncodedRequest]>, RequestError> {
        let mut numbers = FieldNumbers::default();
        self.templates
            .iter()
            .map(|template| EncodedRequest::new(template, &self.target, &mut numbers))
            .collect()
    }

    /// The protocol's name in the settings.
    pub(crate) fn protocol_name(&self) -> String {
        if self.target.scheme().is_raw() {
            "echo".to_owned()
        } else if self.script.as_ref().is_some_and(|script| script.has_both_protocols()) {
            "HTTP/1.1 and HTTP/2".to_owned()
        } else {
            self.protocol.to_string()
        }
    }

    /// Writes all requests again, with another size for bodies that are only a size.
    pub(crate) fn with_bodies_of(&self, bytes: usize) -> Result<Arc<[EncodedRequest]>, RequestError> {
        let mut other = self.clone();
        other.templates.iter_mut().for_each(|template| match &mut template.body {
            RequestBody::Bytes(size) if *size > 0 => *size = bytes,
            RequestBody::Bytes(_) | RequestBody::Exact(_) => {}
        });
        other.prepare()
    }

    /// The size of the first body that is only a size.
    pub(crate) fn body_bytes(&self) -> Option<usize> {
        self.templates.iter().filter(|_| self.script.is_none()).find_map(|template| match template.body {
            RequestBody::Bytes(size) if size > 0 => Some(size),
            RequestBody::Bytes(_) | RequestBody::Exact(_) => None,
        })
    }
}

/// The order in which requests of these weights are sent: each as evenly spread as it can be.
pub(crate) fn sequence(templates: &[Template]) -> Result<Box<[u16]>, RequestError> {
    let weights: Vec<i64> = templates.iter().map(|template| template.weight.into()).collect();
    let sum = weights.iter().sum::<i64>();
    if weights.contains(&0) || sum as u64 > WEIGHTS_MAX {
        return Err(RequestError::Weights { sum: sum as u64, most: WEIGHTS_MAX });
    }
    // Smooth weighted round robin, as in nginx: the request that has waited most for its share is next.
    let mut waited = vec![0; weights.len()];
    let next = |_| {
        waited.iter_mut().zip(&weights).for_each(|(waited, weight)| *waited += weight);
        let longest = (0..waited.len()).rev().max_by_key(|index| waited[*index]).unwrap_or(0);
        waited[longest] -= sum;
        longest as u16
    };
    Ok((0..sum).map(next).collect())
}

fn body(body: &RequestBody) -> Arc<[u8]> {
    match body {
        // Letters in turn, so a truncated or shifted body differs.
        RequestBody::Bytes(bytes) => (b'a'..=b'z').cycle().take(*bytes).collect(),
        RequestBody::Exact(bytes) => Arc::clone(bytes),
    }
}

fn write(template: &Template, target: &Target, body: &[u8], connection: &str) -> Box<[u8]> {
    use std::fmt::Write as _;
    let Template { method, path, headers, .. } = template;
    let is_given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    let mut head = format!("{method} {path} HTTP/1.1\r\n");
    if !is_given("host") {
        let _ = write!(head, "Host: {}\r\n", target.authority());
    }
    if !is_given("user-agent") {
        let _ = write!(head, "User-Agent: tlsdash/{}\r\n", env!("CARGO_PKG_VERSION"));
    }
    for (name, value) in headers {
        let _ = write!(head, "{name}: {value}\r\n");
    }
    // A method that usually has a body declares an empty one (RFC 9110, section 8.6).
    if !body.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
        let _ = write!(head, "Content-Length: {}\r\n", body.len());
    }
    let _ = write!(head, "{connection}\r\n");
    [head.as_bytes(), body].concat().into_boxed_slice()
}

pub(crate) fn check_template(template: &Template, scheme: Scheme) -> Result<(), RequestError> {
    let Some(reason) = flaw(template, scheme) else { return Ok(()) };
    let clean = records::text::clean::text;
    let (method, path) = (clean(&template.method), clean(&template.path));
    Err(RequestError::Template { method, path, reason })
}

/// Why a template cannot be sent.
fn flaw(template: &Template, scheme: Scheme) -> Option<&'static str> {
    let body_bytes = match &template.body {
        RequestBody::Bytes(bytes) => *bytes,
        RequestBody::Exact(bytes) => bytes.len(),
    };
    if body_bytes > BODY_BYTES_MAX {
        return Some("the body must not be larger than 64 MiB");
    }
    if scheme.is_raw() {
        return (body_bytes == 0).then_some("an echo needs a body to be sent");
    }
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    if template.method.is_empty() || !template.method.bytes().all(is_token) {
        return Some("the method must be a word such as GET");
    }
    if template.method == "CONNECT" {
        return Some("CONNECT makes a tunnel and has no answer to wait for");
    }
    if !template.path.starts_with('/') || !template.path.bytes().all(|b| b.is_ascii_graphic()) {
        return Some("the path must begin with / and hold neither spaces nor control characters");
    }
    if template.headers.len() > HEADERS_MAX {
        return Some("there must not be more than 100 header fields");
    }
    template.headers.iter().find_map(|(name, value)| {
        let framing = ["content-length", "transfer-encoding", "connection"];
        if name.is_empty() || !name.bytes().all(is_token) {
            Some("the name of a header field must be a word such as Accept")
        } else if value.bytes().any(|b| b.is_ascii_control() && b != b'\t') {
            Some("a header field must not hold control characters")
        } else if framing.iter().any(|framing| name.eq_ignore_ascii_case(framing)) {
            Some("the generator itself sets Content-Length, Transfer-Encoding and Connection")
        } else {
            None
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(template: &Template) -> Result<EncodedRequest, RequestError> {
        EncodedRequest::new(
            template,
            &"https://example.org:8443/".parse().unwrap(),
            &mut FieldNumbers::default(),
        )
    }

    #[test]
    fn a_request_is_written_as_http_1_1() {
        let get = prepared(&Template::get("/a?b")).unwrap();
        let agent = concat!("User-Agent: tlsdash/", env!("CARGO_PKG_VERSION"));
        let head = format!("GET /a?b HTTP/1.1\r\nHost: example.org:8443\r\n{agent}\r\n");
        assert_eq!(get.bytes(false), format!("{head}\r\n").as_bytes());
        assert_eq!(get.bytes(true), format!("{head}Connection: close\r\n\r\n").as_bytes());
    }

    #[test]
    fn a_body_follows_its_length() {
        let post = prepared(&Template::post("/echo", 30)).unwrap();
        let text = std::str::from_utf8(post.bytes(false)).unwrap();
        assert!(text.contains("\r\nContent-Length: 30\r\n"));
        assert!(text.ends_with("\r\n\r\nabcdefghijklmnopqrstuvwxyzabcd"));
    }

    #[test]
    fn templates_that_would_break_the_protocol_are_refused() {
        let with =
            |method: &str, path: &str| prepared(&Template { method: method.into(), ..Template::get(path) });
        for (method, path) in
            [("", "/"), ("GE T", "/"), ("CONNECT", "/"), ("GET", ""), ("GET", "x"), ("GET", "/\r\nX: y")]
        {
            assert!(matches!(with(method, path), Err(RequestError::Template { .. })), "{method} {path}");
        }
        assert!(with("OPTIONS", "/*").is_ok());
    }

    #[test]
    fn header_fields_are_added_or_take_the_place_of_ours() {
        let headers = [("Accept", "text/html"), ("host", "other")].map(|(n, v)| (n.to_owned(), v.to_owned()));
        let get = prepared(&Template { headers: headers.to_vec(), ..Template::get("/") }).unwrap();
        let text = std::str::from_utf8(get.bytes(false)).unwrap();
        assert!(text.contains("\r\nAccept: text/html\r\nhost: other\r\n\r\n"), "{text}");
        assert_eq!(text.to_ascii_lowercase().matches("host:").count(), 1);
        for (name, value) in [("", "x"), ("a b", "x"), ("X", "y\r\nZ: z"), ("Content-Length", "5")] {
            let headers = vec![(name.to_owned(), value.to_owned())];
            assert!(prepared(&Template { headers, ..Template::get("/") }).is_err(), "{name}: {value}");
        }
    }

    #[test]
    fn weights_are_exact_and_evenly_spread() {
        let weigh = |weights: &[u32]| {
            let templates: Vec<_> =
                weights.iter().map(|&weight| Template { weight, ..Template::get("/") }).collect();
            sequence(&templates)
        };
        assert_eq!(*weigh(&[1, 1, 1]).unwrap(), [0, 1, 2]);
        assert_eq!(*weigh(&[4, 1]).unwrap(), [0, 0, 1, 0, 0]);
        assert!(matches!(weigh(&[1, 0]), Err(RequestError::Weights { .. })));
        assert!(matches!(weigh(&[9_999, 2]), Err(RequestError::Weights { sum: 10_001, .. })));
    }

    #[test]
    fn an_echo_is_sent_as_it_is() {
        let target = "tcp://localhost:7".parse().unwrap();
        let echo =
            EncodedRequest::new(&Template::post("/", 5), &target, &mut FieldNumbers::default()).unwrap();
        assert_eq!(echo.bytes(true), b"abcde");
        assert!(echo.expected.is_raw);
        assert!(
            EncodedRequest::new(&Template::get("/"), &target, &mut FieldNumbers::default()).is_err(),
            "nothing to be echoed"
        );
    }
}
