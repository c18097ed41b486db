//! Follows the connections in segments, and counts them with the counter of every observer.

mod eviction;

use std::hash::BuildHasher as _;
use std::net::SocketAddr;
use std::time::Duration;

use foldhash::quality::RandomState;
use foldhash::{HashMap, HashSet};
use recorder::observer::{NO_VALUE, ObservedCounter};
use records::ids::ClientId;
use records::kinds::ConnectionOutcome;
use records::metrics::{
    ClientCounter, Dimension, FullReason, ProxyCounter, ProxyLatency, TlsCounter, TlsLatency, UsageCounter,
};

use crate::capture::Frame;
use crate::flow::{Added, Close, Flow};
use crate::observed::{fingerprint, observed, parts, record};
use crate::options::{FlowKey, WireOptions};
use crate::outcome;
use crate::packet::{Packet, QUIC_PORT, Segment};
use crate::quic::QuicFlows;
use hello::handshake::{End, Step};

/// The most connections that are followed.
const FLOWS_MAX: usize = 1 << 17;
/// The memory for parts of segments and messages of all connections, in bytes.
const ROOM_BYTES: usize = 64 << 20;
/// When less of that memory is left, the oldest parts are given up.
const ROOM_LOW_BYTES: usize = ROOM_BYTES / 16;
/// The clients, by address and fingerprint, that are known again.
const SEEN_MAX: usize = 1 << 16;
/// How often connections that are over are looked for, in the time of the capture, in nanoseconds.
const SWEEP_NS: u64 = 1_000_000_000;

/// Counts segments.
#[derive(Debug)]
pub struct WireCounter {
    pub counted: ObservedCounter,
    options: WireOptions,
    /// In boxes: the table has up to twice as many places.
    flows: HashMap<FlowKey, Box<Flow>>,
    quic: QuicFlows,
    /// Ports on which a server has spoken TLS.
    tls_ports: HashSet<u16>,
    seen: HashSet<u64>,
    hashes: RandomState,
    room: usize,
    now_ns: u64,
    swept_ns: u64,
}

impl WireCounter {
    pub fn new(options: WireOptions) -> Self {
        Self {
            counted: ObservedCounter::default(),
            tls_ports: options.ports.iter().copied().collect(),
            options,
            flows: HashMap::default(),
            quic: QuicFlows::default(),
            seen: HashSet::default(),
            hashes: RandomState::default(),
            room: ROOM_BYTES,
            now_ns: 0,
            swept_ns: 0,
        }
    }

    /// Connections that are followed.
    pub fn flows(&self) -> usize {
        self.flows.len()
    }

    /// Memory that parts of segments and messages take, in bytes.
    pub fn kept_bytes(&self) -> usize {
        ROOM_BYTES - self.room
    }

    /// Counts the packet of this frame.
    pub fn packet(&mut self, frame: &Frame<'_>, packet: &Packet<'_>) {
        match *packet {
            Packet::Tcp(ref segment) => self.segment(frame, segment),
            Packet::Quic { source, destination, len } => self.quic(frame, source, destination, len),
            Packet::Other => {}
        }
    }

    fn quic(&mut self, frame: &Frame<'_>, source: SocketAddr, destination: SocketAddr, len: u32) {
        self.now_ns = self.now_ns.max(frame.time_ns);
        let is_from_client = destination.port() == QUIC_PORT;
        let (client, server) = if is_from_client { (source, destination) } else { (destination, source) };
        let key = FlowKey { client, server };
        if self.options.is_watched(key, frame.is_outgoing == is_from_client)
            && let Some(is_new) = self.quic.is_new(key, frame.interface, self.now_ns)
        {
            self.counted.add(ProxyCounter::QuicConnections, u64::from(is_new));
            self.counted.add(ProxyCounter::QuicPackets, 1);
            self.counted.add(ProxyCounter::QuicBytes, u64::from(len));
        }
    }

    /// Counts a segment of this frame.
    pub fn segment(&mut self, frame: &Frame<'_>, segment: &Segment<'_>) {
        self.counted.add(ProxyCounter::Packets, 1);
        self.now_ns = self.now_ns.max(frame.time_ns);
        if self.now_ns >= self.swept_ns.saturating_add(SWEEP_NS) {
            self.swept_ns = self.now_ns;
            self.sweep();
        }
        let Some((key, end)) = self.find(frame, segment) else { return };
        // Taken out, so that the connection is changed in its place while all else counts.
        let mut flows = std::mem::take(&mut self.flows);
        if let Some(flow) = flows.get_mut(&key)
            && flow.interface == frame.interface
            && !flow.is_closed
        {
            self.follow(key, flow, end, frame.time_ns, segment);
        }
        self.flows = flows;
        if self.room < ROOM_LOW_BYTES {
            self.give_up_parts();
        }
    }

