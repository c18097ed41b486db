//! The columns of the services.

use records::ids::RunId;

use super::model::ServiceRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row};

type ServiceColumn = Column<ServiceRow>;

const COLUMNS: &[ServiceColumn] = &[
    ServiceColumn::named("service", "service", "port, process and unit, or the peer with --outgoing")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.name))
        .fit(4, (16, 44)),
    ServiceColumn::named("open", "conns", "open connections")
        .alias("conns")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.open))
        .fit(6, (7, 9)),
    ServiceColumn::named("full", "full/s", "full handshakes a second in the last 10 s")
        .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.full_per_s))
        .fit(1, (7, 9))
        .emphasis(Emphasis::Figure),
    ServiceColumn::named("resumptions", "res/s", "resumed handshakes a second in the last 10 s")
        .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.resumed_per_s))
        .fit(2, (7, 9)),
    ServiceColumn::named("resumed", "resumed", "share of resumed handshakes in the last 10 s")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.resumed_share()))
        .fit(7, (8, 9)),
    ServiceColumn::named("failed", "fail/s", "failed handshakes a second in the last 10 s")
        .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.failed_per_s))
        .fit(1, (7, 9))
        .emphasis(Emphasis::Failures),
    ServiceColumn::named("p50", "p50 ms", "median of full handshakes in the last 10 s")
        .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.full[0]))
        .fit(5, (7, 9)),
    ServiceColumn::named("p99", "p99 ms", "p99 of full handshakes in the last 10 s")
        .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.full[1]))
        .fit(2, (7, 9)),
    ServiceColumn::named(
        "server-p50",
        "srv p50",
        "median of the server's part of full handshakes in the last 10 s",
    )
    .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.server[0]))
    .fit(8, (8, 9)),
    ServiceColumn::named(
        "server-p99",
        "srv p99",
        "p99 of the server's part of full handshakes in the last 10 s",
    )
    .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.server[1]))
    .fit(3, (8, 9)),
    ServiceColumn::named("bytes", "bytes", "TCP payload a second, both ways, in the last 10 s")
        .shows(ColumnUnit::BytesPerSecond, |row| CellValue::Number(row.bytes_per_s))
        .fit(6, (8, 9)),
    ServiceColumn::named("tls13", "TLS 1.3", "share of TLS 1.3 among the handshakes of the last 10 s")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.tls13))
        .fit(9, (8, 9)),
    ServiceColumn::named("exch", "exch/s", "exchanges a second in the last 10 s")
        .alias("rate")
        .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.exchanges_per_s))
        .fit(10, (7, 9)),
    ServiceColumn::named("exch-p99", "exch p99", "p99 of exchanges in the last 10 s")
        .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.exchange))
        .fit(11, (9, 9)),
    ServiceColumn::named("resumed-p99", "res p99", "p99 of resumed handshakes in the last 10 s")
        .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.resumed))
        .optional((8, 9)),
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
