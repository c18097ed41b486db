//! As `ApacheBench` prints it, with the phases of a connection apart.

use std::fmt::Write as _;

use telemetry::{Histogram, LoadEvent, LoadLatency};

use super::{View, ratio};
use crate::target::Target;

pub(super) fn text(view: &View<'_>) -> String {
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
        let at = total.quantile_ns(f64::from(percent) / 100.0).unwrap_or(0);
        let _ = writeln!(out, " {percent:>3}% {:>10.3}", at as f64 / 1e6);
    }
    let _ = writeln!(out, " 100% {:>10.3} (longest request)", total.max_ns() as f64 / 1e6);
    out
}

fn line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{:<24}{value}", format!("{name}:"));
}

fn server(view: &View<'_>, out: &mut String) {
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
    let mean = ratio(view.load.parts.body_out as f64, view.answered() as f64);
    line(out, "Document Length", format_args!("{mean:.0} bytes (mean)\n"));
}

fn totals(view: &View<'_>, out: &mut String) {
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
    let each = ratio(1e3, per_second);
    line(out, "Time per request", format_args!("{:.3} [ms] (mean)", each * connections));
    line(out, "Time per request", format_args!("{each:.3} [ms] (mean, across all concurrent requests)"));
    let received = view.per_second(load.bytes.out) / 1024.0;
    line(out, "Transfer rate", format_args!("{received:.2} [Kbytes/sec] received"));
}

/// A row of times, unless there are none.
fn times(out: &mut String, name: &str, histogram: &Histogram) {
    if histogram.is_empty() {
        return;
    }
    let ms = |ns: f64| ns / 1e6;
    let _ = writeln!(
        out,
        "{name:<13} {:>9.3} {:>9.3} {:>6.3} {:>9.3} {:>9.3} {:>9}",
        ms(histogram.min_ns().unwrap_or(0) as f64),
        ms(histogram.mean_ns().unwrap_or(0.0)),
        ms(histogram.stdev_ns().unwrap_or(0.0)),
        ms(histogram.quantile_ns(0.5).unwrap_or(0) as f64),
        ms(histogram.max_ns() as f64),
        histogram.count()
    );
}
