//! Fields that stop at the proxy, and fields that it adds.

use std::net::IpAddr;

use hyper::header::{CONNECTION, HeaderName, HeaderValue, TE, UPGRADE};
use hyper::{HeaderMap, Request, Version};
use telemetry::ClientId;

use crate::client::ClientConn;
use crate::frame_tap::VERDICT;
use crate::special_fields::{SpecialField, SpecialFields};
use crate::upstream::head::RequestHead;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Whether a field belongs to one connection (RFC 9110, section 7.6.1), apart from those that `Connection` lists.
fn is_hop_by_hop(name: &str) -> bool {
    matches!(name, "connection" | "keep-alive" | "proxy-connection" | "te" | "transfer-encoding" | "upgrade")
}

/// Whether a client's field stops here because the proxy has written what it says, or writes it itself.
fn is_replaced(name: &str, is_trusted: bool) -> bool {
    match name {
        // hyper has answered `Expect`, or will once the content is asked for.
        "host" | "content-length" | "expect" => true,
        "forwarded" | "x-forwarded-for" | "x-forwarded-proto" | "x-forwarded-host" => !is_trusted,
        name => name.starts_with("x-tls-"),
    }
}

/// Removes the fields that belong to one connection: the usual ones, and those that `Connection` lists.
pub(super) fn remove_hop_by_hop(fields: &mut HeaderMap, special: SpecialFields) {
    if !special.has_hop_by_hop() {
        return;
    }
    let listed: Vec<&str> = words(fields, &CONNECTION).collect();
    let stops = |name: &&HeaderName| is_hop_by_hop(name.as_str()) || is_among(&listed, name);
    let names: Vec<HeaderName> = fields.keys().filter(stops).cloned().collect();
    for name in names {
        fields.remove(name);
    }
}

fn is_among(listed: &[&str], name: &HeaderName) -> bool {
    listed.iter().any(|word| word.eq_ignore_ascii_case(name.as_str()))
}

/// Writes the fields that the upstream gets. Returns on whose behalf a trusted peer has sent the request.
pub(super) fn write_request<B>(
    head: &mut RequestHead,
    client: &ClientConn,
    request: &Request<B>,
    special: SpecialFields,
    host: &str,
    upgrade: Option<&HeaderValue>,
) -> Option<ClientId> {
    let fields = request.headers();
    let has_listed = special.has(SpecialField::Connection);
    let listed: Vec<&str> = has_listed.then(|| words(fields, &CONNECTION)).into_iter().flatten().collect();
    let wants_trailers = || words(fields, &TE).any(|word| word.eq_ignore_ascii_case("trailers"));
    head.field("host", host.as_bytes());
    for (name, value) in fields {
        let text = name.as_str();
        let is_verdict = client.is_http2 && text == VERDICT;
        if !is_verdict
            && !is_hop_by_hop(text)
            && !is_replaced(text, client.is_trusted)
            && !is_among(&listed, name)
        {
            head.field(text, value.as_bytes());
        }
    }
    if let Some(protocol) = upgrade {
        head.field("upgrade", protocol.as_bytes());
        head.field("connection", b"upgrade");
    } else if special.has(SpecialField::Te) && wants_trailers() {
        head.field("te", b"trailers");
        head.field("connection", b"te");
    }
    head.fields(&client.own_fields);
    let has = |name: &HeaderName| client.is_trusted && fields.contains_key(name) && !is_among(&listed, name);
    if !has(&FORWARDED_PROTO) {
        head.fields(b"x-forwarded-proto: https\r\n");
    }
    if !has(&FORWARDED_HOST) {
        head.field("x-forwarded-host", host.as_bytes());
    }
    client.is_trusted.then(|| forwarded_client(client, fields)).flatten()
}

/// The client that a trusted peer names: the last address that is not that of a trusted peer.
fn forwarded_client(client: &ClientConn, fields: &HeaderMap) -> Option<ClientId> {
    let addrs: Vec<IpAddr> = words(fields, &FORWARDED_FOR).map_while(|word| word.parse().ok()).collect();
    let stranger = addrs.iter().rev().find(|ip| !client.trusts(**ip));
    stranger.or_else(|| addrs.first()).map(|ip| ClientId::from(*ip))
}

/// The protocol that a request asks to switch to, if it may: only WebSocket, and only over HTTP/1.1.
pub(super) fn requested_upgrade<B>(
    client: &ClientConn,
    request: &Request<B>,
    special: SpecialFields,
) -> Option<HeaderValue> {
    let may_ask = special.has(SpecialField::Upgrade) && request.version() == Version::HTTP_11;
    if client.is_http2 || !may_ask {
        return None;
    }
    let fields = request.headers();
    let protocol = fields.get(UPGRADE)?;
    let is_listed = || words(fields, &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    (protocol.as_bytes().eq_ignore_ascii_case(b"websocket") && is_listed()).then(|| protocol.clone())
}

/// Says that the connection switches protocols.
pub(super) fn set_upgrade(fields: &mut HeaderMap, protocol: HeaderValue) {
    fields.insert(UPGRADE, protocol);
    fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
}

/// The words of a field that is a list.
fn words<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = fields.get_all(name).into_iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).map(str::trim)
}