    /// The connection of a segment, and the end that sent it. Begins to follow a new one.
    fn find(&mut self, frame: &Frame<'_>, segment: &Segment<'_>) -> Option<(FlowKey, End)> {
        let from_client = FlowKey { client: segment.source, server: segment.destination };
        let from_server = FlowKey { client: segment.destination, server: segment.source };
        let is_opening = segment.is_syn && segment.acknowledged.is_none();
        if let Some(flow) = self.flows.get(&from_client) {
            if !is_opening || flow.orders[End::Client as usize].is_behind(segment.sequence) {
                return Some((from_client, End::Client));
            }
            // The port is used again. The end of the connection before was not captured, unless it is closed.
            self.forget(&[from_client]);
        } else if self.flows.contains_key(&from_server) {
            return Some((from_server, End::Server));
        }
        let is_hello = matches!(segment.payload, [22, 3, _, _, _, 1, ..]);
        let is_answer = segment.is_syn && !is_opening;
        let (key, end) = if is_answer { (from_server, End::Server) } else { (from_client, End::Client) };
        let is_outgoing = frame.is_outgoing == (end == End::Client);
        if !(segment.is_syn || is_hello) || !self.options.is_watched(key, is_outgoing) {
            return None;
        }
        if self.flows.len() >= FLOWS_MAX {
            self.make_room();
        }
        self.flows.insert(key, Box::new(Flow::new(frame.interface)));
        Some((key, end))
    }

    fn follow(&mut self, key: FlowKey, flow: &mut Flow, end: End, time_ns: u64, segment: &Segment<'_>) {
        flow.last_ns = flow.last_ns.max(time_ns);
        if end == End::Client && segment.len > 0 && flow.first_close.is_none() {
            flow.asked_ns = time_ns;
        }
        self.open(key, flow, end, time_ns, segment);
        let (was_judged, before) = (flow.handshake.is_some(), flow.step());
        let added = flow.add(end, segment, time_ns, &mut self.room);
        if was_judged {
            self.judge(key, flow, before);
        }
        for (end, added) in [End::Client, End::Server].into_iter().zip(&added) {
            self.traffic(key, flow, end, added);
        }
        if segment.is_fin || segment.is_reset {
            flow.first_close.get_or_insert(Close { end, is_reset: segment.is_reset, time_ns });
            flow.has_fin[end as usize] = true;
            flow.has_fin[end.peer() as usize] |= segment.is_reset;
        }
        self.window(flow, end, segment);
        // What decides the handshake may come late.
        if flow.has_ended() && !flow.is_incomplete() {
            self.close(key, flow);
        }
    }

    /// Notes the parts of the TCP handshake.
    fn open(&mut self, key: FlowKey, flow: &mut Flow, end: End, time_ns: u64, segment: &Segment<'_>) {
        if let Some(acknowledged) = segment.acknowledged {
            // The peer's first byte, if its SYN was not captured; nothing of it can have been acknowledged before.
            flow.orders[end.peer() as usize].begin(acknowledged);
        }
        let opened = &mut flow.opened;
        if segment.is_syn {
            flow.orders[end as usize].begin_with_syn(segment.sequence);
            match end {
                End::Client => opened.syn_ns = time_ns,
                End::Server => opened.syn_ack_ns = time_ns,
            }
            return;
        }
        let is_accepted = end == End::Client && !segment.is_reset;
        if is_accepted && opened.established_ns == 0 {
            opened.established_ns = time_ns;
            if self.tls_ports.contains(&key.server.port()) {
                self.count(key, flow);
            }
        }
    }

    /// Begins to count a connection.
    fn count(&mut self, key: FlowKey, flow: &mut Flow) {
        if flow.is_counted {
            return;
        }
        flow.is_counted = true;
        // A client alone, which may try any port, gets no place for a service.
        flow.service = self.options.services.name(key.server, self.options.outgoing == Some(true)).into();
        if self.tls_ports.contains(&key.server.port()) {
            flow.counter = self.counted.index_of(&flow.service);
        }
        flow.conn = self.counted.next_connection().0;
        let client = self.options.client(key);
        let counted = self.counted.counter_mut(flow.counter);
        counted.accepted(client);
        counted.client(client).open_change += 1;
        let [wire_in, wire_out] = std::mem::take(&mut flow.uncounted_wire);
        counted.add(ProxyCounter::WireIn, wire_in);
        counted.add(ProxyCounter::WireOut, wire_out);
    }

