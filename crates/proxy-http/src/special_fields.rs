//! The fields of a header that the proxy handles. Most headers have few of them: one pass over all fields costs less
//! than a search for each of these.

use hyper::HeaderMap;

use crate::frame_tap::VERDICT;

/// A field that frames a message, is connection-specific or selects the route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpecialField {
    Host,
    ContentLength,
    TransferEncoding,
    Connection,
    Te,
    Upgrade,
    /// Another one that belongs to one connection (RFC 9110, section 7.6.1).
    OtherHopByHop,
    /// Servers that make variables of fields take it for one that frames or identifies a request.
    Lookalike,
    /// Over HTTP/2, what the proxy has found in the header block.
    Verdict,
}

/// The special fields of one header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpecialFields(u16);

impl SpecialFields {
    /// Those of this header.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let fields = headers.keys().filter_map(|name| SpecialField::of(name.as_str()));
        Self(fields.fold(0, |all, field| all | field.bit()))
    }

    /// Whether a field is there.
    pub(crate) fn has(self, field: SpecialField) -> bool {
        self.0 & field.bit() != 0
    }

    /// Whether any field belongs to one connection, apart from those that `Connection` lists.
    pub(crate) fn has_hop_by_hop(self) -> bool {
        use SpecialField::{Connection, OtherHopByHop, Te, TransferEncoding, Upgrade};
        [Connection, OtherHopByHop, Te, TransferEncoding, Upgrade].into_iter().any(|field| self.has(field))
    }
}

impl SpecialField {
    fn of(name: &str) -> Option<Self> {
        match name {
            "host" => Some(Self::Host),
            "content-length" => Some(Self::ContentLength),
            "transfer-encoding" => Some(Self::TransferEncoding),
            "connection" => Some(Self::Connection),
            "te" => Some(Self::Te),
            "upgrade" => Some(Self::Upgrade),
            "keep-alive" | "proxy-connection" => Some(Self::OtherHopByHop),
            VERDICT => Some(Self::Verdict),
            name => (name.as_bytes().contains(&b'_') && is_lookalike(name)).then_some(Self::Lookalike),
        }
    }

    fn bit(self) -> u16 {
        1 << self as u8
    }
}

/// Whether servers read `_` in this name as `-`, and it then frames or identifies a request.
fn is_lookalike(name: &str) -> bool {
    const PREFIXES: [&str; 2] = ["x-forwarded-", "x-tls-"];
    const NAMES: [&str; 2] = ["content-length", "transfer-encoding"];
    let read = name.replace('_', "-");
    NAMES.contains(&read.as_str()) || PREFIXES.iter().any(|prefix| read.starts_with(prefix))
}
