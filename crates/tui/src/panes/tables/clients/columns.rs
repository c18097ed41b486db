//! The columns of the table of clients.

use std::sync::LazyLock;

use records::ids::ClientId;
use records::metrics::{ClientCounter, Metric as _};

use super::model::ClientRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row, address_key};

type ClientColumn = Column<ClientRow>;

/// The columns that show more than one counter.
const COMPUTED: [ClientColumn; 21] = [
    ClientColumn::named("client", "client", "source address")
        .shows(ColumnUnit::Address, |row| CellValue::Client(row.id))
        .fit(0, (15, 40)),
    ClientColumn::named(
        "failed",
        "failed",
        "failed handshakes, unreachable upstreams, broken connections, timeouts, failed requests",
    )
    .alias("errors")
    .shows(ColumnUnit::Count, |row| CellValue::count(row.errors))
    .fit(2, (7, 7))
    .emphasis(Emphasis::Failures),
    ClientColumn::named("why", "why", "why its latest failed connection with a record failed")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.failure))
        .fit(5, (16, 30)),
    ClientColumn::named("out", "out", "plaintext bytes a second to the client")
        .shows(ColumnUnit::BytesPerSecond, |row| CellValue::Number(row.out_per_second))
        .fit(1, (9, 9))
        .emphasis(Emphasis::Figure),
    ClientColumn::named("share", "share", "share of the bytes to all clients")
        .unit(ColumnUnit::Graph)
        .fit(12, (8, 20)),
    ClientColumn::named("in", "in", "plaintext bytes a second from the client")
        .shows(ColumnUnit::BytesPerSecond, |row| CellValue::Number(row.in_per_second))
        .fit(6, (9, 9))
        .emphasis(Emphasis::Figure),
    ClientColumn::named("exch", "exch/s", "exchanges a second")
        .alias("rate")
        .shows(ColumnUnit::PerSecond, |row| CellValue::Number(row.exchanges_per_second))
        .fit(4, (8, 8)),
    ClientColumn::named("p99", "p99 ms", "p99 of its exchanges, at most an eighth too high")
        .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.latency.map(|latency| latency.p99)))
        .fit(2, (8, 8)),
    ClientColumn::named("full", "full", "share of full handshakes among those completed")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.full_share))
        .fit(5, (7, 7)),
    ClientColumn::named(
        "tls",
        "tls",
        "TLS version of its handshakes; of its latest recorded connection if they differ",
    )
    .shows(ColumnUnit::Text, |row| CellValue::text(row.tls))
    .fit(9, (5, 5))
    .emphasis(Emphasis::Quiet),
    ClientColumn::named("open", "open", "open connections")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.open))
        .fit(7, (7, 7)),
    ClientColumn::named("conns", "conns", "connections in the window")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.connections))
        .fit(10, (8, 8)),
    ClientColumn::named("total", "total", "plaintext bytes both ways since the start")
        .shows(ColumnUnit::Bytes, |row| CellValue::count(row.bytes()))
        .fit(8, (10, 10)),
    ClientColumn::named("graph", "bytes/s", "bytes a second over time, on the client's own scale")
        .unit(ColumnUnit::Graph)
        .optional((12, 62)),
    ClientColumn::named("resumed", "resumed", "share of resumed handshakes among those completed")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.full_share.map(|full| 1.0 - full)))
        .optional((8, 8)),
    ClientColumn::named("p50", "p50 ms", "p50 of its exchanges, at most an eighth too high")
        .shows(ColumnUnit::Latency, |row| CellValue::Quantile(row.latency.map(|latency| latency.p50)))
        .optional((8, 8)),
    ClientColumn::named("max", "max ms", "longest of its exchanges")
        .shows(ColumnUnit::Latency, |row| CellValue::Number(row.latency.map(|latency| latency.max_ns as f64)))
        .optional((8, 8)),
    ClientColumn::named("cipher", "cipher", "cipher suite of its latest connection with a record")
        .shows(ColumnUnit::Text, |row| CellValue::text(row.cipher))
        .optional((9, 19))
        .emphasis(Emphasis::Quiet),
    ClientColumn::named("sni", "sni", "server name of its latest connection with a record")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.sni))
        .optional((12, 40))
        .emphasis(Emphasis::Quiet),
    ClientColumn::named(
        "reason",
        "full because",
        "the most frequent reason of its full handshakes but for the first, since the start",
    )
    .shows(ColumnUnit::Text, |row| CellValue::text(row.reason()))
    .optional((13, 13))
    .emphasis(Emphasis::Quiet),
    ClientColumn::named(
        "rtt",
        "RTT ms",
        "round-trip time at the end of its latest handshake, as the kernel estimated it",
    )
    .shows(ColumnUnit::Latency, |row| CellValue::Number(row.rtt_ns))
    .optional((8, 8)),
];

/// All columns: those, and the counters that are declared as columns.
static COLUMNS: LazyLock<Vec<ClientColumn>> = LazyLock::new(|| {
    COMPUTED.into_iter().chain(ClientCounter::ALL.iter().copied().filter_map(counted)).collect()
});

/// The column of a counter since the start, if it is declared as one.
fn counted(counter: ClientCounter) -> Option<ClientColumn> {
    let names = counter.names();
    let cells = names.title.len() + 2;
    let emphasis = if counter == ClientCounter::Errors { Emphasis::Failures } else { Emphasis::None };
    (!names.column.is_empty()).then_some(ClientColumn {
        counter: Some(counter.index()),
        ..ClientColumn::named(names.column, names.title, &counter.field().meaning)
            .optional((cells, cells))
            .emphasis(emphasis)
    })
}

impl Row for ClientRow {
    type Id = ClientId;

    fn columns() -> &'static [Column<Self>] {
        &COLUMNS
    }

    fn count(&self, counter: usize) -> Option<u64> {
        self.counted(ClientCounter::ALL[counter])
    }

    fn id(&self) -> ClientId {
        self.id
    }

    fn tie(&self) -> u64 {
        address_key(self.id)
    }

    fn second(column: usize) -> Option<usize> {
        (column == Self::FAILED).then(|| Self::column("out"))
    }
}

impl ClientRow {
    /// The column by which clients are ordered unless a person chooses another: failing ones first, then the busiest.
    pub(crate) const FAILED: usize = 1;
}
