//! Counts what lines say, with the counter of every observer.

use records::kinds::HttpVersion;
use std::time::Duration;

use recorder::observer::{ObservedCounter, ObservedHandshake};
use records::delta::FinishedRequest;
use records::ids::{ClientId, ConnId};
use records::kinds::{ConnectionOutcome, ConnectionRecord};
use records::metrics::{ClientCounter, FullReason, ProxyCounter, ProxyLatency};
use records::text::clean;
use records::values::ConnectionMix;

use crate::event::{LogEvent, LoggedConnection, LoggedHandshake, LoggedRequest};
use crate::names;

/// The resolution of the times in logs. What took less counts as that much, which is an upper bound.
pub const RESOLUTION: Duration = Duration::from_millis(1);

/// Counts events.
#[derive(Debug, Default)]
pub struct LogCounter {
    pub counted: ObservedCounter,
}

impl LogCounter {
    pub fn count(&mut self, event: &LogEvent<'_>) {
        self.counted.bytes(event.client, [event.bytes_in, event.bytes_out]);
        if let Some(connection) = &event.connection {
            self.connection(event, connection);
        }
        if let Some(request) = &event.request {
            self.request(event.client, request);
        }
        self.mix(event);
    }

    /// A log does not say when a connection ended, or how its requests follow each other. A connection without requests
    /// counts as one exchange if it carried anything. Sizes are those of bodies, or, of a log without these, of all.
    fn mix(&mut self, event: &LogEvent<'_>) {
        let Some(ended_us) = event.time_us else { return };
        let of_request = event.request.as_ref().map(|request| request.took);
        let lifetime = event.connection.as_ref().and_then(|connection| connection.lifetime);
        let took = of_request.unwrap_or(lifetime).unwrap_or_default();
        let begun_us = ended_us.saturating_sub(took.as_micros() as u64);
        let mut mix = ConnectionMix::default();
        let has_handshake =
            event.connection.as_ref().is_some_and(|connection| connection.handshake.is_some());
        if has_handshake {
            self.counted.mix_connection(&mut mix, begun_us, false);
        }
        if let Some(request) = &event.request {
            self.counted.mix_request(&mut mix, begun_us, None);
            if request.body_out.is_none() && event.bytes_out > 0 {
                let sizes = &mut self.counted.delta.mix.distributions;
                sizes.bytes_in.count(event.bytes_in);
                sizes.bytes_out.count(event.bytes_out);
            }
        } else if has_handshake {
            if event.bytes_in + event.bytes_out > 0 {
                self.counted.mix_request(&mut mix, begun_us, Some([event.bytes_in, 0]));
            }
            mix.end([event.bytes_in, event.bytes_out], &mut self.counted.delta.mix);
        }
    }

    /// A log describes a connection at one moment only, so it opens and closes in one interval.
    fn connection(&mut self, event: &LogEvent<'_>, connection: &LoggedConnection<'_>) {
        let counted = &mut self.counted;
        let conn = counted.next_connection();
        counted.accepted(event.client);
        counted.add(ProxyCounter::Closed, 1);
        let handshake = connection.handshake.as_ref().map(observed);
        if let Some(handshake) = &handshake {
            // A line of a request is not the only one of its connection: the bytes of the others would be missing.
            let is_whole = event.request.is_none();
            let bytes = if is_whole { [event.bytes_in, event.bytes_out] } else { [0; 2] };
            counted.handshake(event.client, handshake, bytes);
        }
        let outcome = connection.failure.as_ref().map_or(ConnectionOutcome::Ended, |failure| failure.outcome);
        counted.failure(event.client, outcome);
        if connection.has_upstream || connection.connect.is_some() {
            counted.add(ProxyCounter::UpstreamConnects, 1);
        }
        if let Some(took) = connection.connect {
            counted.time(ProxyLatency::Connect, took.max(RESOLUTION));
        }
        if let Some(took) = connection.lifetime {
            counted.time(ProxyLatency::Lifetime, took.max(RESOLUTION));
        }
        counted.record(outcome, || record(event, connection, conn));
    }

