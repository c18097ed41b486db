//! Refuses requests that the proxy and an upstream could read differently (RFC 9110, section 7.2; RFC 9112, sections 3.2
//! and 6; RFC 9113, section 8).
//!
//! It adds to what hyper and h2 refuse: malformed fields, invalid or contradictory lengths, `Transfer-Encoding` that does
//! not end with `chunked`, and in HTTP/2 the fields of one connection.

use hyper::header::{CONTENT_LENGTH, HOST, HeaderMap, HeaderName, TRANSFER_ENCODING};
use hyper::{Method, Request, Version};

/// Why a request is refused, with the status 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AmbiguousRequest {
    /// It would become a tunnel through the upstream.
    #[error("the method CONNECT is not served")]
    Connect,
    /// Neither a path nor the `*` of OPTIONS.
    #[error("its target is not a path")]
    Target,
    /// No host, two, or a malformed one.
    #[error("its host is missing or ambiguous")]
    Host,
    /// Two lengths, or a list.
    #[error("its length is ambiguous")]
    Length,
    /// An upstream could not undo what this coding is.
    #[error("its transfer coding is not chunked alone")]
    Coding,
    /// Some servers read `X_Forwarded_For` as `X-Forwarded-For`.
    #[error("a field looks like another, which only the proxy may set")]
    Lookalike,
}

/// Checks the head of a request before anything of it is used.
///
/// # Errors
/// Why the request must be refused.
pub(crate) fn check<B>(request: &Request<B>) -> Result<(), AmbiguousRequest> {
    let headers = request.headers();
    if *request.method() == Method::CONNECT {
        return Err(AmbiguousRequest::Connect);
    }
    check_target(request)?;
    check_host(request)?;
    check_framing(headers)?;
    if headers.keys().any(is_lookalike) {
        return Err(AmbiguousRequest::Lookalike);
    }
    Ok(())
}

fn check_target<B>(request: &Request<B>) -> Result<(), AmbiguousRequest> {
    const DELETE: u8 = 0x7f;
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    let is_path = target.starts_with('/') && !target.bytes().any(|byte| byte <= b' ' || byte == DELETE);
    if is_path || (target == "*" && *request.method() == Method::OPTIONS) {
        Ok(())
    } else {
        Err(AmbiguousRequest::Target)
    }
}

fn check_host<B>(request: &Request<B>) -> Result<(), AmbiguousRequest> {
    let mut hosts = request.headers().get_all(HOST).iter().map(|host| host.as_bytes());
    let (host, other) = (hosts.next(), hosts.next());
    let authority = request.uri().authority().map(|authority| authority.as_str().as_bytes());
    let is_needed = request.version() == Version::HTTP_11;
    let is_missing =
        host.is_none() && (is_needed || (authority.is_none() && request.version() == Version::HTTP_2));
    // The authority counts where there is one, so an upstream must not see another host.
    let differs = host.zip(authority).is_some_and(|(host, authority)| !host.eq_ignore_ascii_case(authority));
    let is_malformed = [host, authority].into_iter().flatten().any(|host| !host.iter().all(is_host_byte));
    if is_missing || other.is_some() || differs || is_malformed {
        return Err(AmbiguousRequest::Host);
    }
    Ok(())
}

fn is_host_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~%:[]".contains(byte)
}

fn check_framing(headers: &HeaderMap) -> Result<(), AmbiguousRequest> {
    let mut lengths = headers.get_all(CONTENT_LENGTH).iter();
    if let Some(length) = lengths.next() {
        let is_number = length.as_bytes().iter().all(u8::is_ascii_digit);
        if !is_number || length.is_empty() || lengths.next().is_some() {
            return Err(AmbiguousRequest::Length);
        }
    }
    let mut codings = headers.get_all(TRANSFER_ENCODING).iter();
    if let Some(coding) = codings.next()
        && (!coding.as_bytes().eq_ignore_ascii_case(b"chunked") || codings.next().is_some())
    {
        return Err(AmbiguousRequest::Coding);
    }
    Ok(())
}

/// Whether servers that make variables of fields take this one for one that frames or identifies a request.
fn is_lookalike(name: &HeaderName) -> bool {
    const PREFIXES: [&str; 2] = ["x-forwarded-", "x-tls-"];
    const NAMES: [&str; 2] = ["content-length", "transfer-encoding"];
    let name = name.as_str();
    if !name.contains('_') {
        return false;
    }
    let read = name.replace('_', "-");
    NAMES.contains(&read.as_str()) || PREFIXES.iter().any(|prefix| read.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use hyper::http::request::Builder;

    use super::*;

    fn get(target: &str) -> Builder {
        Request::builder().uri(target)
    }

    #[test]
    fn what_can_be_read_in_one_way_only_passes() {
        for request in [
            get("/").header("host", "a.example:8443"),
            get("/a%20b?c=/../").header("host", "[::1]:443"),
            get("https://a.example/").version(Version::HTTP_2),
            get("https://a.example/").version(Version::HTTP_2).header("host", "A.example"),
            get("http://a.example/x").header("host", "a.example"),
            get("/").version(Version::HTTP_10),
            get("*").method("OPTIONS").header("host", ""),
            get("/").header("host", "a").header("content-length", "18446744073709551615"),
            get("/").header("host", "a").header("transfer-encoding", "Chunked"),
            get("/").header("host", "a").header("my_field", "1"),
        ] {
            let request = request.body(()).unwrap();
            assert_eq!(check(&request), Ok(()), "{request:?}");
        }
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_refused() {
        use AmbiguousRequest::{Coding, Connect, Host, Length, Lookalike, Target};
        let here = |target| get(target).header("host", "a");
        for (request, expected) in [
            (get("a:443").method("CONNECT").header("host", "a:443"), Connect),
            (here("*"), Target),
            (get("/"), Host),
            (get("/").version(Version::HTTP_2), Host),
            (here("/").header("host", "a"), Host),
            (here("/").header("host", "b"), Host),
            (here("http://b/"), Host),
            (get("http://user@b/").header("host", "user@b"), Host),
            (get("/").header("host", "a/b"), Host),
            (get("/").header("host", "a, b"), Host),
            (here("/").header("content-length", "1").header("content-length", "1"), Length),
            (here("/").header("content-length", "1, 1"), Length),
            (here("/").header("content-length", "+1"), Length),
            (here("/").header("content-length", ""), Length),
            (here("/").header("transfer-encoding", "gzip, chunked"), Coding),
            (here("/").header("transfer-encoding", "chunked").header("transfer-encoding", "chunked"), Coding),
            (here("/").header("x_forwarded_for", "127.0.0.1"), Lookalike),
            (here("/").header("x-tls_client-name", "Ada"), Lookalike),
            (here("/").header("content_length", "1"), Lookalike),
        ] {
            let request = request.body(()).unwrap();
            assert_eq!(check(&request), Err(expected), "{request:?}");
        }
    }
}
