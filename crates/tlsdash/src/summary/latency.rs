//! The table of latencies.

use std::fmt::Write as _;

use model::summary::{Percentiles, Summary};
use records::metrics::KnownValue;

use super::figures::milliseconds;
use super::http;

/// The proxy's latency classes with their names for people, in the order of the table.
const PROXY_ROWS: &[(&str, &str)] = &[
    ("handshake_full", "full handshake"),
    ("handshake_resumed", "resumed handshake"),
    ("compute_full", "full handshake CPU"),
    ("compute_resumed", "resumed handshake CPU"),
    ("connect", "connect to upstream"),
    ("exchange", "exchange"),
    ("lifetime", "lifetime"),
];

const LOAD_ROWS: &[(&str, &str)] = &[
    ("response", "response, corrected"),
    ("service", "service, uncorrected"),
    ("lag", "send lag"),
    ("connect", "load: TCP connect"),
    ("handshake_full", "load: full handshake"),
    ("handshake_resumed", "load: resumed handshake"),
    ("handshake_early", "load: 0-RTT handshake"),
    ("first_byte", "load: first byte"),
    ("total", "load: total"),
    ("total_plain", "  new, without TLS"),
    ("total_full", "  new, full handshake"),
    ("total_resumed", "  new, resumed"),
    ("total_early", "  new, 0-RTT"),
    ("total_kept", "  kept alive"),
];

/// The table; nothing without samples.
pub(super) fn table(summary: &Summary, out: &mut String) {
    let mut rows = Vec::new();
    if let Some(proxy) = &summary.proxy {
        rows.extend(
            PROXY_ROWS.iter().filter_map(|(class, words)| Some((*words, proxy.latency_us.get(class)?, ""))),
        );
    }
    if let Some(http) = summary.proxy.as_ref().and_then(|proxy| proxy.http.as_ref()) {
        rows.extend(http::latency_rows(http).map(|(words, percentiles)| (words, percentiles, "")));
    }
    if let Some(load) = &summary.load {
        let mark = if load.generator.limits.is_empty() { "" } else { " *" };
        rows.extend(
            LOAD_ROWS.iter().filter_map(|(class, words)| Some((*words, load.latency_us.get(class)?, mark))),
        );
    }
    // A total with a single part needs no breakdown.
    let total =
        summary.load.as_ref().and_then(|load| load.latency_us.get("total")).map_or(0, |total| total.n);
    rows.retain(|(words, percentiles, _)| {
        percentiles.n > 0 && !(words.starts_with("  ") && percentiles.n == total)
    });
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "{:<23} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "latency, ms", "mean", "p50", "p90", "p99", "p99.9", "max", "n"
    );
    let ms = |us: KnownValue| milliseconds(us, summary.log.as_ref().is_some_and(|log| log.resolution_us > 0));
    for (words, percentiles, mark) in rows {
        let Percentiles { n, mean, p50, p90, p99, p999, max, .. } = percentiles;
        // In brackets: fewer than ten samples lie above the percentile.
        let cell = |value: &Option<KnownValue>, q: f64| match value {
            None => "-".to_owned(),
            Some(us) if records::histogram::quantile_is_thin(*n, q) => format!("({})", ms(*us)),
            Some(us) => ms(*us),
        };
        let plain = |value: &Option<KnownValue>| value.map_or_else(|| "-".to_owned(), ms);
        let _ = writeln!(
            out,
            "{words:<23} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9} {n:>9}{mark}",
            plain(mean),
            cell(p50, 0.5),
            cell(p90, 0.9),
            cell(p99, 0.99),
            cell(p999, 0.999),
            plain(max),
        );
    }
    out.push_str("in brackets: fewer than ten samples lie above\n\n");
}
