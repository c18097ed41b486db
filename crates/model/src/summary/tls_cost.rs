//! What TLS costs, from the figures of a run.

use serde::Serialize;

use crate::figures::{Figure, FigureName, FigureUnit, Statistic};
use crate::runs::Run;
use records::metrics::{CpuGroup, LatencyClass, LoadLatency, ProxyLatency};

/// CPU time, bytes, round trips and waiting times of TLS, each `null` if the records do not have it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct TlsCost {
    /// `compute_full.mean`, in microseconds.
    pub full_us: Option<f64>,
    /// `compute_resumed.mean`, in microseconds.
    pub resumed_us: Option<f64>,
    /// The sums of `compute_full` and `compute_resumed` over `cpu.proxy`.
    pub cpu_ratio: Option<f64>,
    /// `bytes.tls.ratio`
    pub bytes_ratio: Option<f64>,
    /// `handshakes.round_trips`
    pub round_trips: Option<f64>,
    /// `load.handshake_full.p50`, in microseconds; `null` with too few.
    pub load_full_p50_us: Option<f64>,
    /// `load.handshake_resumed.p50`, in microseconds; `null` with too few.
    pub load_resumed_p50_us: Option<f64>,
    /// The load's first requests on new connections; `null` with too few.
    pub first_request: Option<FirstRequest>,
}

/// The p99 of handshakes beside that of the requests that waited for them.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct FirstRequest {
    /// The type of handshake, `full` or `resumed`.
    pub handshake: &'static str,
    /// `load.handshake_full.p99` or `load.handshake_resumed.p99`, in microseconds.
    pub handshake_p99_us: f64,
    /// `load.total_full.p99` or `load.total_resumed.p99`, in microseconds.
    pub request_p99_us: f64,
}

/// The types of handshake with their latencies, and those of their first requests.
const FIRST_REQUESTS: [(&str, LoadLatency, LoadLatency); 2] = [
    ("full", LoadLatency::HandshakeFull, LoadLatency::TotalFull),
    ("resumed", LoadLatency::HandshakeResumed, LoadLatency::TotalResumed),
];

impl TlsCost {
    pub(super) fn of(run: &Run) -> Self {
        let named = |name: &str| {
            let name: FigureName = name.parse().ok()?;
            name.figures().next()?.value(run, None)
        };
        let first = FIRST_REQUESTS.into_iter().find_map(|(handshake, of_handshake, of_request)| {
            Some(FirstRequest {
                handshake,
                handshake_p99_us: percentile_us(run, of_handshake, 0.99)?,
                request_p99_us: percentile_us(run, of_request, 0.99)?,
            })
        });
        Self {
            full_us: named("proxy.compute_full.mean"),
            resumed_us: named("proxy.compute_resumed.mean"),
            cpu_ratio: cpu_ratio(run),
            bytes_ratio: named("proxy.bytes.tls.ratio"),
            round_trips: named("proxy.handshakes.round_trips"),
            load_full_p50_us: percentile_us(run, LoadLatency::HandshakeFull, 0.5),
            load_resumed_p50_us: percentile_us(run, LoadLatency::HandshakeResumed, 0.5),
            first_request: first,
        }
    }

    /// What is known of it, a sentence each. How long the clients of a load waited is said where the proxy's CPU is not
    /// known.
    pub fn sentences(&self) -> Vec<String> {
        let (time, share) =
            (|us: f64| FigureUnit::Micros.show(us), |ratio: f64| FigureUnit::Ratio.show(ratio));
        let handshakes = |full: Option<f64>, resumed: Option<f64>| {
            let full = full.map(|us| format!("full handshake {}", time(us)));
            let resumed = resumed.map(|us| format!("resumed {}", time(us)));
            let each: Vec<String> = full.into_iter().chain(resumed).collect();
            (!each.is_empty()).then(|| each.join(", "))
        };
        let all = self.cpu_ratio.map_or_else(String::new, |ratio| {
            format!("; handshakes take {} of the proxy's CPU", share(ratio))
        });
        let cpu = handshakes(self.full_us, self.resumed_us).map(|each| format!("CPU: {each}{all}."));
        let waited = handshakes(self.load_full_p50_us, self.load_resumed_p50_us)
            .filter(|_| cpu.is_none())
            .map(|each| format!("Clients waited: {each} (p50)."));
        let bytes = self.bytes_ratio.map(|ratio| format!("Bytes: {} of those on the wire.", share(ratio)));
        let trips = self
            .round_trips
            .map(|trips| format!("Round trips: {} for each new connection.", FigureUnit::Count.show(trips)));
        let first = self.first_request.map(|first| {
            let FirstRequest { handshake, handshake_p99_us, request_p99_us } = first;
            format!(
                "First requests: p99 {}, of their {handshake} handshakes {}.",
                time(request_p99_us),
                time(handshake_p99_us)
            )
        });
        [cpu, bytes, trips, waited, first].into_iter().flatten().collect()
    }
}

/// Time inside the TLS library during handshakes over the CPU time of the workers; `None` without either, and where others
/// took so much of the machine meanwhile that the time that passed is more.
fn cpu_ratio(run: &Run) -> Option<f64> {
    let whole = run.proxy()?.whole();
    let compute = [ProxyLatency::ComputeFull, ProxyLatency::ComputeResumed];
    let compute_us: f64 = compute.map(|class| whole[class].sum_ns() as f64 / 1e3).iter().sum();
    let cpu_us = run.host()?.cpu[CpuGroup::Proxy] as f64;
    (compute_us > 0.0 && cpu_us >= compute_us).then(|| compute_us / cpu_us)
}

/// The percentile, if ten samples lie above it.
fn percentile_us(run: &Run, class: LoadLatency, q: f64) -> Option<f64> {
    let figure = Figure::Latency(LatencyClass::Load(class), Statistic::Percentile(q));
    figure.value(run, None).filter(|_| figure.too_few_samples(run).is_none())
}
