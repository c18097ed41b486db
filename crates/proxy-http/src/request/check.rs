//! Refuses requests that the proxy and an upstream could read differently (RFC 9112, section 6; RFC 9113, section 8).
//!
//! It adds to what hyper and h2 refuse: malformed fields, invalid or contradictory lengths, `Transfer-Encoding` that does
//! not end with `chunked`, and in HTTP/2 the fields of one connection. Host and target are checked where a route is
//! selected.

use hyper::header::{CONTENT_LENGTH, HeaderMap, TRANSFER_ENCODING};
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request};

use crate::request::special_fields::{SpecialField, SpecialFields};

/// The reason of a refusal with status 400.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AmbiguousRequest {
    /// A control character, or a host alone.
    #[error("its target is neither a path nor a URI")]
    Target,
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

/// Checks the head of a request before any part of it is used. Returns its special fields.
///
/// # Errors
/// Why the request must be refused.
pub(crate) fn check<B>(request: &Request<B>) -> Result<SpecialFields, AmbiguousRequest> {
    let headers = request.headers();
    let special = SpecialFields::of(headers);
    if special.has(SpecialField::ContentLength) || special.has(SpecialField::TransferEncoding) {
        check_framing(headers)?;
    }
    check_target(request)?;
    if special.has(SpecialField::Lookalike) {
        return Err(AmbiguousRequest::Lookalike);
    }
    Ok(special)
}

fn check_target<B>(request: &Request<B>) -> Result<(), AmbiguousRequest> {
    let uri = request.uri();
    let is_control = |path: &PathAndQuery| path.as_str().bytes().any(|byte| byte.is_ascii_control());
    let is_host = uri.authority().is_some() && uri.scheme().is_none() && *request.method() != Method::CONNECT;
    if is_host || uri.path_and_query().is_some_and(is_control) {
        return Err(AmbiguousRequest::Target);
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use hyper::http::request::Builder;

    use super::*;

    fn post() -> Builder {
        Request::builder().method("POST").uri("/")
    }

    #[test]
    fn unambiguous_paths_pass() {
        for request in [
            post(),
            post().header("content-length", "18446744073709551615"),
            post().header("transfer-encoding", "Chunked"),
            post().header("my_field", "1"),
        ] {
            let request = request.body(()).unwrap();
            assert_eq!(check(&request).err(), None, "{request:?}");
        }
    }

    #[test]
    fn ambiguous_paths_are_refused() {
        use AmbiguousRequest::{Coding, Length, Lookalike, Target};
        for (request, expected) in [
            (post().uri("vector"), Target),
            (post().header("content-length", "1").header("content-length", "1"), Length),
            (post().header("content-length", "1, 1"), Length),
            (post().header("content-length", "+1"), Length),
            (post().header("content-length", ""), Length),
            (post().header("transfer-encoding", "gzip, chunked"), Coding),
            (post().header("transfer-encoding", "chunked").header("transfer-encoding", "chunked"), Coding),
            (post().header("x_forwarded_for", "127.0.0.1"), Lookalike),
            (post().header("x-tls_client-name", "Ada"), Lookalike),
            (post().header("content_length", "1"), Lookalike),
        ] {
            let request = request.body(()).unwrap();
            assert_eq!(check(&request), Err(expected), "{request:?}");
        }
    }
}
