//! The runs that are watched, of one host or many, in a line each.

use telemetry::model::{Interval, MetricSeries, Run};
use telemetry::{LoadCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency, RunId, quantile_is_thin};

use super::classes::Quantile;
use super::target;

/// One run; its figures are those of its latest interval, which is enough to tell a busy host from an idle one.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) id: RunId,
    /// The name of its host, as the journal has it (`_HOSTNAME`).
    pub(crate) host: String,
    /// Whose it is, by the fields that journald adds: a user or a unit; empty if the journal does not say.
    pub(crate) account: String,
    /// Where it listens and forwards to, or what its load is aimed at; empty if its beginning was not read.
    pub(crate) target: String,
    /// `CLOCK_REALTIME` of its last record, in microseconds.
    pub(crate) last_realtime_us: u64,
    /// True once it has ended in order.
    pub(crate) ended: bool,
    /// Exchanges a second, or answers to the load of a run without a proxy.
    pub(crate) per_second: Option<f64>,
    /// The 99th percentile of their latencies.
    pub(crate) p99: Option<Quantile>,
    /// Connections open, and failed so far; `None` without a proxy.
    pub(crate) connections: Option<(u64, u64)>,
}

impl RunRow {
    pub(crate) fn of(run: &Run) -> Self {
        let ended = run.stopped().is_some();
        let (per_second, p99) = match (run.proxy(), run.load()) {
            _ if ended => (None, None),
            (Some(proxy), _) => latest(proxy, ProxyCounter::Exchanges, ProxyLatency::Exchange),
            (None, Some(load)) => latest(load, LoadCounter::Ok, LoadLatency::Service),
            (None, None) => (None, None),
        };
        Self {
            id: run.id(),
            host: run.hostname().to_owned(),
            account: run.writer().account(),
            target: run.began().map_or_else(String::new, target),
            last_realtime_us: run.last_realtime_us(),
            ended,
            per_second,
            p99,
            connections: run.proxy().map(|track| (run.proxy_open(), track.totals()[ProxyCounter::Failed])),
        }
    }
}

fn latest<C: Metric, L: Metric>(
    track: &MetricSeries<C, L>,
    counter: C,
    class: L,
) -> (Option<f64>, Option<Quantile>) {
    let last: Option<&Interval<C, L>> = track.intervals().next_back().map(|interval| &**interval);
    let latency = last.map(|interval| interval.latency(class));
    let p99 = latency.and_then(|latency| {
        let thin = quantile_is_thin(latency.count(), 0.99);
        Some(Quantile { ns: latency.quantile_ns(0.99)?, thin })
    });
    (last.and_then(|interval| interval.rate(counter)), p99)
}
