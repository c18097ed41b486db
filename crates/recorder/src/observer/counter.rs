//! Counts what was observed into the deltas that the publisher takes from every producer.

use std::borrow::Cow;
use std::time::Duration;

use foldhash::HashMap;
use journal::Timestamps;
use records::delta::{
    CLIENTS_MAX, ClientDelta, Delta as _, OTHER_VALUE, ProxyDelta, ServiceDelta, USAGE_VALUES_MAX, UsageDelta,
};
use records::histogram::Sketch;
use records::ids::{ClientId, ConnId, RUN_PARTS_MAX};
use records::kinds::{ConnectionOutcome, ConnectionRecord};
use records::metrics::{
    ClientCounter, Counters, Dimension, FullReason, ProxyCounter, ProxyLatency, UsageCounter,
};
use records::text::clean;
use records::values::ConnectionMix;

/// Stands for a value that is not there.
pub const NO_VALUE: &str = "none";

/// A complete handshake. Names are IANA's; an empty one is unknown.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedHandshake<'a> {
    /// The version, such as `TLSv1.3`.
    pub version: Cow<'a, str>,
    pub cipher: Cow<'a, str>,
    /// The group of the key exchange.
    pub group: Cow<'a, str>,
    /// The server name the client asked for; `None` if that cannot be known, empty if the client gave none.
    pub name: Option<Cow<'a, str>>,
    /// The application protocol; the same.
    pub alpn: Option<Cow<'a, str>>,
    /// JA4 of the client's TLS library.
    pub fingerprint: Cow<'a, str>,
    /// The server, where several are observed.
    pub service: Cow<'a, str>,
    pub is_tls12_only: bool,
    /// Why it was full; `None` if it was resumed.
    pub full: Option<FullReason>,
    pub took: Option<Duration>,
}

impl ObservedHandshake<'_> {
    /// What is counted of it by value. Unknown values are left out.
    fn values(&self) -> impl Iterator<Item = (Dimension, &str)> {
        let known = |text: &'_ str| !text.is_empty();
        let optional = |value: &'_ Option<Cow<'_, str>>| value.is_some();
        [
            (Dimension::Version, &*self.version, known(&self.version)),
            (Dimension::Cipher, &*self.cipher, known(&self.cipher)),
            (Dimension::Group, &*self.group, known(&self.group)),
            (Dimension::Alpn, self.alpn.as_deref().unwrap_or_default(), optional(&self.alpn)),
            (Dimension::Name, self.name.as_deref().unwrap_or_default(), optional(&self.name)),
            (Dimension::Fingerprint, &*self.fingerprint, known(&self.fingerprint)),
            (Dimension::Service, &*self.service, known(&self.service)),
        ]
        .into_iter()
        .filter(|&(.., is_known)| is_known)
        .map(|(dimension, value, _)| (dimension, if value.is_empty() { NO_VALUE } else { value }))
    }
}

/// Counts an interval. What it counts is in [`Self::delta`] after [`Self::seal`].
#[derive(Debug, Default)]
pub struct ObservedCounter {
    /// What was counted since the last hand-over.
    pub delta: ProxyDelta,
    clients: HashMap<ClientId, ClientDelta>,
    usage: HashMap<Dimension, HashMap<Box<str>, Counters<UsageCounter>>>,
    connections: u64,
    /// Counters of services, where these are told apart; what they count is added to this one's at a hand-over.
    services: Vec<(Box<str>, Self)>,
    /// Whether a connection that ended well was recorded in this interval.
    has_sample: bool,
    /// From `CLOCK_MONOTONIC` to `CLOCK_REALTIME`; 0 if what is counted has one clock.
    clock_offset_us: u64,
}

impl ObservedCounter {
    /// Counts what happens now: its times are converted to those of this machine's `CLOCK_MONOTONIC`.
    pub fn live() -> Self {
        let Timestamps { realtime_us, monotonic_us } = Timestamps::now();
        Self { clock_offset_us: realtime_us.saturating_sub(monotonic_us), ..Self::default() }
    }

    /// The delta, and what moves clients and usage into it: both are wanted at once at a hand-over.
    pub fn parts(&mut self) -> (&mut ProxyDelta, impl FnOnce(&mut ProxyDelta) + '_) {
        let Self { delta, clients, usage, has_sample, services, .. } = self;
        (delta, move |delta: &mut ProxyDelta| {
            *has_sample = false;
            for (name, service) in services {
                service.seal();
                let counted = std::mem::take(&mut service.delta);
                delta.add(&counted);
                delta.services.push(ServiceDelta { name: name.clone(), counted });
            }
            delta.clients.extend(clients.drain().map(|(_, client)| client));
            for (&dimension, rows) in usage {
                let rows = rows.drain().map(|(value, counters)| UsageDelta { dimension, value, counters });
                delta.tls.usage.extend(rows);
            }
        })
    }