    /// Counts what a segment said of the handshake.
    fn judge(&mut self, key: FlowKey, flow: &mut Flow, before: Step) {
        let now = flow.step();
        if self.options.hides_names
            && let Some(offer) = flow.handshake.as_mut().and_then(|handshake| handshake.offer.as_mut())
        {
            offer.server_name = None;
        }
        if now >= Step::Answered && before < Step::Answered && now != Step::Failed {
            self.tls_ports.insert(key.server.port());
            self.count(key, flow);
        }
        if before == Step::Asked && (now == Step::Failed || flow.handshake.is_none()) {
            self.count(key, flow);
        }
        if flow.handshake.is_none() && before < Step::Complete && flow.is_counted {
            self.counted.counter_mut(flow.counter).add(ProxyCounter::Unjudged, 1);
            return;
        }
        if now == Step::Complete && before < Step::Complete {
            self.complete(key, flow);
        }
        if now == Step::Failed && before < Step::Failed && flow.is_counted {
            self.fail(key, flow);
        }
    }

    /// Counts a connection whose `ClientHello` no server will answer any more.
    fn count_unanswered(&mut self, key: FlowKey, flow: &mut Flow) {
        if flow.step() == Step::Asked {
            self.count(key, flow);
        }
    }

    fn complete(&mut self, key: FlowKey, flow: &mut Flow) {
        let Some(handshake) = &flow.handshake else { return };
        let client = self.options.client(key);
        let mut observed = observed(handshake, &flow.service);
        let is_known = self.is_known_client(client, &observed.fingerprint);
        let is_resumed = handshake.is_resumed();
        observed.full = (!is_resumed).then(|| match (handshake.has_offer(), is_known) {
            (true, _) => FullReason::Refused,
            (false, true) => FullReason::NoTicket,
            (false, false) => FullReason::FirstVisit,
        });
        let counted = self.counted.counter_mut(flow.counter);
        counted.handshake(client, &observed, [0; 2]);
        counted.mix_connection(&mut flow.mix, flow.opened.established_ns / 1_000, false);
        let tls = &mut counted.delta.tls;
        if let Some(offer) = &handshake.offer {
            tls.counters[TlsCounter::OffersToResume] += u64::from(is_resumed || handshake.has_offer());
            tls.counters[TlsCounter::Tls12Only] += u64::from(!offer.choices.has_tls13());
            tls.counters[TlsCounter::MlkemOffered] += u64::from(offer.choices.has_mlkem());
            tls.counters[TlsCounter::EarlyDataOffered] += u64::from(offer.has_early_data);
            tls.counters[TlsCounter::EchOffered] += u64::from(offer.has_ech);
        }
        tls.counters[TlsCounter::HandshakesRetransmitted] += u64::from(flow.sent_again > 0);
        tls.counters[TlsCounter::Retransmits] += flow.sent_again;
        let [network, of_client, of_server] = parts(flow, handshake);
        let classes = if is_resumed {
            [TlsLatency::NetworkResumed, TlsLatency::ClientResumed, TlsLatency::ServerResumed]
        } else {
            [TlsLatency::NetworkFull, TlsLatency::ClientFull, TlsLatency::ServerFull]
        };
        for (class, took) in classes.into_iter().zip([network, of_client, of_server]) {
            tls.latencies[class].record(took);
        }
        counted.add(ProxyCounter::HandshakesRetried, u64::from(handshake.is_retried && !is_resumed));
        let row = counted.client(client);
        row.counters[ClientCounter::Retransmits] += flow.sent_again;
        row.rtt_us = flow.opened.round_trips_ns().iter().sum::<u64>() / 1_000;
    }

    /// Whether the client, by its address and its TLS library, has completed a handshake before.
    fn is_known_client(&mut self, client: ClientId, fingerprint: &str) -> bool {
        if self.seen.len() >= SEEN_MAX {
            self.seen.clear();
        }
        !self.seen.insert(self.hashes.hash_one((client, fingerprint)))
    }

