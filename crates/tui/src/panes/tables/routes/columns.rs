//! The columns of the table of routes.

use records::metrics::{RouteCounter, RouteLatency};

use super::model::RouteRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, NameId, Row};

fn p50(row: &RouteRow, class: RouteLatency) -> CellValue<'_> {
    CellValue::Quantile(row.times(class).map(|times| times.p50))
}

fn p99(row: &RouteRow, class: RouteLatency) -> CellValue<'_> {
    CellValue::Quantile(row.times(class).map(|times| times.p99))
}

type RouteColumn = Column<RouteRow>;

const COLUMNS: &[RouteColumn] = &[
    RouteColumn::named("route", "route", "host and path prefix; `other`: all routes after the 50th")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.name))
        .fit(0, (12, 48)),
    RouteColumn::named("req", "req/s", "requests a second that were over")
        .alias("rate")
        .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.per_second(RouteCounter::Requests)))
        .fit(1, (8, 8))
        .emphasis(Emphasis::Figure),
    RouteColumn::named("p50", "p50 ms", "p50 of `upstream`: head sent to response head received")
        .shows(ColumnUnit::Latency, |row| p50(row, RouteLatency::Upstream))
        .fit(6, (8, 8)),
    RouteColumn::named("p99", "p99 ms", "p99 of `upstream`: head sent to response head received")
        .shows(ColumnUnit::Latency, |row| p99(row, RouteLatency::Upstream))
        .fit(2, (8, 8)),
    RouteColumn::named("2xx", "2xx", "requests answered with 200 to 299")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.count(RouteCounter::Status2xx)))
        .fit(9, (8, 8)),
    RouteColumn::named("3xx", "3xx", "requests answered with 300 to 399")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.count(RouteCounter::Status3xx)))
        .fit(10, (7, 7)),
    RouteColumn::named("4xx", "4xx", "requests answered with 400 to 499")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.count(RouteCounter::Status4xx)))
        .fit(5, (7, 7)),
    RouteColumn::named("5xx", "5xx", "requests answered with 500 or above")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.count(RouteCounter::Status5xx)))
        .fit(3, (6, 6))
        .emphasis(Emphasis::Failures),
    RouteColumn::named("failed", "failed", "requests that failed, whatever status was sent")
        .alias("errors")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.count(RouteCounter::Failed)))
        .fit(4, (7, 7))
        .emphasis(Emphasis::Failures),
    RouteColumn::named("retried", "retried", "requests sent once more on a new connection")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.count(RouteCounter::Retried)))
        .fit(11, (8, 8)),
    RouteColumn::named("in", "in", "bytes a second of request bodies")
        .shows(ColumnUnit::BytesPerSecond, |row| CellValue::Number(row.per_second(RouteCounter::BodyIn)))
        .fit(8, (9, 9)),
    RouteColumn::named("out", "out", "bytes a second of response bodies")
        .shows(ColumnUnit::BytesPerSecond, |row| CellValue::Number(row.per_second(RouteCounter::BodyOut)))
        .fit(7, (9, 9)),
    RouteColumn::named("ttfb-p50", "ttfb p50 ms", "p50 of the time to the first byte to the client")
        .shows(ColumnUnit::Latency, |row| p50(row, RouteLatency::FirstByte))
        .optional((13, 13)),
    RouteColumn::named("ttfb", "ttfb p99 ms", "p99 of the time to the first byte to the client")
        .shows(ColumnUnit::Latency, |row| p99(row, RouteLatency::FirstByte))
        .optional((13, 13)),
    RouteColumn::named("request", "request p99 ms", "p99 of whole requests, slow clients included")
        .shows(ColumnUnit::Latency, |row| p99(row, RouteLatency::Request))
        .optional((16, 16)),
    RouteColumn::named("max", "max ms", "longest `upstream`")
        .shows(ColumnUnit::Latency, |row| {
            CellValue::Number(row.times(RouteLatency::Upstream).map(|times| times.max_ns as f64))
        })
        .optional((8, 8)),
    RouteColumn::named("4xx%", "4xx%", "share of requests answered with 400 to 499")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.share(&[RouteCounter::Status4xx])))
        .optional((8, 8)),
    RouteColumn::named("5xx%", "5xx%", "share of requests answered with 500 or above")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.share(&[RouteCounter::Status5xx])))
        .optional((8, 8)),
    RouteColumn::named("requests", "requests", "requests since the start")
        .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.totals[RouteCounter::Requests])))
        .optional((10, 10)),
];

impl Row for RouteRow {
    type Id = NameId;

    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }

    fn id(&self) -> NameId {
        self.id
    }
}

impl RouteRow {
    /// The column by which routes are ordered.
    pub(crate) const RATE: usize = 1;
}