    fn request(&mut self, client: ClientId, request: &LoggedRequest<'_>) {
        let floor = |took: Duration| took.max(RESOLUTION);
        let finished = FinishedRequest {
            route: None,
            conn: ConnId(request.connection),
            client,
            version: if request.protocol.starts_with("HTTP/2") {
                HttpVersion::Http2
            } else {
                HttpVersion::Http1
            },
            method: &request.method,
            path: &request.path,
            upstream: &request.upstream,
            status: request.status,
            grpc_status: None,
            failure: request.failure,
            queue: None,
            upstream_time: request.upstream_time.map(floor),
            first_byte: None,
            duration: request.took.map(floor),
            body_in: None,
            body_out: request.body_out,
            is_reused: false,
            is_retried: false,
        };
        self.counted.delta.http.get_or_insert_default().finish(&finished);
        self.counted.client(client).counters[ClientCounter::Exchanges] += 1;
    }
}

fn observed<'a>(handshake: &'a LoggedHandshake<'_>) -> ObservedHandshake<'a> {
    ObservedHandshake {
        version: (&*handshake.version).into(),
        cipher: names::cipher(&handshake.cipher),
        group: names::group(&handshake.group).into(),
        name: handshake.name.as_deref().map(Into::into),
        alpn: handshake.alpn.as_deref().map(Into::into),
        fingerprint: "".into(),
        service: "".into(),
        is_tls12_only: *handshake.version != *"TLSv1.3",
        full: (!handshake.is_resumed).then_some(FullReason::Unknown),
        took: handshake.took.map(|took| took.max(RESOLUTION)),
    }
}

fn record(event: &LogEvent<'_>, connection: &LoggedConnection<'_>, conn: ConnId) -> ConnectionRecord {
    let none = LoggedHandshake::default();
    let handshake = connection.handshake.as_ref().unwrap_or(&none);
    let failure = connection.failure.as_ref();
    ConnectionRecord {
        conn,
        client: event.client,
        outcome: failure.map_or(ConnectionOutcome::Ended, |failure| failure.outcome),
        detail: failure.map(|failure| clean::text(&failure.detail)).unwrap_or_default(),
        tls_version: clean::text(&handshake.version),
        cipher: clean::text(&names::cipher(&handshake.cipher)),
        group: clean::text(names::group(&handshake.group)),
        sni: clean::text(handshake.name.as_deref().unwrap_or_default()),
        alpn: clean::text(handshake.alpn.as_deref().unwrap_or_default()),
        client_name: String::new(),
        resumed: handshake.is_resumed,
        bytes_in: event.bytes_in,
        bytes_out: event.bytes_out,
        lifetime_us: connection.lifetime.map_or(0, |took| took.as_micros() as u64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_without_sizes_of_bodies_has_those_of_all_and_no_request_where_none_was() {
        let mut counter = LogCounter::default();
        let of = |connection: bool, request: Option<Option<u64>>, [bytes_in, bytes_out]: [u64; 2]| LogEvent {
            time_us: Some(5_000_000),
            connection: connection.then(|| LoggedConnection {
                handshake: Some(LoggedHandshake::default()),
                ..LoggedConnection::default()
            }),
            request: request.map(|body_out| LoggedRequest { body_out, ..LoggedRequest::default() }),
            bytes_in,
            bytes_out,
            ..LogEvent::of(ClientId::Other)
        };
        // HAProxy's requests, two of them on one connection, nginx's, a client that left, and a connection in TCP mode.
        counter.count(&of(true, Some(None), [150, 1_050]));
        counter.count(&of(false, Some(None), [150, 250]));
        counter.count(&of(true, Some(Some(900)), [150, 1_050]));
        counter.count(&of(true, None, [0, 0]));
        counter.count(&of(true, None, [300, 800]));
        let delta = &counter.counted.delta;
        assert_eq!(delta.mix.connections.to_string(), "50:4");
        assert_eq!(delta.mix.requests.to_string(), "50:4");
        let sizes = &delta.http.as_ref().unwrap().sizes;
        let of_bodies = sizes.each_ref().map(ToString::to_string);
        let distributions = &delta.mix.distributions;
        let of_all = [distributions.bytes_in.to_string(), distributions.bytes_out.to_string()];
        assert_eq!(
            (of_bodies, of_all),
            ([String::new(), "904:1".into()], ["150:2 300:1".into(), "250:1 808:1 1040:1".into()])
        );
        let of_client = counter.counted.client(ClientId::Other).counters;
        assert_eq!(of_client[ClientCounter::Exchanges], 3, "its requests");
    }
}
