//! The tables of a page.

use maud::{Markup, html};
use telemetry::Percentile;
use telemetry::model::{ComparedSummary, Level};

use super::plot::short;
use crate::latency::ClassLatency;
use crate::report::Report;

/// Events that are listed and marked in plots; a run may have a thousand.
pub(super) const EVENTS_LISTED: usize = 60;
/// Clients that are listed.
const CLIENTS_SHOWN: usize = 50;
const EVENTS_SHOWN: usize = 30;

/// Explains brackets and intervals.
const INTERVALS: &str = "In brackets: fewer than ten samples lie above. Below a percentile: its 95 % confidence interval (of order \
    statistics). Of intervals made in this way, 95 in 100 hold the percentile that more and more samples of the same kind would \
    come to, if samples did not depend on each other. Those of one stall do, so the truth is wider; and between runs a percentile \
    differs more.";

impl Report<'_> {
    pub(super) fn latency_table(&self) -> Markup {
        let latencies = self.latencies();
        if latencies.is_empty() {
            return html! {};
        }
        latency_table(latencies.iter().map(|latency| (latency.name(), latency)))
    }

    pub(super) fn handshake_table(&self) -> Markup {
        let handshakes = self.handshakes();
        html! {
            @if !handshakes.is_empty() {
                table {
                    thead { tr { th { "by" } th { "" } th.n { "count" } } }
                    tbody { @for (kind, name, count) in handshakes { tr { td { (kind) } td { (name) } td.n { (count) } } } }
                }
            }
        }
    }

    pub(super) fn load_tables(&self) -> Markup {
        let Some(load) = &self.summary.load else { return html! {} };
        let requests = &load.requests;
        let counts = [
            ("scheduled", requests.scheduled),
            ("sent", requests.sent),
            ("ok", requests.ok),
            ("failed", requests.failed),
            ("never sent", requests.never_sent),
            ("of these, throttled", requests.throttled),
            ("unfinished", requests.unfinished),
            ("taken on late", requests.late),
            ("of the warm-up", requests.warmup),
            ("retried", requests.retried),
        ];
        html! {
            table {
                thead { tr { th { "requests" } th.n { "count" } } }
                tbody { @for (name, count) in counts { tr { td { (name) } td.n { (count) } } } }
            }
            @if !load.events.is_empty() {
                table {
                    thead { tr { th { "statuses, failures, what TLS agreed on" } th.n { "count" } th { "first example" } } }
                    tbody {
                        @for event in load.events.iter().take(EVENTS_SHOWN) {
                            tr { td { (event.event.to_string()) } td.n { (event.count) } td { (event.example) } }
                        }
                    }
                }
            }
        }
    }

    pub(super) fn client_table(&self) -> Markup {
        let clients = self.clients();
        if clients.is_empty() {
            return html! {};
        }
        let more = clients.len().saturating_sub(CLIENTS_SHOWN);
        html! {
            table {
                thead { tr { th { "client" } th.n { "connections" } th.n { "full" } th.n { "resumed" } th.n { "bytes in" } th.n { "bytes out" } } }
                tbody {
                    @for client in clients.iter().take(CLIENTS_SHOWN) {
                        tr { td { (client.client) } td.n { (client.connections) } td.n { (client.handshakes_full) } td.n { (client.handshakes_resumed) } td.n { (client.bytes_in) } td.n { (client.bytes_out) } }
                    }
                }
            }
            @if more > 0 { p.dim { "and " (more) " more" } }
        }
    }

    pub(super) fn cpu_table(&self) -> Markup {
        let used: Vec<_> = self.summary.cpu_s.iter().filter(|(_, seconds)| **seconds > 0.0).collect();
        let whole_s = self.run.recorded_us() as f64 / 1e6;
        html! {
            @if !used.is_empty() && whole_s > 0.0 {
                table {
                    thead { tr { th { "threads of" } th.n { "CPU seconds" } th.n { "of one core" } } }
                    tbody { @for (name, seconds) in used { tr { td { (name) } td.n { (short(*seconds)) } td.n { (short(seconds / whole_s * 100.0)) " %" } } } }
                }
            }
        }
    }

    pub(super) fn event_table(&self) -> Markup {
        let events = self.events();
        let more = events.len().saturating_sub(EVENTS_LISTED);
        html! {
            @if !events.is_empty() {
                table {
                    thead { tr { th.n { "mark or event" } th.n { "after, s" } th { "what" } } }
                    tbody {
                        @for event in events.iter().take(EVENTS_LISTED) {
                            tr { td.n { (event.label) } td.n { (short(event.after_s)) } td.warn[event.line.level == Level::Warning] { (event.line.text) } }
                        }
                    }
                }
                @if more > 0 { p.dim { "and " (more) " more" } }
            }
        }
    }

    pub(super) fn experiment_tables(&self) -> Markup {
        html! {
            @for experiment in &self.summary.experiments {
                p { (experiment.setting) ": " (experiment.a) " (A) against " (experiment.b) " (B), in pairs of blocks of " (short(experiment.block_s)) " s, seed " (experiment.seed) }
                table {
                    thead { tr { th { "figure" } th { "verdict" } th.n { "A" } th.n { "B" } th.n { "difference, %" } th.n { "interval" } th.n { "p" } th.n { "pairs" } th.n { "could be shown, %" } } }
                    tbody { @for compared in &experiment.metrics { (compared_rows(compared)) } }
                }
            }
        }
    }

    pub(super) fn environment_tables(&self) -> Markup {
        html! {
            table { tbody { @for (name, value) in self.environment() { tr { td { (name) } td { (value) } } } } }
            @let settings = self.settings();
            @if !settings.is_empty() {
                table {
                    thead { tr { th { "setting, at the end" } th { "value" } th.keep { "a change acts" } } }
                    tbody { @for (name, value, applies) in settings { tr { td { (name) } td { (value) } td.keep { (applies) } } } }
                }
            }
        }
    }

    pub(super) fn quality_list(&self) -> Markup {
        html! { ul { @for line in self.quality() { li { (line) } } } }
    }

    pub(super) fn definitions(&self) -> Markup {
        html! {
            table { tbody { @for latency in self.latencies() { tr { td { (latency.name()) } td { (latency.class.meaning()) } } } } }
            p.dim { "Histograms of nanoseconds with three significant digits, merged and never averaged; maxima are exact. In: from the client to the upstream." }
        }
    }
}

