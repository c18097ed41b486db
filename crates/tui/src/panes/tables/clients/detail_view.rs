//! Everything about one client.
//!
//! ```text
//! +- client 10.0.0.12 ------------------------------------------------------+
//! | now         in 1.2 MB/s  out 41.2 MB/s  exchanges 1,210  open 8         |
//! | exchange    p50 0.21  p99 (1.5)  max 1.52 ms  n 812 in 10 s             |
//! |             p50 0.21  p99 0.77  max 3.13 ms  n 81234 in whole run       |
//! | total       in 80.1 MB  out 4.10 GB  exchanges 81234  connections 8123  |
//! | handshakes  full 240 (3.0%)  resumed 7883  errors 0                     |
//! | why full    no ticket 12  expired 3  without TLS 1.3 2                  |
//! | connection  TLSv1.3, AES-256-GCM, X25519, ALPN h2, name example.org     |
//! | failed      handshake-alert: received fatal alert: UnknownCA            |
//! | bytes/s     ▁▁▂▁▁▁▃█▆▂▁▁▁▁▁                                             |
//! +-------------------------------------------------------------------------+
//! ```
//!
//! At an earlier moment the title names it, all figures are of that moment, and a line says why some are missing.

use records::kinds::ConnectionRecord;
use records::metrics::{ClientCounter, labels};

use super::detail::{ClientDetail, OutOfHistory};
use super::model::{ClientLatency, ClientRow};
use crate::state::State;
use crate::theme::Theme;
use crate::theme::format;
use crate::widgets::detail::{Details, NamedLine};
use crate::widgets::parts::{byte_rate, quantile_text, rate, share};
use crate::widgets::sparkline::sparkline;

pub(super) fn details(state: &State) -> Option<Details> {
    let id = state.clients.opened?;
    Some(Details {
        cells: 96,
        title: format!("client {id}{}", state.at_past_moment()),
        lines: state.client_detail(id).map_or_else(Vec::new, |detail| texts(state, &detail)),
        gone: "it is not in the table any more",
    })
}

fn texts(state: &State, detail: &ClientDetail) -> Vec<NamedLine> {
    let (theme, row) = (state.theme, &detail.row);
    let is_past = state.past_us().is_some();
    let none = || theme.glyphs.none().to_string();
    let later = || format!("{} the latest one is of a later moment", none());
    let span = state
        .figures()
        .map(|figures| crate::panes::tables::clients::model::latency_span(figures.clients_span).words());
    let (total, handshakes) = totals(state, row);
    let connection = match &detail.connection {
        Ok(Some(connection)) => negotiated(connection),
        Ok(None) => "no record of one yet: a sample of those that end well has one".to_owned(),
        Err(OutOfHistory) => later(),
    };
    let whole_run = match detail.latency {
        Ok(known) => latency(theme, known, "whole run"),
        Err(OutOfHistory) => format!("{} in whole run: known of the present only", none()),
    };
    let path = row.rtt_ns.map(|ns| {
        let resent = row.counted(ClientCounter::Retransmits).unwrap_or(0);
        let (rtt, resent) = (format::millis(ns as u64), format::count(resent));
        format!("RTT {rtt} ms at its latest handshake  resent in handshakes {resent}")
    });
    let mut texts = vec![
        (if is_past { "then" } else { "now" }, rates(theme, row)),
        ("exchange", latency(theme, row.latency, &span.unwrap_or_default())),
        ("", whole_run),
        ("total", total),
        ("handshakes", handshakes),
        ("connection", connection),
    ];
    if let Some(reasons) = full_reasons(row) {
        texts.insert(5, ("full again", reasons));
    }
    texts.extend(path.map(|path| ("network", path)));
    match &detail.failed {
        Ok(Some(failed)) => texts.push(("failed", format!("{}: {}", failed.outcome, failed.detail))),
        Ok(None) => {}
        Err(OutOfHistory) => texts.push(("failed", later())),
    }
    let end = if is_past { "this moment" } else { "the last of the run" };
    let silent = detail.silent_us.map(|us| format!("{} before {end}", format::span(us)));
    texts.push(("last record", silent.unwrap_or_else(|OutOfHistory| none())));
    let graph = sparkline(theme, &detail.history, detail.history.len());
    texts.push(("bytes/s", graph.trim_start().to_owned()));
    let lacks_records = row.totals.is_none() || row.out_per_second.is_none() || detail.silent_us.is_err();
    if is_past && lacks_records {
        texts.push(("not kept", state.describe_client_history()));
    }
    texts
}

