//! The columns of the hosts.

use records::ids::RunId;

use super::model::{HostRow, HostState};
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row};

const FIGURE: Column<HostRow> = Column { rank: 4, cells: (7, 8), ..Column::FIGURE };
const OPTIONAL: Column<HostRow> = Column { rank: 20, is_usual: false, ..FIGURE };

const COLUMNS: &[Column<HostRow>] = &[
    Column {
        name: "host",
        heading: "host",
        meaning: "name of the host, as the journal has it",
        unit: ColumnUnit::Text,
        cells: (12, 40),
        value: |row| CellValue::text(&row.host),
        ..FIGURE
    },
    Column {
        name: "version",
        heading: "version",
        meaning: "version of tlsdash",
        unit: ColumnUnit::Text,
        cells: (9, 14),
        rank: 8,
        emphasis: Emphasis::Quiet,
        value: |row| CellValue::text(&row.version),
        ..FIGURE
    },
    Column {
        name: "state",
        heading: "state",
        meaning: "live, silent for how long, ended; clock ahead, or records late (or the clock is behind)",
        unit: ColumnUnit::Text,
        cells: (13, 15),
        rank: 1,
        value: |row| CellValue::Text(row.state.map_or_else(String::new, HostState::words).into()),
        ..FIGURE
    },
    Column {
        name: "open",
        alias: "conns",
        heading: "conns",
        meaning: "open connections",
        rank: 5,
        value: |row| CellValue::count(row.figures.open),
        ..FIGURE
    },
    Column {
        name: "handshakes",
        heading: "hs/s",
        meaning: "handshakes a second, full and resumed, in the last 10 s",
        unit: ColumnUnit::PerSecond,
        rank: 2,
        emphasis: Emphasis::Figure,
        value: |row| CellValue::Number(row.figures.handshakes_per_s),
        ..FIGURE
    },
    Column {
        name: "resumed",
        heading: "resumed",
        meaning: "share of resumed handshakes in the last 10 s",
        unit: ColumnUnit::Ratio,
        cells: (8, 9),
        rank: 6,
        value: |row| CellValue::Number(row.figures.resumed()),
        ..FIGURE
    },
    Column {
        name: "exch",
        alias: "rate",
        heading: "rate/s",
        meaning: "requests (HTTP mode), exchanges (TCP mode) or answers to the load, a second in the last 10 s",
        unit: ColumnUnit::PerSecond,
        cells: (8, 9),
        rank: 9,
        value: |row| CellValue::Number(row.figures.answers_per_s),
        ..FIGURE
    },
    Column {
        name: "p99",
        heading: "p99 ms",
        meaning: "p99 in the last 10 s: first byte (HTTP mode), exchange (TCP mode) or answers to the load",
        unit: ColumnUnit::Latency,
        cells: (8, 9),
        rank: 2,
        value: |row| CellValue::Quantile(row.figures.p99),
        ..FIGURE
    },
    Column {
        name: "cpu",
        heading: "CPU",
        meaning: "CPU of the process in the last 10 s, in percent of one core",
        unit: ColumnUnit::Ratio,
        rank: 3,
        value: |row| CellValue::Number(row.figures.cores),
        ..FIGURE
    },
    Column {
        name: "lag",
        heading: "lag s",
        meaning: "time from making the last record to reading it; of another host or boot by both wall clocks",
        unit: ColumnUnit::PerSecond,
        rank: 7,
        value: |row| CellValue::Number(row.figures.lag_us.map(|us| us as f64 / 1e6)),
        ..FIGURE
    },
    Column {
        name: "gaps",
        heading: "gaps",
        meaning: "holes in the records since the start",
        cells: (6, 7),
        rank: 4,
        emphasis: Emphasis::Failures,
        value: |row| CellValue::count(Some(row.gaps)),
        ..FIGURE
    },
    Column {
        name: "account",
        heading: "user or unit",
        meaning: "user or unit that wrote the records, by journald's fields",
        unit: ColumnUnit::Text,
        cells: (13, 23),
        rank: 10,
        emphasis: Emphasis::Quiet,
        value: |row| CellValue::text(&row.account),
        ..FIGURE
    },
    Column {
        name: "lost",
        heading: "lost",
        meaning: "records lost since the start",
        emphasis: Emphasis::Failures,
        value: |row| CellValue::count(Some(row.lost)),
        ..OPTIONAL
    },
    Column {
        name: "run",
        heading: "run",
        meaning: "first digits of the run's id",
        unit: ColumnUnit::Text,
        cells: (9, 9),
        value: |row| CellValue::Text(row.id.short().into()),
        ..OPTIONAL
    },
];

impl Row for HostRow {
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
