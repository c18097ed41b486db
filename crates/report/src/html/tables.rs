//! The tables of a page.

use maud::{Markup, html};
use records::metrics::Percentile;

use super::scrolled;
use crate::numbers::grouped;
use crate::report::Report;
use crate::report::latency::{ClassLatency, PERCENTILES, by_weight};
use crate::table::{Heading, ReportTable};

/// Events that are listed and marked in plots; a run may have a thousand.
pub(super) const EVENTS_LISTED: usize = 60;
/// Rows of a long table that are not folded.
pub(super) const LINES_SHOWN: usize = 20;
/// Clients that are listed; JSON has them all.
const CLIENTS_LISTED: usize = 200;

/// Explains brackets and intervals.
const INTERVALS: &str = "In brackets: fewer than ten samples lie above, so the figure is a guess. Below a percentile: its 95 % \
    confidence interval, from order statistics. It assumes independent samples. Samples of one stall are not, so the truth is \
    wider; and between runs a percentile differs more.";

impl Report<'_> {
    /// The main classes; the others are folded.
    pub(super) fn latency_table(&self) -> Markup {
        let (first, rest) = by_weight(self.latencies());
        let named = |latencies: &[ClassLatency<'_>]| {
            let rows = latencies.iter().map(|latency| (latency.name(), latency));
            rows.map(|(name, latency)| latency_row(&name, latency)).collect::<Vec<_>>()
        };
        html! {
            @if !first.is_empty() {
                (latency_rows("Latencies in milliseconds", &named(&first)))
                @if !rest.is_empty() {
                    details { summary { (rest.len()) " more classes" } (latency_rows("Latencies of the other classes in milliseconds", &named(&rest))) }
                }
                p.dim { (INTERVALS) }
            }
        }
    }

    pub(super) fn load_tables(&self) -> Markup {
        html! { (whole(&self.request_table())) (whole(&self.status_table())) }
    }

    pub(super) fn upstream_tables(&self) -> Markup {
        html! { (folded(&self.upstream_rows(), LINES_SHOWN)) (folded(&self.certificate_rows(), LINES_SHOWN)) }
    }

    pub(super) fn http_tables(&self) -> Markup {
        html! {
            (folded(&self.route_rows(), LINES_SHOWN))
            (whole(&self.http_status_rows()))
            (whole(&self.http_rows()))
        }
    }

    /// The clients, in two tables that are sorted as one.
    pub(super) fn client_table(&self) -> Markup {
        let mut table = self.client_rows();
        let more = table.rows.len().saturating_sub(CLIENTS_LISTED);
        table.rows.truncate(CLIENTS_LISTED);
        html! {
            @if !table.rows.is_empty() {
                div.sortable { (folded(&table, LINES_SHOWN)) }
                @if more > 0 { p.dim { "The " (grouped(more as u64)) " clients with the fewest bytes are in the JSON only." } }
            }
        }
    }

    pub(super) fn event_table(&self) -> Markup {
        let mut table = self.event_rows();
        let more = table.rows.len().saturating_sub(EVENTS_LISTED);
        table.rows.truncate(EVENTS_LISTED);
        html! { (folded(&table, LINES_SHOWN)) @if more > 0 { p.dim { "and " (grouped(more as u64)) " more" } } }
    }

    pub(super) fn environment_tables(&self) -> Markup {
        html! { (whole(&self.absent_rows())) (whole(&self.environment_rows())) (whole(&self.setting_rows())) }
    }

    pub(super) fn quality_list(&self) -> Markup {
        html! { ul { @for line in self.quality() { li { (line) } } } }
    }

    pub(super) fn definitions(&self) -> Markup {
        let rows = self
            .latencies()
            .into_iter()
            .map(|latency| vec![latency.name(), latency.class.meaning().to_owned()]);
        let table =
            ReportTable::new("Words", [Heading::Words("latency"), Heading::Words("from when to when")], rows);
        html! {
            (whole(&table))
            p.dim { "Histograms of nanoseconds with three significant digits, merged and never averaged; maxima are exact. In: from the client to the upstream. Apdex: the share of requests answered within the threshold T, and half of those answered within 4 T; failed and unanswered requests count 0." }
        }
    }
}

/// A row for each latency, with its name.
pub(super) fn latency_table<'a>(rows: impl Iterator<Item = (String, &'a ClassLatency<'a>)>) -> Markup {
    let rows: Vec<Markup> = rows.map(|(name, latency)| latency_row(&name, latency)).collect();
    html! { (latency_rows("Latencies in milliseconds", &rows)) p.dim { (INTERVALS) } }
}

fn latency_rows(caption: &str, rows: &[Markup]) -> Markup {
    let table = html! {
        thead { tr { th { "ms" } @for percentile in PERCENTILES { th.n { (percentile.label) } } th.n { "max" } th.n { "mean" } th.n { "n" } } }
        tbody { @for row in rows { (row) } }
    };
    html! { div.latencies { (scrolled(caption, &table)) } }
}

fn latency_row(name: &str, latency: &ClassLatency<'_>) -> Markup {
    let histogram = latency.histogram;
    html! {
        tr {
            td { (name) }
            @for Percentile { q, .. } in PERCENTILES {
                td.n {
                    @if let Some(quantile) = latency.quantile(q) {
                        @if quantile.is_thin {
                            "(" (latency.shown(quantile.ms)) span.hang { ")" }
                        } @else {
                            (latency.shown(quantile.ms))
                            @if let Some(interval) = quantile.interval_ms { br; span.dim { (latency.interval(interval)) } }
                        }
                    }
                }
            }
            td.n { (latency.shown(histogram.max_ns() as f64 / 1e6)) }
            td.n { (latency.mean()) }
            td.n { (grouped(histogram.count())) }
        }
    }
}

/// A table with all its rows; nothing without any.
pub(super) fn whole(table: &ReportTable) -> Markup {
    folded(table, usize::MAX)
}

/// A table with its first rows; the rest is folded. Nothing without rows.
pub(super) fn folded(table: &ReportTable, shown: usize) -> Markup {
    let (first, rest) = table.rows.split_at(shown.min(table.rows.len()));
    html! {
        @if !first.is_empty() { (rows(table.caption, &table.columns, first)) }
        @if !rest.is_empty() {
            details {
                summary { (grouped(rest.len() as u64)) " more" }
                (rows(&format!("{}, continued", table.caption), &table.columns, rest))
            }
        }
    }
}

fn rows(caption: &str, columns: &[Heading], rows: &[Vec<String>]) -> Markup {
    let class = |heading: &Heading| match heading {
        Heading::Words(_) => None,
        Heading::Number(_) => Some("n"),
    };
    let table = html! {
        thead { tr { @for column in columns { th class=[class(column)] { (column.heading()) } } } }
        tbody {
            @for row in rows {
                tr { @for (cell, column) in row.iter().zip(columns) { td class=[class(column)] { (cell) } } }
            }
        }
    };
    scrolled(caption, &table)
}
