//! As `ApacheBench` prints it, with the phases of a connection apart.

use std::fmt::Write as _;

use telemetry::{Histogram, LoadEvent, LoadLatency};

use super::units::ms;
use super::{RunView, Times, mean, or_dash};
use crate::target::Target;

pub(super) fn text(view: &RunView<'_>) -> String {
    let mut out = String::new();
    server(view, &mut out);
    totals(view, &mut out);
    out.push_str("\nConnection Times (ms)\n");
    let _ = writeln!(
        out,
        "              {:>9} {:>9}[+/-sd] {:>9} {:>9} {:>9}",
        "min", "mean", "median", "max", "n"
    );
    for (name, class) in [
        ("Connect:", LoadLatency::Connect),
        ("TLS full:", LoadLatency::HandshakeFull),
        ("TLS resumed:", LoadLatency::HandshakeResumed),
        ("TLS 0-RTT:", LoadLatency::HandshakeEarly),
        ("Processing:", LoadLatency::Service),
        ("Waiting:", LoadLatency::FirstByte),
        ("Total:", LoadLatency::Total),
    ] {
        times(&mut out, name, &view.latencies[class]);
    }
    let total = &view.latencies[LoadLatency::Total];
    for (name, class) in [
        (" new, plain:", LoadLatency::TotalPlain),
        (" new, full:", LoadLatency::TotalFull),
        (" resumed:", LoadLatency::TotalResumed),
        (" 0-RTT:", LoadLatency::TotalEarly),
        (" kept alive:", LoadLatency::TotalKept),
    ] {
        let part = &view.latencies[class];
        // A part that is the whole says nothing new.
        if part.count() < total.count() {
            times(&mut out, name, part);
        }
    }
    out.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    for percent in [50, 66, 75, 80, 90, 95, 98, 99] {
        let at = Times(total).at(f64::from(percent) / 100.0);
        let _ = writeln!(out, " {percent:>3}% {:>10}", or_dash(at, ms));
    }
    let _ = writeln!(out, " 100% {:>10} (longest request)", or_dash(Times(total).max(), ms));
    out
}

fn line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{:<24}{value}", format!("{name}:"));
}

fn server(view: &RunView<'_>, out: &mut String) {
    if let Ok(target) = view.setting("load.target").parse::<Target>() {
        line(out, "Server Hostname", target.host());
        line(out, "Server Port", target.port());
        for entry in &view.load.events {
            if matches!(entry.event, LoadEvent::Negotiated(..)) {
                line(out, "SSL/TLS Protocol", format_args!("{} ({})", entry.example, entry.count));
            }
        }
        line(out, "Document Path", target.path());
    }
    let length = mean(view.load.parts.body_out as f64, view.answered() as f64);
    let length = or_dash(length, |bytes| format!("{bytes:.0}"));
    line(out, "Document Length", format_args!("{length} bytes (mean)\n"));
}

fn totals(view: &RunView<'_>, out: &mut String) {
    let load = &view.load;
    let connections = view.number("load.connections");
    let per_second = view.per_second(view.answered());
    line(out, "Concurrency Level", connections);
    line(out, "Time taken for tests", format_args!("{:.3} seconds", load.spans_s.measured));
    line(out, "Complete requests", view.answered());
    let bad = view.failures(&["status"]);
    line(out, "Failed requests", load.requests.failed - bad.min(load.requests.failed));
    if bad > 0 {
        line(out, "Non-2xx responses", bad);
    }
    line(out, "Keep-Alive requests", load.requests.reused);
    line(out, "Total transferred", format_args!("{} bytes", load.bytes.out));
    line(out, "HTML transferred", format_args!("{} bytes", load.parts.body_out));
    line(out, "Requests per second", format_args!("{per_second:.2} [#/sec] (mean)"));
    let each_ns = mean(1e9, per_second);
    let of_connection = or_dash(each_ns.map(|ns| ns * connections), ms);
    line(out, "Time per request", format_args!("{of_connection} [ms] (mean)"));
    let each = or_dash(each_ns, ms);
    line(out, "Time per request", format_args!("{each} [ms] (mean, across all concurrent requests)"));
    let received = view.per_second(load.bytes.out) / 1024.0;
    line(out, "Transfer rate", format_args!("{received:.2} [Kbytes/sec] received"));
}

/// A row of times, unless there are none.
fn times(out: &mut String, name: &str, histogram: &Histogram) {
    if histogram.is_empty() {
        return;
    }
    let times = Times(histogram);
    let _ = writeln!(
        out,
        "{name:<13} {:>9} {:>9} {:>6} {:>9} {:>9} {:>9}",
        or_dash(times.min(), ms),
        or_dash(times.mean(), ms),
        or_dash(times.sd(), ms),
        or_dash(times.at(0.5), ms),
        or_dash(times.max(), ms),
        histogram.count()
    );
}
