//! How a connection ended, in the terms of records.

use std::time::Duration;

use hello::alert_words;
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;

use crate::flow::Close;
use hello::handshake::{CLOSE_NOTIFY, End, Fault, Handshake, Step};

/// A server that closes so soon has not waited in vain.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// The alert of a server that does not serve the server name (RFC 6066, 3).
const UNRECOGNIZED_NAME: u8 = 112;
/// Alerts of a server that has no version, cipher suite or group in common with the client.
const INCOMPATIBLE: [u8; 3] = [40, 70, 71];

/// The outcome of a failed handshake and its detail. `waited_from_ns` is when the client sent data last, or was
/// accepted, in nanoseconds since 1970.
pub(crate) fn failure(
    handshake: &Handshake,
    close: Option<Close>,
    waited_from_ns: u64,
) -> (ConnectionOutcome, String) {
    use ConnectionOutcome as O;
    if let Some(fault) = handshake.fault {
        return of_fault(fault);
    }
    let is_of_client = close.is_none_or(|close| close.end == End::Client);
    let waited = Duration::from_nanos(close.map_or(0, |close| close.time_ns.saturating_sub(waited_from_ns)));
    let (outcome, detail) = match (is_of_client, handshake.step()) {
        (true, Step::Opened) => (O::HandshakeEof, "the client left without a byte"),
        (true, Step::Begun) => (O::HandshakeEof, "the client left within its ClientHello"),
        (true, Step::Asked) => (O::HandshakeEof, "the client left before the server answered"),
        (true, _) => (O::HandshakeEof, "the client left after the server's first flight"),
        (false, Step::Asked) => (O::HandshakeOther, "the server left without an answer"),
        (false, _) if waited < WAIT_MIN => (O::HandshakeOther, "the server left before the client's turn"),
        (false, Step::Opened) => (O::HandshakeTimeout, "the server gave up waiting for the ClientHello"),
        (false, Step::Begun) => (O::HandshakeTimeout, "the server gave up within the ClientHello"),
        (false, _) => (O::HandshakeTimeout, "the server gave up waiting for the client's answer"),
    };
    (outcome, detail.to_owned())
}

/// The counter of connections that are closed first so.
pub(crate) fn closed_first(close: Close) -> ProxyCounter {
    match (close.end, close.is_reset) {
        (End::Client, false) => ProxyCounter::ClosedByClient,
        (End::Server, false) => ProxyCounter::ClosedByServer,
        (End::Client, true) => ProxyCounter::ResetByClient,
        (End::Server, true) => ProxyCounter::ResetByServer,
    }
}

fn of_fault(fault: Fault) -> (ConnectionOutcome, String) {
    use ConnectionOutcome as O;
    let words = |alert: Option<u8>| alert.map_or_else(|| "encrypted alert".into(), alert_words);
    match fault {
        Fault::NotTls(End::Client) => (O::NotTls, "the client's first bytes are no TLS".to_owned()),
        Fault::NotTls(End::Server) => (O::HandshakeOther, "the server's answer is no TLS".to_owned()),
        Fault::Malformed(End::Client) => (O::HandshakeOther, "the ClientHello cannot be read".to_owned()),
        Fault::Malformed(End::Server) => (O::HandshakeOther, "the ServerHello cannot be read".to_owned()),
        Fault::Alert(End::Client, Some(CLOSE_NOTIFY)) => {
            (O::HandshakeEof, "the client said goodbye within the handshake".to_owned())
        }
        Fault::Alert(End::Client, alert) => {
            (O::HandshakeAlert, format!("alert of the client: {}", words(alert)))
        }
        Fault::Alert(End::Server, alert) => {
            let is_incompatible = alert.is_some_and(|alert| INCOMPATIBLE.contains(&alert));
            let outcome = match alert {
                Some(UNRECOGNIZED_NAME) => O::UnrecognizedName,
                _ if is_incompatible => O::Incompatible,
                _ => O::HandshakeOther,
            };
            (outcome, format!("alert of the server: {}", words(alert)))
        }
    }
}
