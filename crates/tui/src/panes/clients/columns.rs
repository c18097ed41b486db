//! The columns of the table of clients.

use std::sync::LazyLock;

use records::ids::ClientId;
use records::metrics::{ClientCounter, Metric as _};

use super::model::ClientRow;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row, address_key};

const FIGURE: Column<ClientRow> = Column::FIGURE;
const OPTIONAL: Column<ClientRow> = Column { is_usual: false, rank: 20, ..FIGURE };

/// The columns that show more than one counter.
const COMPUTED: [Column<ClientRow>; 21] = [
    Column {
        name: "client",
        heading: "client",
        meaning: "source address",
        unit: ColumnUnit::Address,
        cells: (15, 40),
        value: |row| CellValue::Client(row.id),
        ..FIGURE
    },
    Column {
        name: "failed",
        alias: "errors",
        heading: "failed",
        meaning: "failed handshakes, unreachable upstreams, broken connections, timeouts, failed requests",
        cells: (7, 7),
        rank: 2,
        emphasis: Emphasis::Failures,
        value: |row| CellValue::count(row.errors),
        ..FIGURE
    },
    Column {
        name: "why",
        heading: "why",
        meaning: "why its latest failed connection with a record failed",
        unit: ColumnUnit::Text,
        cells: (16, 30),
        rank: 5,
        value: |row| CellValue::text(&row.failure),
        ..FIGURE
    },
    Column {
        name: "out",
        heading: "out",
        meaning: "plaintext bytes a second to the client",
        unit: ColumnUnit::BytesPerSecond,
        cells: (9, 9),
        rank: 1,
        emphasis: Emphasis::Figure,
        value: |row| CellValue::Number(row.out_per_second),
        ..FIGURE
    },
    Column {
        name: "share",
        heading: "share",
        meaning: "share of the bytes to all clients",
        unit: ColumnUnit::Graph,
        cells: (8, 20),
        rank: 12,
        ..FIGURE
    },
    Column {
        name: "in",
        heading: "in",
        meaning: "plaintext bytes a second from the client",
        unit: ColumnUnit::BytesPerSecond,
        cells: (9, 9),
        rank: 6,
        emphasis: Emphasis::Figure,
        value: |row| CellValue::Number(row.in_per_second),
        ..FIGURE
    },
    Column {
        name: "exch",
        alias: "rate",
        heading: "exch/s",
        meaning: "exchanges a second",
        unit: ColumnUnit::PerSecond,
        rank: 4,
        value: |row| CellValue::Number(row.exchanges_per_second),
        ..FIGURE
    },
    Column {
        name: "p99",
        heading: "p99 ms",
        meaning: "p99 of its exchanges, at most an eighth too high",
        unit: ColumnUnit::Latency,
        rank: 2,
        value: |row| CellValue::Quantile(row.latency.map(|latency| latency.p99)),
        ..FIGURE
    },
    Column {
        name: "full",
        heading: "full",
        meaning: "share of full handshakes among those completed",
        unit: ColumnUnit::Ratio,
        cells: (7, 7),
        rank: 5,
        value: |row| CellValue::Number(row.full_share),
        ..FIGURE
    },
    Column {
        name: "tls",
        heading: "tls",
        meaning: "TLS version of its handshakes; of its latest recorded connection if they differ",
        unit: ColumnUnit::Text,
        cells: (5, 5),
        rank: 9,
        emphasis: Emphasis::Quiet,
        value: |row| CellValue::text(row.tls),
        ..FIGURE
    },
    Column {
        name: "open",
        heading: "open",
        meaning: "open connections",
        cells: (7, 7),
        rank: 7,
        value: |row| CellValue::count(row.open),
        ..FIGURE
    },
    Column {
        name: "conns",
        heading: "conns",
        meaning: "connections in the window",
        rank: 10,
        value: |row| CellValue::count(row.connections),
        ..FIGURE
    },
    Column {
        name: "total",
        heading: "total",
        meaning: "plaintext bytes both ways since the start",
        unit: ColumnUnit::Bytes,
        cells: (10, 10),
        rank: 8,
        value: |row| CellValue::count(row.bytes()),
        ..FIGURE
    },
    Column {
        name: "graph",
        heading: "bytes/s",
        meaning: "bytes a second over time, on the client's own scale",
        unit: ColumnUnit::Graph,
        cells: (12, 62),
        ..OPTIONAL
    },
    Column {
        name: "resumed",
        heading: "resumed",
        meaning: "share of resumed handshakes among those completed",
        unit: ColumnUnit::Ratio,
        value: |row| CellValue::Number(row.full_share.map(|full| 1.0 - full)),
        ..OPTIONAL
    },
    Column {
        name: "p50",
        heading: "p50 ms",
        meaning: "p50 of its exchanges, at most an eighth too high",
        unit: ColumnUnit::Latency,
        value: |row| CellValue::Quantile(row.latency.map(|latency| latency.p50)),
        ..OPTIONAL
    },
    Column {
        name: "max",
        heading: "max ms",
        meaning: "longest of its exchanges",
        unit: ColumnUnit::Latency,
        value: |row| CellValue::Number(row.latency.map(|latency| latency.max_ns as f64)),
        ..OPTIONAL
    },
    Column {
        name: "cipher",
        heading: "cipher",
        meaning: "cipher suite of its latest connection with a record",
        unit: ColumnUnit::Text,
        cells: (9, 19),
        emphasis: Emphasis::Quiet,
        value: |row| CellValue::text(row.cipher),
        ..OPTIONAL
    },
    Column {
        name: "sni",
        heading: "sni",
        meaning: "server name of its latest connection with a record",
        unit: ColumnUnit::Text,
        cells: (12, 40),
        emphasis: Emphasis::Quiet,
        value: |row| CellValue::text(&row.sni),
        ..OPTIONAL
    },
    Column {
        name: "reason",
        heading: "full because",
        meaning: "the most frequent reason of its full handshakes but for the first, since the start",
        unit: ColumnUnit::Text,
        cells: (13, 13),
        emphasis: Emphasis::Quiet,
        value: |row| CellValue::text(row.reason()),
        ..OPTIONAL
    },
    Column {
        name: "rtt",
        heading: "RTT ms",
        meaning: "round-trip time at the end of its latest handshake, as the kernel estimated it",
        unit: ColumnUnit::Latency,
        value: |row| CellValue::Number(row.rtt_ns),
        ..OPTIONAL
    },
];

/// All columns: those, and the counters that are declared as columns.
static COLUMNS: LazyLock<Vec<Column<ClientRow>>> = LazyLock::new(|| {
    COMPUTED.into_iter().chain(ClientCounter::ALL.iter().copied().filter_map(counted)).collect()
});

/// The column of a counter since the start, if it is declared as one.
fn counted(counter: ClientCounter) -> Option<Column<ClientRow>> {
    let names = counter.names();
    let cells = names.title.len() + 2;
    let emphasis = if counter == ClientCounter::Errors { Emphasis::Failures } else { Emphasis::None };
    (!names.column.is_empty()).then_some(Column {
        name: names.column,
        heading: names.title,
        meaning: &counter.field().meaning,
        cells: (cells, cells),
        emphasis,
        counter: Some(counter.index()),
        ..OPTIONAL
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
