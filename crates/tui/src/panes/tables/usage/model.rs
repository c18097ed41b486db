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

type UsageColumn = Column<UsageRow>;

const COLUMNS: &[UsageColumn] = &[
    UsageColumn::named(
        "value",
        "value",
        "the version, group, cipher suite, … ; `other`: all beyond the bound",
    )
    .shows(ColumnUnit::Text, |row| CellValue::text(&row.value))
    .fit(0, (20, 60)),
    UsageColumn::named("handshakes", "handshakes", "handshakes completed since the start")
        .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.counters.handshakes())))
        .fit(1, (11, 11))
        .emphasis(Emphasis::Figure),
    UsageColumn::named("share", "share", "share of the handshakes of all values")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.share()))
        .fit(2, (8, 8)),
    UsageColumn::named("full", "full", "full handshakes since the start")
        .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.counters[UsageCounter::HandshakesFull])))
        .fit(6, (8, 8)),
    UsageColumn::named("resumed", "resumed", "share of resumed ones among its handshakes")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.resumed_share()))
        .fit(4, (9, 9)),
    UsageColumn::named("failed", "failed", "failed handshakes, of server names and fingerprints")
        .shows(ColumnUnit::Count, |row| CellValue::count(row.failed()))
        .fit(5, (7, 7))
        .emphasis(Emphasis::Failures),
    UsageColumn::named("bytes", "bytes", "plaintext both ways, of connections that are over")
        .alias("total")
        .shows(ColumnUnit::Bytes, |row| CellValue::count(Some(row.bytes())))
        .fit(7, (9, 9)),
    UsageColumn::named("cpu", "CPU share", "share of the CPU time of all handshakes; not the load of a core")
        .shows(ColumnUnit::Ratio, |row| CellValue::Number(row.compute_share()))
        .fit(3, (11, 11))
        .emphasis(Emphasis::Figure),
    UsageColumn::named(
        "only",
        "only choice",
        "handshakes that would fail without it: the client offered nothing else that is allowed",
    )
    .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.counters[UsageCounter::OnlyChoice])))
    .fit(8, (12, 12)),
    UsageColumn::named("expired", "expired", "full handshakes whose ticket or session had expired")
        .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.counters[UsageCounter::FullExpired])))
        .optional((8, 8)),
    UsageColumn::named("no-ticket", "no ticket", "full handshakes without an offer to resume")
        .shows(ColumnUnit::Count, |row| CellValue::count(Some(row.counters[UsageCounter::FullNoTicket])))
        .optional((10, 10)),
    UsageColumn::named("cpu-ms", "CPU ms", "mean handshake CPU")
        .shows(ColumnUnit::Latency, |row| {
            let n = row.counters.handshakes();
            CellValue::Number((n > 0).then(|| row.counters.compute_ns() as f64 / n as f64))
        })
        .optional((8, 8)),
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
