//! Fields that stop at the proxy, and fields that it adds.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::Version;
use hyper::header::{CONNECTION, EXPECT, HOST, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE};
use hyper::http::request::Parts;
use telemetry::ClientId;

use crate::client::Client;

/// Fields of one connection only (RFC 9110, section 7.6.1).
const HOP_BY_HOP: [HeaderName; 6] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];
const FORWARDED: HeaderName = HeaderName::from_static("forwarded");
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Removes the fields that belong to one connection: the usual ones, and those that `Connection` lists.
pub(super) fn remove_hop_by_hop(fields: &mut HeaderMap) {
    if fields.contains_key(CONNECTION) {
        let listed: Vec<HeaderName> =
            words(fields, &CONNECTION).filter_map(|word| word.parse().ok()).collect();
        for name in listed.iter().filter(|name| **name != HOST) {
            fields.remove(name);
        }
    }
    for name in &HOP_BY_HOP {
        fields.remove(name);
    }
}

/// Makes a client's fields those that the upstream gets. Returns on whose behalf a trusted peer has sent them.
pub(super) fn prepare_request(client: &Client, fields: &mut HeaderMap, host: &str) -> Option<ClientId> {
    let takes_trailers = words(fields, &TE).any(|word| word.eq_ignore_ascii_case("trailers"));
    remove_hop_by_hop(fields);
    // hyper has answered it, or will once the content is asked for.
    fields.remove(EXPECT);
    if takes_trailers {
        fields.insert(TE, HeaderValue::from_static("trailers"));
        fields.insert(CONNECTION, HeaderValue::from_static("te"));
    }
    let host = HeaderValue::from_str(host).unwrap_or_else(|_| HeaderValue::from_static(""));
    fields.insert(HOST, host.clone());
    remove_tls_fields(fields);
    for (name, value) in &client.tls_fields {
        fields.insert(name, value.clone());
    }
    let on_behalf_of = client.is_trusted.then(|| forwarded_client(client, fields)).flatten();
    forward_client(client, fields, host);
    on_behalf_of
}

/// Removes what only the proxy may say.
fn remove_tls_fields(fields: &mut HeaderMap) {
    let is_tls = |name: &&HeaderName| name.as_str().starts_with("x-tls-");
    let names: Vec<HeaderName> = fields.keys().filter(is_tls).cloned().collect();
    for name in names {
        fields.remove(name);
    }
}

/// Names the client to the upstream. What a trusted peer has said of it stays, and anybody else's word is replaced.
fn forward_client(client: &Client, fields: &mut HeaderMap, host: HeaderValue) {
    if !client.is_trusted {
        fields.remove(FORWARDED);
        fields.insert(FORWARDED_FOR, client.address.clone());
        fields.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
        fields.insert(FORWARDED_HOST, host);
        return;
    }
    fields.append(FORWARDED_FOR, client.address.clone());
    fields.entry(FORWARDED_PROTO).or_insert(HeaderValue::from_static("https"));
    fields.entry(FORWARDED_HOST).or_insert(host);
}

/// The client that a trusted peer speaks for: the last address that is not a trusted peer's own.
fn forwarded_client(client: &Client, fields: &HeaderMap) -> Option<ClientId> {
    let addrs: Vec<IpAddr> = words(fields, &FORWARDED_FOR).map_while(|word| word.parse().ok()).collect();
    let stranger = addrs.iter().rev().find(|ip| !client.trusts(**ip));
    stranger.or_else(|| addrs.first()).map(|ip| ClientId::from(*ip))
}

/// The protocol that a request asks to switch to, if it may: only WebSocket, and only over HTTP/1.1.
pub(super) fn requested_upgrade(client: &Client, request: &Parts) -> Option<HeaderValue> {
    let fields = &request.headers;
    let is_listed = || words(fields, &CONNECTION).any(|word| word.eq_ignore_ascii_case("upgrade"));
    let protocol = fields.get(UPGRADE)?;
    let may = !client.is_http2 && request.version == Version::HTTP_11;
    (may && protocol.as_bytes().eq_ignore_ascii_case(b"websocket") && is_listed()).then(|| protocol.clone())
}

/// Says that the connection switches protocols, or shall.
pub(super) fn set_upgrade(fields: &mut HeaderMap, protocol: HeaderValue) {
    fields.insert(UPGRADE, protocol);
    fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
}

/// The words of a field that is a list.
fn words<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = fields.get_all(name).into_iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).map(str::trim)
}
