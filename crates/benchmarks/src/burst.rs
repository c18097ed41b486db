//! Measures exchanges on established connections while many other clients connect, or a flood of them is refused.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use bench::scenario::CommandServer;
use loadgen::{Load, LoadConfig, Plan, Template, TlsOptions, TlsVersion, Trust};
use records::delta::{Delta, LoadDelta};
use records::metrics::{LoadCounter, LoadLatency};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::Result;
use crate::load::counted;
use crate::test_bed::TestBed;

/// The minimum duration of a load before a measurement.
const WARM_UP: Duration = Duration::from_secs(1);
/// The time limit until all connections are established, and of a request.
const WARM_UP_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
const ANSWER_BYTES: u64 = 13;

/// One connection with a full handshake per request, without a pause.
const HANDSHAKES: &str = "connections=64,keep-alive=off,resume=0%";

/// The conditions of a measurement.
#[derive(Clone, Debug)]
pub struct BurstConditions {
    /// The tlsdash that is measured.
    pub program: PathBuf,
    /// The terminator's core.
    pub core: usize,
    /// The duration of a measurement.
    pub length: Duration,
}

/// The measurement of one terminator.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// Handshakes completed per second.
    pub completed: f64,
    /// Connections refused per second.
    pub refused: f64,
    /// The median latency of exchanges on the established connections, from when they were due, in seconds.
    pub p50_s: f64,
    /// The 99th percentile of that latency.
    pub p99_s: f64,
    /// The 99th percentile of the generator's lag, which is not the terminator's.
    pub lag_p99_s: f64,
}

/// The clients of a measurement.
#[derive(Clone, Debug)]
pub struct Crowd {
    /// The load of the established connections.
    pub established: &'static str,
    /// The load of those that connect.
    pub new: String,
    /// How long these connect before the measurement.
    pub lead: Duration,
    /// Whether these may be refused.
    pub is_refused: bool,
}

impl Crowd {
    /// This many handshakes per second in a Poisson process, beside a constant rate of requests over a few connections.
    pub fn burst(offered: u32) -> Self {
        // The number that is in flight if each takes half a second.
        let connections = offered / 2;
        Self {
            established: "connections=32,keep-alive=on,rate=1000",
            new: format!(
                "connections={connections},keep-alive=off,resume=0%,arrivals=poisson,rate={offered}"
            ),
            lead: WARM_UP,
            is_refused: false,
        }
    }

    /// Connections from 10,000 addresses, beside 100 clients.
    pub fn flood() -> Self {
        Self {
            established: "connections=100,source-addresses=100,keep-alive=on,rate=1000",
            new: "connections=10000,source-addresses=10000,keep-alive=off,resume=0%".to_owned(),
            // Until each address has used up what it is allowed.
            lead: Duration::from_secs(20),
            is_refused: true,
        }
    }
}

impl BurstConditions {
    /// Starts a server, and measures established connections while others connect.
    ///
    /// # Errors
    /// If any step or request fails.
    pub fn take(&self, server: &CommandServer, crowd: &Crowd) -> Result<Burst> {
        let bed = TestBed::start(server, &self.program, self.core)?;
        let mut established = start(bed.addr, crowd.established)?;
        warm_up(&mut established, crowd.established)?;
        let mut handshakes = start(bed.addr, &crowd.new)?;
        std::thread::sleep(crowd.lead);
        let mut collect = || {
            let [mut kept, mut new] = [LoadDelta::default(), LoadDelta::default()];
            handshakes.collect(&mut new, Duration::from_secs(1));
            established.collect(&mut kept, Duration::from_secs(1));
            (kept, new, Instant::now())
        };
        let (.., from) = collect();
        std::thread::sleep(self.length);
        let (kept, new, to) = collect();
        let refused = new.counters[LoadCounter::Failed];
        let failed = kept.counters[LoadCounter::Failed] + if crowd.is_refused { 0 } else { refused };
        if failed > 0 {
            return Err(format!("{failed} requests failed").into());
        }
        let quantile = |latency, q| -> Result<f64> {
            let ns = kept.latencies[latency].quantile_ns(q).ok_or("no request was answered")?;
            Ok(Duration::from_nanos(ns).as_secs_f64())
        };
        Ok(Burst {
            completed: new.counters[LoadCounter::HandshakesFull] as f64 / (to - from).as_secs_f64(),
            refused: refused as f64 / (to - from).as_secs_f64(),
            p50_s: quantile(LoadLatency::Response, 0.5)?,
            p99_s: quantile(LoadLatency::Response, 0.99)?,
            lag_p99_s: quantile(LoadLatency::Lag, 0.99)?,
        })
    }

    /// Returns how many handshakes a server completes per second at full load.
    ///
    /// # Errors
    /// If any step or request fails.
    pub fn handshakes_completed(&self, server: &CommandServer) -> Result<f64> {
        let bed = TestBed::start(server, &self.program, self.core)?;
        let mut load = start(bed.addr, HANDSHAKES)?;
        warm_up(&mut load, HANDSHAKES)?;
        let mut delta = LoadDelta::default();
        let from = Instant::now();
        std::thread::sleep(self.length);
        delta.clear();
        load.collect(&mut delta, Duration::from_secs(1));
        Ok(delta.counters[LoadCounter::HandshakesFull] as f64 / from.elapsed().as_secs_f64())
    }
}

/// Raises the limit on file descriptors for thousands of connections, here and in the terminators, which inherit it.
///
/// # Errors
/// If the kernel refuses.
pub fn allow_all_descriptors() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

fn start(addr: SocketAddr, plan: &str) -> Result<Load> {
    let config = LoadConfig::new(format!("https://{addr}/").parse()?, plan.parse()?, Trust::Insecure);
    let requests = vec![Template::get(format!("/bytes/{ANSWER_BYTES}"))];
    // What the templates are configured for.
    let tls = TlsOptions {
        version: Some(TlsVersion::V13),
        ciphers: vec!["TLS_AES_128_GCM_SHA256".to_owned()],
        groups: vec!["X25519".to_owned()],
        server_name: Some("localhost".to_owned()),
        ..TlsOptions::default()
    };
    Ok(Load::start(LoadConfig { requests, tls, request_timeout: WARM_UP_MAX, ..config })?)
}

/// Waits until every connection has completed its handshake, and as many answers have arrived.
fn warm_up(load: &mut Load, plan: &str) -> Result<()> {
    let plan: Plan = plan.parse()?;
    let begun = Instant::now();
    let (mut shaken, mut answered) = (0, 0);
    while begun.elapsed() < WARM_UP || shaken.min(answered) < u64::from(plan.connections) {
        if begun.elapsed() > WARM_UP_MAX {
            return Err(format!("only {shaken} handshakes in {WARM_UP_MAX:?}").into());
        }
        std::thread::sleep(POLL);
        let counts = counted(load);
        shaken += counts[LoadCounter::HandshakesFull] + counts[LoadCounter::HandshakesResumed];
        answered += counts[LoadCounter::Ok];
    }
    Ok(())
}