    fn fail(&mut self, key: FlowKey, flow: &Flow) {
        let Some(handshake) = &flow.handshake else { return };
        let waited_from_ns = flow.asked_ns.max(flow.opened.established_ns);
        let (outcome, detail) = outcome::failure(handshake, flow.first_close, waited_from_ns);
        let client = self.options.client(key);
        let counted = self.counted.counter_mut(flow.counter);
        counted.failure(client, outcome);
        counted.usage(Dimension::Service, &flow.service, |row| row[UsageCounter::HandshakesFailed] += 1);
        if let Some(offer) = &handshake.offer {
            let name = offer.server_name.as_deref().unwrap_or(NO_VALUE);
            for (dimension, value) in [(Dimension::Name, name), (Dimension::Fingerprint, &fingerprint(offer))]
            {
                counted.usage(dimension, value, |row| row[UsageCounter::HandshakesFailed] += 1);
            }
        }
        counted.record(outcome, || record(client, flow, outcome, detail));
    }

    fn traffic(&mut self, key: FlowKey, flow: &mut Flow, end: End, added: &Added) {
        if !flow.is_counted {
            flow.uncounted_wire[end as usize] += added.wire;
            return;
        }
        let wire = if end == End::Client { ProxyCounter::WireIn } else { ProxyCounter::WireOut };
        let counted = self.counted.counter_mut(flow.counter);
        counted.add(wire, added.wire);
        if added.plain > 0 {
            let bytes = if end == End::Client { [added.plain, 0] } else { [0, added.plain] };
            counted.bytes(self.options.client(key), bytes);
        }
        if let Some(asked_ns) = added.unanswered_ns {
            counted.mix_request(&mut flow.mix, asked_ns / 1_000, Some([flow.bytes[0], 0]));
        }
        if let Some(exchange_ns) = added.exchange_ns {
            let took = Duration::from_nanos(exchange_ns);
            counted.add(ProxyCounter::Exchanges, 1);
            counted.time(ProxyLatency::Exchange, took);
            let client = counted.client(self.options.client(key));
            client.counters[ClientCounter::Exchanges] += 1;
            client.exchange.record(took);
            // The answer has begun with this segment.
            let carried = [flow.bytes[0], flow.bytes[1].saturating_sub(added.plain)];
            let begun_us = flow.last_ns.saturating_sub(exchange_ns) / 1_000;
            counted.mix_request(&mut flow.mix, begun_us, Some(carried));
        }
    }

    /// Counts the begin of a time in which an end takes no more.
    fn window(&mut self, flow: &mut Flow, end: End, segment: &Segment<'_>) {
        if !flow.is_counted || segment.is_syn || flow.first_close.is_some() {
            return;
        }
        let is_full = segment.window == 0;
        let was_full = std::mem::replace(&mut flow.is_window_full[end as usize], is_full);
        let counter = [ProxyCounter::ClientWindowsFull, ProxyCounter::ServerWindowsFull][end as usize];
        self.counted.counter_mut(flow.counter).add(counter, u64::from(is_full && !was_full));
    }

    /// Counts the end of a connection. It stays known for a moment.
    fn close(&mut self, key: FlowKey, flow: &mut Flow) {
        flow.is_closed = true;
        self.count_unanswered(key, flow);
        // What is missing before the end will not come any more.
        self.give_up_missing(key, flow);
        let step = flow.step();
        if flow.is_counted {
            let client = self.options.client(key);
            let lived_ns = flow.last_ns.saturating_sub(flow.opened.established_ns);
            let counted = self.counted.counter_mut(flow.counter);
            counted.add(ProxyCounter::Closed, 1);
            if let Some(close) = flow.first_close {
                counted.add(outcome::closed_first(close), 1);
            }
            counted.client(client).open_change -= 1;
            flow.mix.end(flow.bytes, &mut counted.delta.mix);
            counted.time(ProxyLatency::Lifetime, Duration::from_nanos(lived_ns));
            match &flow.handshake {
                Some(_) if step < Step::Complete => self.fail(key, flow),
                Some(handshake) if step == Step::Complete => {
                    let observed = observed(handshake, &flow.service);
                    let counted = self.counted.counter_mut(flow.counter);
                    counted.usage_bytes(&observed, flow.bytes);
                    let ended = ConnectionOutcome::Ended;
                    counted.record(ended, || record(client, flow, ended, String::new()));
                }
                _ => {}
            }
        }
        flow.release(&mut self.room);
        flow.handshake = None;
    }
}
