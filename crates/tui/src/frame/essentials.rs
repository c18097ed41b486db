//! The essential figures, on a screen too small for panes: in one line where they fit, else on all rows.
//!
//! ```text
//! LIVE +03:12  exchange p99 1.90 ms  full 100/s  resumed 400/s  out 31.2 MB/s
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use records::metrics::{HttpLatency, LatencyClass, LoadLatency, ProxyLatency};

use super::status;
use crate::state::State;
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::view_model::classes::LatencyRow;
use crate::widgets::parts::{StatusItem, byte_rate, put, rate, wrap};

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let width = usize::from(area.width);
    let (badge, style) = status::badge(state);
    let badge = format::cut(badge.trim(), width, state.theme.glyphs);
    let mut segments = vec![StatusItem::text(0, badge, style)];
    if let Some(figures) = state.figures() {
        segments.extend(of(state, figures));
    }
    put(frame, area, &wrap(segments, width, usize::from(area.height)));
}

fn of(state: &State, figures: &ViewModel) -> Vec<StatusItem> {
    let theme = state.theme;
    let mut segments = Vec::new();
    if !figures.warnings.is_empty() {
        segments.push(StatusItem::text(1, format!("!{}", figures.warnings.len()), theme.warning()));
    }
    let p99 = |row: &LatencyRow| {
        let quantile = row.quantiles[2]?;
        let text = format!("{} ms", format::latency(quantile.ns, quantile.resolution, theme.glyphs));
        let text = if quantile.thin { format!("({text})") } else { text };
        Some(StatusItem::figure(theme, 2, &format!("{} p99", row.class.title()), text))
    };
    let main = figures.latency(LatencyClass::Http(HttpLatency::FirstByte));
    let main = main.or_else(|| figures.latency(LatencyClass::Proxy(ProxyLatency::Exchange)));
    let shown = main.or_else(|| figures.latency(LatencyClass::Load(LoadLatency::Service)));
    segments.extend(shown.and_then(p99));
    if let Some(http) = &figures.http {
        let style = if http.failed.recent > 0 { theme.warning() } else { theme.quiet() };
        segments.push(StatusItem::text(2, format!("failed {}", format::count(http.failed.recent)), style));
    }
    let handshakes = &figures.handshakes;
    segments.push(StatusItem::figure(theme, 3, "full", rate(theme, handshakes.full_per_second)));
    segments.push(StatusItem::figure(theme, 3, "resumed", rate(theme, handshakes.resumed_per_second)));
    if let Some(proxy) = &figures.proxy {
        segments.push(StatusItem::figure(theme, 4, "out", byte_rate(theme, proxy.out_per_second)));
    }
    segments
}
