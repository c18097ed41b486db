//! What watching does in an interval, alone and without a clock: the recorder's and the follower's work for what a proxy
//! has counted, on one thread, so that callgrind's counts are the same every time.
//!
//! It runs the code of the program ([`Collector`], [`HostSampler`], [`Publisher`], [`FileSink`], [`Tail`],
//! [`Model`]) but for the threads and channels between them, and for the two sinks, which are the program's own.

pub mod counted;

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use journal::{Start, Tail, Timestamps};
use loadgen::Share;
use telemetry::{
    Batch, ClientCounter, ClientDelta, ClientId, Collector, ConnId, ConnectionRecord, Counters, Delta,
    HostSampler, Model, Outcome, ProxyCounter, ProxyDelta, ProxyLatency, Publisher, RECORDS_PER_SECOND_OWN,
    Record, Refusal, Reporter, RunId, RunRecord, Sink, Sketch,
};

use crate::Result;
use crate::sink::FileSink;
use crate::spread::Spread;

/// Times that the follower looks at the journal in an interval of a second; all but one find nothing.
const POLLS: usize = 50;
const INTERVAL_US: u64 = 1_000_000;
/// 127.0.0.2, where a load with source addresses begins.
const FIRST_CLIENT: u32 = 0x7f00_0002;
/// Intervals until everything that grows has grown.
const WARM_UP_MIN: u32 = 5;

/// What the proxy serves in an interval.
#[derive(Clone, Copy, Debug)]
pub struct Traffic {
    /// Requests answered.
    pub requests: u64,
    /// Connections accepted, and as many closed.
    pub connections: u64,
    /// Share of them that are resumed.
    pub resumed: Share,
    /// Clients with an open connection, or that had one in the interval.
    pub clients_active: u32,
    /// Clients that take their turns at being active.
    pub clients_seen: u32,
}

impl Traffic {
    fn to_argument(self) -> String {
        let Self { requests, connections, resumed, clients_active, clients_seen } = self;
        format!("{requests},{connections},{},{clients_active},{clients_seen}", resumed.as_percent())
    }

    fn from_argument(text: &str) -> Result<Self> {
        let [requests, connections, resumed, clients_active, clients_seen] =
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
        })
    }
}

/// A proxy's worker as the collector sees it: it hands over what has been laid out for it.
struct Worker {
    reporter: Option<Reporter<ProxyDelta>>,
    counted: ProxyDelta,
}

/// The sinks of the program: a journal file, or nothing but a batch for the model.
enum Records {
    File(FileSink),
    Direct(Arc<Mutex<Batch>>),
}

impl Sink for Records {
    fn accept(&mut self, record: &Record) -> std::result::Result<(), Refusal> {
        match self {
            Self::File(file) => file.accept(record),
            Self::Direct(batch) => {
                lock(batch).records.push(record.clone());
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> std::result::Result<(), String> {
        match self {
            Self::File(file) => file.flush(),
            Self::Direct(_) => Ok(()),
        }
    }
}

/// A run whose intervals come when they are asked for.
pub struct Simulation {
    traffic: Traffic,
    worker: Arc<Mutex<Worker>>,
    collector: Collector<ProxyDelta>,
    gathered: ProxyDelta,
    host: HostSampler,
    publisher: Publisher<Records>,
    /// Reads back what goes into a file.
    tail: Option<Tail>,
    direct: Arc<Mutex<Batch>>,
    model: Model,
    spread: Spread,
    next_client: u32,
    now: Timestamps,
}

impl Simulation {
    /// Starts a run that writes to `journal`, or straight to the model.
    ///
    /// # Errors
    /// When the journal cannot be written or read.
    pub fn start(traffic: Traffic, journal: Option<&Path>) -> Result<Self> {
        let now = Timestamps::now();
        let worker = Arc::new(Mutex::new(Worker { reporter: None, counted: ProxyDelta::default() }));
        let mut collector = Collector::default();
        let woken = Arc::clone(&worker);
        let reporter = collector.add_worker(move || {
            let Worker { reporter, counted } = &mut *lock(&woken);
            if let Some(reporter) = reporter {
                reporter.answer(counted, |_| {});
            }
        });
        lock(&worker).reporter = Some(reporter);
        let direct = Arc::default();
        let (sink, tail) = match journal {
            Some(path) => (Records::File(FileSink::create(path)?), Some(Tail::open(path, Start::File)?)),
            None => (Records::Direct(Arc::clone(&direct)), None),
        };
        let mut publisher = Publisher::new(RunId::from_bits(1), sink, RECORDS_PER_SECOND_OWN, now);
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
            // As in a headless run.
            model: Model::new(1),
            spread: Spread::default(),
            next_client: 0,
            now,
        })
    }

    /// Runs intervals until every client has been seen, and some more.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn warm_up(&mut self) -> Result<()> {
        for _ in 0..WARM_UP_MIN.max(self.traffic.clients_seen.div_ceil(self.traffic.clients_active) + 1) {
            self.interval()?;
        }
        Ok(())
    }

