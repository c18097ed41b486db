//! The runs that are watched, of one host or many, in a line each.

use model::runs::{Interval, MetricSeries, Run};
use records::ids::RunId;
use records::metrics::{
    HttpCounter, HttpLatency, LatencyClass, LoadCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency,
};

use crate::format;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row};
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

const FIGURE: Column<RunRow> = Column { rank: 4, ..Column::FIGURE };

const COLUMNS: &[Column<RunRow>] = &[
    Column {
        name: "host",
        heading: "host",
        meaning: "name of the host, as the journal has it",
        unit: ColumnUnit::Text,
        cells: (9, 29),
        value: |row| CellValue::text(&row.host),
        ..FIGURE
    },
    Column {
        name: "run",
        heading: "run",
        meaning: "first digits of the run's id",
        unit: ColumnUnit::Text,
        cells: (9, 9),
        rank: 1,
        value: |row| CellValue::Text(row.id.short().into()),
        ..FIGURE
    },
    Column {
        name: "account",
        heading: "user or unit",
        meaning: "user or unit that wrote the records, by journald's fields",
        unit: ColumnUnit::Text,
        cells: (13, 23),
        rank: 2,
        value: |row| CellValue::text(&row.account),
        ..FIGURE
    },
    Column {
        name: "last",
        heading: "last record",
        meaning: "time of the last record, or `ended`",
        unit: ColumnUnit::Text,
        cells: (12, 12),
        rank: 3,
        emphasis: Emphasis::Quiet,
        value: |row| {
            if row.ended {
                CellValue::text("ended")
            } else {
                CellValue::Text(format::time_of_day(row.last_realtime_us).into())
            }
        },
        ..FIGURE
    },
    Column {
        name: "exch",
        alias: "rate",
        heading: "rate/s",
        meaning: "requests (HTTP mode), exchanges (TCP mode) or answers to the load, a second in the last interval",
        unit: ColumnUnit::PerSecond,
        value: |row| CellValue::Number(row.per_second),
        ..FIGURE
    },
    Column {
        name: "p99",
        heading: "p99 ms",
        meaning: "p99 in the last interval: first byte (HTTP mode), exchange (TCP mode) or answers to the load",
        unit: ColumnUnit::Latency,
        rank: 5,
        value: |row| CellValue::Quantile(row.p99),
        ..FIGURE
    },
    Column {
        name: "failed",
        heading: "failed",
        meaning: "failed connections since the start",
        rank: 6,
        emphasis: Emphasis::Failures,
        value: |row| CellValue::count(row.connections.map(|(_, failed)| failed)),
        ..FIGURE
    },
    Column {
        name: "open",
        heading: "open",
        meaning: "open connections",
        rank: 7,
        value: |row| CellValue::count(row.connections.map(|(open, _)| open)),
        ..FIGURE
    },
    Column {
        name: "target",
        heading: "target",
        meaning: "where it listens and forwards to, or what its load is aimed at",
        unit: ColumnUnit::Text,
        cells: (24, 80),
        rank: 8,
        emphasis: Emphasis::Quiet,
        value: |row| CellValue::text(&row.target),
        ..FIGURE
    },
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
