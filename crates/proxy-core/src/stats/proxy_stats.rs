//! The counters of one worker: every figure is a plain addition to a private delta until the collector takes it.
//!
//! Plaintext counts as *in* when the upstream's socket has taken it, and as *out* when it has been read from the
//! upstream and encrypted for the client. For a connection that ends well these are the client's sent and received
//! bytes. For a connection that breaks, *out* may include bytes that never reached the client.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use records::delta::{CONNECTION_RECORDS_MAX, ProxyDelta, UpstreamDelta};
use records::ids::{ClientId, ConnId};
use records::kinds::{ConnectionOutcome, ConnectionRecord};
use records::metrics::{ClientCounter, ProxyCounter, ProxyLatency, UpstreamLatency};
use records::values::ConnectionMix;
use rustix::time::{ClockId, clock_gettime};

use crate::stats::clients::{ClientSlot, ClientSlots};
use crate::stats::handshake_time::HandshakeTime;
use crate::stats::seen::SeenAddresses;
use crate::stats::usage::{UsageCounts, UsageSlots};
use crate::stats::worker::WorkerReporter;
use crate::tls::NegotiatedTls;

/// At most one connection that ends well is recorded in this time.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct ProxyStats {
    pub(crate) delta: ProxyDelta,
    pub(crate) clients: ClientSlots,
    pub(crate) usage: UsageCounts,
    pub(crate) worker: WorkerReporter,
    /// Shared with the other workers.
    pub(super) seen: Arc<SeenAddresses>,
    next_sample: Option<Instant>,
    /// Connection ids that only this worker assigns.
    ids: Range<u64>,
    clock: MonotonicClock,
}

/// Converts moments to microseconds of `CLOCK_MONOTONIC`.
#[derive(Debug)]
struct MonotonicClock {
    began_at: Instant,
    began_us: u64,
}

impl MonotonicClock {
    fn new() -> Self {
        let (began_at, now) = (Instant::now(), clock_gettime(ClockId::Monotonic));
        Self { began_at, began_us: Duration::try_from(now).map_or(0, |now| now.as_micros() as u64) }
    }

    #[inline]
    fn us(&self, at: Instant) -> u64 {
        let micros =
            |duration: Duration| duration.as_secs() * 1_000_000 + u64::from(duration.subsec_micros());
        match at.checked_duration_since(self.began_at) {
            Some(after) => self.began_us + micros(after),
            None => self.began_us.saturating_sub(micros(self.began_at - at)),
        }
    }
}

/// How many connection ids a worker takes at once.
const CONN_IDS: u64 = 1000;

/// The connection ids that no worker has taken yet.
#[derive(Debug)]
pub(crate) struct ConnIds(AtomicU64);

impl Default for ConnIds {
    fn default() -> Self {
        Self(AtomicU64::new(1))
    }
}

impl ConnIds {
    fn take(&self) -> Range<u64> {
        let first = self.0.fetch_add(CONN_IDS, Ordering::Relaxed);
        first..first + CONN_IDS
    }
}

impl ProxyStats {
    pub(crate) fn new(
        worker: usize,
        clients_max: usize,
        records_names: bool,
        seen: Arc<SeenAddresses>,
    ) -> Self {
        Self {
            delta: ProxyDelta::default(),
            clients: ClientSlots::new(clients_max),
            usage: UsageCounts::new(records_names),
            worker: WorkerReporter::new(worker),
            seen,
            next_sample: None,
            ids: 0..0,
            clock: MonotonicClock::new(),
        }
    }

    pub(crate) fn count(&mut self, counter: ProxyCounter, n: u64) {
        self.delta.counters[counter] += n;
    }

    pub(crate) fn time(&mut self, latency: ProxyLatency, took: Duration) {
        self.delta.latencies[latency].record(took);
    }

    pub(crate) fn accepted(&mut self, ids: &ConnIds) -> ConnId {
        self.count(ProxyCounter::Accepted, 1);
        if self.ids.is_empty() {
            self.ids = ids.take();
        }
        self.ids.start += 1;
        ConnId(self.ids.start - 1)
    }

    pub(crate) fn bytes_in(&mut self, client: ClientSlot, n: u64) {
        self.count(ProxyCounter::BytesIn, n);
        self.clients.add(client, ClientCounter::BytesIn, n);
    }

    pub(crate) fn bytes_out(&mut self, client: ClientSlot, n: u64) {
        self.count(ProxyCounter::BytesOut, n);
        self.clients.add(client, ClientCounter::BytesOut, n);
    }

