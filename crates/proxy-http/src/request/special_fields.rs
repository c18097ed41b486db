//! The fields that the proxy handles, in headers and trailers of requests and responses. Most headers have few of them:
//! one pass over all fields costs less than a search for each of these.

use hyper::HeaderMap;

use crate::guard::frame_tap::VERDICT;

/// A field that the proxy handles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpecialField {
    Host,
    ContentLength,
    TransferEncoding,
    Connection,
    Te,
    Upgrade,
    /// Another field of one connection (RFC 9110, section 7.6.1).
    OtherHopByHop,
    /// The proxy answers it.
    Expect,
    /// HTTP/2 may have it in pieces (RFC 9113, section 8.2.3).
    Cookie,
    /// A field that names the client of a request. The proxy vouches for it.
    Forwarded,
    /// A parameter of TLS. The proxy vouches for it.
    Tls,
    /// A field that servers with CGI-like variables confuse with one that frames or identifies a request.
    Lookalike,
    /// Over HTTP/2, what the proxy has found in the header block.
    Verdict,
}

/// The special fields of one header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpecialFields(u16);

impl SpecialFields {
    /// The special fields of this header.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let fields = headers.keys().filter_map(|name| SpecialField::of(name.as_str()));
        Self(fields.fold(0, |all, field| all | field.bit()))
    }

    pub(crate) fn has(self, field: SpecialField) -> bool {
        self.0 & field.bit() != 0
    }

    /// Whether any field belongs to one connection, apart from those that `Connection` lists.
    pub(crate) fn has_hop_by_hop(self) -> bool {
        SpecialField::HOP_BY_HOP.into_iter().any(|field| self.has(field))
    }
}

impl SpecialField {
    const HOP_BY_HOP: [Self; 5] =
        [Self::Connection, Self::OtherHopByHop, Self::Te, Self::TransferEncoding, Self::Upgrade];

    pub(crate) fn of(name: &str) -> Option<Self> {
        match name {
            "host" => Some(Self::Host),
            "content-length" => Some(Self::ContentLength),
            "transfer-encoding" => Some(Self::TransferEncoding),
            "connection" => Some(Self::Connection),
            "te" => Some(Self::Te),
            "upgrade" => Some(Self::Upgrade),
            "keep-alive" | "proxy-connection" => Some(Self::OtherHopByHop),
            "expect" => Some(Self::Expect),
            "cookie" => Some(Self::Cookie),
            VERDICT => Some(Self::Verdict),
            name if name.contains('_') => {
                Self::of(&name.replace('_', "-")).filter(|field| field.is_claim()).map(|_| Self::Lookalike)
            }
            name if name == "forwarded" || name.starts_with("x-forwarded-") => Some(Self::Forwarded),
            name if name.starts_with("x-tls-") => Some(Self::Tls),
            _ => None,
        }
    }

    /// Whether it frames or identifies a request, so that a field that looks like it could do so too.
    fn is_claim(self) -> bool {
        matches!(self, Self::ContentLength | Self::TransferEncoding | Self::Forwarded | Self::Tls)
    }

    /// Whether it belongs to one connection.
    pub(crate) fn is_hop_by_hop(self) -> bool {
        Self::HOP_BY_HOP.contains(&self)
    }

    fn bit(self) -> u16 {
        1 << self as u16
    }
}

/// Whether a field may stand in trailers (RFC 9110, section 6.5.1): not one that the proxy handles in a header, nor one that
/// frames, routes, authenticates or modifies a message. Servers that merge trailers into the header would take it for that.
pub(crate) fn may_be_trailer(name: &str) -> bool {
    const NEVER: [&str; 24] = [
        "age",
        "authorization",
        "cache-control",
        "content-encoding",
        "content-range",
        "content-type",
        "date",
        "expires",
        "location",
        "max-forwards",
        "pragma",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "range",
        "retry-after",
        "set-cookie",
        "trailer",
        "vary",
        "via",
        "warning",
        "www-authenticate",
        "x-http-method-override",
        "x-real-ip",
    ];
    SpecialField::of(name).is_none() && !NEVER.contains(&name) && !name.starts_with("if-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_look_like_one_the_proxy_vouches_for_are_told_apart() {
        for name in ["x_forwarded_for", "x-tls_client-name", "content_length", "transfer_encoding", "x_tls_x"]
        {
            assert_eq!(SpecialField::of(name), Some(SpecialField::Lookalike), "{name}");
        }
        for name in ["my_field", "x_host", "_", "keep_alive"] {
            assert_eq!(SpecialField::of(name), None, "{name}");
        }
    }

    #[test]
    fn trailers_carry_what_only_the_content_could_tell() {
        for name in ["x-sum", "grpc-status", "grpc-message", "etag", "digest", "server-timing", "my_field"] {
            assert!(may_be_trailer(name), "{name}");
        }
        for name in [
            "x-tls-client-name",
            "x-forwarded-for",
            "x-forwarded-prefix",
            "forwarded",
            "x_forwarded_for",
            "host",
            "cookie",
            "authorization",
            "content-length",
            "transfer-encoding",
            "connection",
            "expect",
            "te",
            "if-match",
            VERDICT,
        ] {
            assert!(!may_be_trailer(name), "{name}");
        }
    }
}
