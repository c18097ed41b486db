//! Fields that stop at the proxy, and fields that it adds.

use records::kinds::HttpVersion;
use std::net::{IpAddr, SocketAddr};

use hyper::header::{CONNECTION, COOKIE, HeaderName, HeaderValue, SEC_WEBSOCKET_KEY, TE};
use hyper::{HeaderMap, Request};
use records::ids::ClientId;

use super::target::RequestTarget;
use super::websocket::WebSocketRequest;
use crate::client::ClientConn;
use crate::request::special_fields::{SpecialField, SpecialFields};
use crate::upstream::request_head::HeadWriter;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// Removes the fields that belong to one connection: the usual ones, and those that `Connection` lists.
pub(super) fn remove_hop_by_hop(fields: &mut HeaderMap, special: SpecialFields) {
    if !special.has_hop_by_hop() {
        return;
    }
    let listed: Vec<&str> = words(fields, &CONNECTION).collect();
    let stops = |name: &&HeaderName| {
        SpecialField::of(name.as_str()).is_some_and(SpecialField::is_hop_by_hop) || is_among(&listed, name)
    };
    let names: Vec<HeaderName> = fields.keys().filter(stops).cloned().collect();
    for name in names {
        fields.remove(name);
    }
}

fn is_among(listed: &[&str], name: &HeaderName) -> bool {
    listed.iter().any(|word| word.eq_ignore_ascii_case(name.as_str()))
}

/// The client for which a trusted peer has sent the request.
pub(super) fn client_of_trusted<B>(
    client: &ClientConn,
    request: &Request<B>,
    special: SpecialFields,
) -> Option<ClientId> {
    let fields = request.headers();
    if !client.is_trusted || !special.has(SpecialField::Forwarded) {
        return None;
    }
    let is_listed = words(fields, &CONNECTION).any(|word| word.eq_ignore_ascii_case(FORWARDED_FOR.as_str()));
    let values = (!is_listed).then(|| fields.get_all(FORWARDED_FOR).iter().map(HeaderValue::as_bytes));
    forwarded_client(values.into_iter().flatten(), |ip| client.worker.shared.trusted_forwarders.contains(ip))
}

/// Writes the fields for the upstream.
pub(super) fn write_request<B>(
    head: &mut impl HeadWriter,
    client: &ClientConn,
    request: &Request<B>,
    special: SpecialFields,
    target: &RequestTarget<'_>,
    websocket: Option<&WebSocketRequest<'_>>,
) {
    let fields = request.headers();
    let has_listed = special.has(SpecialField::Connection);
    let mut listed: Vec<&str> =
        has_listed.then(|| words(fields, &CONNECTION)).into_iter().flatten().collect();
    if websocket.is_some_and(|request| request.key.is_some()) {
        listed.push(SEC_WEBSOCKET_KEY.as_str());
    }
    let rules = &client.worker.shared.request_rules;
    let wants_trailers = || words(fields, &TE).any(|word| word.eq_ignore_ascii_case("trailers"));
    head.host(&target.host);
    for (name, value) in fields {
        let stops = match SpecialField::of(name.as_str()) {
            None => false,
            Some(SpecialField::Forwarded) => !client.is_trusted || *name == FORWARDED_FOR,
            Some(SpecialField::Cookie | SpecialField::Verdict) => client.version == HttpVersion::Http2,
            Some(_) => true,
        };
        if !stops && !is_among(&listed, name) && !rules.replace(name) {
            head.copied_field(name, value);
        }
    }
    if client.version == HttpVersion::Http2 && special.has(SpecialField::Cookie) {
        head.joined_field("cookie", fields.get_all(COOKIE).iter().map(HeaderValue::as_bytes), "; ");
    }
    if let Some(request) = websocket {
        // A client of HTTP/1.1 has sent its own.
        head.websocket(request.key.as_ref().filter(|_| client.version == HttpVersion::Http2));
    } else if special.has(SpecialField::Te) && wants_trailers() {
        head.trailers_wanted();
    }
    head.encoded_fields(&client.own_fields);
    let given = |name: &HeaderName| {
        let is_kept = client.is_trusted && special.has(SpecialField::Forwarded) && !is_among(&listed, name);
        is_kept.then(|| fields.get_all(name).iter().map(HeaderValue::as_bytes)).into_iter().flatten()
    };
    head.joined_field("x-forwarded-for", given(&FORWARDED_FOR).chain([client.address.as_bytes()]), ", ");
    if given(&FORWARDED_PROTO).next().is_none() {
        head.encoded_fields(b"x-forwarded-proto: https\r\n");
    }
    if target.is_host_named && given(&FORWARDED_HOST).next().is_none() {
        head.field("x-forwarded-host", target.host.as_bytes());
    }
}

