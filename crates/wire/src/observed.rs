//! What is known of a connection, in the terms of records.

use std::time::Duration;

use hello::{ClientHello, group_name, suite_name, version_name};
use recorder::observer::ObservedHandshake;
use records::ids::{ClientId, ConnId};
use records::kinds::{ConnectionOutcome, ConnectionRecord};
use records::text::clean;

use crate::flow::Flow;
use hello::handshake::{Handshake, Step};

/// The parts of a handshake's time: the network's, the client's, the server's.
pub(crate) fn parts(flow: &Flow, handshake: &Handshake) -> [Duration; 3] {
    let times = handshake.times;
    let [to_client, to_server] = flow.opened.round_trips_ns();
    let of_client = (to_client * u64::from(times.client_flights)).min(times.client_ns);
    let of_server = (to_server * u64::from(times.server_flights)).min(times.server_ns);
    [of_client + of_server, times.client_ns - of_client, times.server_ns - of_server]
        .map(Duration::from_nanos)
}

pub(crate) fn fingerprint(offer: &ClientHello) -> String {
    let text = offer.fingerprint.as_ref().map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
    text.unwrap_or_default()
}

/// A handshake, without the reason why it is full.
pub(crate) fn observed<'a>(handshake: &'a Handshake, service: &'a str) -> ObservedHandshake<'a> {
    let (offer, choice) = (handshake.offer.as_ref(), handshake.choice.as_ref());
    ObservedHandshake {
        version: version_name(choice.map_or(0, |choice| choice.version)).into(),
        cipher: suite_name(choice.map_or(0, |choice| choice.suite)),
        group: choice.and_then(|choice| choice.group).map(group_name).unwrap_or_default(),
        name: Some(offer.and_then(|offer| offer.server_name.as_deref()).unwrap_or_default().into()),
        alpn: Some(alpn(handshake).into()),
        fingerprint: offer.map(fingerprint).unwrap_or_default().into(),
        service: service.into(),
        is_tls12_only: offer.is_some_and(|offer| !offer.choices.has_tls13()),
        full: None,
        took: Some(Duration::from_nanos(handshake.times.done_ns.saturating_sub(handshake.times.begun_ns))),
    }
}

/// The application protocol. In TLS 1.3 the server's choice is encrypted.
pub(crate) fn alpn(handshake: &Handshake) -> &str {
    match (&handshake.offer, &handshake.choice) {
        (Some(offer), Some(choice)) if offer.has_alpn && choice.is_tls13() => "encrypted",
        (_, Some(choice)) => choice.alpn.as_deref().unwrap_or_default(),
        _ => "",
    }
}

pub(crate) fn record(
    client: ClientId,
    flow: &Flow,
    outcome: ConnectionOutcome,
    detail: String,
) -> ConnectionRecord {
    let none = Handshake::default();
    let handshake = flow.handshake.as_deref().unwrap_or(&none);
    let observed = observed(handshake, "");
    let is_complete = handshake.step() == Step::Complete;
    ConnectionRecord {
        conn: ConnId(flow.conn),
        client,
        outcome,
        detail,
        tls_version: observed.version.into_owned(),
        cipher: if handshake.choice.is_some() { observed.cipher.into_owned() } else { String::new() },
        group: observed.group.into_owned(),
        sni: clean::text(observed.name.as_deref().unwrap_or_default()),
        alpn: clean::text(observed.alpn.as_deref().unwrap_or_default()),
        client_name: String::new(),
        resumed: is_complete && handshake.is_resumed(),
        bytes_in: flow.bytes[0],
        bytes_out: flow.bytes[1],
        lifetime_us: flow.last_ns.saturating_sub(flow.opened.established_ns) / 1_000,
    }
}
