//! The columns of the services.

use records::ids::RunId;

use super::model::ServiceRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row};

const FIGURE: Column<ServiceRow> = Column { rank: 4, cells: (7, 9), ..Column::FIGURE };
const OPTIONAL: Column<ServiceRow> = Column { rank: 20, is_usual: false, ..FIGURE };

const COLUMNS: &[Column<ServiceRow>] = &[
    Column {
        name: "service",
        heading: "service",
        meaning: "port, process and unit, or the peer with --outgoing",
        unit: ColumnUnit::Text,
        cells: (16, 44),
        value: |row| CellValue::text(&row.name),
        ..FIGURE
    },
    Column {
        name: "open",
        alias: "conns",
        heading: "conns",
        meaning: "open connections",
        rank: 6,
        value: |row| CellValue::count(row.open),
        ..FIGURE
    },
    Column {
        name: "full",
        heading: "full/s",
        meaning: "full handshakes a second in the last 10 s",
        unit: ColumnUnit::PerSecond,
        rank: 1,
        emphasis: Emphasis::Figure,
        value: |row| CellValue::Number(row.full_per_s),
        ..FIGURE
    },
    Column {
        name: "resumptions",
        heading: "res/s",
        meaning: "resumed handshakes a second in the last 10 s",
        unit: ColumnUnit::PerSecond,
        rank: 2,
        value: |row| CellValue::Number(row.resumed_per_s),
        ..FIGURE
    },
    Column {
        name: "resumed",
        heading: "resumed",
        meaning: "share of resumed handshakes in the last 10 s",
        unit: ColumnUnit::Ratio,
        cells: (8, 9),
        rank: 7,
        value: |row| CellValue::Number(row.resumed_share()),
        ..FIGURE
    },
    Column {
        name: "failed",
        heading: "fail/s",
        meaning: "failed handshakes a second in the last 10 s",
        unit: ColumnUnit::PerSecond,
        rank: 1,
        emphasis: Emphasis::Failures,
        value: |row| CellValue::Number(row.failed_per_s),
        ..FIGURE
    },
    Column {
        name: "p50",
        heading: "p50 ms",
        meaning: "median of full handshakes in the last 10 s",
        unit: ColumnUnit::Latency,
        rank: 5,
        value: |row| CellValue::Quantile(row.full[0]),
        ..FIGURE
    },
    Column {
        name: "p99",
        heading: "p99 ms",
        meaning: "p99 of full handshakes in the last 10 s",
        unit: ColumnUnit::Latency,
        rank: 2,
        value: |row| CellValue::Quantile(row.full[1]),
        ..FIGURE
    },
    Column {
        name: "server-p50",
        heading: "srv p50",
        meaning: "median of the server's part of full handshakes in the last 10 s",
        unit: ColumnUnit::Latency,
        cells: (8, 9),
        rank: 8,
        value: |row| CellValue::Quantile(row.server[0]),
        ..FIGURE
    },
    Column {
        name: "server-p99",
        heading: "srv p99",
        meaning: "p99 of the server's part of full handshakes in the last 10 s",
        unit: ColumnUnit::Latency,
        cells: (8, 9),
        rank: 3,
        value: |row| CellValue::Quantile(row.server[1]),
        ..FIGURE
    },
    Column {
        name: "bytes",
        heading: "bytes",
        meaning: "TCP payload a second, both ways, in the last 10 s",
        unit: ColumnUnit::BytesPerSecond,
        cells: (8, 9),
        rank: 6,
        value: |row| CellValue::Number(row.bytes_per_s),
        ..FIGURE
    },
    Column {
        name: "tls13",
        heading: "TLS 1.3",
        meaning: "share of TLS 1.3 among the handshakes of the last 10 s",
        unit: ColumnUnit::Ratio,
        cells: (8, 9),
        rank: 9,
        value: |row| CellValue::Number(row.tls13),
        ..FIGURE
    },
    Column {
        name: "exch",
        alias: "rate",
        heading: "exch/s",
        meaning: "exchanges a second in the last 10 s",
        unit: ColumnUnit::PerSecond,
        rank: 10,
        value: |row| CellValue::Number(row.exchanges_per_s),
        ..FIGURE
    },
    Column {
        name: "exch-p99",
        heading: "exch p99",
        meaning: "p99 of exchanges in the last 10 s",
        unit: ColumnUnit::Latency,
        cells: (9, 9),
        rank: 11,
        value: |row| CellValue::Quantile(row.exchange),
        ..FIGURE
    },
    Column {
        name: "resumed-p99",
        heading: "res p99",
        meaning: "p99 of resumed handshakes in the last 10 s",
        unit: ColumnUnit::Latency,
        cells: (8, 9),
        value: |row| CellValue::Quantile(row.resumed),
        ..OPTIONAL
    },
];

impl Row for ServiceRow {
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
