//! Usage: the values of one dimension, such as TLS versions or server names, since the start of the run.

use std::hash::{DefaultHasher, Hash, Hasher};

use model::runs::Usage;
use records::delta::OTHER_VALUE;
use records::metrics::{Counters, Dimension, UsageCounter};

use crate::table::{CellValue, Column, ColumnUnit, Emphasis, Row};

/// A value of a dimension, by a hash of both: the same in every run and reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct UsageId(u64);

#[derive(Clone, Debug)]
pub(crate) struct UsageRow {
    pub(crate) dimension: Dimension,
    pub(crate) value: Box<str>,
    /// Since the start of the run.
    pub(crate) counters: Counters<UsageCounter>,
    /// Sums over all values of the dimension: handshakes, and time inside the TLS library in nanoseconds.
    all: (u64, u64),
}

/// The name of a dimension in titles.
pub(crate) fn name_of(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Version => "version",
        Dimension::Group => "group",
        Dimension::Cipher => "cipher suite",
        Dimension::Signature => "signature of full handshakes",
        Dimension::Alpn => "application protocol",
        Dimension::Certificate => "certificate of full handshakes",
        Dimension::Name => "server name",
        Dimension::Fingerprint => "fingerprint (JA4)",
        Dimension::Issuer => "issuer of the client's certificate",
        Dimension::Service => "service",
    }
}

pub(crate) fn usage_rows(usage: &Usage, dimension: Dimension) -> Vec<UsageRow> {
    let sum = usage.sum(dimension);
    let all = (sum.handshakes(), sum.compute_ns());
    let row = |(value, counters): (&str, &Counters<UsageCounter>)| UsageRow {
        dimension,
        value: value.into(),
        counters: *counters,
        all,
    };
    usage.of(dimension).map(row).collect()
}

impl UsageRow {
    /// The column by which values are ordered.
    pub(crate) const HANDSHAKES: usize = 1;

    /// Its share of the dimension's handshakes.
    pub(crate) fn share(&self) -> Option<f64> {
        ratio(self.counters.handshakes(), self.all.0)
    }

    /// Its share of the dimension's time inside the TLS library.
    pub(crate) fn compute_share(&self) -> Option<f64> {
        ratio(self.counters.compute_ns(), self.all.1)
    }

    /// The share of resumed ones among its handshakes; signatures and certificates are of full ones only.
    pub(crate) fn resumed_share(&self) -> Option<f64> {
        let has_resumed = !matches!(self.dimension, Dimension::Signature | Dimension::Certificate);
        let share = ratio(self.counters[UsageCounter::HandshakesResumed], self.counters.handshakes());
        share.filter(|_| has_resumed)
    }

    /// Failed handshakes, if this dimension counts them.
    pub(crate) fn failed(&self) -> Option<u64> {
        self.dimension.has_failures().then(|| self.counters[UsageCounter::HandshakesFailed])
    }

    fn bytes(&self) -> u64 {
        self.counters.sum(&[UsageCounter::BytesIn, UsageCounter::BytesOut])
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

const FIGURE: Column<UsageRow> = Column::FIGURE;
const OPTIONAL: Column<UsageRow> = Column { is_usual: false, rank: 20, ..FIGURE };

const COLUMNS: &[Column<UsageRow>] = &[
    Column {
        name: "value",
        heading: "value",
        meaning: "the version, group, cipher suite, … ; `other`: all beyond the bound",
        unit: ColumnUnit::Text,
        cells: (20, 60),
        value: |row| CellValue::text(&row.value),
        ..FIGURE
    },
    Column {
        name: "handshakes",
        heading: "handshakes",
        meaning: "handshakes completed since the start",
        cells: (11, 11),
        rank: 1,
        emphasis: Emphasis::Figure,
        value: |row| CellValue::count(Some(row.counters.handshakes())),
        ..FIGURE
    },
    Column {
        name: "share",
        heading: "share",
        meaning: "share of the handshakes of all values",
        unit: ColumnUnit::Ratio,
        rank: 2,
        value: |row| CellValue::Number(row.share()),
        ..FIGURE
    },
    Column {
        name: "full",
        heading: "full",
        meaning: "full handshakes since the start",
        rank: 6,
        value: |row| CellValue::count(Some(row.counters[UsageCounter::HandshakesFull])),
        ..FIGURE
    },
    Column {
        name: "resumed",
        heading: "resumed",
        meaning: "share of resumed ones among its handshakes",
        unit: ColumnUnit::Ratio,
        cells: (9, 9),
        rank: 4,
        value: |row| CellValue::Number(row.resumed_share()),
        ..FIGURE
    },
    Column {
        name: "failed",
        heading: "failed",
        meaning: "failed handshakes, of server names and fingerprints",
        cells: (7, 7),
        rank: 5,
        emphasis: Emphasis::Failures,
        value: |row| CellValue::count(row.failed()),
        ..FIGURE
    },
    Column {
        name: "bytes",
        alias: "total",
        heading: "bytes",
        meaning: "plaintext both ways, of connections that are over",
        unit: ColumnUnit::Bytes,
        cells: (9, 9),
        rank: 7,
        value: |row| CellValue::count(Some(row.bytes())),
        ..FIGURE
    },
    Column {
        name: "cpu",
        heading: "CPU share",
        meaning: "share of the CPU time of all handshakes; not the load of a core",
        unit: ColumnUnit::Ratio,
        cells: (11, 11),
        rank: 3,
        emphasis: Emphasis::Figure,
        value: |row| CellValue::Number(row.compute_share()),
        ..FIGURE
    },
    Column {
        name: "only",
        heading: "only choice",
        meaning: "handshakes that would fail without it: the client offered nothing else that is allowed",
        cells: (12, 12),
        rank: 8,
        value: |row| CellValue::count(Some(row.counters[UsageCounter::OnlyChoice])),
        ..FIGURE
    },
    Column {
        name: "expired",
        heading: "expired",
        meaning: "full handshakes whose ticket or session had expired",
        value: |row| CellValue::count(Some(row.counters[UsageCounter::FullExpired])),
        ..OPTIONAL
    },
    Column {
        name: "no-ticket",
        heading: "no ticket",
        meaning: "full handshakes without an offer to resume",
        cells: (10, 10),
        value: |row| CellValue::count(Some(row.counters[UsageCounter::FullNoTicket])),
        ..OPTIONAL
    },
    Column {
        name: "cpu-ms",
        heading: "CPU ms",
        meaning: "mean handshake CPU",
        unit: ColumnUnit::Latency,
        value: |row| {
            let n = row.counters.handshakes();
            CellValue::Number((n > 0).then(|| row.counters.compute_ns() as f64 / n as f64))
        },
        ..OPTIONAL
    },
];

impl Row for UsageRow {
    type Id = UsageId;

    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }

    fn id(&self) -> UsageId {
        let mut hasher = DefaultHasher::new();
        (self.dimension, &self.value).hash(&mut hasher);
        UsageId(hasher.finish())
    }

    /// `other` comes after all that have as many handshakes.
    fn tie(&self) -> u64 {
        u64::from(&*self.value == OTHER_VALUE)
    }
}
