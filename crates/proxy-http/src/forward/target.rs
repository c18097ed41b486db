//! The target of a request: its host, its path, and the route that serves them.

use std::borrow::Cow;

use hyper::header::{COOKIE, HOST, HeaderMap};
use hyper::http::uri::{Authority, PathAndQuery};
use hyper::{Method, Request, Version};
use proxy_core::{Upstream, UpstreamAddr, Upstreams};
use records::kinds::HttpVersion;
use records::metrics::RequestFailure;

use super::failure::RefusedRequest;
use crate::client::ClientConn;
use crate::guard::frame_tap::{VERDICT, Verdict};
use crate::request::special_fields::{SpecialField, SpecialFields};
use crate::request::target_text::without_query;
use crate::route::destination::Routing;

/// The target of a request, and its route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestTarget<'a> {
    /// The host that the upstream gets, with its port if it has one.
    pub(super) host: Cow<'a, str>,
    /// Whether the request names the host: one of HTTP/1.0 may name none.
    pub(super) is_host_named: bool,
    /// The path with its query, as received; `*` for the server as a whole.
    pub(super) path: &'a str,
    pub(super) route: usize,
}

/// What a head had that hyper got in another form.
#[derive(Debug, Default)]
pub(super) struct ReceivedHead {
    /// The path with its query as the client has sent it, if hyper got another (see [`target_text`](crate::request::target_text)).
    pub(super) path: Option<Box<str>>,
    /// Whether it is an extended CONNECT for a WebSocket (RFC 8441).
    pub(super) is_websocket: bool,
}

/// What hyper got in another form than the client has sent it.
///
/// # Errors
/// If the header block was found to be unacceptable before hyper saw the request.
pub(super) fn received_head<B>(
    client: &ClientConn,
    request: &Request<B>,
    special: SpecialFields,
) -> Result<ReceivedHead, RefusedRequest> {
    if let Some(requests) = &client.http1 {
        return Ok(ReceivedHead { path: requests.received_path.take(), is_websocket: false });
    }
    let verdicts = special.has(SpecialField::Verdict).then(|| request.headers().get_all(VERDICT));
    // The last one is the proxy's.
    match verdicts
        .and_then(|verdicts| verdicts.iter().next_back())
        .map(|last| Verdict::parse(last.as_bytes()))
    {
        Some(Verdict::Refused(refusal)) => Err(refusal.into()),
        Some(Verdict::Passed { is_websocket, path }) => {
            Ok(ReceivedHead { path: path.map(Box::from), is_websocket })
        }
        None => Ok(ReceivedHead::default()),
    }
}

/// Finds out what a request asks for.
///
/// # Errors
/// If that is malformed or ambiguous, or no route serves it.
pub(super) fn select<'a, B>(
    client: &'a ClientConn,
    request: &'a Request<B>,
    received_path: Option<&'a str>,
    special: SpecialFields,
) -> Result<RequestTarget<'a>, RefusedRequest> {
    if request.method() == Method::CONNECT {
        return Err(RefusedRequest::CONNECT);
    }
    if has_too_many_fields(client, request.headers()) {
        return Err(RequestFailure::HeaderTooLarge.into());
    }
    let named = host(request, special, client.version)?;
    let is_host_named = !named.is_empty();
    // The name in TLS is what the client believes to talk to.
    let host = if is_host_named { named } else { &client.tls.server_name };
    check_connection(client, request, host)?;
    let path = received_path.map_or_else(|| path(request), Ok)?;
    let Routing { table, destinations } = &client.worker.shared.routing;
    let route = table.select(host, without_query(path))?;
    let host = if host.is_empty() {
        upstream_host(&client.worker.upstreams, destinations[route].index)
    } else {
        host.into()
    };
    Ok(RequestTarget { host, is_host_named, path, route })
}

/// The host for requests without one: many servers refuse those over HTTP/1.1. It is the address of a destination's first
/// upstream.
#[cold]
fn upstream_host(upstreams: &Upstreams, destination: usize) -> Cow<'static, str> {
    let bits = upstreams.upstreams_of(destination);
    let first = (0..upstreams.len()).find(|index| bits & 1 << index != 0);
    match first.and_then(|index| upstreams.name(index).parse().ok()) {
        Some(Upstream { addr: addr @ UpstreamAddr::Tcp { .. }, .. }) => addr.to_string().into(),
        Some(Upstream { addr: UpstreamAddr::Unix(_), .. }) | None => "localhost".into(),
    }
}

/// Whether a header has too many fields. The pieces of a cookie are one.
fn has_too_many_fields(client: &ClientConn, fields: &HeaderMap) -> bool {
    let max = client.worker.limits().header_fields_max;
    let pieces = || fields.get_all(COOKIE).iter().skip(1).count();
    fields.len() > max && !(client.version == HttpVersion::Http2 && fields.len() - pieces() <= max)
}

