//! The format of `ApacheBench`, followed by each phase of a connection.

use std::fmt::Write as _;

use http::Uri;
use records::histogram::Histogram;
use records::metrics::LoadLatency;
use records::values::{EventCount, LoadEvent};

use super::run_view::{LatencyStats, RunView, mean, or_dash};
use super::units::{ms, whole_ms};

pub(super) fn text(view: &RunView<'_>) -> String {
    let mut out = String::new();
    server(view, &mut out);
    totals(view, &mut out);
    // ab's total is the time of a request; in an open loop that begins when it was due.
    let total = if view.is_open_loop() { view.request() } else { &view.latencies[LoadLatency::Total] };
    out.push_str("\nConnection Times (ms)\n              min  mean[+/-sd] median   max\n");
    for (name, class) in [
        ("Connect:", LoadLatency::Connect),
        ("Processing:", LoadLatency::Service),
        ("Waiting:", LoadLatency::FirstByte),
    ] {
        times(&mut out, name, &view.latencies[class]);
    }
    times(&mut out, "Total:", total);
    out.push_str("\nPercentage of the requests served within a certain time (ms)\n");
    let total = LatencyStats(total);
    for percent in [50, 66, 75, 80, 90, 95, 98, 99] {
        let at = total.at(f64::from(percent) / 100.0);
        let _ = writeln!(out, "  {percent}%  {:>5}", or_dash(at, whole_ms));
    }
    let _ = writeln!(out, " 100%  {:>5} (longest request)", or_dash(total.max(), whole_ms));
    if view.is_open_loop() {
        let request = view.request_name();
        let _ =
            writeln!(out, "# Total and percentages: {request}; Processing and Waiting: from the actual send");
        out.push_str("# open loop: the rate was given, so no time per request follows from it\n");
    }
    finer(view, &mut out);
    out
}

/// Each phase and each kind of connection in microseconds, which ab does not separate.
fn finer(view: &RunView<'_>, out: &mut String) {
    let _ = writeln!(
        out,
        "#{:<14}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}",
        " times in ms", "min", "mean", "+/-sd", "median", "99%", "max", "n"
    );
    let total = &view.latencies[LoadLatency::Total];
    for (name, class) in [
        ("Connect:", LoadLatency::Connect),
        ("TLS full:", LoadLatency::HandshakeFull),
        ("TLS resumed:", LoadLatency::HandshakeResumed),
        ("TLS 0-RTT:", LoadLatency::HandshakeEarly),
        ("Processing:", LoadLatency::Service),
        ("Waiting:", LoadLatency::FirstByte),
        ("Response:", LoadLatency::Response),
        ("Total:", LoadLatency::Total),
        (" new, plain:", LoadLatency::TotalPlain),
        (" new, full:", LoadLatency::TotalFull),
        (" resumed:", LoadLatency::TotalResumed),
        (" 0-RTT:", LoadLatency::TotalEarly),
        (" kept alive:", LoadLatency::TotalKept),
    ] {
        let histogram = &view.latencies[class];
        // A part that equals the whole is redundant.
        if histogram.is_empty() || (name.starts_with(' ') && histogram.count() == total.count()) {
            continue;
        }
        let times = LatencyStats(histogram);
        let figures = [times.min(), times.mean(), times.sd(), times.at(0.5), times.at(0.99), times.max()];
        let figures: String = figures.map(|figure| format!("{:>10}", or_dash(figure, ms))).concat();
        let _ = writeln!(out, "# {name:<13}{figures}{:>10}", histogram.count());
    }
}

fn line(out: &mut String, name: &str, value: impl std::fmt::Display) {
    let _ = writeln!(out, "{:<24}{value}", format!("{name}:"));
}

