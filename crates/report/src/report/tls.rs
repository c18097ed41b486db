//! The tables of TLS, for the page and for Markdown: reasons of full handshakes, parts of their time, and usage.

use model::summary::{Percentiles, TlsSummary, UsageSummary, WallTime};
use records::metrics::{Dimension, FullReason, KnownValue, Metric as _};
use records::values::LogFigure;

use super::http::quantile;
use crate::numbers::{DASH, fixed, grouped, ms, percent};
use crate::report::Report;
use crate::table::Heading::{self, Number, Words};
use crate::table::ReportTable;

impl Report<'_> {
    pub(crate) fn tls(&self) -> Option<&TlsSummary> {
        self.summary.proxy.as_ref()?.tls.as_ref()
    }

    /// Full handshakes by reason, the most frequent first.
    pub(crate) fn full_reasons(&self) -> Vec<(FullReason, u64)> {
        if self.run.absent(LogFigure::FullReasons).is_some() {
            return Vec::new();
        }
        let counts = self.summary.proxy.as_ref().map(|proxy| &proxy.handshakes.full_by_reason);
        let count = |word: &str| counts.and_then(|counts| counts.get(word)).copied().unwrap_or(0);
        let all = FullReason::ALL.map(|(reason, _, word)| (reason, count(word)));
        let mut counted: Vec<_> = all.into_iter().filter(|(_, n)| *n > 0).collect();
        counted.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        counted
    }

    pub(crate) fn full_reason_rows(&self) -> ReportTable {
        let reasons = self.full_reasons();
        let all: u64 = reasons.iter().map(|(_, n)| n).sum();
        let rows = reasons.into_iter().map(|(reason, n)| {
            let meaning = meaning(reason).to_owned();
            vec![words(reason), grouped(n), percent(n as f64, all as f64), meaning]
        });
        let columns = [Words("reason"), Number("handshakes"), Number("share"), Words("what it means")];
        ReportTable::new("Why handshakes were full", columns, rows)
    }

    /// The wall time of full and of resumed handshakes, of those types that were timed.
    pub(crate) fn wall_times(&self) -> impl Iterator<Item = (&'static str, &WallTime)> {
        let walls = self.tls().map(|tls| &tls.wall_time_us);
        let types = walls.map(|walls| [("full", &walls.full), ("resumed", &walls.resumed)]);
        types.into_iter().flatten().filter(|(_, wall)| wall.network.n > 0)
    }

    /// The parts of both types, with key exchange and signature.
    pub(crate) fn wall_time_rows(&self) -> ReportTable {
        let of_types = self.wall_times().flat_map(|(kind, wall)| {
            let sum_ms = parts(wall).map(|(_, of)| mean_ms(of)).sum();
            parts(wall).map(move |(part, of)| time_row(kind, part, of, Some(sum_ms)))
        });
        let parts =
            self.tls().map(|tls| [("key exchange", &tls.key_exchange_us), ("signature", &tls.signature_us)]);
        let parts = parts.into_iter().flatten().map(|(part, of)| time_row("CPU", part, of, None));
        let columns = [
            Words("handshake"),
            Words("part"),
            Number("n"),
            Number("mean, ms"),
            Number("share"),
            Number("p50, ms"),
            Number("p99, ms"),
        ];
        ReportTable::new("Where a handshake's time goes", columns, of_types.chain(parts).flatten())
    }

    /// A table for each dimension with known values.
    pub(crate) fn usage_tables(&self) -> Vec<ReportTable> {
        let Some(tls) = self.tls() else { return Vec::new() };
        let tables = DIMENSIONS.iter().map(|&(dimension, heading, caption)| {
            let rows = tls.usage.get(dimension.word()).into_iter().flatten();
            ReportTable::new(
                caption,
                usage_columns(heading),
                rows.map(|usage| self.usage_row(dimension, usage)),
            )
        });
        tables.filter(|table| !table.rows.is_empty()).collect()
    }

    fn usage_row(&self, dimension: Dimension, usage: &UsageSummary) -> Vec<String> {
        let mut row = usage_row(usage);
        if !dimension.has_failures() {
            DASH.clone_into(&mut row[FAILED_COLUMN]);
        }
        if let Some(began) = self.run.other_terminator() {
            // Packets show handshakes that fail.
            let of_logs = (!began.is_of_packets()).then_some(FAILED_COLUMN);
            let of_requests = self.http().map(|_| BYTES_COLUMN);
            for at in NOT_OBSERVED.into_iter().chain(of_logs).chain(of_requests) {
                DASH.clone_into(&mut row[at]);
            }
        }
        row
    }
}

