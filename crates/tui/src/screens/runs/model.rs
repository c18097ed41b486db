//! The runs that are watched, of one host or many, in a line each.

use model::runs::{Interval, MetricSeries, Run};
use records::ids::RunId;
use records::metrics::{
    HttpCounter, HttpLatency, LatencyClass, LoadCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency,
};

use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row};
use crate::theme::format;
use crate::view_model::classes::Quantile;
use crate::view_model::target;

/// One run; its figures are those of its latest interval, which is enough to tell a busy host from an idle one.
#[derive(Clone, Debug)]
pub(crate) struct RunRow {
    pub(crate) id: RunId,
    /// The name of its host, as the journal has it (`_HOSTNAME`).
    pub(crate) host: String,
    /// The user or unit of the run, from the fields that journald adds; empty if the journal does not have them.
    pub(crate) account: String,
    /// Where it listens and forwards to, or what its load is aimed at; empty if its beginning was not read.
    pub(crate) target: String,
    /// `CLOCK_REALTIME` of its beginning, in microseconds.
    pub(crate) began_realtime_us: u64,
    /// `CLOCK_REALTIME` of its last record, in microseconds.
    pub(crate) last_realtime_us: u64,
    /// True once it has ended in order.
    pub(crate) ended: bool,
    /// Requests a second in HTTP mode, exchanges of another proxy, or answers to the load of a run without one.
    pub(crate) per_second: Option<f64>,
    /// The 99th percentile of their latencies.
    pub(crate) p99: Option<Quantile>,
    /// Connections open, and failed so far; `None` without a proxy.
    pub(crate) connections: Option<(u64, u64)>,
}

impl RunRow {
    pub(crate) fn of(run: &Run) -> Self {
        let ended = run.stopped().is_some();
        let (per_second, p99) = match (run.http(), run.proxy(), run.load()) {
            _ if ended => (None, None),
            (Some(http), ..) => latest(run, http, HttpCounter::Requests, class_of_requests(run)),
            (None, Some(proxy), _) => latest(run, proxy, ProxyCounter::Exchanges, ProxyLatency::Exchange),
            (None, None, Some(load)) => latest(run, load, LoadCounter::Ok, LoadLatency::Service),
            (None, None, None) => (None, None),
        };
        Self {
            id: run.id(),
            host: run.hostname().to_owned(),
            account: run.writer().account(),
            target: run.began().map_or_else(String::new, target),
            began_realtime_us: run.began_realtime_us(),
            last_realtime_us: run.last_realtime_us(),
            ended,
            per_second,
            p99,
            connections: run.proxy().map(|series| (run.proxy_open(), series.totals()[ProxyCounter::Failed])),
        }
    }
}

/// The latencies that show how soon requests are answered: a log has no time to the first byte.
fn class_of_requests(run: &Run) -> HttpLatency {
    let first_byte = HttpLatency::FirstByte;
    if run.absent_class(first_byte.into()).is_some() { HttpLatency::Request } else { first_byte }
}

fn latest<C: Metric, L: Metric + Into<LatencyClass>>(
    run: &Run,
    series: &MetricSeries<C, L>,
    counter: C,
    class: L,
) -> (Option<f64>, Option<Quantile>) {
    let last: Option<&Interval<C, L>> = series.intervals().next_back().map(|interval| &**interval);
    let latency = last.map(|interval| interval.latency(class));
    let p99 = latency.and_then(|latency| {
        Quantile::of(latency.count(), 0.99, latency.quantile_ns(0.99), run.resolution(class.into()))
    });
    (last.and_then(|interval| interval.rate(counter)), p99)
}

type RunColumn = Column<RunRow>;

const COLUMNS: &[RunColumn] = &[
    RunColumn::named("host", "host", "name of the host, as the journal has it")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.host))
        .fit(4, (9, 29)),
    RunColumn::named("run", "run", "first digits of the run's id")
        .shows(ColumnUnit::Text, |row| CellValue::Text(row.id.short().into()))
        .fit(1, (9, 9)),
    RunColumn::named("account", "user or unit", "user or unit that wrote the records, by journald's fields")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.account))
        .fit(2, (13, 23)),
    RunColumn::named("last", "last record", "time of the last record, or `ended`")
        .shows(ColumnUnit::Text, |row| {
            if row.ended {
                CellValue::text("ended")
            } else {
                CellValue::Text(format::time_of_day(row.last_realtime_us).into())
            }
        })
        .fit(3, (12, 12))
        .emphasis(Emphasis::Quiet),
    RunColumn::named(
        "exch",
        "rate/s",
        "requests (HTTP mode), exchanges (TCP mode) or answers to the load, a second in the last interval",
    )
    .alias("rate")
    .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.per_second))
    .fit(4, (8, 8)),
    RunColumn::named(
        "p99",
        "p99 ms",
        "p99 in the last interval: first byte (HTTP mode), exchange (TCP mode) or answers to the load",
    )
    .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.p99))
    .fit(5, (8, 8)),
    RunColumn::named("failed", "failed", "failed connections since the start")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.connections.map(|(_, failed)| failed)))
        .fit(6, (8, 8))
        .emphasis(Emphasis::Failures),
    RunColumn::named("open", "open", "open connections")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.connections.map(|(open, _)| open)))
        .fit(7, (8, 8)),
    RunColumn::named("target", "target", "where it listens and forwards to, or what its load is aimed at")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.target))
        .fit(8, (24, 80))
        .emphasis(Emphasis::Quiet),
];

impl Row for RunRow {
    type Id = RunId;

    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }

    fn id(&self) -> RunId {
        self.id
    }

    fn tie(&self) -> u64 {
        self.began_realtime_us
    }
}
