//! The summary on standard output, for people or for programs.

mod alerts;
mod experiments;
mod figures;
mod http;
mod latency;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use anyhow::Context;
use model::summary::{
    ClientSummary, HandshakeCounts, JournalSummary, LoadSummary, LogSummary, ProcessSummary, ProcessUsage,
    ProxySummary, QuicCounts, Summary,
};
use records::metrics::ClientCounter;
use records::values::{LoadEvent, LogFigure};
use rustix::io::Errno;

use crate::cli::Format;
use figures::line;

pub(crate) use figures::{bytes, milliseconds};

/// Clients that the text lists; the JSON has them all.
const CLIENTS_SHOWN: usize = 10;

/// Events of a load that the text lists.
const EVENTS_SHOWN: usize = 20;

pub(crate) fn print(summary: &Summary, format: Format) -> anyhow::Result<()> {
    let text = match format {
        Format::Json => serde_json::to_string_pretty(summary)? + "\n",
        Format::Text => text(summary),
    };
    print_text(&text)
}

/// Prints text unchanged. A reader that stops early, such as `head`, or a closed terminal is not a failure.
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
    let of = match (summary.uid, &*summary.unit) {
        (Some(uid), "") => format!(" of uid {uid}"),
        (Some(uid), unit) => format!(" of uid {uid}, {unit}"),
        (None, _) => String::new(),
    };
    let mut out = format!("run {}{of}, {:.1} s{ended}\n\n", summary.run, summary.duration_s);
    latency::table(summary, &mut out);
    if let Some(proxy) = &summary.proxy {
        proxy_lines(proxy, summary.log.as_ref(), &mut out);
    }
    if let Some(log) = &summary.log {
        log_lines(log, &mut out);
    }
    if let Some(load) = &summary.load {
        load_lines(load, &mut out);
    }
    for (at, sentence) in summary.tls_cost.sentences().iter().enumerate() {
        line(&mut out, if at == 0 { "TLS costs" } else { "" }, format_args!("{sentence}"));
    }
    clients(summary, &mut out);
    experiments::lines(&summary.experiments, &mut out);
    alerts::lines(&summary.alerts, &mut out);
    if let Some(journal) = &summary.journal {
        let JournalSummary { made, read, lost, source, .. } = journal;
        line(&mut out, "journal", format_args!("{read} read of {made} made, {lost} lost"));
        let problems = journal_problems(journal);
        if !problems.is_empty() {
            line(&mut out, "", format_args!("{}", problems.join(", ")));
        }
        line(&mut out, "", format_args!("{source}"));
    }
    let used = summary.cpu_s.iter().filter(|(_, seconds)| **seconds > 0.0);
    let cpu: Vec<String> = used.map(|(name, seconds)| format!("{name} {seconds:.2}")).collect();
    if !cpu.is_empty() {
        line(&mut out, "CPU seconds", format_args!("{}", cpu.join(", ")));
    }
    if let Some(process) = &summary.process {
        let ProcessSummary { memory_bytes, memory_pss_bytes, descriptors, threads } = *process;
        let (resident, pss) = (bytes(memory_bytes), bytes(memory_pss_bytes));
        line(
            &mut out,
            "memory",
            format_args!("{resident} (PSS {pss}), {descriptors} descriptors, {threads} threads at the end"),
        );
    }
    if let Some(observed) = &summary.observed {
        line(
            &mut out,
            "process",
            format_args!(
                "{}: CPU {:.2} s, {:.1} %; at most {} threads and {} of memory",
                observed.pid,
                observed.cpu_s,
                observed.cpu_percent,
                observed.threads_max,
                bytes(observed.memory_max_bytes)
            ),
        );
        // One alone has the figures of all.
        for process in observed.processes.iter().filter(|_| observed.processes.len() > 1) {
            let ProcessUsage { pid, name, cpu_s, cpu_percent } = process;
            line(&mut out, "", format_args!("{pid} {name}: CPU {cpu_s:.2} s, {cpu_percent:.1} %"));
        }
    }
    out
}