    /// The counts of the upstream at this index.
    pub(crate) fn upstream(&mut self, index: usize) -> &mut UpstreamDelta {
        self.delta.upstreams.at(index)
    }

    /// Counts the beginning of an upstream's answer; [`ProxyDelta::sum_upstreams`] counts it for the proxy.
    pub(crate) fn exchange(&mut self, client: ClientSlot, upstream: usize, took: Duration) {
        self.clients.exchange(client, took);
        self.upstream(upstream).time(UpstreamLatency::FirstByte, took);
    }

    /// Counts a handshake that is complete. `id` owns `client`. Returns where the connection's bytes are counted.
    pub(crate) fn handshake(
        &mut self,
        client: ClientSlot,
        id: ClientId,
        session: &NegotiatedTls<'_>,
        time: &HandshakeTime,
    ) -> UsageSlots {
        session.count(&mut self.delta.counters);
        let is_resumed = session.is_resumed();
        let counter =
            if is_resumed { ClientCounter::HandshakesResumed } else { ClientCounter::HandshakesFull };
        self.clients.add(client, counter, 1);
        self.clients.path(client, time.rtt, time.retransmits);
        self.handshake_time(is_resumed, time);
        self.handshake_details(client, id, session, time.compute_ns)
    }

    /// Counts a connection, which was accepted then, in the mix.
    pub(crate) fn mix_connection(
        &mut self,
        connection: &mut ConnectionMix,
        accepted_at: Instant,
        is_http2: bool,
    ) {
        connection.begin(self.clock.us(accepted_at), is_http2, &mut self.delta.mix);
    }

    /// Counts a request in the mix. `carried`: what the connection had carried when the answer began, if it is to tell sizes.
    #[inline]
    pub(crate) fn mix_request(
        &mut self,
        connection: &mut ConnectionMix,
        began_at: Instant,
        carried: Option<[u64; 2]>,
    ) {
        connection.request(self.clock.us(began_at), carried, &mut self.delta.mix);
    }

    /// Counts a connection that is passed to an upstream unread. Returns where its bytes are counted.
    pub(crate) fn passed(&mut self, session: &NegotiatedTls<'_>) -> UsageSlots {
        self.count(ProxyCounter::Passed, 1);
        self.usage.passed(session)
    }

    /// Counts an error under its cause. `in_handshake`: it ended the connection before its handshake was done.
    pub(crate) fn error(&mut self, client: ClientSlot, outcome: ConnectionOutcome, in_handshake: bool) {
        let cause = match outcome.counter() {
            Some(cause) => cause,
            // A connection cut at the end of a drain is not an error, unless its handshake was incomplete.
            None if !in_handshake => return,
            None => ProxyCounter::FailedOther,
        };
        self.count(cause, 1);
        if in_handshake {
            self.count(ProxyCounter::HandshakesFailed, 1);
        }
        self.clients.add(client, ClientCounter::Errors, 1);
    }

    /// Counts failed requests as errors of their client.
    pub(crate) fn failed_requests(&mut self, client: ClientSlot, n: u64) {
        self.clients.add(client, ClientCounter::Errors, n);
    }

    /// Counts the end of a connection; `has_failed`: by an error, before a byte reached an upstream.
    pub(crate) fn closed(&mut self, client: ClientSlot, has_failed: bool, lifetime: Duration) {
        self.count(ProxyCounter::Closed, 1);
        self.count(ProxyCounter::Failed, u64::from(has_failed));
        self.time(ProxyLatency::Lifetime, lifetime);
        self.clients.close(client);
    }

    /// Keeps a record of the connection if it ended in an error, or is due as a sample.
    pub(crate) fn record(
        &mut self,
        outcome: ConnectionOutcome,
        now: Instant,
        record: impl FnOnce() -> ConnectionRecord,
    ) {
        if outcome.is_error() {
            // A record is only made if there is room for it.
            if self.delta.connections.len() < CONNECTION_RECORDS_MAX {
                self.delta.push_connection(record());
            } else {
                self.count(ProxyCounter::EventsUnrecorded, 1);
            }
        } else if self.next_sample.is_none_or(|due| due <= now)
            && self.delta.connections.len() < CONNECTION_RECORDS_MAX
        {
            self.next_sample = Some(now + SAMPLE_INTERVAL);
            self.delta.push_connection(record());
        }
    }
}
