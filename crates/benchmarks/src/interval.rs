//! Simulates the work of watching in one interval: of the recorder, the follower and the model, on one thread
//! and without a clock, so that callgrind always counts the same.
//!
//! It runs the program's code ([`Collector`], [`HostSampler`], [`Publisher`], [`RecordWriter`], [`Tail`],
//! [`Model`]) without the threads and channels between them, and with sinks of its own.

pub mod counted;

use records::kinds::HttpVersion;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use journal::{Start, Tail, Timestamps};
use loadgen::Share;
use model::history::Batch;
use model::runs::Model;
use recorder::host::HostSampler;
use recorder::publish::{Publisher, RECORDS_PER_SECOND_OWN, RecordWriter, Refusal, Sink};
use records::codec::Coverage;
use records::delta::{ClientDelta, Collector, Delta, FinishedRequest, ProxyDelta, Reporter};
use records::histogram::Sketch;
use records::ids::{ClientId, ConnId, RunId};
use records::kinds::{ConnectionOutcome, ConnectionRecord, Record, RunRecord};
use records::metrics::{ClientCounter, Counters, ProxyCounter, ProxyLatency};
use records::values::WorkerCounts;

use crate::Result;
use crate::spread::LatencySpread;

/// The number of polls of the journal in an interval of a second; all but one find nothing.
const POLLS: usize = 50;
const INTERVAL_US: u64 = 1_000_000;
/// 127.0.0.2, the first source address of a load.
const FIRST_CLIENT: u32 = 0x7f00_0002;
/// The number of intervals until every buffer has its final size.
const WARM_UP_MIN: u32 = 5;

/// The proxy's traffic in an interval.
#[derive(Clone, Copy, Debug)]
pub struct IntervalTraffic {
    /// The requests answered.
    pub requests: u64,
    /// The connections accepted, and as many closed.
    pub connections: u64,
    /// The share of resumed connections.
    pub resumed: Share,
    /// The clients with an open connection in the interval.
    pub clients_active: u32,
    /// The clients that are active in turn.
    pub clients_seen: u32,
    /// The routes that share the requests in HTTP mode; 0 in TCP mode.
    pub routes: u32,
}

impl IntervalTraffic {
    fn to_argument(self) -> String {
        let Self { requests, connections, resumed, clients_active, clients_seen, routes } = self;
        format!("{requests},{connections},{},{clients_active},{clients_seen},{routes}", resumed.as_percent())
    }

    fn from_argument(text: &str) -> Result<Self> {
        let [requests, connections, resumed, clients_active, clients_seen, routes] =
            text.split(',').collect::<Vec<_>>()[..]
        else {
            return Err(format!("{text:?} is not the traffic of an interval").into());
        };
        Ok(Self {
            requests: requests.parse()?,
            connections: connections.parse()?,
            resumed: Share::percent(resumed.parse()?).ok_or_else(|| format!("{resumed} % is no share"))?,
            clients_active: clients_active.parse()?,
            clients_seen: clients_seen.parse()?,
            routes: routes.parse()?,
        })
    }
}

/// A stand-in for a proxy's worker: it reports prepared counts to the collector.
struct SimulatedWorker {
    reporter: Option<Reporter<ProxyDelta>>,
    counted: ProxyDelta,
}

/// The program's two kinds of sink: a journal file, or a batch for the model.
enum Records {
    File(Box<RecordWriter>),
    Direct(Arc<Mutex<Batch>>),
}

