//! The summary on standard output, for people or for programs.

use std::fmt::Write as _;
use std::io::{self, Write as _};

use anyhow::Context;
use rustix::io::Errno;
use telemetry::model::{Percentiles, Summary};

use crate::args::Format;

/// Clients that the text lists; the JSON has them all.
const CLIENTS_SHOWN: usize = 10;

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
    let mut out = format!("run {}, {:.1} s\n\n", summary.run, summary.duration_s);
    latency_table(summary, &mut out);
    if let Some(proxy) = &summary.proxy {
        let c = &proxy.connections;
        line(
            &mut out,
            "connections",
            format_args!("{} accepted, {} open, {} failed", c.accepted, c.open, c.failed),
        );
        let h = &proxy.handshakes;
        line(
            &mut out,
            "handshakes",
            format_args!(
                "{} full, {} resumed{}, {} failed",
                h.full,
                h.resumed,
                share(h.resumed, h.full),
                h.failed
            ),
        );
        line(
            &mut out,
            "bytes",
            format_args!("{} in, {} out", bytes(proxy.bytes.r#in), bytes(proxy.bytes.out)),
        );
    }
    if let Some(load) = &summary.load {
        let r = &load.requests;
        line(
            &mut out,
            "load",
            format_args!(
                "{} scheduled, {} sent, {} ok, {} failed, {} never sent, {} unfinished",
                r.scheduled, r.sent, r.ok, r.failed, r.never_sent, r.unfinished
            ),
        );
        let h = &load.handshakes;
        line(
            &mut out,
            "load saw",
            format_args!(
                "{} full, {} resumed{}, {} failed handshakes; {} in, {} out",
                h.full,
                h.resumed,
                share(h.resumed, h.full),
                h.failed,
                bytes(load.bytes.r#in),
                bytes(load.bytes.out)
            ),
        );
    }
    clients(summary, &mut out);
    if let Some(journal) = &summary.journal {
        line(
            &mut out,
            "journal",
            format_args!(
                "{}: {} records made, {} read, {} lost",
                journal.source, journal.made, journal.read, journal.lost
            ),
        );
    }
    let cpu: Vec<String> =
        summary.cpu_s.iter().map(|(name, seconds)| format!("{name} {seconds:.2}")).collect();
    line(&mut out, "CPU seconds", format_args!("{}", cpu.join(", ")));
    out
}

fn line(out: &mut String, name: &str, text: std::fmt::Arguments<'_>) {
    let _ = writeln!(out, "{name:<12} {text}");
}

fn latency_table(summary: &Summary, out: &mut String) {
    let proxy = summary.proxy.iter().flat_map(|proxy| &proxy.latency_us);
    let load = summary.load.iter().flat_map(|load| &load.latency_us);
    let rows: Vec<_> = load.chain(proxy).filter(|(_, percentiles)| percentiles.n > 0).collect();
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "{:<18} {:>10} {:>10} {:>10} {:>10} {:>10} {:>10}",
        "latency, ms", "p50", "p90", "p99", "p99.9", "max", "n"
    );
    for (class, percentiles) in rows {
        let Percentiles { n, p50, p90, p99, p999, max } = percentiles;
        // In brackets: fewer than ten samples lie above the percentile.
        let cell = |value: &Option<f64>, q: f64| match value {
            None => "-".to_owned(),
            Some(us) if telemetry::quantile_is_thin(*n, q) => format!("({:.3})", us / 1e3),
            Some(us) => format!("{:.3}", us / 1e3),
        };
        let max = max.map_or_else(|| "-".to_owned(), |us| format!("{:.3}", us / 1e3));
        let _ = writeln!(
            out,
            "{:<18} {:>10} {:>10} {:>10} {:>10} {max:>10} {n:>10}",
            class.replace('_', " "),
            cell(p50, 0.5),
            cell(p90, 0.9),
            cell(p99, 0.99),
            cell(p999, 0.999),
        );
    }
    out.push_str("in brackets: fewer than ten samples lie above\n\n");
}

fn clients(summary: &Summary, out: &mut String) {
    for (i, client) in summary.clients.iter().take(CLIENTS_SHOWN).enumerate() {
        let name = if i == 0 { "clients" } else { "" };
        line(
            out,
            name,
            format_args!(
                "{:<15} {:>6} connections, {:>6} full, {:>6} resumed, {:>10} in, {:>10} out",
                client.client,
                client.connections,
                client.handshakes_full,
                client.handshakes_resumed,
                bytes(client.bytes_in),
                bytes(client.bytes_out)
            ),
        );
    }
    let more = summary.clients.len().saturating_sub(CLIENTS_SHOWN);
    if more > 0 {
        line(out, "", format_args!("and {more} more"));
    }
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
