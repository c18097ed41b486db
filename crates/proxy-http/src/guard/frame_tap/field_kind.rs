//! What a field of a request's header block is, and whether it may be there (RFC 9113, sections 8.2 and 8.3).

use hyper::Method;
use hyper::http::uri::{Authority, PathAndQuery, Scheme};

use crate::request::target_text;

/// The name under which the proxy tells itself what [`HeaderGuard`](super::header_guard::HeaderGuard) has found. It is as
/// short as a name can be, so that a field of this name can take the room of any other in HPACK's table. A client's own
/// field of this name is refused.
pub(crate) const VERDICT: &str = "~";

/// Longest name that a header map takes.
const NAME_BYTES_MAX: usize = 65_534;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FieldKind {
    Pseudo(PseudoField),
    /// A path with characters that upstreams take and h2 does not.
    OddPath,
    /// A path that is too long for h2.
    LongPath,
    Regular,
    /// `content-length` that is a number.
    ContentLength,
    /// `expect: 100-continue`.
    ExpectContinue,
    Malformed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PseudoField {
    Method,
    Scheme,
    Authority,
    Path,
    /// That of an extended CONNECT (RFC 8441).
    Protocol,
}

impl PseudoField {
    /// Those that h2 gets.
    pub(super) const PASSED: [Self; 4] = [Self::Method, Self::Scheme, Self::Authority, Self::Path];

    pub(super) fn name(self) -> &'static [u8] {
        match self {
            Self::Method => b":method",
            Self::Scheme => b":scheme",
            Self::Authority => b":authority",
            Self::Path => b":path",
            Self::Protocol => b":protocol",
        }
    }
}

impl FieldKind {
    pub(super) fn of(name: &[u8], value: &[u8]) -> Self {
        use PseudoField::{Authority as Host, Method as Verb, Path, Protocol};
        let pseudo = |is_valid, field| if is_valid { Self::Pseudo(field) } else { Self::Malformed };
        match name {
            b":method" => pseudo(is_method(value), Verb),
            b":scheme" => pseudo(value == b"https" || Scheme::try_from(value).is_ok(), PseudoField::Scheme),
            b":authority" => pseudo(Authority::try_from(value).is_ok(), Host),
            b":path" if target_text::is_plain(value) => Self::Pseudo(Path),
            b":path" if value.len() > target_text::PATH_BYTES_MAX => Self::LongPath,
            b":path" => match target_text::stand_in(value) {
                Some(path) if PathAndQuery::try_from(&*path).is_ok() => Self::OddPath,
                Some(_) => Self::Malformed,
                None => pseudo(PathAndQuery::try_from(value).is_ok(), Path),
            },
            b":protocol" => pseudo(value.iter().all(u8::is_ascii_graphic), Protocol),
            name if is_regular(name, value) => match name {
                b"content-length" => Self::ContentLength,
                b"expect" if value.eq_ignore_ascii_case(b"100-continue") => Self::ExpectContinue,
                _ => Self::Regular,
            },
            _ => Self::Malformed,
        }
    }
}

fn is_method(value: &[u8]) -> bool {
    matches!(value, b"GET" | b"POST") || Method::from_bytes(value).is_ok()
}

/// Whether a field that is no pseudo-header field may be in a header or in trailers.
fn is_regular(name: &[u8], value: &[u8]) -> bool {
    const NAME: [bool; 256] = bytes(b"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz");
    let is_value_byte = |byte: &u8| *byte >= b' ' && *byte != 0x7f || *byte == b'\t';
    let is_known = match name {
        b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => false,
        b"te" => value == b"trailers",
        b"content-length" => !value.is_empty() && value.len() <= 19 && value.iter().all(u8::is_ascii_digit),
        name => name != VERDICT.as_bytes(),
    };
    is_known
        && (1..=NAME_BYTES_MAX).contains(&name.len())
        && name.iter().all(|byte| NAME[usize::from(*byte)])
        && value.iter().all(is_value_byte)
}

/// A table of these bytes.
const fn bytes(all: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut at = 0;
    while at < all.len() {
        table[all[at] as usize] = true;
        at += 1;
    }
    table
}
