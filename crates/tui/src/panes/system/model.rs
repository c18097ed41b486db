//! The proxy's workers, in a line each.

use model::runs::WorkerActivity;

use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row};

#[derive(Clone, Copy, Debug)]
pub(crate) struct WorkerRow(pub(crate) WorkerActivity);

impl WorkerRow {
    fn per_second(&self, n: u64) -> CellValue<'_> {
        CellValue::Number(Some(n as f64 * 1e6 / self.0.span_us as f64))
    }

    /// A figure of its handshakes; `None` without any.
    fn of_handshakes(&self, figure: impl Fn(f64) -> f64) -> CellValue<'_> {
        let n = self.0.counted.handshakes();
        CellValue::Number((n > 0).then(|| figure(n as f64)))
    }
}

const FIGURE: Column<WorkerRow> = Column::FIGURE;

const COLUMNS: &[Column<WorkerRow>] = &[
    Column {
        name: "worker",
        heading: "worker",
        meaning: "number of the worker; its thread is `proxy-N`",
        unit: ColumnUnit::Text,
        cells: (18, 20),
        value: |row| CellValue::count(Some(row.0.counted.number.into())),
        ..FIGURE
    },
    Column {
        name: "cpu",
        heading: "CPU",
        meaning: "CPU of its thread, in percent of one core",
        unit: ColumnUnit::Ratio,
        rank: 1,
        emphasis: Emphasis::Figure,
        value: |row| CellValue::Number(Some(row.0.cores())),
        ..FIGURE
    },
    Column {
        name: "busiest",
        heading: "of busiest",
        meaning: "its CPU beside that of the busiest worker",
        unit: ColumnUnit::Graph,
        cells: (12, 60),
        rank: 6,
        ..FIGURE
    },
    Column {
        name: "delay",
        heading: "delay ms",
        meaning: "longest loop delay of a handshake: its data had come and the worker was busy",
        unit: ColumnUnit::Latency,
        cells: (10, 10),
        rank: 2,
        value: |row| row.of_handshakes(|_| row.0.counted.loop_delay_us_max as f64 * 1e3),
        ..FIGURE
    },
    Column {
        name: "open",
        alias: "conns",
        heading: "conns",
        meaning: "open connections",
        cells: (7, 7),
        rank: 3,
        value: |row| CellValue::count(u64::try_from(row.0.counted.open).ok()),
        ..FIGURE
    },
    Column {
        name: "accepted",
        heading: "acc/s",
        meaning: "accepted connections a second",
        unit: ColumnUnit::PerSecond,
        rank: 7,
        value: |row| row.per_second(row.0.counted.accepted),
        ..FIGURE
    },
    Column {
        name: "handshakes",
        heading: "hs/s",
        meaning: "handshakes a second, full and resumed",
        unit: ColumnUnit::PerSecond,
        rank: 4,
        value: |row| row.per_second(row.0.counted.handshakes()),
        ..FIGURE
    },
    Column {
        name: "resumed",
        heading: "resumed",
        meaning: "share of resumed handshakes",
        unit: ColumnUnit::Ratio,
        cells: (9, 9),
        rank: 5,
        value: |row| row.of_handshakes(|n| row.0.counted.handshakes_resumed as f64 / n),
        ..FIGURE
    },
];

impl Row for WorkerRow {
    type Id = u32;

    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }

    fn id(&self) -> u32 {
        self.0.counted.number
    }

    fn tie(&self) -> u64 {
        self.0.counted.number.into()
    }
}