/// The one host that a request names (RFC 9112, section 3.2, and RFC 9113, section 8.3.1).
fn host<B>(
    request: &Request<B>,
    special: SpecialFields,
    version: HttpVersion,
) -> Result<&str, RequestFailure> {
    let mut field = None;
    if special.has(SpecialField::Host) {
        let mut fields = request.headers().get_all(HOST).iter();
        field = fields.next();
        if fields.next().is_some() {
            return Err(RequestFailure::Malformed);
        }
    }
    let field = field.map(|value| value.to_str().map_err(|_| RequestFailure::Malformed)).transpose()?;
    let authority = request.uri().authority().map(Authority::as_str);
    let host = match (authority, field) {
        (Some(authority), Some(field))
            if version == HttpVersion::Http2 && !authority.eq_ignore_ascii_case(field) =>
        {
            return Err(RequestFailure::Malformed);
        }
        // In HTTP/1.1 a target in absolute form has precedence, but `Host` must be there.
        (Some(authority), None) if version == HttpVersion::Http2 => authority,
        (Some(authority), Some(_)) => authority,
        (None, Some(field)) => field,
        (authority, None) if request.version() == Version::HTTP_10 => authority.unwrap_or_default(),
        (_, None) => return Err(RequestFailure::Malformed),
    };
    // The target's own was parsed with it.
    let is_parsed = host.is_empty() || authority == Some(host);
    let is_valid = is_parsed || is_plain(host) || host.parse::<Authority>().is_ok();
    if is_valid && !host.contains('@') { Ok(host) } else { Err(RequestFailure::Malformed) }
}

/// Whether a host is a name or an IPv4 address with or without a port, as most are: to parse one needs memory.
fn is_plain(host: &str) -> bool {
    let colon = host.bytes().position(|byte| byte == b':');
    let (name, port) = colon.map_or((host, "0"), |at| (&host[..at], &host[at + 1..]));
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    let has_name = !name.is_empty() && name.bytes().all(is_name);
    has_name && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether the connection may serve what is asked for (RFC 9110, section 7.4): where clients prove themselves, they do so
/// to one server name only.
fn check_connection<B>(client: &ClientConn, request: &Request<B>, host: &str) -> Result<(), RequestFailure> {
    let is_other_scheme = request.uri().scheme_str().is_some_and(|scheme| scheme != "https");
    let bound = &*client.tls.server_name;
    let name = || host.rsplit_once(':').map_or(host, |(name, _)| name);
    let is_other_host = client.is_bound_to_name && !bound.is_empty() && !name().eq_ignore_ascii_case(bound);
    if is_other_scheme || is_other_host { Err(RequestFailure::Misdirected) } else { Ok(()) }
}

fn path<B>(request: &Request<B>) -> Result<&str, RequestFailure> {
    let is_options = request.method() == Method::OPTIONS;
    match request.uri().path_and_query().map(PathAndQuery::as_str) {
        // In absolute form, a target without a path means the server.
        None | Some("" | "*") if is_options => Ok("*"),
        None | Some("") => Ok("/"),
        Some(path) if path.starts_with('/') => Ok(path),
        Some(_) => Err(RequestFailure::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(uri: &str, hosts: &[&str], version: Version) -> Request<()> {
        let mut request = Request::builder().uri(uri).version(version);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        request.body(()).unwrap()
    }

    #[test]
    fn exactly_one_host_is_named() {
        let ok = |uri: &str, hosts: &[&str], is_http2| {
            let (version, of) = if is_http2 {
                (Version::HTTP_2, HttpVersion::Http2)
            } else {
                (Version::HTTP_11, HttpVersion::Http1)
            };
            let request = request(uri, hosts, version);
            host(&request, SpecialFields::of(request.headers()), of).map(str::to_owned)
        };
        assert_eq!(ok("/", &["a:1"], false), Ok("a:1".to_owned()));
        assert_eq!(ok("https://b/", &["a"], false), Ok("b".to_owned()), "the target comes first");
        assert_eq!(ok("https://b/", &[], true), Ok("b".to_owned()));
        assert_eq!(ok("https://b/", &["B"], true), Ok("b".to_owned()));
        let malformed = Err(RequestFailure::Malformed);
        for (uri, hosts, is_http2) in [
            ("/", &[][..], false),
            ("/", &["a", "a"], false),
            ("/", &["a b"], false),
            ("/", &["user@a"], false),
            ("https://user@b/", &[], true),
            ("https://b/", &["a"], true),
            ("https://b/", &["b", "b"], true),
            ("https://b/", &[], false),
            ("/", &[], true),
        ] {
            assert_eq!(ok(uri, hosts, is_http2), malformed, "{uri} {hosts:?} {is_http2}");
        }
        assert_eq!(
            host(&request("/", &[], Version::HTTP_10), SpecialFields::default(), HttpVersion::Http1),
            Ok("")
        );
    }

    #[test]
    fn a_plain_host_is_one_that_parses() {
        for host in ["a", "a.b-c", "127.0.0.1", "localhost:8443", "a:0", "A9.", "-"] {
            assert!(is_plain(host) && host.parse::<Authority>().is_ok(), "{host}");
        }
        for host in ["", ":80", "a:", "a:b", "a:1:2", "a b", "[::1]", "user@a", "a_b", "é", "a/b", "a%20"] {
            assert!(!is_plain(host), "{host}");
        }
    }

    #[test]
    fn a_target_keeps_its_path_and_query_as_received() {
        for (method, uri, expected) in [
            ("GET", "/a%20b//c?x=/..", Ok("/a%20b//c?x=/..")),
            ("GET", "https://a", Ok("/")),
            ("GET", "https://a/x?y", Ok("/x?y")),
            ("OPTIONS", "*", Ok("*")),
            ("GET", "*", Err(RequestFailure::Malformed)),
        ] {
            let request = Request::builder().method(method).uri(uri).body(()).unwrap();
            assert_eq!(path(&request), expected, "{method} {uri}");
        }
    }
}
