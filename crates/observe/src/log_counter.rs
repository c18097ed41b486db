//! Counts events into the deltas that the publisher takes from every producer.

use records::kinds::HttpVersion;
use std::time::Duration;

use foldhash::HashMap;
use records::delta::{
    CLIENTS_MAX, ClientDelta, FinishedRequest, OTHER_VALUE, ProxyDelta, USAGE_VALUES_MAX, UsageDelta,
};
use records::histogram::Sketch;
use records::ids::{ClientId, ConnId};
use records::kinds::{ConnectionOutcome, ConnectionRecord};
use records::metrics::{
    ClientCounter, Counters, Dimension, ProxyCounter, ProxyLatency, TlsCounter, UsageCounter,
};
use records::text::clean;

use crate::event::{LogEvent, LoggedConnection, LoggedFailure, LoggedHandshake, LoggedRequest};
use crate::names;

/// The resolution of the times in logs. What took less counts as that much, which is an upper bound.
pub const RESOLUTION: Duration = Duration::from_millis(1);
/// Stands for a value that is not there.
const NO_VALUE: &str = "none";

/// Counts events. What it counts of an interval is in [`Self::delta`] after [`Self::seal`].
#[derive(Debug, Default)]
pub struct LogCounter {
    /// What was counted since the last hand-over.
    pub delta: ProxyDelta,
    clients: HashMap<ClientId, ClientDelta>,
    usage: HashMap<Dimension, HashMap<Box<str>, Counters<UsageCounter>>>,
    connections: u64,
    /// Whether a connection that ended well was recorded in this interval.
    has_sample: bool,
}

impl LogCounter {
    pub fn count(&mut self, event: &LogEvent<'_>) {
        self.add(ProxyCounter::BytesIn, event.bytes_in);
        self.add(ProxyCounter::BytesOut, event.bytes_out);
        let client = self.client(event.client);
        raise(&mut client.counters[ClientCounter::BytesIn], event.bytes_in);
        raise(&mut client.counters[ClientCounter::BytesOut], event.bytes_out);
        if let Some(connection) = &event.connection {
            self.connection(event, connection);
        }
        if let Some(request) = &event.request {
            self.request(event.client, request);
        }
    }

    /// Moves clients and usage into the delta, which is then handed over and replaced.
    pub fn seal(&mut self) {
        let (delta, seal) = self.parts();
        seal(delta);
    }

    /// The delta, and what seals it: both are wanted at once at a hand-over.
    pub(crate) fn parts(&mut self) -> (&mut ProxyDelta, impl FnOnce(&mut ProxyDelta) + '_) {
        let Self { delta, clients, usage, has_sample, .. } = self;
        (delta, move |delta: &mut ProxyDelta| seal_into(delta, clients, usage, has_sample))
    }

    fn add(&mut self, counter: ProxyCounter, n: u64) {
        raise(&mut self.delta.counters[counter], n);
    }

    /// The client's row; beyond the bound that of `other`, so that clients always add up to the totals.
    fn client(&mut self, id: ClientId) -> &mut ClientDelta {
        let has_room = self.clients.len() < CLIENTS_MAX || self.clients.contains_key(&id);
        let id = if has_room { id } else { ClientId::Other };
        self.clients.entry(id).or_insert_with(|| ClientDelta {
            client: id,
            open_change: 0,
            counters: Counters::default(),
            rtt_us: 0,
            exchange: Sketch::default(),
        })
    }

    /// A log describes a connection at one moment only, so it opens and closes in one interval.
    fn connection(&mut self, event: &LogEvent<'_>, connection: &LoggedConnection<'_>) {
        self.connections += 1;
        self.add(ProxyCounter::Accepted, 1);
        self.add(ProxyCounter::Closed, 1);
        self.client(event.client).counters[ClientCounter::Connections] += 1;
        if let Some(handshake) = &connection.handshake {
            self.handshake(event, handshake);
        }
        if let Some(failure) = &connection.failure {
            self.failure(event.client, failure);
        }
        if connection.has_upstream || connection.connect.is_some() {
            self.add(ProxyCounter::UpstreamConnects, 1);
        }
        if let Some(took) = connection.connect {
            self.time(ProxyLatency::Connect, took);
        }
        if let Some(took) = connection.lifetime {
            self.time(ProxyLatency::Lifetime, took);
        }
        if connection.failure.is_some() || !self.has_sample {
            self.has_sample |= connection.failure.is_none();
            let record = record(event, connection, ConnId(self.connections));
            self.delta.push_connection(record);
        }
    }

    fn time(&mut self, class: ProxyLatency, took: Duration) {
        self.delta.latencies[class].record(took.max(RESOLUTION));
    }

    fn handshake(&mut self, event: &LogEvent<'_>, handshake: &LoggedHandshake<'_>) {
        use ProxyCounter as P;
        let is_resumed = handshake.is_resumed;
        let pick = |full, resumed| if is_resumed { resumed } else { full };
        self.add(pick(P::HandshakesFull, P::HandshakesResumed), 1);
        match &*handshake.version {
            "TLSv1.3" => self.add(pick(P::Tls13Full, P::Tls13Resumed), 1),
            "TLSv1.2" => self.add(pick(P::Tls12Full, P::Tls12Resumed), 1),
            _ => {}
        }
        self.add(names::cipher_counter(&handshake.cipher), 1);
        let group = names::group(&handshake.group);
        if !group.is_empty() {
            self.add(names::group_counter(group), 1);
        }
        if !is_resumed {
            self.delta.tls.counters[TlsCounter::FullUnknown] += 1;
        }
        if let Some(took) = handshake.took {
            self.time(
                if is_resumed { ProxyLatency::HandshakeResumed } else { ProxyLatency::HandshakeFull },
                took,
            );
        }
        let counter =
            if is_resumed { ClientCounter::HandshakesResumed } else { ClientCounter::HandshakesFull };
        let is_old = *handshake.version != *"TLSv1.3";
        let client = self.client(event.client);
        client.counters[counter] += 1;
        client.counters[ClientCounter::Tls12Only] += u64::from(is_old);
        self.usage(event, handshake, group);
    }

