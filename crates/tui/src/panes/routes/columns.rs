//! The columns of the table of routes.

use records::metrics::{RouteCounter, RouteLatency};

use super::model::RouteRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, NameId, Row};

const FIGURE: Column<RouteRow> = Column::FIGURE;
const OPTIONAL: Column<RouteRow> = Column { is_usual: false, rank: 20, ..FIGURE };

/// A count of the window.
const fn counted(
    name: &'static str,
    meaning: &'static str,
    (cells, rank): (usize, u8),
    value: fn(&RouteRow) -> CellValue<'_>,
) -> Column<RouteRow> {
    Column { name, heading: name, meaning, cells: (cells, cells), rank, value, ..FIGURE }
}

/// A latency of the window.
const fn timed(
    name: &'static str,
    heading: &'static str,
    meaning: &'static str,
    value: fn(&RouteRow) -> CellValue<'_>,
) -> Column<RouteRow> {
    let cells = (heading.len() + 2, heading.len() + 2);
    Column { name, heading, meaning, unit: ColumnUnit::Latency, cells, value, ..OPTIONAL }
}

fn p50(row: &RouteRow, class: RouteLatency) -> CellValue<'_> {
    CellValue::Quantile(row.times(class).map(|times| times.p50))
}

fn p99(row: &RouteRow, class: RouteLatency) -> CellValue<'_> {
    CellValue::Quantile(row.times(class).map(|times| times.p99))
}

const COLUMNS: &[Column<RouteRow>] = &[
    Column {
        name: "route",
        heading: "route",
        meaning: "host and path prefix; `other`: all routes after the 50th",
        unit: ColumnUnit::Text,
        cells: (12, 48),
        value: |row| CellValue::text(&row.name),
        ..FIGURE
    },
    Column {
        name: "req",
        alias: "rate",
        heading: "req/s",
        meaning: "requests a second that were over",
        unit: ColumnUnit::PerSecond,
        rank: 1,
        emphasis: Emphasis::Figure,
        value: |row| CellValue::Number(row.per_second(RouteCounter::Requests)),
        ..FIGURE
    },
    Column {
        is_usual: true,
        rank: 6,
        ..timed("p50", "p50 ms", "p50 of `upstream`: head sent to response head received", |row| {
            p50(row, RouteLatency::Upstream)
        })
    },
    Column {
        is_usual: true,
        rank: 2,
        ..timed("p99", "p99 ms", "p99 of `upstream`: head sent to response head received", |row| {
            p99(row, RouteLatency::Upstream)
        })
    },
    counted("2xx", "requests answered with 200 to 299", (8, 9), |row| {
        CellValue::count(row.count(RouteCounter::Status2xx))
    }),
    counted("3xx", "requests answered with 300 to 399", (7, 10), |row| {
        CellValue::count(row.count(RouteCounter::Status3xx))
    }),
    counted("4xx", "requests answered with 400 to 499", (7, 5), |row| {
        CellValue::count(row.count(RouteCounter::Status4xx))
    }),
    Column {
        emphasis: Emphasis::Failures,
        ..counted("5xx", "requests answered with 500 or above", (6, 3), |row| {
            CellValue::count(row.count(RouteCounter::Status5xx))
        })
    },
    Column {
        emphasis: Emphasis::Failures,
        alias: "errors",
        ..counted("failed", "requests that failed, whatever status was sent", (7, 4), |row| {
            CellValue::count(row.count(RouteCounter::Failed))
        })
    },
    counted("retried", "requests sent once more on a new connection", (8, 11), |row| {
        CellValue::count(row.count(RouteCounter::Retried))
    }),
    Column {
        name: "in",
        heading: "in",
        meaning: "bytes a second of request bodies",
        unit: ColumnUnit::BytesPerSecond,
        cells: (9, 9),
        rank: 8,
        value: |row| CellValue::Number(row.per_second(RouteCounter::BodyIn)),
        ..FIGURE
    },
    Column {
        name: "out",
        heading: "out",
        meaning: "bytes a second of response bodies",
        unit: ColumnUnit::BytesPerSecond,
        cells: (9, 9),
        rank: 7,
        value: |row| CellValue::Number(row.per_second(RouteCounter::BodyOut)),
        ..FIGURE
    },
    timed("ttfb-p50", "ttfb p50 ms", "p50 of the time to the first byte to the client", |row| {
        p50(row, RouteLatency::FirstByte)
    }),
    timed("ttfb", "ttfb p99 ms", "p99 of the time to the first byte to the client", |row| {
        p99(row, RouteLatency::FirstByte)
    }),
    timed("request", "request p99 ms", "p99 of whole requests, slow clients included", |row| {
        p99(row, RouteLatency::Request)
    }),
    timed("max", "max ms", "longest `upstream`", |row| {
        CellValue::Number(row.times(RouteLatency::Upstream).map(|times| times.max_ns as f64))
    }),
    Column {
        name: "4xx%",
        heading: "4xx%",
        meaning: "share of requests answered with 400 to 499",
        unit: ColumnUnit::Ratio,
        value: |row| CellValue::Number(row.share(&[RouteCounter::Status4xx])),
        ..OPTIONAL
    },
    Column {
        name: "5xx%",
        heading: "5xx%",
        meaning: "share of requests answered with 500 or above",
        unit: ColumnUnit::Ratio,
        value: |row| CellValue::Number(row.share(&[RouteCounter::Status5xx])),
        ..OPTIONAL
    },
    Column {
        name: "requests",
        heading: "requests",
        meaning: "requests since the start",
        cells: (10, 10),
        value: |row| CellValue::count(Some(row.totals[RouteCounter::Requests])),
        ..OPTIONAL
    },
];

impl Row for RouteRow {
    type Id = NameId;

    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }

    fn id(&self) -> NameId {
        self.id
    }

    fn tie(&self) -> u64 {
        0
    }
}

impl RouteRow {
    /// The column by which routes are ordered.
    pub(crate) const RATE: usize = 1;
}