fn rates(theme: Theme, row: &ClientRow) -> String {
    format!(
        "in {}  out {}  exchanges {}  open {}",
        byte_rate(theme, row.in_per_second),
        byte_rate(theme, row.out_per_second),
        rate(theme, row.exchanges_per_second),
        row.open.map_or_else(|| theme.glyphs.none().to_string(), format::count),
    )
}

/// Returns what was counted since the beginning, and of it the handshakes.
fn totals(state: &State, row: &ClientRow) -> (String, String) {
    let none = state.theme.glyphs.none().to_string();
    let Some(totals) = row.totals else { return (none.clone(), none) };
    let told = |counter: ClientCounter| state.run()?.client_count(counter, totals[counter]);
    let count = |counter| told(counter).map_or_else(|| none.clone(), format::count);
    let bytes = |counter| told(counter).map_or_else(|| none.clone(), |n| format::bytes(n as f64));
    let total = format!(
        "in {}  out {}  exchanges {}  connections {}",
        bytes(ClientCounter::BytesIn),
        bytes(ClientCounter::BytesOut),
        count(ClientCounter::Exchanges),
        count(ClientCounter::Connections),
    );
    let full = totals[ClientCounter::HandshakesFull];
    let all = full.saturating_add(totals[ClientCounter::HandshakesResumed]);
    let handshakes = format!(
        "full {} ({})  resumed {}  errors {}",
        count(ClientCounter::HandshakesFull),
        share(state.theme, (all > 0).then(|| full as f64 / all as f64)),
        count(ClientCounter::HandshakesResumed),
        count(ClientCounter::Errors),
    );
    (total, handshakes)
}

/// Returns why handshakes after the first were full, and how many offered no TLS 1.3; `None` if there is nothing to say.
fn full_reasons(row: &ClientRow) -> Option<String> {
    let totals = row.totals?;
    let reasons = labels::client_full_reasons().map(|(name, counter)| (name, totals[counter]));
    let old = [("without TLS 1.3", totals[ClientCounter::Tls12Only])];
    let counted = reasons.chain(old).filter(|(_, n)| *n > 0);
    let all: Vec<String> = counted.map(|(name, n)| format!("{name} {}", format::count(n))).collect();
    (!all.is_empty()).then(|| all.join("  "))
}

/// Returns percentiles of the time to the first byte of an answer. A percentile in brackets has fewer than
/// ten samples above it.
fn latency(theme: Theme, latency: Option<ClientLatency>, span: &str) -> String {
    let Some(ClientLatency { p50, p99, max_ns, n }) = latency else {
        return format!("{} in {span}", theme.glyphs.none());
    };
    let (p50, p99) = (quantile_text(theme, p50), quantile_text(theme, p99));
    let (max, n) = (format::millis(max_ns), format::count(n));
    format!("p50 {p50}  p99 {p99}  max {max} ms  n {n} in {span}")
}

fn negotiated(connection: &ConnectionRecord) -> String {
    let or_none = |text: &str| if text.is_empty() { "none".to_owned() } else { text.to_owned() };
    let resumed = if connection.resumed { "resumed" } else { "full" };
    let mut text = format!(
        "{}, {}, {}, {resumed}, ALPN {}, name {}",
        connection.tls_version,
        connection.cipher,
        or_none(&connection.group),
        or_none(&connection.alpn),
        or_none(&connection.sni)
    );
    if !connection.client_name.is_empty() {
        text.push_str(", certificate ");
        text.push_str(&connection.client_name);
    }
    text
}
