//! Handshakes: one line, or a table if there is room.
//!
//! ```text
//! ─ handshakes  full 100/s (20.0%)  resumed 400/s (80.0%)  failed 3  alert 2, not … ─
//! ```
//!
//! ```text
//! ─ handshakes ──────────────────────    /s   share     total
//! full                                  100   20.0%      1204
//! resumed                               400   80.0%      4816
//! failed                                0.1                 3
//! TLS 1.3  full 1204, resumed 4816
//! group    X25519MLKEM768 6020
//! cipher   AES-256-GCM 6020
//! failed   alert 2, client left 1
//! ```

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::parts::{StatusItem, fit, heading, put, rate, share};
use crate::format;
use crate::state::State;
use crate::theme::Theme;
use crate::view_model::{Handshakes, ViewModel};

/// The rows of the table with its heading.
pub(super) const HEIGHT: u16 = 9;
/// The cells of the table's names.
const NAME_CELLS: usize = 10;
/// The minimum cells for a truncated cause.
const CAUSES_CELLS_MIN: usize = 8;
/// The cells of the table of rates.
const WIDTH_MAX: u16 = 76;

/// Draws the line or the table.
pub(super) fn render(state: &State, figures: &ViewModel, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    if area.height < HEIGHT {
        let line = one_line(state.theme, &figures.handshakes, area.width);
        put(frame, area, &[line]);
    } else {
        let area = Rect { width: area.width.min(WIDTH_MAX), ..area };
        put(frame, area, &table(state.theme, &figures.handshakes, area.width));
    }
}

fn one_line(theme: Theme, h: &Handshakes, width: u16) -> Line<'static> {
    let rule = theme.glyphs.rule();
    let resumed_share = h.full_share.map(|full| 1.0 - full);
    let with_share = |per_second, part| format!("{} ({})", rate(theme, per_second), share(theme, part));
    let mut segments = vec![
        StatusItem::figure(theme, 0, "full", with_share(h.full_per_second, h.full_share)),
        StatusItem::figure(theme, 0, "resumed", with_share(h.resumed_per_second, resumed_share)),
    ];
    segments.push(if h.failed.recent == 0 {
        StatusItem::figure(theme, 1, "failed", h.failed.words())
    } else {
        // The causes that follow are more important than the earlier segments.
        StatusItem::text(1, format!("failed {}", format::count(h.failed.recent)), theme.warning())
    });
    let mut spans = vec![
        Span::styled(format!("{rule} "), theme.quiet()),
        Span::styled("handshakes ", theme.heading()),
        Span::raw(" "),
    ];
    spans.extend(fit(segments, usize::from(width).saturating_sub(16)));
    let cells = |spans: &[Span<'_>]| spans.iter().map(|span| format::width(&span.content)).sum::<usize>();
    let room = usize::from(width).saturating_sub(cells(&spans) + 2);
    if !h.recent_causes.is_empty() && room >= CAUSES_CELLS_MIN {
        let causes = format::cut(&listed(&h.recent_causes), room, theme.glyphs);
        spans.push(Span::styled(format!("  {causes}"), theme.warning()));
    }
    let used = cells(&spans);
    let fill = usize::from(width).saturating_sub(used + 1);
    spans.push(Span::styled(format!(" {}", rule.to_string().repeat(fill)), theme.quiet()));
    Line::from(spans)
}

fn listed(items: &[(&str, u64)]) -> String {
    let items: Vec<String> = items.iter().map(|(name, n)| format!("{name} {}", format::count(*n))).collect();
    items.join(", ")
}

fn table(theme: Theme, h: &Handshakes, width: u16) -> Vec<Line<'static>> {
    let columns = format!("{:>10}{:>9}{:>11}", "/s", "share", "total");
    let resumed_share = h.full_share.map(|full| 1.0 - full);
    let row = |name: &'static str, per_second: Option<f64>, part: String, total: u64| {
        let per_second = per_second.map_or_else(|| theme.glyphs.none().to_string(), format::per_second);
        let figures = format!("{per_second:>10}{part:>9}{:>11}", format::count(total));
        let name_cells = usize::from(width).saturating_sub(format::width(&figures));
        let style = if name == "failed" && h.failed.recent > 0 { theme.warning() } else { theme.figure() };
        Line::from(vec![
            Span::styled(format!("{name:<name_cells$}"), theme.label()),
            Span::styled(figures, style),
        ])
    };
    let mut lines = vec![
        heading(theme, &["handshakes"], &columns, width),
        row("full", h.full_per_second, share(theme, h.full_share), h.full),
        row("resumed", h.resumed_per_second, share(theme, resumed_share), h.resumed),
        row("failed", h.failed_per_second, String::new(), h.failed.total),
    ];
    let versions = h.versions.iter().map(|&(name, full, resumed)| {
        (name, format!("full {}, resumed {}", format::count(full), format::count(resumed)))
    });
    let lists = [("group", listed(&h.groups)), ("cipher", listed(&h.ciphers)), ("causes", listed(&h.causes))];
    let reasons: Vec<(&str, u64)> = h.reasons.iter().map(|(reason, n)| (&**reason, *n)).collect();
    let last = [("reasons", listed(&reasons)), ("key", h.certificate.clone())];
    let details = versions.chain(lists).chain(last).filter(|(_, text)| !text.is_empty());
    lines.extend(details.map(|(name, text)| {
        let text = format::cut(&text, usize::from(width).saturating_sub(NAME_CELLS), theme.glyphs);
        Line::from(vec![
            Span::styled(format!("{name:<NAME_CELLS$}"), theme.label()),
            Span::styled(
                text,
                if h.failed.recent > 0 && matches!(name, "causes" | "reasons") {
                    theme.warning()
                } else {
                    theme.quiet()
                },
            ),
        ])
    }));
    lines
}