    /// Moves clients and usage into the delta, which is then handed over and replaced.
    pub fn seal(&mut self) {
        let (delta, seal) = self.parts();
        seal(delta);
    }

    /// The index of the service of this name; `None` beyond the bound.
    pub fn index_of(&mut self, service: &str) -> Option<usize> {
        let known = self.services.iter().position(|(name, _)| **name == *service);
        if known.is_none() && self.services.len() < usize::from(RUN_PARTS_MAX) {
            let counter = Self { clock_offset_us: self.clock_offset_us, ..Self::default() };
            self.services.push((service.into(), counter));
            return Some(self.services.len() - 1);
        }
        known
    }

    /// The counter of the service of this index, or this one.
    pub fn counter_mut(&mut self, service: Option<usize>) -> &mut Self {
        match service {
            Some(at) => &mut self.services[at].1,
            None => self,
        }
    }

    /// What was counted since the last hand-over, services included.
    pub fn counters(&self) -> Counters<ProxyCounter> {
        let mut counters = self.delta.counters;
        self.services.iter().for_each(|(_, service)| counters.add(&service.delta.counters));
        counters
    }

    pub fn add(&mut self, counter: ProxyCounter, n: u64) {
        raise(&mut self.delta.counters[counter], n);
    }

    pub fn time(&mut self, class: ProxyLatency, took: Duration) {
        self.delta.latencies[class].record(took);
    }

