//! The columns of the upstreams.

use records::metrics::{UpstreamCounter, UpstreamLatency};

use super::model::UpstreamRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, NameId, Row};

fn p50(row: &UpstreamRow, class: UpstreamLatency) -> CellValue<'_> {
    CellValue::Quantile(row.times(class).map(|times| times.p50))
}

fn p99(row: &UpstreamRow, class: UpstreamLatency) -> CellValue<'_> {
    CellValue::Quantile(row.times(class).map(|times| times.p99))
}

type UpstreamColumn = Column<UpstreamRow>;

const COLUMNS: &[UpstreamColumn] = &[
    UpstreamColumn::named("upstream", "upstream", "as it was configured")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.name))
        .fit(4, (16, 44)),
    UpstreamColumn::named(
        "state",
        "state",
        "up, also before the first attempt; down: it could not be reached, or fails its checks; drained",
    )
    .shows(ColumnUnit::Text, |row| CellValue::text(row.state.word()))
    .fit(0, (8, 8)),
    UpstreamColumn::named("since", "for", "how long it has been in this state")
        .shows(ColumnUnit::Text, |row| CellValue::Text(row.since()))
        .fit(5, (7, 11)),
    UpstreamColumn::named("open", "open", "connections now, idle ones included")
        .alias("conns")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.open))
        .fit(3, (6, 7)),
    UpstreamColumn::named("connects", "conn/s", "connections established a second")
        .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.per_second(UpstreamCounter::Connections)))
        .fit(7, (7, 9)),
    UpstreamColumn::named("failed", "failed", "attempts to connect that failed")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.failed()))
        .fit(1, (7, 9))
        .emphasis(Emphasis::Failures),
    UpstreamColumn::named("cause", "cause", "why most of these attempts failed")
        .shows(ColumnUnit::Text, |row| CellValue::text(row.main_cause()))
        .fit(8, (10, 10)),
    UpstreamColumn::named(
        "broken",
        "broken",
        "connections that it broke; in HTTP mode, requests not answered, or not completely",
    )
    .shows(ColumnUnit::Count, |row| CellValue::count(row.count(UpstreamCounter::Broken)))
    .fit(2, (7, 9))
    .emphasis(Emphasis::Failures),
    UpstreamColumn::named("exch", "exch/s", "answers begun a second; in HTTP mode, requests that were over")
        .alias("req")
        .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.per_second(UpstreamCounter::Exchanges)))
        .fit(1, (7, 9))
        .emphasis(Emphasis::Figure),
    UpstreamColumn::named("p50", "p50 ms", "median of the first byte: request sent to answer begun")
        .shows(ColumnUnit::Latency, |row| p50(row, UpstreamLatency::FirstByte))
        .fit(4, (8, 8)),
    UpstreamColumn::named("p99", "p99 ms", "p99 of the first byte: request sent to answer begun")
        .shows(ColumnUnit::Latency, |row| p99(row, UpstreamLatency::FirstByte))
        .fit(1, (8, 8)),
    UpstreamColumn::named("connect-p50", "conn p50", "median of connecting")
        .shows(ColumnUnit::Latency, |row| p50(row, UpstreamLatency::Connect))
        .fit(10, (10, 10)),
    UpstreamColumn::named("connect-p99", "conn p99", "p99 of connecting")
        .shows(ColumnUnit::Latency, |row| p99(row, UpstreamLatency::Connect))
        .fit(6, (10, 10)),
    UpstreamColumn::named(
        "resumed",
        "resumed",
        "share of resumed handshakes among those with an upstream that speaks TLS, of passed clients too",
    )
    .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.resumed_share()))
    .fit(6, (9, 9))
    .of_some(),
    UpstreamColumn::named("tls-p99", "tls p99", "p99 of full handshakes with an upstream that speaks TLS")
        .shows(ColumnUnit::Latency, |row| p99(row, UpstreamLatency::TlsFull))
        .fit(5, (9, 9))
        .of_some(),
    UpstreamColumn::named("tls-failed", "tls failed", "handshakes of passed clients with it that failed")
        .shows(ColumnUnit::Count, |row| {
            CellValue::count(row.count(UpstreamCounter::TlsFailed).filter(|n| *n > 0))
        })
        .fit(5, (11, 11))
        .of_some()
        .emphasis(Emphasis::Failures),
    UpstreamColumn::named("in", "in", "bytes a second to it, of connections or requests that are over")
        .shows(ColumnUnit::BytesPerSecond, |row| CellValue::Number(row.per_second(UpstreamCounter::BytesIn)))
        .fit(12, (10, 10)),
    UpstreamColumn::named("out", "out", "bytes a second from it, of connections or requests that are over")
        .shows(ColumnUnit::BytesPerSecond, |row| CellValue::Number(row.per_second(UpstreamCounter::BytesOut)))
        .fit(9, (10, 10)),
    UpstreamColumn::named("why", "why", "why it is not up")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.reason))
        .fit(11, (12, 40)),
    UpstreamColumn::named("idle", "idle", "connections without a request; in HTTP mode")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.idle))
        .optional((6, 7)),
    UpstreamColumn::named("late", "late", "requests without an answer in time; in HTTP mode")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.count(UpstreamCounter::Late)))
        .optional((7, 9))
        .emphasis(Emphasis::Failures),
    UpstreamColumn::named("5xx", "5xx", "requests that it answered with 500 or above")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.count(UpstreamCounter::Status5xx)))
        .optional((7, 9))
        .emphasis(Emphasis::Failures),
];

impl Row for UpstreamRow {
    type Id = NameId;

    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }

    fn id(&self) -> NameId {
        self.id
    }
}