/// What an observed log has and lacks.
fn log_lines(log: &LogSummary, out: &mut String) {
    if let Some(lines) = &log.lines {
        line(out, "log lines", format_args!("{lines}"));
    }
    if let Some(packets) = &log.packets {
        counts_line("closed first", &packets.closed_first, out);
        counts_line("stopped", &packets.windows_full, out);
        let QuicCounts { connections, packets: of_quic, bytes: payload } = packets.quic;
        if of_quic > 0 {
            let payload = bytes(payload);
            line(
                out,
                "QUIC",
                format_args!("{connections} connections, {of_quic} packets, {payload}; not judged"),
            );
        }
        line(out, "packets", format_args!("{packets}; they do not say:"));
    } else {
        let resolution = Duration::from_micros(log.resolution_us);
        line(out, "log", format_args!("of {}, times to {resolution:?}; it does not say:", log.terminator));
    }
    for absent in &log.absent {
        line(out, "", format_args!("{absent}"));
    }
}

/// Counts by who, unless all are 0.
fn counts_line(name: &str, counts: &BTreeMap<&'static str, u64>, out: &mut String) {
    let counts: Vec<_> = counts.iter().filter(|(_, count)| **count > 0).collect();
    if !counts.is_empty() {
        let text: Vec<_> = counts.iter().map(|(who, count)| format!("{who} {count}")).collect();
        line(out, name, format_args!("{}", text.join(", ")));
    }
}

/// Other problems of the records on their way.
fn journal_problems(journal: &JournalSummary) -> Vec<String> {
    let counts = [
        (journal.gaps, "gaps in what was measured or read"),
        (journal.merged, "intervals merged"),
        (journal.refused, "records refused"),
        (journal.dropped, "dropped by the writer"),
        (journal.suppressed, "messages suppressed by journald"),
        (journal.foreign, "of another process"),
        (journal.malformed, "malformed"),
        (journal.skipped_bytes, "bytes unreadable"),
    ];
    counts.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect()
}

