//! The columns of the hosts.

use records::ids::RunId;

use super::model::{HostRow, HostState};
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row};

type HostColumn = Column<HostRow>;

const COLUMNS: &[HostColumn] = &[
    HostColumn::named("host", "host", "name of the host, as the journal has it")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.host))
        .fit(4, (12, 40)),
    HostColumn::named("version", "version", "version of tlsdash")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.version))
        .fit(8, (9, 14))
        .emphasis(Emphasis::Quiet),
    HostColumn::named(
        "state",
        "state",
        "live, silent for how long, ended; clock ahead, or records late (or the clock is behind)",
    )
    .shows(ColumnUnit::Text, |row| {
        CellValue::Text(row.state.map_or_else(String::new, HostState::words).into())
    })
    .fit(1, (13, 15)),
    HostColumn::named("open", "conns", "open connections")
        .alias("conns")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.figures.open))
        .fit(5, (7, 8)),
    HostColumn::named("handshakes", "hs/s", "handshakes a second, full and resumed, in the last 10 s")
        .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.figures.handshakes_per_s))
        .fit(2, (7, 8))
        .emphasis(Emphasis::Figure),
    HostColumn::named("resumed", "resumed", "share of resumed handshakes in the last 10 s")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.figures.resumed()))
        .fit(6, (8, 9)),
    HostColumn::named(
        "exch",
        "rate/s",
        "requests (HTTP mode), exchanges (TCP mode) or answers to the load, a second in the last 10 s",
    )
    .alias("rate")
    .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.figures.answers_per_s))
    .fit(9, (8, 9)),
    HostColumn::named(
        "p99",
        "p99 ms",
        "p99 in the last 10 s: first byte (HTTP mode), exchange (TCP mode) or answers to the load",
    )
    .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.figures.p99))
    .fit(2, (8, 9)),
    HostColumn::named("cpu", "CPU", "CPU of the process in the last 10 s, in percent of one core")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.figures.cores))
        .fit(3, (7, 8)),
    HostColumn::named(
        "lag",
        "lag s",
        "time from making the last record to reading it; of another host or boot by both wall clocks",
    )
    .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.figures.lag_us.map(|us| us as f64 / 1e6)))
    .fit(7, (7, 8)),
    HostColumn::named("gaps", "gaps", "holes in the records since the start")
        .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.gaps)))
        .fit(4, (6, 7))
        .emphasis(Emphasis::Failures),
    HostColumn::named("account", "user or unit", "user or unit that wrote the records, by journald's fields")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.account))
        .fit(10, (13, 23))
        .emphasis(Emphasis::Quiet),
    HostColumn::named("lost", "lost", "records lost since the start")
        .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.lost)))
        .optional((7, 8))
        .emphasis(Emphasis::Failures),
    HostColumn::named("run", "run", "first digits of the run's id")
        .shows(ColumnUnit::Text, |row| CellValue::Text(row.id.short().into()))
        .optional((9, 9)),
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