impl Sink for Records {
    fn accept(&mut self, record: &Record, coverage: Coverage) -> std::result::Result<(), Refusal> {
        match self {
            Self::File(file) => file.accept(record, coverage),
            Self::Direct(batch) => {
                lock(batch).records.push(record.clone());
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> std::result::Result<(), String> {
        match self {
            Self::File(file) => Sink::flush(file.as_mut()),
            Self::Direct(_) => Ok(()),
        }
    }
}

/// A run whose intervals elapse on request.
pub struct Simulation {
    traffic: IntervalTraffic,
    worker: Arc<Mutex<SimulatedWorker>>,
    collector: Collector<ProxyDelta>,
    gathered: ProxyDelta,
    host: HostSampler,
    publisher: Publisher<Records>,
    /// Reads the records back from the file.
    tail: Option<Tail>,
    direct: Arc<Mutex<Batch>>,
    model: Model,
    spread: LatencySpread,
    next_client: u32,
    now: Timestamps,
}

impl Simulation {
    /// Starts a run that writes to `journal`, or straight to the model.
    ///
    /// # Errors
    /// If the journal cannot be written or read.
    pub fn start(traffic: IntervalTraffic, journal: Option<&Path>) -> Result<Self> {
        let now = Timestamps::now();
        let worker = Arc::new(Mutex::new(SimulatedWorker { reporter: None, counted: ProxyDelta::default() }));
        let mut collector = Collector::default();
        let woken = Arc::clone(&worker);
        let reporter = collector.add_worker(move || {
            let SimulatedWorker { reporter, counted } = &mut *lock(&woken);
            if let Some(reporter) = reporter {
                reporter.answer(counted, |_| {});
            }
        });
        lock(&worker).reporter = Some(reporter);
        let direct = Arc::default();
        let (sink, tail) = match journal {
            Some(path) => {
                (Records::File(Box::new(crate::create_records(path)?)), Some(Tail::open(path, Start::File)?))
            }
            None => (Records::Direct(Arc::clone(&direct)), None),
        };
        let mut publisher = Publisher::new(RunId::from_bits(1), sink, RECORDS_PER_SECOND_OWN, now);
        publisher.name_routes((0..traffic.routes).map(|route| format!("/bytes/{route}")).collect());
        publisher.start(RunRecord::default(), now);
        Ok(Self {
            traffic,
            worker,
            collector,
            gathered: ProxyDelta::default(),
            host: HostSampler::default(),
            publisher,
            tail,
            direct,
            // Like a headless run.
            model: Model::new(1),
            spread: LatencySpread::default(),
            next_client: 0,
            now,
        })
    }

    /// Runs intervals until every client has been active, and a few more.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn warm_up(&mut self) -> Result<()> {
        for _ in 0..WARM_UP_MIN.max(self.traffic.clients_seen.div_ceil(self.traffic.clients_active) + 1) {
            self.interval()?;
        }
        Ok(())
    }

    /// Runs one interval; returns the number of its records.
    ///
    /// # Errors
    /// If the journal cannot be read.
    pub fn interval(&mut self) -> Result<u64> {
        self.count();
        let before = self.publisher.made();
        self.gather_interval();
        self.publish_interval();
        let batch = self.follow_interval()?;
        self.fold_interval(batch);
        Ok(self.publisher.made() - before)
    }

    /// Prepares the worker's counts of an interval.
    fn count(&mut self) {
        let mut counted = std::mem::take(&mut lock(&self.worker).counted);
        let IntervalTraffic { requests, connections, resumed, .. } = self.traffic;
        let resumptions = (connections as f64 * resumed.as_percent() / 100.0) as u64;
        let full = connections - resumptions;
        for (counter, n) in [
            (ProxyCounter::Accepted, connections),
            (ProxyCounter::Closed, connections),
            (ProxyCounter::HandshakesFull, full),
            (ProxyCounter::HandshakesResumed, resumptions),
            (ProxyCounter::Exchanges, requests),
            (ProxyCounter::BytesIn, requests * 100),
            (ProxyCounter::BytesOut, requests * 300),
        ] {
            counted.counters[counter] += n;
        }
        for (latency, n, median_us) in [
            (ProxyLatency::HandshakeFull, full, 900.0),
            (ProxyLatency::HandshakeResumed, resumptions, 700.0),
            (ProxyLatency::ComputeFull, full, 120.0),
            (ProxyLatency::ComputeResumed, resumptions, 110.0),
            (ProxyLatency::Connect, connections, 40.0),
            (ProxyLatency::Exchange, requests, 300.0),
            (ProxyLatency::Lifetime, connections, 5_000.0),
        ] {
            for _ in 0..n {
                counted.latencies[latency].record(self.spread.draw(median_us));
            }
        }
        counted.workers.push(WorkerCounts {
            number: 0,
            cpu_us: requests * 10,
            open: 0,
            accepted: connections,
            handshakes_full: full,
            handshakes_resumed: resumptions,
            loop_delay_us_max: 850,
        });
        self.count_clients(&mut counted);
        self.count_requests(&mut counted);
        if connections > 0 {
            counted.push_connection(sample());
        }
        lock(&self.worker).counted = counted;
    }

    fn count_requests(&mut self, counted: &mut ProxyDelta) {
        let IntervalTraffic { requests, clients_active, routes, .. } = self.traffic;
        if routes == 0 {
            return;
        }
        let http = counted.http.get_or_insert_default();
        for n in 0..requests {
            let client = FIRST_CLIENT + self.next_client + (n % u64::from(clients_active)) as u32;
            let upstream_time = self.spread.draw(300.0);
            http.finish(&FinishedRequest {
                route: Some((n % u64::from(routes)) as usize),
                conn: ConnId(n),
                client: ClientId::from(IpAddr::from(Ipv4Addr::from_bits(client))),
                version: HttpVersion::Http2,
                method: "GET",
                path: "/bytes/100",
                upstream: "unix:/tmp/app.sock",
                status: Some(200),
                grpc_status: None,
                failure: None,
                queue: None,
                upstream_time: Some(upstream_time),
                first_byte: Some(upstream_time + Duration::from_micros(20)),
                duration: Some(upstream_time + Duration::from_micros(40)),
                body_in: Some(0),
                body_out: Some(100),
                is_reused: true,
                is_retried: false,
            });
        }
    }

    fn count_clients(&mut self, counted: &mut ProxyDelta) {
        let IntervalTraffic { requests, connections, clients_active, clients_seen, .. } = self.traffic;
        for n in 0..clients_active {
            let client = ClientId::from(IpAddr::from(Ipv4Addr::from_bits(
                FIRST_CLIENT + (self.next_client + n) % clients_seen,
            )));
            let mut counters = Counters::default();
            let share = |n: u64| n / u64::from(clients_active);
            counters[ClientCounter::Connections] = share(connections);
            counters[ClientCounter::Exchanges] = share(requests);
            // No two clients are alike, so the busiest are well defined.
            counters[ClientCounter::BytesIn] = share(requests) * 100 + u64::from(n);
            counters[ClientCounter::BytesOut] = share(requests) * 300 + u64::from(n);
            let mut exchange = Sketch::default();
            for _ in 0..share(requests) {
                exchange.record(self.spread.draw(300.0));
            }
            counted.clients.push(ClientDelta { client, open_change: 0, counters, rtt_us: 0, exchange });
        }
        self.next_client = (self.next_client + clients_active) % clients_seen;
    }

    /// The recorder collects the worker's counts, and samples the process.
    #[inline(never)]
    fn gather_interval(&mut self) {
        self.gathered.clear();
        self.collector.collect(&mut self.gathered, Duration::ZERO);
    }

    /// The recorder makes records and passes them to the sink.
    #[inline(never)]
    fn publish_interval(&mut self) {
        let host = self.host.sample();
        self.now.realtime_us += INTERVAL_US;
        self.now.monotonic_us += INTERVAL_US;
        self.publisher.interval(Some(&self.gathered), None, Some(host), self.now);
    }

    /// The follower polls for records until the next interval.
    #[inline(never)]
    fn follow_interval(&mut self) -> Result<Batch> {
        let Some(tail) = &mut self.tail else { return Ok(std::mem::take(&mut *lock(&self.direct))) };
        let mut batch = Batch::default();
        for _ in 0..POLLS {
            tail.poll(|entry| match records::codec::decode(entry) {
                Ok(Some(record)) => batch.records.push(record),
                Ok(None) => {}
                Err(_) => batch.malformed += 1,
            })?;
        }
        Ok(batch)
    }

    /// The model folds the records.
    #[inline(never)]
    fn fold_interval(&mut self, batch: Batch) {
        self.model.apply_batch(batch);
    }

    /// Returns the number of records that the model has folded, which should be all that were made.
    pub fn read(&self) -> u64 {
        let summary = self.model.current().map(|run| self.model.summary(run, Some("")));
        summary.and_then(|summary| summary.journal).map_or(0, |journal| journal.read)
    }

    /// Returns the number of records that were made.
    pub fn made(&self) -> u64 {
        self.publisher.made()
    }
}

/// Returns the record of a connection that ended without error.
fn sample() -> ConnectionRecord {
    ConnectionRecord {
        conn: ConnId(1),
        client: ClientId::from(IpAddr::from(Ipv4Addr::from_bits(FIRST_CLIENT))),
        outcome: ConnectionOutcome::Ended,
        detail: String::new(),
        tls_version: "TLSv1.3".to_owned(),
        cipher: "TLS_AES_256_GCM_SHA384".to_owned(),
        group: "X25519MLKEM768".to_owned(),
        sni: String::new(),
        client_name: String::new(),
        alpn: String::new(),
        resumed: true,
        bytes_in: 1_000,
        bytes_out: 3_000,
        lifetime_us: 5_000,
    }
}

/// No thread panics while it holds a lock.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_of_a_simulated_run_reaches_the_model() {
        for routes in [0, 3] {
            let traffic = IntervalTraffic {
                requests: 100,
                connections: 10,
                resumed: Share::ALL,
                clients_active: 7,
                clients_seen: 20,
                routes,
            };
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.journal");
            let mut counts = Vec::new();
            for journal in [Some(path.as_path()), None] {
                let mut run = Simulation::start(traffic, journal).unwrap();
                run.warm_up().unwrap();
                assert!(run.interval().unwrap() >= 7 + u64::from(routes));
                assert_eq!(run.read(), run.made());
                counts.push(run.made());
            }
            assert_eq!(counts[0], counts[1]);
        }
    }
}