/// A row for each latency, with its name.
pub(super) fn latency_table<'a>(rows: impl Iterator<Item = (String, &'a ClassLatency<'a>)>) -> Markup {
    html! {
        table {
            thead { tr { th { "ms" } th.n { "n" } th.n { "mean" } @for percentile in Percentile::TABLE { th.n { (percentile.label) } } th.n { "max" } } }
            tbody { @for (name, latency) in rows { (latency_row(&name, latency)) } }
        }
        p.dim { (INTERVALS) }
    }
}

fn latency_row(name: &str, latency: &ClassLatency<'_>) -> Markup {
    let histogram = latency.histogram;
    html! {
        tr {
            td { (name) }
            td.n { (histogram.count()) }
            td.n { (histogram.mean_ns().map(|ns| short(ns / 1e6)).unwrap_or_default()) }
            @for Percentile { q, .. } in Percentile::TABLE {
                td.n {
                    @if let Some(quantile) = latency.quantile(q) {
                        @if quantile.is_thin {
                            "(" (short(quantile.ms)) ")"
                        } @else {
                            (short(quantile.ms))
                            @if let Some((low, high)) = quantile.interval_ms { br; span.dim { (short(low)) "–" (short(high)) } }
                        }
                    }
                }
            }
            td.n { (short(histogram.max_ns() as f64 / 1e6)) }
        }
    }
}

fn compared_rows(compared: &ComparedSummary) -> Markup {
    let stages = [("A against A", &compared.calibration), ("B against A", &compared.verdict)];
    html! {
        @for (stage, verdict) in stages {
            @if let Some(verdict) = verdict {
                tr {
                    td { (compared.metric) ", " (stage) }
                    td { strong { (verdict.outcome.to_uppercase()) } @if !verdict.reason.is_empty() { ": " (verdict.reason) } }
                    @if let Some(estimate) = &verdict.estimate {
                        td.n { (short(estimate.a)) } td.n { (short(estimate.b)) }
                        td.n { (format!("{:+.2}", estimate.effect_percent)) }
                        td.n { (format!("{:+.2} to {:+.2} at {:.1} %", estimate.low_percent, estimate.high_percent, estimate.confidence_percent)) }
                        td.n { (format!("{:.4}", estimate.p)) } td.n { (estimate.pairs) } td.n { (short(estimate.resolution_percent)) }
                    }
                }
            }
        }
    }
}
