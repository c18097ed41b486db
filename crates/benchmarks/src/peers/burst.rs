//! Measures exchanges on established connections while many other clients connect.

use std::time::{Duration, Instant};

use loadgen::Plan;
use telemetry::{Delta, LoadCounter, LoadDelta, LoadLatency};

use super::cases::WORK;
use super::sample::{TestBed, start_plan, warm_up};
use super::{CertificateKey, Certificates, Conditions, InstalledPeer, PeerCase};
use crate::Result;

/// The duration of handshakes before the measurement.
const WARM_UP: Duration = Duration::from_secs(1);

/// A constant rate of requests over a few connections.
const ESTABLISHED: PeerCase = PeerCase {
    name: "established",
    plan: "connections=32,keepalive=on,rate=1000",
    key: CertificateKey::Rsa,
    ..WORK
};
/// One connection with a full handshake per request, without a pause.
const HANDSHAKES: PeerCase = PeerCase {
    name: "handshakes",
    plan: "connections=64,keepalive=off,resume=0%",
    key: CertificateKey::Rsa,
    ..WORK
};

/// The measurement of one terminator.
#[derive(Clone, Copy, Debug)]
pub struct Burst {
    /// Handshakes completed per second.
    pub completed: f64,
    /// The median latency of exchanges on the established connections, from when they were due, in seconds.
    pub p50_s: f64,
    /// The 99th percentile of that latency.
    pub p99_s: f64,
    /// The 99th percentile of the generator's lag, which is not the terminator's.
    pub lag_p99_s: f64,
}

/// Starts `peer` and an upstream, and offers this many handshakes per second in a Poisson process, while
/// established connections have exchanges at a constant rate.
///
/// # Errors
/// If any step or request fails.
pub fn take_burst(
    peer: &InstalledPeer,
    certificates: &Certificates,
    conditions: Conditions,
    offered: u32,
) -> Result<Burst> {
    let stand = TestBed::start(peer, CertificateKey::Rsa, certificates, conditions)?;
    let addr = stand.running.addr();
    let mut established = start_plan(addr, &ESTABLISHED, ESTABLISHED.plan.parse()?)?;
    warm_up(&mut established, &ESTABLISHED)?;
    // The number that is in flight if each takes half a second.
    let connections = offered / 2;
    let plan = format!("connections={connections},keepalive=off,resume=0%,arrivals=poisson,rate={offered}");
    let plan: Plan = plan.parse()?;
    let mut handshakes = start_plan(addr, &HANDSHAKES, plan)?;
    std::thread::sleep(WARM_UP);
    let mut collect = || {
        let [mut kept, mut new] = [LoadDelta::default(), LoadDelta::default()];
        handshakes.collect(&mut new, Duration::from_secs(1));
        established.collect(&mut kept, Duration::from_secs(1));
        (kept, new, Instant::now())
    };
    let (.., from) = collect();
    std::thread::sleep(conditions.length);
    let (kept, new, to) = collect();
    let failed = kept.counters[LoadCounter::Failed] + new.counters[LoadCounter::Failed];
    if failed > 0 {
        return Err(format!("{failed} requests failed").into());
    }
    let quantile = |latency, q| -> Result<f64> {
        let ns = kept.latencies[latency].quantile_ns(q).ok_or("no request was answered")?;
        Ok(Duration::from_nanos(ns).as_secs_f64())
    };
    Ok(Burst {
        completed: new.counters[LoadCounter::HandshakesFull] as f64 / (to - from).as_secs_f64(),
        p50_s: quantile(LoadLatency::Response, 0.5)?,
        p99_s: quantile(LoadLatency::Response, 0.99)?,
        lag_p99_s: quantile(LoadLatency::Lag, 0.99)?,
    })
}

/// Returns how many handshakes `peer` completes per second at full load.
///
/// # Errors
/// If any step or request fails.
pub fn handshakes_completed(
    peer: &InstalledPeer,
    certificates: &Certificates,
    conditions: Conditions,
) -> Result<f64> {
    let stand = TestBed::start(peer, CertificateKey::Rsa, certificates, conditions)?;
    let mut load = start_plan(stand.running.addr(), &HANDSHAKES, HANDSHAKES.plan.parse()?)?;
    warm_up(&mut load, &HANDSHAKES)?;
    let mut delta = LoadDelta::default();
    let from = Instant::now();
    std::thread::sleep(conditions.length);
    delta.clear();
    load.collect(&mut delta, Duration::from_secs(1));
    Ok(delta.counters[LoadCounter::HandshakesFull] as f64 / from.elapsed().as_secs_f64())
}