/// The client that a trusted peer names, as an upstream that trusts the same peers understands the field: from the right, the
/// first address that is not that of a trusted peer. What is no address may be the client's own word: then it is the last
/// trusted peer before it.
fn forwarded_client<'a>(
    values: impl DoubleEndedIterator<Item = &'a [u8]>,
    is_trusted: impl Fn(IpAddr) -> bool,
) -> Option<ClientId> {
    let mut last = None;
    let words = values.rev().flat_map(|value| value.rsplit(|byte| *byte == b','));
    for word in words.map(<[u8]>::trim_ascii).filter(|word| !word.is_empty()) {
        let Some(ip) = forwarded_address(word) else { break };
        last = Some(ClientId::from(ip));
        if !is_trusted(ip) {
            break;
        }
    }
    last
}

/// The address of a word, which may have a port, as some load balancers write it.
fn forwarded_address(word: &[u8]) -> Option<IpAddr> {
    let word = std::str::from_utf8(word).ok()?;
    let with_port = || word.parse::<SocketAddr>().map(|address| address.ip());
    let in_brackets = || word.strip_prefix('[')?.strip_suffix(']')?.parse().ok().map(IpAddr::V6);
    word.parse().or_else(|_| with_port()).ok().or_else(in_brackets)
}

/// The words of a field that is a list.
pub(super) fn words<'a>(fields: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    let values = fields.get_all(name).into_iter();
    values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(',')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_client_is_the_last_address_that_is_not_trusted() {
        let is_trusted = |ip: IpAddr| ip.is_loopback();
        for (values, client) in [
            (&["192.0.2.11, 192.0.2.12"][..], Some("192.0.2.12")),
            (&["192.0.2.11", "192.0.2.12"], Some("192.0.2.12")),
            (&["192.0.2.11, 192.0.2.12, 127.0.0.9"], Some("192.0.2.12")),
            (&["junk, 192.0.2.12"], Some("192.0.2.12")),
            (&["192.0.2.11, junk, 192.0.2.12"], Some("192.0.2.12")),
            (&["192.0.2.11, junk, 127.0.0.9, 127.0.0.1"], Some("127.0.0.9")),
            (&["192.0.2.11, 192.0.2.12:555"], Some("192.0.2.12")),
            (&["192.0.2.11, ::ffff:192.0.2.12"], Some("192.0.2.12")),
            (&["192.0.2.11, [2001:db8::1]:99"], Some("2001:db8::1")),
            (&["192.0.2.11, "], Some("192.0.2.11")),
            (&["192.0.2.11, junk"], None),
            (&["127.0.0.9,127.0.0.1"], Some("127.0.0.9")),
            (&[], None),
        ] {
            let values_given = values.iter().map(|value| value.as_bytes());
            let expected = client.map(|text| ClientId::from(text.parse::<IpAddr>().unwrap()));
            assert_eq!(forwarded_client(values_given, is_trusted), expected, "{values:?}");
        }
        let not_text = [&b"192.0.2.11,\x80, 192.0.2.12"[..]];
        let expected = Some(ClientId::from("192.0.2.12".parse::<IpAddr>().unwrap()));
        assert_eq!(forwarded_client(not_text.into_iter(), is_trusted), expected);
    }

    #[test]
    fn an_address_may_have_a_port_or_brackets() {
        for (word, address) in [
            ("192.0.2.1", Some("192.0.2.1")),
            ("192.0.2.1:443", Some("192.0.2.1")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("[2001:db8::1]:443", Some("2001:db8::1")),
            ("[2001:db8::1]", Some("2001:db8::1")),
            ("[192.0.2.1]", None),
            ("192.0.2.1:", None),
            ("unknown", None),
            ("_hidden", None),
        ] {
            assert_eq!(
                forwarded_address(word.as_bytes()),
                address.map(|text| text.parse().unwrap()),
                "{word}"
            );
        }
    }
}
