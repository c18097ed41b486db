//! What a service did in the last ten seconds.

use model::runs::Run;
use records::histogram::WindowHistogram;
use records::ids::RunId;
use records::metrics::{ProxyCounter, ProxyLatency, TimeResolution, TlsLatency};

use crate::view_model::classes::Quantile;
use crate::view_model::span::NOW_US;

/// A service, by the part of the run that is its.
#[derive(Clone, Debug)]
pub(crate) struct ServiceRow {
    pub(crate) id: RunId,
    pub(crate) name: String,
    /// Connections open now; `None` at a moment of the past.
    pub(crate) open: Option<u64>,
    pub(crate) full_per_s: Option<f64>,
    pub(crate) resumed_per_s: Option<f64>,
    pub(crate) failed_per_s: Option<f64>,
    pub(crate) exchanges_per_s: Option<f64>,
    /// TCP payload, both ways together.
    pub(crate) bytes_per_s: Option<f64>,
    /// The share of TLS 1.3 among its handshakes.
    pub(crate) tls13: Option<f64>,
    /// Median and 99th percentile of full handshakes, and of the server's part of them.
    pub(crate) full: [Option<Quantile>; 2],
    pub(crate) server: [Option<Quantile>; 2],
    /// 99th percentile of resumed handshakes, and of exchanges.
    pub(crate) resumed: Option<Quantile>,
    pub(crate) exchange: Option<Quantile>,
    pub(crate) began_realtime_us: u64,
}

impl ServiceRow {
    /// The ten seconds up to a moment of the monotonic clock, which may be in the past.
    pub(crate) fn of(run: &Run, end_us: u64, is_past: bool) -> Self {
        use ProxyCounter as P;
        let proxy = run.proxy().map(|series| series.window_until(end_us, NOW_US)).unwrap_or_default();
        let tls = run.tls().map(|series| series.window_until(end_us, NOW_US)).unwrap_or_default();
        let sum = |counters: [P; 2]| counters.iter().map(|counter| proxy.counters[*counter]).sum::<u64>();
        let rate = |counters: [P; 2]| Some(proxy.rate(counters[0])? + proxy.rate(counters[1])?);
        let handshakes = sum([P::HandshakesFull, P::HandshakesResumed]);
        let tls13 = sum([P::Tls13Full, P::Tls13Resumed]);
        Self {
            id: run.id(),
            name: run.service().to_owned(),
            open: (!is_past).then(|| run.proxy_open()),
            full_per_s: proxy.rate(P::HandshakesFull),
            resumed_per_s: proxy.rate(P::HandshakesResumed),
            failed_per_s: proxy.rate(P::HandshakesFailed),
            exchanges_per_s: proxy.rate(P::Exchanges),
            bytes_per_s: rate([P::WireIn, P::WireOut]),
            tls13: (handshakes > 0).then(|| tls13 as f64 / handshakes as f64),
            full: [0.5, 0.99].map(|q| quantile(proxy.latency(ProxyLatency::HandshakeFull), q)),
            server: [0.5, 0.99].map(|q| quantile(tls.latency(TlsLatency::ServerFull), q)),
            resumed: quantile(proxy.latency(ProxyLatency::HandshakeResumed), 0.99),
            exchange: quantile(proxy.latency(ProxyLatency::Exchange), 0.99),
            began_realtime_us: run.began_realtime_us(),
        }
    }

    /// The share of resumed handshakes.
    pub(crate) fn resumed_share(&self) -> Option<f64> {
        let (full, resumed) = (self.full_per_s?, self.resumed_per_s?);
        (full + resumed > 0.0).then(|| resumed / (full + resumed))
    }
}

fn quantile(times: &WindowHistogram, q: f64) -> Option<Quantile> {
    Quantile::of(times.count(), q, times.quantile_ns(q), TimeResolution::FINE)
}
