//! The summary on standard output, for people or for programs.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anyhow::Context;
use rustix::io::Errno;
use telemetry::model::{
    HandshakeCounts, JournalSummary, LoadSummary, Percentiles, ProxySummary, RequestCounts, Summary,
};

use crate::args::Format;

/// Clients that the text lists; the JSON has them all.
const CLIENTS_SHOWN: usize = 10;

/// The classes of latencies as people know them, in the order of the table.
const ROWS: &[(&str, &str)] = &[
    ("handshake_full", "full handshake"),
    ("handshake_resumed", "resumed handshake"),
    ("compute_full", "compute full"),
    ("compute_resumed", "compute resumed"),
    ("connect", "connect"),
    ("exchange", "exchange"),
    ("lifetime", "lifetime"),
    ("response", "response, corrected"),
    ("service", "service, uncorr."),
    ("lag", "send lag"),
];

/// Prints a summary.
pub(crate) fn print(summary: &Summary, format: Format) -> anyhow::Result<()> {
    let text = match format {
        Format::Json => serde_json::to_string_pretty(summary)? + "\n",
        Format::Text => text(summary),
    };
    print_text(&text)
}

/// Prints text as it is. A reader that has seen enough, such as `head`, or a terminal that is gone is no failure.
pub(crate) fn print_text(text: &str) -> anyhow::Result<()> {
    let gone = [Errno::PIPE, Errno::IO].map(|errno| Some(errno.raw_os_error()));
    match io::stdout().write_all(text.as_bytes()).and_then(|()| io::stdout().flush()) {
        Err(error) if !gone.contains(&error.raw_os_error()) => {
            Err(error).context("cannot print on standard output")
        }
        _ => Ok(()),
    }
}

fn text(summary: &Summary) -> String {
    let ended = if summary.ended { "" } else { "; no last record: it still runs, or was killed" };
    let mut out = format!("run {}, {:.1} s{ended}\n\n", summary.run, summary.duration_s);
    latency_table(summary, &mut out);
    if let Some(proxy) = &summary.proxy {
        proxy_lines(proxy, &mut out);
    }
    if let Some(load) = &summary.load {
        load_lines(load, &mut out);
    }
    clients(summary, &mut out);
    if let Some(journal) = &summary.journal {
        let JournalSummary { made, read, lost, source } = journal;
        line(&mut out, "journal", format_args!("{read} read of {made} made, {lost} lost"));
        line(&mut out, "", format_args!("{source}"));
    }
    let used = summary.cpu_s.iter().filter(|(_, seconds)| **seconds > 0.0);
    let cpu: Vec<String> = used.map(|(name, seconds)| format!("{name} {seconds:.2}")).collect();
    line(&mut out, "CPU seconds", format_args!("{}", cpu.join(", ")));
    out
}

fn proxy_lines(proxy: &ProxySummary, out: &mut String) {
    let c = &proxy.connections;
    line(out, "connections", format_args!("{} accepted, {} open, {} failed", c.accepted, c.open, c.failed));
    handshake_line(&proxy.handshakes, "handshakes", out);
    line(out, "bytes", format_args!("{} in, {} out", bytes(proxy.bytes.r#in), bytes(proxy.bytes.out)));
}

fn load_lines(load: &LoadSummary, out: &mut String) {
    let RequestCounts { scheduled, sent, ok, failed, never_sent, unfinished, .. } = &load.requests;
    line(out, "requests", format_args!("{scheduled} scheduled, {sent} sent, {ok} ok, {failed} failed"));
    if never_sent + unfinished > 0 {
        line(out, "", format_args!("{never_sent} never sent, {unfinished} unfinished"));
    }
    let causes = load.failures.iter().filter(|(_, count)| **count > 0);
    let causes: Vec<String> = causes.map(|(cause, count)| format!("{count} {cause}")).collect();
    if !causes.is_empty() {
        line(out, "failed by", format_args!("{}", causes.join(", ")));
    }
    handshake_line(&load.handshakes, "load saw", out);
    line(out, "", format_args!("{} in, {} out", bytes(load.bytes.r#in), bytes(load.bytes.out)));
}

fn handshake_line(handshakes: &HandshakeCounts, name: &str, out: &mut String) {
    let HandshakeCounts { full, resumed, failed } = handshakes;
    let share = share(*resumed, *full);
    line(out, name, format_args!("{full} full, {resumed} resumed{share}, {failed} failed"));
}

fn line(out: &mut String, name: &str, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{name:<12} {text}");
}

fn latency_table(summary: &Summary, out: &mut String) {
    let proxy = summary.proxy.iter().flat_map(|proxy| &proxy.latency_us);
    let load = summary.load.iter().flat_map(|load| &load.latency_us);
    let mut rows: Vec<_> = proxy.chain(load).filter(|(_, percentiles)| percentiles.n > 0).collect();
    rows.sort_by_key(|(class, _)| ROWS.iter().position(|(name, _)| name == *class));
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "{:<20} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "latency, ms", "p50", "p90", "p99", "p99.9", "max", "n"
    );
    for (class, percentiles) in rows {
        let Percentiles { n, p50, p90, p99, p999, max, .. } = percentiles;
        // In brackets: fewer than ten samples lie above the percentile.
        let cell = |value: &Option<f64>, q: f64| match value {
            None => "-".to_owned(),
            Some(us) if telemetry::quantile_is_thin(*n, q) => format!("({:.3})", us / 1e3),
            Some(us) => format!("{:.3}", us / 1e3),
        };
        let max = max.map_or_else(|| "-".to_owned(), |us| format!("{:.3}", us / 1e3));
        let _ = writeln!(
            out,
            "{:<20} {:>9} {:>9} {:>9} {:>9} {max:>9} {n:>9}",
            ROWS.iter().find(|(name, _)| name == class).map_or(*class, |(_, words)| words),
            cell(p50, 0.5),
            cell(p90, 0.9),
            cell(p99, 0.99),
            cell(p999, 0.999),
        );
    }
    out.push_str("in brackets: fewer than ten samples lie above\n\n");
}

fn clients(summary: &Summary, out: &mut String) {
    if summary.clients.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\n{:<25} {:>11} {:>8} {:>8} {:>10} {:>10}",
        "client", "connections", "full", "resumed", "in", "out"
    );
    for client in summary.clients.iter().take(CLIENTS_SHOWN) {
        let _ = writeln!(
            out,
            "{:<25} {:>11} {:>8} {:>8} {:>10} {:>10}",
            client.client,
            client.connections,
            client.handshakes_full,
            client.handshakes_resumed,
            bytes(client.bytes_in),
            bytes(client.bytes_out)
        );
    }
    let more = summary.clients.len().saturating_sub(CLIENTS_SHOWN);
    if more > 0 {
        let _ = writeln!(out, "and {more} more");
    }
    out.push('\n');
}

fn share(resumed: u64, full: u64) -> String {
    match resumed + full {
        0 => String::new(),
        all => format!(" ({:.1} %)", resumed as f64 * 100.0 / all as f64),
    }
}

/// Decimal bytes with three significant digits or all of them.
fn bytes(count: u64) -> String {
    let scaled = count as f64;
    match count {
        0..1_000 => format!("{count} B"),
        1_000..1_000_000 => format!("{:.2} kB", scaled / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} MB", scaled / 1e6),
        _ => format!("{:.2} GB", scaled / 1e9),
    }
}
