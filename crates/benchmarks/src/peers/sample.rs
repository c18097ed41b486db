//! Measures one terminator once.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use loadgen::{DemoUpstream, KeepAlive, Load, LoadConfig, Plan, Trust, UpstreamAddr};
use telemetry::{Counters, LoadCounter, Value};

use super::{CertificateKey, Certificates, InstalledPeer, PeerCase, PeerFigure, Running, Setup};
use crate::Result;
use crate::load::counted;

/// The minimum duration of the load before a measurement.
const WARM_UP: Duration = Duration::from_millis(700);
/// The time limit until all connections are established.
const WARM_UP_MAX: Duration = Duration::from_secs(60);
/// The time for memory to settle.
const SETTLE: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);
/// The CPU time that a terminator must have used: the kernel reports it in hundredths of a second.
const CPU_MIN: Duration = Duration::from_millis(400);
/// How often a measurement may be extended if other programs use the machine.
const EXTENSIONS_MAX: u32 = 5;
/// The share of handshakes that may be full instead of resumed: the first of each client is.
const FULL_SHARE_MAX: f64 = 0.02;

/// The conditions of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Conditions {
    /// The number of the terminator's workers.
    pub workers: usize,
    /// Its core; `None` leaves the choice to the kernel.
    pub core: Option<usize>,
    /// The minimum duration of a measurement.
    pub length: Duration,
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct PeerSample {
    /// The value in the case's unit.
    pub value: f64,
    /// The share of its cores that the terminator used; 0 for memory.
    pub utilisation: f64,
}

/// A running terminator in front of an upstream of this process. It is stopped on drop.
pub(super) struct TestBed {
    pub(super) running: Running,
    _upstreams: [DemoUpstream; 2],
    _folder: tempfile::TempDir,
}

impl TestBed {
    /// Starts `peer` with a certificate of this kind.
    pub(super) fn start(
        peer: &InstalledPeer,
        key: CertificateKey,
        certificates: &Certificates,
        conditions: Conditions,
    ) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let socket = folder.path().join("app.sock");
        let over_unix = DemoUpstream::start(UpstreamAddr::Unix(socket.clone()))?;
        let over_tcp = DemoUpstream::start(UpstreamAddr::Tcp((Ipv4Addr::LOCALHOST, 0).into()))?;
        let UpstreamAddr::Tcp(upstream_tcp) = *over_tcp.address() else { return Err("not over TCP".into()) };
        // Some terminators drop root privileges for a user who must still reach the socket.
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o777))?;
        let setup = Setup {
            listen: free_port()?,
            upstream: &socket,
            upstream_tcp,
            certificates,
            key,
            workers: conditions.workers,
            folder: folder.path(),
        };
        let running = Running::start(peer, &setup, conditions.core)?;
        Ok(Self { running, _upstreams: [over_unix, over_tcp], _folder: folder })
    }
}

/// Starts `peer` and an upstream, and measures `case`.
///
/// # Errors
/// If any step or request fails.
pub fn take(
    peer: &InstalledPeer,
    case: &PeerCase,
    certificates: &Certificates,
    conditions: Conditions,
) -> Result<PeerSample> {
    let stand = TestBed::start(peer, case.key, certificates, conditions)?;
    let running = &stand.running;
    match case.figure {
        PeerFigure::Work => work(running, case, conditions),
        PeerFigure::KibPerConnection => memory_with_connections(running, case, conditions),
        PeerFigure::MibWithoutConnection => {
            std::thread::sleep(SETTLE);
            let value = running.usage()?.resident_kib as f64 / 1024.0;
            Ok(PeerSample { value, utilisation: 0.0 })
        }
    }
}

fn free_port() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?)
}

fn work(running: &Running, case: &PeerCase, conditions: Conditions) -> Result<PeerSample> {
    let mut load = start(running.addr(), case, conditions)?;
    warm_up(&mut load, case)?;
    let (before, from) = (running.usage()?.cpu, Instant::now());
    let used = || -> Result<Duration> { Ok(running.usage()?.cpu.saturating_sub(before)) };
    std::thread::sleep(conditions.length);
    while used()? < CPU_MIN && from.elapsed() < conditions.length * EXTENSIONS_MAX {
        std::thread::sleep(POLL);
    }
    let counts = counted(&mut load);
    let (cpu, elapsed) = (used()?, from.elapsed());
    drop(load);
    check(&counts, case)?;
    if cpu < CPU_MIN {
        return Err(format!("it used no more than {cpu:?} of CPU time: the machine is too busy").into());
    }
    let cores = conditions.workers as f64;
    Ok(PeerSample {
        value: counts[LoadCounter::Ok] as f64 / cpu.as_secs_f64(),
        utilisation: cpu.as_secs_f64() / elapsed.as_secs_f64() / cores,
    })
}

fn memory_with_connections(running: &Running, case: &PeerCase, conditions: Conditions) -> Result<PeerSample> {
    std::thread::sleep(SETTLE);
    let before = running.usage()?.resident_kib;
    let mut load = start(running.addr(), case, conditions)?;
    warm_up(&mut load, case)?;
    load.set("load.running", &Value::Flag(false))?;
    std::thread::sleep(SETTLE);
    let resident = running.usage()?.resident_kib.saturating_sub(before);
    let plan: Plan = case.plan.parse()?;
    drop(load);
    Ok(PeerSample { value: resident as f64 / f64::from(plan.connections), utilisation: 0.0 })
}

fn start(addr: SocketAddr, case: &PeerCase, conditions: Conditions) -> Result<Load> {
    let plan = Plan { threads: u32::try_from(conditions.workers)?, ..case.plan.parse()? };
    start_plan(addr, case, plan)
}

/// Starts a load of `case` with another plan.
pub(super) fn start_plan(addr: SocketAddr, case: &PeerCase, plan: Plan) -> Result<Load> {
    let config = LoadConfig::new(format!("https://{addr}/").parse()?, plan, Trust::Insecure);
    let requests = vec![case.exchange.request()];
    Ok(Load::start(LoadConfig { requests, tls: case.tls(), request_timeout: WARM_UP_MAX, ..config })?)
}

/// Waits until every connection has completed its handshake, and as many answers have arrived.
pub(super) fn warm_up(load: &mut Load, case: &PeerCase) -> Result<()> {
    let plan: Plan = case.plan.parse()?;
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

/// Checks that the load did what the case describes.
fn check(counts: &Counters<LoadCounter>, case: &PeerCase) -> Result<()> {
    let failed = counts[LoadCounter::Failed];
    if failed > 0 {
        return Err(format!("{failed} of {} requests failed", failed + counts[LoadCounter::Ok]).into());
    }
    let (full, resumed) = (counts[LoadCounter::HandshakesFull], counts[LoadCounter::HandshakesResumed]);
    let plan: Plan = case.plan.parse()?;
    if plan.keepalive == KeepAlive::Unlimited {
        return Ok(());
    }
    let share = full as f64 / (full + resumed).max(1) as f64;
    let wanted = 1.0 - plan.resume.as_percent() / 100.0;
    if (share - wanted).abs() > FULL_SHARE_MAX {
        return Err(format!("{full} full and {resumed} resumed handshakes").into());
    }
    Ok(())
}

/// Writes the certificates for all terminators into `folder`, readable by their users.
///
/// # Errors
/// If they cannot be made.
pub fn certificates(folder: &Path) -> Result<Certificates> {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?;
    Certificates::write(folder)
}
