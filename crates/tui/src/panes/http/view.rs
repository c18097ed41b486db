//! HTTP over all routes: one line, or a table if there is room.
//!
//! ```text
//! ─ http  2xx 49,880  4xx 98  5xx 2  HTTP/2 80.0%  in flight 32  queued 0  pool 16, 8 idle ─
//! ```
//!
//! ```text
//! ─ http, 10 s ───────────── 49,980 requests since the start
//! status   ███████████▒  2xx 99.8%  4xx 98  5xx 2
//! protocol █████████▒▒▒  HTTP/2 80.0%  HTTP/1.1 20.0%
//! now      in flight 32  queued 0  pool 16 open, 8 idle
//! failed   2 (5 total)  connect 1, client-gone 1  retried 4
//! gRPC     9,310 (81,230 total)  not OK 2
//! HTTP/2   first byte p50 0.210 p99 0.940  request p50 0.240 p99 1.310 ms
//! HTTP/1.1 first byte p50 0.180 p99 0.720  request p50 0.200 p99 0.990 ms
//! ```
//!
//! Without calls of gRPC their line is left out; without requests of both protocols, the last two lines.

use ratatui::text::{Line, Span};

use super::model::{HttpFigures, ProtocolTimes};
use crate::panes::handshakes::view::listed;
use crate::panes::tables::routes::model::RequestTimes;
use crate::panes::{Pane, PaneRows};
use crate::state::sight;
use crate::theme::Theme;
use crate::theme::format;
use crate::view_model::span::Count;
use crate::widgets::parts::{NAMED_CELLS, StatusItem, fit, heading, put, quantile_text, share_line};

/// The rows of the table with its heading, without those of gRPC and of the protocols' times.
const HEIGHT: u16 = 5;
/// The fewest rows of a screen with this pane.
const HEIGHT_SCREEN_MIN: u16 = 14;
/// The fewest rows of a table.
const TABLE_MIN: u16 = 3;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        let figures = state.figures().and_then(|figures| figures.http.as_ref());
        let more = figures.map_or(0, |http| (usize::from(http.calls.is_some()) + http.times.len()) as u16);
        let all = if sight::has_room_for_details(state.size) { HEIGHT + more } else { 1 };
        if !state.has_http() || state.size().1 < HEIGHT_SCREEN_MIN {
            return PaneRows::default();
        }
        PaneRows { min: 1, enough: all, wanted: all, grows: false }
    },
    ranks: [3, 7, 7],
    render: |state, frame, area| {
        let Some(figures) = state.figures() else { return };
        let Some(http) = figures.http.as_ref() else { return };
        if area.height < TABLE_MIN {
            put(frame, area, &[one_line(state.theme, http, area.width)]);
        } else {
            put(frame, area, &table(state.theme, http, &figures.span.words(), area.width));
        }
    },
    ..Pane::PLAIN
};

fn one_line(theme: Theme, http: &HttpFigures, width: u16) -> Line<'static> {
    let rule = theme.glyphs.rule();
    let mut spans = vec![
        Span::styled(format!("{rule} "), theme.quiet()),
        Span::styled("http ", theme.heading()),
        Span::raw(" "),
    ];
    let mut segments: Vec<StatusItem> = http
        .statuses
        .iter()
        .filter(|&&(name, n)| n > 0 || matches!(name, "2xx" | "5xx"))
        .map(|&(name, n)| match name {
            "5xx" if n > 0 => StatusItem::text(0, format!("5xx {}", format::count(n)), theme.warning()),
            _ => StatusItem::figure(theme, u8::from(name == "2xx"), name, format::count(n)),
        })
        .collect();
    let [(h2, n2), (_, n1)] = http.protocols;
    if n1 + n2 > 0 {
        let share = format::percent(n2 as f64 / (n1 + n2) as f64);
        segments.push(StatusItem::figure(theme, 5, h2, share));
    }
    segments.extend(gauges(theme, http));
    spans.extend(fit(segments, usize::from(width).saturating_sub(10)));
    let used = spans.iter().map(|span| format::width(&span.content)).sum::<usize>();
    let fill = usize::from(width).saturating_sub(used + 1);
    spans.push(Span::styled(format!(" {}", rule.to_string().repeat(fill)), theme.quiet()));
    Line::from(spans)
}

