//! A request for HTTP/2, encoded before the load starts.

use bytes::Bytes;

use super::fields::{FieldNumbers, Fields};
use super::session::is_connection_specific;
use crate::target::{Target, Template};

#[derive(Debug, Default)]
pub(crate) struct Http2Request {
    pub(super) fields: Fields,
    pub(super) body: Bytes,
}

impl Http2Request {
    /// Encodes a template for a target; all requests of a load share `numbers`.
    pub(crate) fn new(template: &Template, target: &Target, body: &[u8], numbers: &mut FieldNumbers) -> Self {
        let Template { method, path, headers, .. } = template;
        let is_given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
        let given_host = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        // HTTP/2 has a separate field for the host (RFC 9113, section 8.3.1).
        let authority = given_host.map_or_else(|| target.authority(), |(_, host)| host.clone());
        let mut fields = Fields::default();
        let mut push = |name: &str, value: &str| fields.push(name.as_bytes(), value.as_bytes(), numbers);
        push(":method", method);
        push(":scheme", target.scheme().name());
        push(":authority", &authority);
        push(":path", path);
        if !is_given("user-agent") {
            push("user-agent", concat!("tlsdash/", env!("CARGO_PKG_VERSION")));
        }
        for (name, value) in headers {
            let name = name.to_ascii_lowercase();
            if name != "host" && !is_connection_specific(name.as_bytes()) {
                push(&name, value);
            }
        }
        if !body.is_empty() || matches!(method.as_str(), "POST" | "PUT" | "PATCH") {
            // Without an index, since the size of a body can change while the load runs.
            fields.push_once(b"content-length", body.len().to_string().as_bytes());
        }
        Self { fields, body: Bytes::copy_from_slice(body) }
    }
}