    /// Runs one interval; the number of records that it made.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub fn interval(&mut self) -> Result<u64> {
        self.count();
        let before = self.publisher.made();
        self.gather_interval();
        self.publish_interval();
        let batch = self.follow_interval()?;
        self.fold_interval(batch);
        Ok(self.publisher.made() - before)
    }

    /// Lays out what the worker counts in an interval.
    fn count(&mut self) {
        let mut counted = std::mem::take(&mut lock(&self.worker).counted);
        let Traffic { requests, connections, resumed, .. } = self.traffic;
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
        self.count_clients(&mut counted);
        if connections > 0 {
            counted.push_connection(sample());
        }
        lock(&self.worker).counted = counted;
    }

    fn count_clients(&mut self, counted: &mut ProxyDelta) {
        let Traffic { requests, connections, clients_active, clients_seen, .. } = self.traffic;
        for n in 0..clients_active {
            let client = ClientId::from(IpAddr::from(Ipv4Addr::from_bits(
                FIRST_CLIENT + (self.next_client + n) % clients_seen,
            )));
            let mut counters = Counters::default();
            let share = |n: u64| n / u64::from(clients_active);
            counters[ClientCounter::Connections] = share(connections);
            counters[ClientCounter::Exchanges] = share(requests);
            // No two alike, so that the busiest are to be told.
            counters[ClientCounter::BytesIn] = share(requests) * 100 + u64::from(n);
            counters[ClientCounter::BytesOut] = share(requests) * 300 + u64::from(n);
            let mut exchange = Sketch::default();
            for _ in 0..share(requests) {
                exchange.record(self.spread.draw(300.0));
            }
            counted.clients.push(ClientDelta { client, open_change: 0, counters, exchange });
        }
        self.next_client = (self.next_client + clients_active) % clients_seen;
    }

    /// The recorder gathers what the worker has counted, and reads what the process uses.
    #[inline(never)]
    fn gather_interval(&mut self) {
        self.gathered.clear();
        self.collector.collect(&mut self.gathered, Duration::ZERO);
    }

    /// The recorder makes records and hands them to the sink.
    #[inline(never)]
    fn publish_interval(&mut self) {
        let host = self.host.sample();
        self.now.realtime_us += INTERVAL_US;
        self.now.monotonic_us += INTERVAL_US;
        self.publisher.interval(Some(&self.gathered), None, Some(host), self.now);
    }

    /// The follower looks for records until the next interval.
    #[inline(never)]
    fn follow_interval(&mut self) -> Result<Batch> {
        let Some(tail) = &mut self.tail else { return Ok(std::mem::take(&mut *lock(&self.direct))) };
        let mut batch = Batch::default();
        for _ in 0..POLLS {
            tail.poll(|entry| match telemetry::decode(entry) {
                Ok(Some(record)) => batch.records.push(record),
                Ok(None) => {}
                Err(_) => batch.malformed += 1,
            })?;
        }
        Ok(batch)
    }

    /// The model takes them in.
    #[inline(never)]
    fn fold_interval(&mut self, batch: Batch) {
        self.model.apply_batch(batch);
    }

    /// Records that the model has taken in, which are all that were made, or something has gone wrong.
    pub fn read(&self) -> u64 {
        let summary = self.model.current().map(|run| self.model.summary(run, Some("")));
        summary.and_then(|summary| summary.journal).map_or(0, |journal| journal.read)
    }

    /// Records that were made.
    pub fn made(&self) -> u64 {
        self.publisher.made()
    }
}

/// Such as one of those that ended well.
fn sample() -> ConnectionRecord {
    ConnectionRecord {
        conn: ConnId(1),
        client: ClientId::from(IpAddr::from(Ipv4Addr::from_bits(FIRST_CLIENT))),
        outcome: Outcome::Ended,
        detail: String::new(),
        tls_version: "TLSv1.3".to_owned(),
        cipher: "TLS13_AES_256_GCM_SHA384".to_owned(),
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

/// Nothing panics while it holds one of these.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_record_of_a_simulated_run_is_read_back_whichever_way_it_goes() {
        let traffic = Traffic {
            requests: 100,
            connections: 10,
            resumed: Share::ALL,
            clients_active: 7,
            clients_seen: 20,
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.journal");
        let mut counts = Vec::new();
        for journal in [Some(path.as_path()), None] {
            let mut run = Simulation::start(traffic, journal).unwrap();
            run.warm_up().unwrap();
            assert!(run.interval().unwrap() >= 7);
            assert_eq!(run.read(), run.made());
            counts.push(run.made());
        }
        assert_eq!(counts[0], counts[1]);
    }
}
