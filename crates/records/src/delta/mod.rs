//! Deltas: workers' counts, sent once per interval. The publisher merges them.

mod channel;
mod http;
mod named;
mod request_samples;
mod tls;
mod upstream;

use crate::histogram::{Histograms, Sketch};
use crate::ids::ClientId;
use crate::kinds::{ConnectionRecord, LoadRecord};
use crate::metrics::{
    ClientCounter, Counters, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency, UpstreamCounter,
    UpstreamLatency,
};
use crate::values::{EventCounts, Mix, WorkerCounts};

pub use channel::{Collector, HandoverResult, Reporter};
pub use http::{FinishedRequest, HttpDelta, ROUTES_MAX, RouteDelta, counted_routes};
pub use named::NamedDelta;
pub use request_samples::{REQUEST_RECORDS_MAX, RequestSamples, SampledRequest};
pub use tls::{OTHER_VALUE, TlsDelta, USAGE_VALUES_MAX, UsageDelta};
pub use upstream::{UpstreamDelta, UpstreamDeltas, UpstreamStatus};

/// Connection records that one worker keeps in an interval; further ones count as unrecorded.
pub const CONNECTION_RECORDS_MAX: usize = 64;
/// Clients that one worker, and the merged table, distinguish; all others count as `other`.
pub const CLIENTS_MAX: usize = 10_000;

/// Counters of a measured part of the program since they were last collected.
pub trait Delta: Default + Send + 'static {
    /// Adds the counts of another worker in the same interval, or of the same worker in a later one.
    fn add(&mut self, other: &Self);
    /// Forgets everything and keeps the memory.
    fn clear(&mut self);
}

/// Counters of the proxy, or of one of its workers, over an interval.
#[derive(Clone, Debug, Default)]
pub struct ProxyDelta {
    /// Counts since the last hand-over.
    pub counters: Counters<ProxyCounter>,
    /// Latencies since the last hand-over.
    pub latencies: Histograms<ProxyLatency>,
    /// Clients for which anything changed since the last hand-over, each at most once a worker.
    pub clients: Vec<ClientDelta>,
    /// Errors, and a sample of the connections that ended well.
    pub connections: Vec<ConnectionRecord>,
    pub tls: TlsDelta,
    /// The worker; merged, one of each, or several of one that was late.
    pub workers: Vec<WorkerCounts>,
    /// HTTP counters; `None` in TCP mode.
    pub http: Option<Box<HttpDelta>>,
    pub upstreams: UpstreamDeltas,
    /// The mix of the traffic since the last hand-over; in HTTP mode without sizes.
    pub mix: Mix,
    /// What of all this each service did, where several are told apart.
    pub services: Vec<ServiceDelta>,
}

/// Counters of one service over an interval.
#[derive(Clone, Debug)]
pub struct ServiceDelta {
    pub name: Box<str>,
    pub counted: ProxyDelta,
}

impl Delta for ProxyDelta {
    fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.latencies.add(&other.latencies);
        self.clients.extend_from_slice(&other.clients);
        self.connections.extend_from_slice(&other.connections);
        self.tls.add(&other.tls);
        self.workers.extend_from_slice(&other.workers);
        if let Some(http) = &other.http {
            self.http.get_or_insert_default().add(http);
        }
        self.upstreams.add(&other.upstreams);
        self.mix.add(&other.mix);
        for service in &other.services {
            match self.services.iter_mut().find(|known| known.name == service.name) {
                Some(known) => known.counted.add(&service.counted),
                None => self.services.push(service.clone()),
            }
        }
    }

    fn clear(&mut self) {
        self.counters = Counters::default();
        self.latencies.clear();
        self.clients.clear();
        self.connections.clear();
        self.tls.clear();
        self.workers.clear();
        self.http.iter_mut().for_each(|http| http.clear());
        self.upstreams.clear();
        self.mix.clear();
        self.services.clear();
    }
}

impl ProxyDelta {
    /// Adds to the figures of the proxy what a worker counts for each upstream only, so that a request is counted once.
    pub fn sum_upstreams(&mut self) {
        for upstream in self.upstreams.all() {
            let exchanges = upstream.times(UpstreamLatency::FirstByte);
            self.counters[ProxyCounter::UpstreamConnects] += upstream.counters[UpstreamCounter::Connections];
            self.counters[ProxyCounter::Exchanges] += exchanges.count();
            self.latencies[ProxyLatency::Exchange].add_compact(exchanges);
        }
    }