/// Each dimension, with the heading of its values and the caption of its table.
const DIMENSIONS: [(Dimension, &str, &str); 10] = [
    (Dimension::Version, "version", "Who uses what, by version"),
    (Dimension::Group, "group", "Who uses what, by key exchange group"),
    (Dimension::Cipher, "cipher suite", "Who uses what, by cipher suite"),
    (Dimension::Signature, "signature", "Who uses what, by signature, of full handshakes"),
    (Dimension::Alpn, "protocol", "Who uses what, by application protocol"),
    (Dimension::Certificate, "certificate", "Who uses what, by certificate, of full handshakes"),
    (Dimension::Name, "server name", "Who uses what, by server name"),
    (Dimension::Fingerprint, "fingerprint", "Who uses what, by fingerprint (JA4)"),
    (Dimension::Issuer, "issuer", "Who uses what, by issuer of the client's certificate"),
    (Dimension::Service, "service", "Who uses what, by service"),
];

/// Columns that only the terminator itself has: CPU time, its share, and the only choice.
const NOT_OBSERVED: [usize; 3] = [5, 6, 8];
/// The column of failures, which are not counted for all dimensions, nor by logs.
const FAILED_COLUMN: usize = 4;
/// The column of bytes, which a log of requests does not have for a connection.
const BYTES_COLUMN: usize = 7;

fn usage_columns(value: &'static str) -> [Heading; 9] {
    [
        Words(value),
        Number("handshakes"),
        Number("share"),
        Number("resumed"),
        Number("failed"),
        Number("CPU, ms"),
        Number("CPU share"),
        Number("MB"),
        Number("only choice"),
    ]
}

fn usage_row(usage: &UsageSummary) -> Vec<String> {
    let all = usage.full.saturating_add(usage.resumed);
    let share =
        |share: Option<f64>| share.map_or_else(|| DASH.to_owned(), |share| format!("{} %", fixed(share, 1)));
    vec![
        usage.value.clone(),
        grouped(all),
        share(usage.handshakes_percent),
        if all > 0 { percent(usage.resumed as f64, all as f64) } else { DASH.to_owned() },
        grouped(usage.failed),
        fixed(usage.compute_us / 1e3, 1),
        share(usage.compute_percent),
        fixed(usage.bytes.r#in.saturating_add(usage.bytes.out) as f64 / 1e6, 3),
        grouped(usage.only_choice),
    ]
}

/// The parts of the wall time, in the order in which they are shown.
pub(crate) fn parts(wall: &WallTime) -> impl Iterator<Item = (&'static str, &Percentiles)> {
    let WallTime { network, client, loop_delay, compute, server } = wall;
    [
        ("network", network),
        ("client", client),
        ("loop delay", loop_delay),
        ("compute", compute),
        ("server", server),
    ]
    .into_iter()
    .filter(|(_, of)| of.n > 0)
}

/// The mean in milliseconds; 0 without samples.
pub(crate) fn mean_ms(of: &Percentiles) -> f64 {
    of.mean.map_or(0.0, KnownValue::number) / 1e3
}

/// One part; `None` if it was not timed.
fn time_row(kind: &str, part: &str, of: &Percentiles, sum_ms: Option<f64>) -> Option<Vec<String>> {
    let mean_ms = of.mean?.number() / 1e3;
    let share = sum_ms.filter(|sum| *sum > 0.0).map_or_else(String::new, |sum| percent(mean_ms, sum));
    Some(vec![
        kind.to_owned(),
        part.to_owned(),
        grouped(of.n),
        ms(mean_ms),
        share,
        quantile(Some(of), 0.5, |it| it.p50),
        quantile(Some(of), 0.99, |it| it.p99),
    ])
}

pub(crate) fn words(reason: FullReason) -> String {
    reason.to_string().replace('_', " ")
}

fn meaning(reason: FullReason) -> &'static str {
    &reason.counter().field().meaning
}