/// Returns what is under way at the moment; nothing if that is not kept.
fn gauges(theme: Theme, http: &HttpFigures) -> Vec<StatusItem> {
    let Some(gauges) = http.gauges else { return Vec::new() };
    let count = |gauge: i64| format::count(gauge.unsigned_abs());
    let pool = format!("{} open, {} idle", count(gauges.upstream_open), count(gauges.upstream_idle));
    let queued = count(gauges.queued);
    vec![
        StatusItem::figure(theme, 2, "in flight", count(gauges.requests)),
        if gauges.queued > 0 {
            StatusItem::text(3, format!("queued {queued}"), theme.notice())
        } else {
            StatusItem::figure(theme, 4, "queued", queued)
        },
        StatusItem::figure(theme, 4, "pool", pool),
    ]
}

fn table(theme: Theme, http: &HttpFigures, span: &str, width: u16) -> Vec<Line<'static>> {
    let cells = usize::from(width);
    let label = |name: &str| Span::styled(format!("{name:<NAMED_CELLS$}"), theme.label());
    let sum = http.statuses.iter().map(|(_, n)| *n).sum::<u64>();
    let percent = |n: u64| format::percent(n as f64 / sum.max(1) as f64);
    // For errors, a count says more than a share near zero.
    let counted = |name: &str, n: u64| match name {
        "2xx" | "3xx" => format!("{name} {}", percent(n)),
        _ => format!("{name} {}", format::count(n)),
    };
    let mut now = vec![label("now")];
    match http.gauges {
        Some(_) => now.extend(fit(gauges(theme, http), cells.saturating_sub(NAMED_CELLS))),
        None => now.push(Span::styled(theme.glyphs.none().to_string(), theme.quiet())),
    }
    let mut lines = vec![
        heading(
            theme,
            &[&format!("http, {span}"), "http"],
            &format!("{} requests since the start", format::count(http.requests)),
            width,
        ),
        share_line(theme, "status", &http.statuses, cells, counted),
        share_line(theme, "protocol", &http.protocols, cells, |name, n| format!("{name} {}", percent(n))),
        Line::from(now),
        failures(theme, http, cells),
    ];
    lines.extend(http.calls.map(|(calls, failed)| calls_line(theme, calls, failed)));
    lines.extend(http.times.iter().map(|times| times_line(theme, times, cells)));
    lines
}

fn times_line(theme: Theme, times: &ProtocolTimes, cells: usize) -> Line<'static> {
    let ProtocolTimes { protocol, first_byte, request } = *times;
    let part = |priority, name: &str, times: Option<RequestTimes>| {
        let shown = times.map_or_else(
            || theme.glyphs.none().to_string(),
            |RequestTimes { p50, p99, .. }| {
                format!("p50 {} p99 {} ms", quantile_text(theme, p50), quantile_text(theme, p99))
            },
        );
        StatusItem::figure(theme, priority, name, shown)
    };
    let parts = vec![part(0, "first byte", first_byte), part(1, "request", request)];
    let mut spans = vec![Span::styled(format!("{protocol:<NAMED_CELLS$}"), theme.label())];
    spans.extend(fit(parts, cells.saturating_sub(NAMED_CELLS)));
    Line::from(spans)
}

fn calls_line(theme: Theme, calls: Count, failed: Count) -> Line<'static> {
    let figure = if failed.recent > 0 { theme.warning() } else { theme.figure() };
    Line::from(vec![
        Span::styled(format!("{:<NAMED_CELLS$}", "gRPC"), theme.label()),
        Span::styled(calls.words(), theme.figure()),
        Span::styled("  not OK ", theme.label()),
        Span::styled(failed.words(), figure),
    ])
}

fn failures(theme: Theme, http: &HttpFigures, cells: usize) -> Line<'static> {
    let is_recent = http.failed.recent > 0;
    let figure = if is_recent { theme.warning() } else { theme.figure() };
    let words = http.failed.words();
    let causes = listed(if is_recent { &http.recent_causes } else { &http.causes });
    let retried = match http.retried.total {
        0 => String::new(),
        _ => format!("retried {}", http.retried.words()),
    };
    let causes = [causes, retried].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("  ");
    let causes = format::cut(&causes, cells.saturating_sub(NAMED_CELLS + words.len() + 2), theme.glyphs);
    Line::from(vec![
        Span::styled(format!("{:<NAMED_CELLS$}", "failed"), theme.label()),
        Span::styled(words, figure),
        Span::styled(format!("  {causes}"), if is_recent { theme.warning() } else { theme.quiet() }),
    ])
}