    /// Keeps a connection's record if there is room, and counts it as unrecorded otherwise.
    pub fn push_connection(&mut self, record: ConnectionRecord) {
        if self.connections.len() < CONNECTION_RECORDS_MAX {
            self.connections.push(record);
        } else {
            self.counters[ProxyCounter::EventsUnrecorded] += 1;
        }
    }
}

/// Counters of one worker for one client over an interval.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientDelta {
    pub client: ClientId,
    /// Connections opened less connections closed in the interval.
    pub open_change: i64,
    /// Counts since the last hand-over.
    pub counters: Counters<ClientCounter>,
    /// Latencies of its exchanges since the last hand-over.
    pub exchange: Sketch,
    /// Round-trip time to it at the end of its latest handshake since then, in microseconds; 0 without one.
    pub rtt_us: u64,
}

/// Counters of the load, or of one of its threads, over an interval.
#[derive(Clone, Debug, Default)]
pub struct LoadDelta {
    /// Counts since the last hand-over.
    pub counters: Counters<LoadCounter>,
    /// Latencies since the last hand-over.
    pub latencies: Histograms<LoadLatency>,
    /// Events since the last delta, by kind.
    pub events: EventCounts,
}

impl Delta for LoadDelta {
    fn add(&mut self, other: &Self) {
        self.counters.add(&other.counters);
        self.latencies.add(&other.latencies);
        self.events.add(&other.events);
    }

    fn clear(&mut self) {
        self.counters = Counters::default();
        self.latencies.clear();
        self.events.clear();
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LoadState {
    /// True while requests are being scheduled.
    pub running: bool,
    /// Requests a second that are asked for; 0 in a closed loop.
    pub rate: f64,
    /// Share of new connections that are meant to resume, in percent.
    pub resume_percent: f64,
    /// Connections that are asked for.
    pub connections: u64,
    pub threads: u64,
    /// Length of the schedule so far, without warm-up and pauses, in microseconds; 0 in a closed loop.
    pub due_us: u64,
    /// Time until the last request was sent, without warm-up and pauses, in microseconds.
    pub sending_us: u64,
    /// Time until the end of the schedule, or until the last answer if that came later, without warm-up and pauses, in
    /// microseconds. In a closed loop, until the end of the last request.
    pub measured_us: u64,
}

impl LoadState {
    /// This state with the times since an earlier one.
    pub fn since(self, before: &Self) -> Self {
        Self {
            due_us: self.due_us.saturating_sub(before.due_us),
            sending_us: self.sending_us.saturating_sub(before.sending_us),
            measured_us: self.measured_us.saturating_sub(before.measured_us),
            ..self
        }
    }

    /// A record of this state, with nothing counted.
    pub fn record(self) -> LoadRecord {
        let Self { running, rate, resume_percent, connections, threads, due_us, sending_us, measured_us } =
            self;
        LoadRecord {
            running,
            rate,
            resume_percent,
            connections,
            threads,
            due_us,
            sending_us,
            measured_us,
            ..LoadRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn exchanges_and_connections_of_upstreams_add_up_to_those_of_the_proxy() {
        let (mut delta, mut expected) = (ProxyDelta::default(), Histograms::<ProxyLatency>::default());
        for (upstream, ms) in [(0, 1), (2, 5), (0, 70_000)] {
            let took = Duration::from_millis(ms);
            delta.upstreams.at(upstream).time(UpstreamLatency::FirstByte, took);
            delta.upstreams.at(upstream).count(UpstreamCounter::Connections, 2);
            expected[ProxyLatency::Exchange].record(took);
        }
        delta.sum_upstreams();
        let of = |counter| delta.counters[counter];
        assert_eq!((of(ProxyCounter::Exchanges), of(ProxyCounter::UpstreamConnects)), (3, 6));
        let [counted, expected] =
            [&delta.latencies, &expected].map(|latencies| latencies[ProxyLatency::Exchange].to_sparse());
        assert_eq!(counted, expected);
    }
}