/// A log has neither requests in flight nor upstream connections, and what it does not tell is no 0.
fn proxy_lines(proxy: &ProxySummary, log: Option<&LogSummary>, out: &mut String) {
    let is_log = log.is_some_and(|log| log.packets.is_none());
    let c = &proxy.connections;
    let open = if is_log { String::new() } else { format!(" {} open,", c.open) };
    let (handshakes, has_handshakes) = (&proxy.handshakes, !lacks(log, LogFigure::Handshakes));
    if c.accepted > 0 || has_handshakes {
        line(out, "connections", format_args!("{} accepted,{open} {} failed", c.accepted, c.failed));
    }
    if handshakes.full + handshakes.resumed > 0 || has_handshakes {
        handshake_line(handshakes, "handshakes", out);
    } else if handshakes.failed > 0 {
        line(out, "handshakes", format_args!("{} failed", handshakes.failed));
    }
    let is_told = proxy.bytes.r#in > 0 || !lacks(log, LogFigure::Bytes);
    let bytes_in = if is_told { bytes(proxy.bytes.r#in) } else { "–".to_owned() };
    line(out, "bytes", format_args!("{bytes_in} in, {} out", bytes(proxy.bytes.out)));
    if let Some(http) = &proxy.http {
        http::lines(http, is_log, out);
    }
}

fn lacks(log: Option<&LogSummary>, figure: LogFigure) -> bool {
    log.is_some_and(|log| log.lacks.contains(&figure))
}

fn load_lines(load: &LoadSummary, out: &mut String) {
    let requests = &load.requests;
    line(
        out,
        "requests",
        format_args!(
            "{} scheduled, {} sent, {} ok, {} failed",
            requests.scheduled, requests.sent, requests.ok, requests.failed
        ),
    );
    let rest = [
        (requests.never_sent, "never sent"),
        (requests.throttled, "of these throttled"),
        (requests.unfinished, "unfinished"),
        (requests.late, "taken on late"),
        (requests.warmup, "of the warm-up"),
        (requests.retried, "retried"),
    ];
    let rest: Vec<String> =
        rest.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    if !rest.is_empty() {
        line(out, "", format_args!("{}", rest.join(", ")));
    }
    let rates = &load.rate_per_s;
    let wanted = rates.wanted.map_or_else(String::new, |wanted| format!(" of {wanted:.1}/s wanted"));
    let seconds = load.spans_s.measured;
    line(out, "rate", format_args!("{:.1}/s answered{wanted} over {seconds:.2} s", rates.achieved));
    let causes = load.failures.iter().filter(|(_, count)| **count > 0);
    let causes: Vec<String> = causes.map(|(cause, count)| format!("{count} {cause}")).collect();
    if !causes.is_empty() {
        line(out, "failed by", format_args!("{}", causes.join(", ")));
    }
    for event in load.events.iter().take(EVENTS_SHOWN) {
        // An example is of one request, and the count of all.
        let of = match event.event {
            LoadEvent::Negotiated(..) => ": ",
            LoadEvent::Status(_) => ", all paths; first: ",
            _ => "; first: ",
        };
        line(out, "", format_args!("{} {}{of}{}", event.count, event.event, event.example));
    }
    let handshakes = &load.handshakes;
    handshake_line(handshakes, "load saw", out);
    if load.resumptions.wanted > 0 {
        let wanted = &load.resumptions;
        line(
            out,
            "",
            format_args!(
                "resumptions: {} wanted, {} offered, {} observed",
                wanted.wanted, wanted.offered, wanted.observed
            ),
        );
    }
    let early = &load.early_data;
    if early.wanted > 0 {
        line(
            out,
            "",
            format_args!(
                "0-RTT: {} wanted, {} offered, {} accepted, {} rejected",
                early.wanted, early.offered, early.accepted, early.rejected
            ),
        );
    }
    line(out, "", format_args!("{} sent, {} received", bytes(load.bytes.r#in), bytes(load.bytes.out)));
    for note in &load.notes {
        line(out, "note", format_args!("{note}"));
    }
}

fn handshake_line(handshakes: &HandshakeCounts, name: &str, out: &mut String) {
    let HandshakeCounts { full, resumed, failed, full_by_reason } = handshakes;
    let share = share(*resumed, *full);
    line(out, name, format_args!("{full} full, {resumed} resumed{share}, {failed} failed"));
    let mut reasons: Vec<_> = full_by_reason.iter().filter(|(_, n)| **n > 0).collect();
    reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let reasons: Vec<String> =
        reasons.iter().map(|(word, n)| format!("{n} {}", word.replace('_', " "))).collect();
    if !reasons.is_empty() {
        line(out, "full because", format_args!("{}", reasons.join(", ")));
    }
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
    let told = |client: &ClientSummary, counter, shown: fn(u64) -> String| {
        let n = client.counters[counter];
        let is_absent =
            LogFigure::of_client_counter(counter).is_some_and(|it| lacks(summary.log.as_ref(), it));
        if n == 0 && is_absent { "–".to_owned() } else { shown(n) }
    };
    let whole = |n: u64| n.to_string();
    for client in summary.clients.iter().take(CLIENTS_SHOWN) {
        let _ = writeln!(
            out,
            "{:<25} {:>11} {:>8} {:>8} {:>10} {:>10}",
            client.client,
            told(client, ClientCounter::Connections, whole),
            told(client, ClientCounter::HandshakesFull, whole),
            told(client, ClientCounter::HandshakesResumed, whole),
            told(client, ClientCounter::BytesIn, bytes),
            told(client, ClientCounter::BytesOut, bytes)
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
