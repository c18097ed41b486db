//! The table of upstreams, for the page and for Markdown.

use model::summary::UpstreamSummary;
use records::kinds::UpstreamState;
use records::metrics::UpstreamCounter;

use super::http::quantile;
use crate::numbers::{fixed, grouped};
use crate::report::Report;
use crate::table::Heading::{Number, Words};
use crate::table::ReportTable;

impl Report<'_> {
    /// The upstreams, by name.
    pub(crate) fn upstream_rows(&self) -> ReportTable {
        let row = |upstream: &UpstreamSummary| {
            let state = match upstream.state {
                UpstreamState::Up => "up".to_owned(),
                state => format!("{state} for {} s: {}", fixed(upstream.state_s, 0), upstream.reason),
            };
            let count = |counter| grouped(upstream.counters[counter]);
            let first_byte = upstream.latency_us.get("first_byte");
            vec![
                upstream.upstream.clone(),
                state,
                count(UpstreamCounter::Connections),
                grouped(upstream.failed()),
                count(UpstreamCounter::Broken),
                count(UpstreamCounter::Exchanges),
                quantile(upstream.latency_us.get("connect"), 0.99, |it| it.p99),
                quantile(first_byte, 0.5, |it| it.p50),
                quantile(first_byte, 0.99, |it| it.p99),
                fixed(upstream.counters[UpstreamCounter::BytesIn] as f64 / 1e6, 3),
                fixed(upstream.counters[UpstreamCounter::BytesOut] as f64 / 1e6, 3),
            ]
        };
        let columns = [
            Words("upstream"),
            Words("state at the end"),
            Number("connections"),
            Number("failed attempts"),
            Number("broken"),
            Number("exchanges"),
            Number("connect p99, ms"),
            Number("first byte p50, ms"),
            Number("first byte p99, ms"),
            Number("MB in"),
            Number("MB out"),
        ];
        let upstreams = self.summary.proxy.iter().flat_map(|proxy| &proxy.upstreams);
        ReportTable::new("Upstreams", columns, upstreams.map(row))
    }
}