    fn usage(&mut self, event: &LogEvent<'_>, handshake: &LoggedHandshake<'_>, group: &str) {
        let cipher = names::cipher(&handshake.cipher);
        let or_none = |text: &str| if text.is_empty() { NO_VALUE.to_owned() } else { text.to_owned() };
        self.value(Dimension::Version, &handshake.version, event, handshake.is_resumed);
        self.value(Dimension::Cipher, &cipher, event, handshake.is_resumed);
        if !group.is_empty() {
            self.value(Dimension::Group, group, event, handshake.is_resumed);
        }
        if let Some(alpn) = &handshake.alpn {
            self.value(Dimension::Alpn, &or_none(alpn), event, handshake.is_resumed);
        }
        if let Some(name) = &handshake.name {
            self.value(Dimension::Name, &or_none(name), event, handshake.is_resumed);
        }
    }

    /// Counts a handshake for one value of a dimension. Bytes are those of lines that count a connection: all of them in
    /// TCP mode, and none in HTTP mode.
    fn value(&mut self, dimension: Dimension, value: &str, event: &LogEvent<'_>, is_resumed: bool) {
        let rows = self.usage.entry(dimension).or_default();
        let value =
            if rows.len() < USAGE_VALUES_MAX || rows.contains_key(value) { value } else { OTHER_VALUE };
        let row = match rows.get_mut(value) {
            Some(row) => row,
            None => rows.entry(clean::text(value).into()).or_default(),
        };
        row[if is_resumed { UsageCounter::HandshakesResumed } else { UsageCounter::HandshakesFull }] += 1;
        if event.request.is_none() {
            raise(&mut row[UsageCounter::BytesIn], event.bytes_in);
            raise(&mut row[UsageCounter::BytesOut], event.bytes_out);
        }
    }

    fn failure(&mut self, client: ClientId, failure: &LoggedFailure<'_>) {
        let cause = match failure.outcome {
            ConnectionOutcome::HandshakeTimeout => ProxyCounter::FailedTimeout,
            ConnectionOutcome::HandshakeEof => ProxyCounter::FailedEof,
            ConnectionOutcome::HandshakeAlert => ProxyCounter::FailedAlert,
            ConnectionOutcome::NotTls => ProxyCounter::FailedNotTls,
            ConnectionOutcome::Incompatible => ProxyCounter::FailedIncompatible,
            ConnectionOutcome::HandshakeOther => ProxyCounter::FailedOther,
            ConnectionOutcome::UpstreamConnect => ProxyCounter::UpstreamConnectsFailed,
            ConnectionOutcome::UpstreamBroken => ProxyCounter::UpstreamBroken,
            ConnectionOutcome::ClientBroken => ProxyCounter::ClientBroken,
            ConnectionOutcome::IdleTimeout => ProxyCounter::IdleTimeouts,
            ConnectionOutcome::Ended
            | ConnectionOutcome::DrainTimeout
            | ConnectionOutcome::SendTimeout
            | ConnectionOutcome::PendingBound => return,
        };
        self.add(cause, 1);
        let is_of_handshake = matches!(
            failure.outcome,
            ConnectionOutcome::HandshakeTimeout
                | ConnectionOutcome::HandshakeEof
                | ConnectionOutcome::HandshakeAlert
                | ConnectionOutcome::NotTls
                | ConnectionOutcome::Incompatible
                | ConnectionOutcome::HandshakeOther
        );
        if is_of_handshake {
            self.add(ProxyCounter::HandshakesFailed, 1);
        }
        if is_of_handshake || failure.outcome == ConnectionOutcome::UpstreamConnect {
            self.add(ProxyCounter::Failed, 1);
        }
        self.client(client).counters[ClientCounter::Errors] += 1;
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
            failure: request.failure,
            queue: None,
            upstream_time: request.upstream_time.map(floor),
            first_byte: None,
            duration: request.took.map(floor),
            body_in: 0,
            body_out: request.body_out.unwrap_or(0),
            is_reused: false,
            is_retried: false,
        };
        self.delta.http.get_or_insert_default().finish(&finished);
    }
}

fn seal_into(
    delta: &mut ProxyDelta,
    clients: &mut HashMap<ClientId, ClientDelta>,
    usage: &mut HashMap<Dimension, HashMap<Box<str>, Counters<UsageCounter>>>,
    has_sample: &mut bool,
) {
    *has_sample = false;
    delta.clients.extend(clients.drain().map(|(_, client)| client));
    for (&dimension, rows) in usage {
        let rows = rows.drain().map(|(value, counters)| UsageDelta { dimension, value, counters });
        delta.tls.usage.extend(rows);
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

/// A line may claim any number of bytes.
fn raise(total: &mut u64, n: u64) {
    *total = total.saturating_add(n);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_every_bound_do_not_wrap_around() {
        let mut counter = LogCounter::default();
        let (bytes_in, bytes_out) = (u64::MAX, u64::MAX);
        let event = LogEvent { bytes_in, bytes_out, ..LogEvent::of(ClientId::Other) };
        counter.count(&event);
        counter.count(&event);
        counter.seal();
        assert_eq!(counter.delta.counters[ProxyCounter::BytesIn], u64::MAX);
        assert_eq!(counter.delta.clients[0].counters[ClientCounter::BytesOut], u64::MAX);
    }
}
