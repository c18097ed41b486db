//! The format of h2load.

use std::fmt::Write as _;

use model::figures::answers;
use records::histogram::Histogram;
use records::metrics::LoadLatency;

use super::run_view::{LatencyStats, RunView, mean, or_dash};
use super::units::{binary, h2load, percent};

/// The failures that h2load counts as errored: there was no answer with a status.
const ERRORED: &[&str] = &["connect", "tls", "reset", "short", "protocol", "body"];

pub(super) fn text(view: &RunView<'_>) -> String {
    let load = &view.load;
    let (requests, parts) = (&load.requests, &load.parts);
    let bytes = load.bytes.out;
    let mut out = String::new();
    let _ = writeln!(
        out,
        "finished in {}, {:.2} req/s, {}/s",
        h2load(load.spans_s.measured * 1e9),
        view.per_second(view.answered()),
        binary(view.per_second(bytes))
    );
    let _ = writeln!(
        out,
        "requests: {} total, {} started, {} done, {} succeeded, {} failed, {} errored, {} timeout",
        view.requests(),
        requests.sent,
        view.answered(),
        requests.ok,
        requests.failed,
        view.failures(ERRORED),
        view.failures(&["timeout"])
    );
    let answers = |class| view.run.load_record().map_or(0, |record| answers(record, class));
    let _ = writeln!(
        out,
        "status codes: {} 2xx, {} 3xx, {} 4xx, {} 5xx",
        answers(2),
        answers(3),
        answers(4),
        answers(5)
    );
    let compressed = mean(parts.head_out as f64, parts.head_plain as f64);
    let savings = or_dash(compressed.map(|share| 100.0 * (1.0 - share)), percent);
    let sized = |bytes: u64| format!("{} ({bytes})", binary(bytes as f64));
    let _ = writeln!(
        out,
        "traffic: {} total, {} headers (space savings {savings}), {} data",
        sized(bytes),
        sized(parts.head_out),
        sized(parts.body_out)
    );
    times(view, &mut out);
    out
}

/// The rows of times and rates.
fn times(view: &RunView<'_>, out: &mut String) {
    out.push_str("                     min         max         mean         sd        +/- sd\n");
    row(out, "time for request: ", view.request());
    row(out, "time for connect: ", &view.latencies[LoadLatency::Connect]);
    row(out, "time to 1st byte: ", &view.latencies[LoadLatency::FirstByte]);
    // h2load's are of each client; of ours only the mean is known.
    let connections = view.number("load.connections");
    let each = mean(view.per_second(view.answered()), connections);
    columns(
        out,
        "req/s           : ",
        [None, None, each, None].map(|rate| or_dash(rate, |rate| format!("{rate:.2}"))),
        "-",
    );
    if view.is_open_loop() {
        let request = view.request_name();
        let _ = writeln!(
            out,
            "# time for request: {request}; time to 1st byte: from the actual send, uncorrected"
        );
    }
    for (name, class) in [
        ("time for TLS full", LoadLatency::HandshakeFull),
        ("time for resumed", LoadLatency::HandshakeResumed),
        ("time for 0-RTT", LoadLatency::HandshakeEarly),
    ] {
        let histogram = &view.latencies[class];
        if !histogram.is_empty() {
            row(out, &format!("# {name}: "), histogram);
        }
    }
}

fn row(out: &mut String, name: &str, histogram: &Histogram) {
    let times = LatencyStats(histogram);
    let figures = [times.min(), times.max(), times.mean(), times.sd()].map(|time| or_dash(time, h2load));
    columns(out, name, figures, &or_dash(times.within_sd(), percent));
}

fn columns(out: &mut String, name: &str, [min, max, mean, sd]: [String; 4], within: &str) {
    let _ = writeln!(out, "{name}{min:>10}  {max:>10}  {mean:>10}  {sd:>10}{within:>10}");
}