fn server(view: &RunView<'_>, out: &mut String) {
    // Header fields of answers are not recorded.
    line(out, "Server Software", "-");
    if let Ok(target) = view.setting("load.target").parse::<Uri>() {
        let port =
            target.port_u16().unwrap_or_else(|| if target.scheme_str() == Some("http") { 80 } else { 443 });
        line(out, "Server Hostname", target.host().unwrap_or_default().trim_matches(['[', ']']));
        line(out, "Server Port", port);
        negotiated(view, out);
        out.push('\n');
        line(out, "Document Path", target.path_and_query().map_or("/", |path| path.as_str()));
    }
    let length = mean(view.load.parts.body_out as f64, view.answered() as f64);
    let length = or_dash(length, |bytes| format!("{bytes:.0}"));
    line(out, "Document Length", format_args!("{length} bytes\n"));
}

/// The parameters of most handshakes. ab's key sizes are unknown.
fn negotiated(view: &RunView<'_>, out: &mut String) {
    // A resumed handshake may have no group.
    let rank = |entry: &EventCount| match entry.event {
        LoadEvent::Negotiated(_, _, group) => Some((group != 0, entry.count)),
        _ => None,
    };
    let most =
        view.load.events.iter().filter_map(|entry| Some((rank(entry)?, entry))).max_by_key(|(rank, _)| *rank);
    let Some((_, most)) = most else { return };
    let agreed = most.example.split(", ").next().unwrap_or_default();
    let mut words = agreed.splitn(3, ' ');
    let (version, suite) = (words.next().unwrap_or("-"), words.next().unwrap_or("-"));
    line(out, "SSL/TLS Protocol", format_args!("{version},{suite},-,-"));
    line(out, "Server Temp Key", words.next().unwrap_or("-"));
}

fn totals(view: &RunView<'_>, out: &mut String) {
    let load = &view.load;
    let connections = view.number("load.connections");
    let per_second = view.per_second(view.answered());
    line(out, "Concurrency Level", connections);
    line(out, "Time taken for tests", format_args!("{:.3} seconds", load.spans_s.measured));
    line(out, "Complete requests", view.answered());
    let bad = view.failures(&["status"]);
    let failed = load.requests.failed - bad.min(load.requests.failed);
    line(out, "Failed requests", failed);
    if failed > 0 {
        let [connect, receive, length, exceptions] =
            [&["connect"][..], &["reset", "short", "timeout"], &["body"], &["tls", "protocol"]]
                .map(|causes| view.failures(causes));
        let _ = writeln!(
            out,
            "   (Connect: {connect}, Receive: {receive}, Length: {length}, Exceptions: {exceptions})"
        );
    }
    if bad > 0 {
        line(out, "Non-2xx responses", bad);
    }
    if view.setting("load.keep-alive") != "off" {
        line(out, "Keep-Alive requests", load.requests.reused);
    }
    line(out, "Total transferred", format_args!("{} bytes", load.bytes.out));
    line(out, "HTML transferred", format_args!("{} bytes", load.parts.body_out));
    line(out, "Requests per second", format_args!("{per_second:.2} [#/sec] (mean)"));
    let each_ns = mean(1e9, per_second).filter(|_| !view.is_open_loop());
    let of_connection = or_dash(each_ns.map(|ns| ns * connections), ms);
    line(out, "Time per request", format_args!("{of_connection} [ms] (mean)"));
    let each = or_dash(each_ns, ms);
    line(out, "Time per request", format_args!("{each} [ms] (mean, across all concurrent requests)"));
    let received = view.per_second(load.bytes.out) / 1024.0;
    line(out, "Transfer rate", format_args!("{received:.2} [Kbytes/sec] received"));
}

/// A row of times in whole milliseconds.
fn times(out: &mut String, name: &str, histogram: &Histogram) {
    let times = LatencyStats(histogram);
    let _ = writeln!(
        out,
        "{name:<12}{:>5} {:>4} {:>5} {:>6} {:>7}",
        or_dash(times.min(), whole_ms),
        or_dash(times.mean(), whole_ms),
        or_dash(times.sd(), |ns| format!("{:.1}", ns / 1e6)),
        or_dash(times.at(0.5), whole_ms),
        or_dash(times.max(), whole_ms)
    );
}