    /// The client's row; beyond the bound that of `other`, so that clients always add up to the totals.
    pub fn client(&mut self, id: ClientId) -> &mut ClientDelta {
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

    /// Counts in the row of a value; beyond the bound in that of `other`.
    pub fn usage(
        &mut self,
        dimension: Dimension,
        value: &str,
        count: impl FnOnce(&mut Counters<UsageCounter>),
    ) {
        let rows = self.usage.entry(dimension).or_default();
        let has_room = rows.len() < USAGE_VALUES_MAX || rows.contains_key(value);
        let value = if has_room { value } else { OTHER_VALUE };
        count(match rows.get_mut(value) {
            Some(row) => row,
            None => rows.entry(clean::text(value).into()).or_default(),
        });
    }

    /// Counts bytes of plaintext of a client.
    pub fn bytes(&mut self, client: ClientId, [bytes_in, bytes_out]: [u64; 2]) {
        self.add(ProxyCounter::BytesIn, bytes_in);
        self.add(ProxyCounter::BytesOut, bytes_out);
        let client = self.client(client);
        raise(&mut client.counters[ClientCounter::BytesIn], bytes_in);
        raise(&mut client.counters[ClientCounter::BytesOut], bytes_out);
    }

    /// Counts bytes of plaintext for the values of a handshake.
    pub fn usage_bytes(&mut self, handshake: &ObservedHandshake<'_>, [bytes_in, bytes_out]: [u64; 2]) {
        for (dimension, value) in handshake.values() {
            self.usage(dimension, value, |row| {
                raise(&mut row[UsageCounter::BytesIn], bytes_in);
                raise(&mut row[UsageCounter::BytesOut], bytes_out);
            });
        }
    }

    /// Counts a connection with a complete handshake in the mix, by when it began, in microseconds since 1970.
    pub fn mix_connection(&mut self, connection: &mut ConnectionMix, begun_us: u64, is_http2: bool) {
        connection.begin(begun_us.saturating_sub(self.clock_offset_us), is_http2, &mut self.delta.mix);
    }

    /// Counts a request in the same way. `carried`: what the connection had carried when the answer began, if it is to tell
    /// sizes.
    #[inline]
    pub fn mix_request(&mut self, connection: &mut ConnectionMix, begun_us: u64, carried: Option<[u64; 2]>) {
        let at_us = begun_us.saturating_sub(self.clock_offset_us);
        connection.request(at_us, carried, &mut self.delta.mix);
    }

    /// The number of the next connection.
    pub fn next_connection(&mut self) -> ConnId {
        self.connections += 1;
        ConnId(self.connections)
    }

    /// Counts an accepted connection.
    pub fn accepted(&mut self, client: ClientId) {
        self.add(ProxyCounter::Accepted, 1);
        self.client(client).counters[ClientCounter::Connections] += 1;
    }

    /// Counts a complete handshake, with the bytes of plaintext that its values have already.
    pub fn handshake(&mut self, client: ClientId, handshake: &ObservedHandshake<'_>, bytes: [u64; 2]) {
        use ProxyCounter as P;
        let is_resumed = handshake.full.is_none();
        let pick = |full, resumed| if is_resumed { resumed } else { full };
        self.add(pick(P::HandshakesFull, P::HandshakesResumed), 1);
        match &*handshake.version {
            "TLSv1.3" => self.add(pick(P::Tls13Full, P::Tls13Resumed), 1),
            "TLSv1.2" => self.add(pick(P::Tls12Full, P::Tls12Resumed), 1),
            _ => {}
        }
        self.add(P::of_cipher(&handshake.cipher), 1);
        if !handshake.group.is_empty() {
            self.add(P::of_group(&handshake.group), 1);
        }
        if let Some(reason) = handshake.full {
            self.delta.tls.counters[reason.counter()] += 1;
        }
        if let Some(took) = handshake.took {
            self.time(
                if is_resumed { ProxyLatency::HandshakeResumed } else { ProxyLatency::HandshakeFull },
                took,
            );
        }
        let client = self.client(client);
        client.counters
            [if is_resumed { ClientCounter::HandshakesResumed } else { ClientCounter::HandshakesFull }] += 1;
        client.counters[ClientCounter::Tls12Only] += u64::from(handshake.is_tls12_only);
        if let Some(counter) = handshake.full.and_then(FullReason::client_counter) {
            client.counters[counter] += 1;
        }
        let of_reason = handshake.full.and_then(FullReason::usage_counter);
        for (dimension, value) in handshake.values() {
            self.usage(dimension, value, |row| {
                row[pick_usage(is_resumed)] += 1;
                raise(&mut row[UsageCounter::BytesIn], bytes[0]);
                raise(&mut row[UsageCounter::BytesOut], bytes[1]);
                if let Some(counter) = of_reason {
                    row[counter] += 1;
                }
            });
        }
    }

    pub fn failure(&mut self, client: ClientId, outcome: ConnectionOutcome) {
        let Some(cause) = outcome.counter() else { return };
        self.add(cause, 1);
        if outcome.is_of_handshake() {
            self.add(ProxyCounter::HandshakesFailed, 1);
        }
        if outcome.is_of_handshake() || outcome == ConnectionOutcome::UpstreamConnect {
            self.add(ProxyCounter::Failed, 1);
        }
        self.client(client).counters[ClientCounter::Errors] += 1;
    }

    /// Keeps the record of a connection that is over if it failed, or is the interval's first that ended well. `record`
    /// makes it.
    pub fn record(&mut self, outcome: ConnectionOutcome, record: impl FnOnce() -> ConnectionRecord) {
        if outcome.is_error() || !self.has_sample {
            self.has_sample |= !outcome.is_error();
            self.delta.push_connection(record());
        }
    }
}

fn pick_usage(is_resumed: bool) -> UsageCounter {
    if is_resumed { UsageCounter::HandshakesResumed } else { UsageCounter::HandshakesFull }
}

/// Adds to a total that peers, or the writers of a log, may claim to be any number.
fn raise(total: &mut u64, n: u64) {
    *total = total.saturating_add(n);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_beyond_every_bound_do_not_wrap_around() {
        let mut counter = ObservedCounter::default();
        counter.bytes(ClientId::Other, [u64::MAX; 2]);
        counter.bytes(ClientId::Other, [u64::MAX; 2]);
        counter.seal();
        assert_eq!(counter.delta.counters[ProxyCounter::BytesIn], u64::MAX);
        assert_eq!(counter.delta.clients[0].counters[ClientCounter::BytesOut], u64::MAX);
    }

    #[test]
    fn clients_and_values_beyond_their_bound_count_as_other() {
        let mut counter = ObservedCounter::default();
        for at in 0..CLIENTS_MAX as u32 + 7 {
            counter.accepted(ClientId::from(std::net::IpAddr::from(at.to_be_bytes())));
            let name = format!("{at}.example");
            counter.usage(Dimension::Name, &name, |row| row[UsageCounter::HandshakesFull] += 1);
        }
        counter.seal();
        let other = counter.delta.clients.iter().find(|client| client.client == ClientId::Other).unwrap();
        assert_eq!(other.counters[ClientCounter::Connections], 7);
        let sum: u64 = counter.delta.tls.usage.iter().map(|row| row.counters.handshakes()).sum();
        assert_eq!((counter.delta.tls.usage.len(), sum), (USAGE_VALUES_MAX + 1, CLIENTS_MAX as u64 + 7));
    }
}
