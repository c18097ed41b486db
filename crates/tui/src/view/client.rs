//! Everything about one client.
//!
//! ```text
//! +- client 10.0.0.12 ------------------------------------------------------+
//! | now         in 1.2 MB/s  out 41.2 MB/s  exchanges 1210/s  open 8        |
//! | exchange    p50 0.21  p99 (1.5)  max 1.52 ms  n 812 in 10 s             |
//! |             p50 0.21  p99 0.77  max 3.13 ms  n 81234 in whole run       |
//! | total       in 80.1 MB  out 4.10 GB  exchanges 81234  connections 8123  |
//! | handshakes  full 240 (3.0%)  resumed 7883  errors 0                     |
//! | connection  TLSv1.3, AES-256-GCM, X25519, ALPN h2, name example.org     |
//! | failed      handshake-alert: the client sent the alert unknown_ca       |
//! | bytes/s     ▁▁▂▁▁▁▃█▆▂▁▁▁▁▁                                             |
//! +-------------------------------------------------------------------------+
//! ```

use ratatui::Frame;
use ratatui::text::{Line, Span};
use telemetry::{ClientId, ConnectionRecord};

use super::overlay;
use super::parts::{byte_rate, quantile_text, rate, share};
use super::sparkline::sparkline;
use crate::format;
use crate::state::State;
use crate::theme::Theme;
use crate::view_model::{self, ClientDetail, ClientLatency};

const LINE_CELLS: usize = 96;
const NAME_CELLS: usize = 12;

/// Draws the client.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, id: ClientId) {
    let theme = state.theme;
    let texts = state.client_detail(id).map_or_else(
        || vec![("", "it is not in the table any more".to_owned())],
        |detail| texts(state, &detail),
    );
    let Some(area) = overlay::place(frame.area(), (LINE_CELLS, texts.len())) else { return };
    let room = usize::from(area.width - overlay::SIDES).saturating_sub(NAME_CELLS);
    let line = |(name, text): (&str, String)| {
        let text = format::cut(&text, room, theme.glyphs);
        Line::from(vec![
            Span::styled(format!("{name:<NAME_CELLS$}"), theme.label()),
            Span::styled(text, theme.figure()),
        ])
    };
    let lines: Vec<Line<'_>> = texts.into_iter().map(line).collect();
    overlay::render(state, frame, area, &format!("client {id}"), &lines);
}

/// Returns the lines of the view.
pub(crate) fn text(state: &State, id: ClientId) -> String {
    let mut text = format!("client {id}\n");
    for (name, what) in state.client_detail(id).map_or_else(Vec::new, |detail| texts(state, &detail)) {
        text.push_str(format!("{name:<NAME_CELLS$}{what}").trim_end());
        text.push('\n');
    }
    text
}

fn texts(state: &State, detail: &ClientDetail) -> Vec<(&'static str, String)> {
    let (theme, row) = (state.theme, &detail.row);
    let now = format!(
        "in {}  out {}  exchanges {}  open {}",
        byte_rate(theme, row.in_per_second),
        byte_rate(theme, row.out_per_second),
        rate(theme, row.exchanges_per_second),
        format::count(row.open),
    );
    let total = format!(
        "in {}  out {}  exchanges {}  connections {}",
        format::bytes(row.bytes_in as f64),
        format::bytes(row.bytes_out as f64),
        format::count(row.exchanges),
        format::count(row.connections_total),
    );
    let all = detail.full.saturating_add(detail.resumed);
    let full_share = (all > 0).then(|| detail.full as f64 / all as f64);
    let handshakes = format!(
        "full {} ({})  resumed {}  errors {}",
        format::count(detail.full),
        share(theme, full_share),
        format::count(detail.resumed),
        format::count(row.errors_total),
    );
    let none = "no record of one yet: a sample of those that end well has one";
    let known = detail.connection.as_ref().map_or_else(|| none.to_owned(), negotiated);
    let span = state.figures().map(|figures| view_model::latency_span(figures.clients_span).words());
    let mut texts = vec![
        ("now", now),
        ("exchange", latency(theme, row.latency, &span.unwrap_or_default())),
        ("", latency(theme, detail.latency, "whole run")),
        ("total", total),
        ("handshakes", handshakes),
        ("connection", known),
    ];
    if let Some(failed) = &detail.failed {
        texts.push(("failed", format!("{}: {}", failed.outcome, failed.detail)));
    }
    texts.push(("last record", format!("{} before the last of the run", format::span(detail.silent_us))));
    let graph = sparkline(theme, &detail.history, detail.history.len());
    texts.push(("bytes/s", graph.trim_start().to_owned()));
    texts
}

/// Returns percentiles of the time to the first byte of an answer. A percentile in brackets has fewer than
/// ten samples above it.
fn latency(theme: Theme, latency: Option<ClientLatency>, span: &str) -> String {
    let Some(ClientLatency { p50, p99, max_ns, n }) = latency else {
        return format!("{} in {span}", theme.glyphs.none());
    };
    let (p50, p99) = (quantile_text(p50), quantile_text(p99));
    let (max, n) = (format::millis(max_ns), format::count(n));
    format!("p50 {p50}  p99 {p99}  max {max} ms  n {n} in {span}")
}

/// Returns what a connection negotiated.
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
