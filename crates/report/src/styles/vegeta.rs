//! The format of `vegeta report`.

use std::fmt::Write as _;

use records::values::LoadEvent;

use super::run_view::{LatencyStats, RunView, mean, or_dash, ratio};
use super::units::go;

/// Kinds of errors that are listed.
const ERRORS_MAX: usize = 20;

pub(super) fn text(view: &RunView<'_>) -> String {
    let load = &view.load;
    let (requests, spans) = (view.requests(), load.spans_s);
    let request = view.request();
    let attack = if spans.due > 0.0 { spans.due } else { spans.sending };
    let times = LatencyStats(request);
    let of_each =
        |bytes: u64| or_dash(mean(bytes as f64, view.answered() as f64), |bytes| format!("{bytes:.2}"));
    let mut out = String::new();
    let rate = load.rate_per_s.wanted.unwrap_or_else(|| ratio(load.requests.sent as f64, attack));
    let mut row = |name: &str, what: &str, values: &str| {
        let _ = writeln!(out, "{name:<13} {what:<33} {values}");
    };
    row(
        "Requests",
        "[total, rate, throughput]",
        &format!("{requests}, {rate:.2}, {:.2}", view.per_second(load.requests.ok)),
    );
    row(
        "Duration",
        "[total, attack, wait]",
        &format!(
            "{}, {}, {}",
            go(spans.measured * 1e9),
            go(attack * 1e9),
            go((spans.measured - attack).max(0.0) * 1e9)
        ),
    );
    let latencies = [
        times.min(),
        times.mean(),
        times.at(0.5),
        times.at(0.9),
        times.at(0.95),
        times.at(0.99),
        times.max(),
    ];
    let latencies = latencies.map(|ns| or_dash(ns, go)).join(", ");
    row("Latencies", "[min, mean, 50, 90, 95, 99, max]", &latencies);
    row("Bytes In", "[total, mean]", &format!("{}, {}", load.parts.body_out, of_each(load.parts.body_out)));
    row("Bytes Out", "[total, mean]", &format!("{}, {}", load.parts.body_in, of_each(load.parts.body_in)));
    row("Success", "[ratio]", &format!("{:.2}%", ratio(load.requests.ok as f64, requests as f64) * 100.0));
    row("Status Codes", "[code:count]", &codes(view).join("  "));
    out.push_str("Error Set:\n");
    for error in load.events.iter().filter(|entry| !entry.event.is_benign()).take(ERRORS_MAX) {
        let _ = writeln!(out, "{} ({}): {}", error.event, error.count, error.example);
    }
    let _ = writeln!(out, "# latencies: {}; n {}", view.request_name(), request.count());
    out
}

/// Statuses in ascending order; 0 means requests without one, as in vegeta.
fn codes(view: &RunView<'_>) -> Vec<String> {
    let mut codes: Vec<(u16, u64)> = Vec::new();
    for entry in &view.load.events {
        if let LoadEvent::Status(code) = entry.event {
            codes.push((code, entry.count));
        }
    }
    let with_status = codes.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    let without = view.requests().saturating_sub(with_status);
    if without > 0 {
        codes.push((0, without));
    }
    codes.sort_unstable();
    codes.iter().map(|(code, count)| format!("{code}:{count}")).collect()
}
