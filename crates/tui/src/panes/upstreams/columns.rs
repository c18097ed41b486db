//! The columns of the upstreams.

use records::metrics::{UpstreamCounter, UpstreamLatency};

use super::model::UpstreamRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, NameId, Row};

const FIGURE: Column<UpstreamRow> = Column { rank: 4, cells: (7, 9), ..Column::FIGURE };
const OPTIONAL: Column<UpstreamRow> = Column { rank: 20, is_usual: false, ..FIGURE };
const TEXT: Column<UpstreamRow> = Column { unit: ColumnUnit::Text, ..FIGURE };

/// A latency of the span.
const fn timed(
    (name, heading): (&'static str, &'static str),
    meaning: &'static str,
    rank: u8,
    value: fn(&UpstreamRow) -> CellValue<'_>,
) -> Column<UpstreamRow> {
    let cells = (heading.len() + 2, heading.len() + 2);
    Column { name, heading, meaning, unit: ColumnUnit::Latency, cells, rank, value, ..FIGURE }
}

fn p50(row: &UpstreamRow, class: UpstreamLatency) -> CellValue<'_> {
    CellValue::Quantile(row.times(class).map(|times| times.p50))
}

fn p99(row: &UpstreamRow, class: UpstreamLatency) -> CellValue<'_> {
    CellValue::Quantile(row.times(class).map(|times| times.p99))
}

const COLUMNS: &[Column<UpstreamRow>] = &[
    Column {
        name: "upstream",
        heading: "upstream",
        meaning: "as it was configured",
        cells: (16, 44),
        value: |row| CellValue::text(&row.name),
        ..TEXT
    },
    Column {
        name: "state",
        heading: "state",
        meaning: "up, also before the first attempt; down: it could not be reached, or fails its checks; drained",
        cells: (8, 8),
        rank: 0,
        value: |row| CellValue::text(row.state.word()),
        ..TEXT
    },
    Column {
        name: "since",
        heading: "for",
        meaning: "how long it has been in this state",
        cells: (7, 9),
        rank: 5,
        value: |row| CellValue::Text(row.since()),
        ..TEXT
    },
    Column {
        name: "open",
        alias: "conns",
        heading: "open",
        meaning: "connections now, idle ones included",
        cells: (6, 7),
        rank: 3,
        value: |row| CellValue::count(row.open),
        ..FIGURE
    },
    Column {
        name: "connects",
        heading: "conn/s",
        meaning: "connections established a second",
        unit: ColumnUnit::PerSecond,
        rank: 7,
        value: |row| CellValue::Number(row.per_second(UpstreamCounter::Connections)),
        ..FIGURE
    },
    Column {
        name: "failed",
        heading: "failed",
        meaning: "attempts to connect that failed",
        emphasis: Emphasis::Failures,
        rank: 1,
        value: |row| CellValue::count(row.failed()),
        ..FIGURE
    },
    Column {
        name: "cause",
        heading: "cause",
        meaning: "why most of these attempts failed",
        cells: (10, 10),
        rank: 8,
        value: |row| CellValue::text(row.main_cause()),
        ..TEXT
    },
    Column {
        name: "broken",
        heading: "broken",
        meaning: "connections that it broke; in HTTP mode, requests not answered, or not completely",
        emphasis: Emphasis::Failures,
        rank: 2,
        value: |row| CellValue::count(row.count(UpstreamCounter::Broken)),
        ..FIGURE
    },
    Column {
        name: "exch",
        alias: "req",
        heading: "exch/s",
        meaning: "answers begun a second; in HTTP mode, requests that were over",
        unit: ColumnUnit::PerSecond,
        emphasis: Emphasis::Figure,
        rank: 1,
        value: |row| CellValue::Number(row.per_second(UpstreamCounter::Exchanges)),
        ..FIGURE
    },
    timed(("p50", "p50 ms"), "median of the first byte: request sent to answer begun", 4, |row| {
        p50(row, UpstreamLatency::FirstByte)
    }),
    timed(("p99", "p99 ms"), "p99 of the first byte: request sent to answer begun", 1, |row| {
        p99(row, UpstreamLatency::FirstByte)
    }),
    timed(("connect-p50", "conn p50"), "median of connecting", 10, |row| p50(row, UpstreamLatency::Connect)),
    timed(("connect-p99", "conn p99"), "p99 of connecting", 6, |row| p99(row, UpstreamLatency::Connect)),
    Column {
        name: "resumed",
        heading: "resumed",
        meaning: "share of resumed handshakes among those with an upstream that speaks TLS, of passed clients too",
        unit: ColumnUnit::Ratio,
        cells: (9, 9),
        rank: 6,
        is_of_some: true,
        value: |row| CellValue::Number(row.resumed_share()),
        ..FIGURE
    },
    Column {
        is_of_some: true,
        ..timed(("tls-p99", "tls p99"), "p99 of full handshakes with an upstream that speaks TLS", 5, |row| {
            p99(row, UpstreamLatency::TlsFull)
        })
    },
    Column {
        name: "tls-failed",
        heading: "tls failed",
        meaning: "handshakes of passed clients with it that failed",
        emphasis: Emphasis::Failures,
        cells: (11, 11),
        rank: 5,
        is_of_some: true,
        value: |row| CellValue::count(row.count(UpstreamCounter::TlsFailed).filter(|n| *n > 0)),
        ..FIGURE
    },
    Column {
        name: "in",
        heading: "in",
        meaning: "bytes a second to it, of connections or requests that are over",
        unit: ColumnUnit::BytesPerSecond,
        cells: (10, 10),
        rank: 12,
        value: |row| CellValue::Number(row.per_second(UpstreamCounter::BytesIn)),
        ..FIGURE
    },
    Column {
        name: "out",
        heading: "out",
        meaning: "bytes a second from it, of connections or requests that are over",
        unit: ColumnUnit::BytesPerSecond,
        cells: (10, 10),
        rank: 9,
        value: |row| CellValue::Number(row.per_second(UpstreamCounter::BytesOut)),
        ..FIGURE
    },
    Column {
        name: "why",
        heading: "why",
        meaning: "why it is not up",
        cells: (12, 40),
        rank: 11,
        value: |row| CellValue::text(&row.reason),
        ..TEXT
    },
    Column {
        name: "idle",
        heading: "idle",
        meaning: "connections without a request; in HTTP mode",
        cells: (6, 7),
        value: |row| CellValue::count(row.idle),
        ..OPTIONAL
    },
    Column {
        name: "late",
        heading: "late",
        meaning: "requests without an answer in time; in HTTP mode",
        emphasis: Emphasis::Failures,
        value: |row| CellValue::count(row.count(UpstreamCounter::Late)),
        ..OPTIONAL
    },
    Column {
        name: "5xx",
        heading: "5xx",
        meaning: "requests that it answered with 500 or above",
        emphasis: Emphasis::Failures,
        value: |row| CellValue::count(row.count(UpstreamCounter::Status5xx)),
        ..OPTIONAL
    },
];

impl Row for UpstreamRow {
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
