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

type WorkerColumn = Column<WorkerRow>;

const COLUMNS: &[WorkerColumn] = &[
    WorkerColumn::named("worker", "worker", "number of the worker; its thread is `proxy-N`")
        .shows(ColumnUnit::Text, |row| CellValue::count(Some(row.0.counted.number.into())))
        .fit(0, (18, 20)),
    WorkerColumn::named("cpu", "CPU", "CPU of its thread, in percent of one core")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(Some(row.0.cores())))
        .fit(1, (8, 8))
        .emphasis(Emphasis::Figure),
    WorkerColumn::named("busiest", "of busiest", "its CPU beside that of the busiest worker")
        .unit(ColumnUnit::Graph)
        .fit(6, (12, 60)),
    WorkerColumn::named(
        "delay",
        "delay ms",
        "longest loop delay of a handshake: its data had come and the worker was busy",
    )
    .shows(ColumnUnit::Latency, |row| row.of_handshakes(|_| row.0.counted.loop_delay_us_max as f64 * 1e3))
    .fit(2, (10, 10)),
    WorkerColumn::named("open", "conns", "open connections")
        .alias("conns")
        .shows(ColumnUnit::Count, |row| CellValue::count(u64::try_from(row.0.counted.open).ok()))
        .fit(3, (7, 7)),
    WorkerColumn::named("accepted", "acc/s", "accepted connections a second")
        .shows(ColumnUnit::PerSecond, |row| row.per_second(row.0.counted.accepted))
        .fit(7, (8, 8)),
    WorkerColumn::named("handshakes", "hs/s", "handshakes a second, full and resumed")
        .shows(ColumnUnit::PerSecond, |row| row.per_second(row.0.counted.handshakes()))
        .fit(4, (8, 8)),
    WorkerColumn::named("resumed", "resumed", "share of resumed handshakes")
        .shows(ColumnUnit::Ratio, |row| row.of_handshakes(|n| row.0.counted.handshakes_resumed as f64 / n))
        .fit(5, (9, 9)),
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
