//! Handshakes: one line, or a table if there is room.
//!
//! ```text
//! ─ handshakes  full 100/s (20.0%)  resumed 400/s (80.0%)  failed 3  alert 2, not … ─
//! ─ handshakes  full 100/s: no ticket 62%, expired 27%  resumed 80.0%  failed 0 ──────
//! ```
//!
//! ```text
//! ─ handshakes, 10 s ───────────────── 6020 since the start
//! full   100/s  20.0% ████▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒ 80.0% 400/s resumed
//! why full ████████▒▒▒▓  no ticket 620 (62.0%)  expired 280 (28.0%)  first visit 100 (10.0%)
//! full     █████▒▒▒▒▒▓░  3.27 ms, n 1,000: network 45.0%  client 41.0%  loop delay 2.0%  compute 12.0%
//! resumed  █████▒▒▒▒▒▓░  1.27 ms, n 4,000: network 45.0%  client 41.0%  loop delay 2.0%  compute 12.0%
//! failed 3  alert 2, not TLS 1
//! version  ████████████  TLS 1.3 100.0%
//! group    █████████▒▒▒  X25519MLKEM768 75.0%  X25519 25.0%
//! cipher   ████████████  AES-256-GCM 100.0%
//! ```
//!
//! With less room, the last lines are one: `mostly   TLS 1.3  X25519MLKEM768 75%  AES-256-GCM`.

use ratatui::text::{Line, Span};

use super::model::{Handshakes, MeanHandshake, NamedCount};
use crate::panes::{Pane, PaneId, PaneRows};
use crate::state::State;
use crate::state::sight;
use crate::theme::Theme;
use crate::theme::format;
use crate::widgets::parts::{
    NAMED_CELLS, StatusItem, fit, flexible_share_line, heading, put, rate, share, share_bar, share_line,
};

/// The rows of the table with its heading, those that it can do without, and those of what the records of TLS tell.
const HEIGHT: u16 = 6;
const EXTRA_HEIGHT: u16 = 2;
const TLS_HEIGHT: u16 = 3;
/// The fewest cells of a line with rates, shares and reasons.
const REASONS_WIDTH: u16 = 116;
/// The fewest rows of a screen with the reasons below the line.
const REASONS_SCREEN_MIN: u16 = 24;
/// The fewest rows of a screen with this pane; the header has the shares.
const HEIGHT_SCREEN_MIN: u16 = 14;
/// The fewest rows of a table.
const TABLE_MIN: u16 = 3;
/// The minimum cells for a truncated cause.
const CAUSES_CELLS_MIN: usize = 8;

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        let rows = state.size().1;
        let tells_reasons = |h: &Handshakes| u16::from(h.full_reasons.is_some());
        let all = |h: &Handshakes| match sight::has_room_for_details(state.size) {
            true => HEIGHT + TLS_HEIGHT * tells_reasons(h),
            false if rows >= REASONS_SCREEN_MIN => 1 + tells_reasons(h),
            false => 1,
        };
        match state.figures() {
            None => PaneRows::default(),
            Some(_) if state.size().1 < HEIGHT_SCREEN_MIN => PaneRows::default(),
            // The tiles have what a line would say.
            Some(_)
                if sight::tile_rows(state.size) > 0
                    && !sight::has_room_for_details(state.size)
                    && !is_chosen(state) =>
            {
                PaneRows::default()
            }
            Some(figures) => {
                let all = all(&figures.handshakes);
                let enough = if all >= HEIGHT { all - EXTRA_HEIGHT } else { all };
                PaneRows { min: 1, enough, wanted: all, grows: false }
            }
        }
    },
    ranks: [4, 7, 9],
    render: |state, frame, area| {
        let Some(figures) = state.figures() else { return };
        let (theme, handshakes) = (state.theme, &figures.handshakes);
        if area.height < TABLE_MIN {
            let below = reasons(theme, handshakes, usize::from(area.width)).filter(|_| area.height > 1);
            let inline = if below.is_some() || handshakes.absent.full_reasons.is_some() {
                &[][..]
            } else {
                handshakes.full_reasons.as_deref().unwrap_or(&[])
            };
            let first = one_line(theme, handshakes, inline, area.width);
            put(frame, area, &std::iter::once(first).chain(below).collect::<Vec<_>>());
        } else {
            put(frame, area, &table(theme, handshakes, &figures.span.words(), (area.width, area.height)));
        }
    },
    ..Pane::PLAIN
};

/// Returns whether a person asks for it: by itself, or by the focus.
fn is_chosen(state: &State) -> bool {
    state.panes.maximised == Some(PaneId::Handshakes) || state.panes.focus == Some(PaneId::Handshakes)
}

/// Draws all in one line. Beside reasons, rates or shares are left out where there is no room for both.
fn one_line(theme: Theme, h: &Handshakes, reasons: &[NamedCount<'_>], width: u16) -> Line<'static> {
    let rule = theme.glyphs.rule();
    let resumed_share = h.full_share.map(|full| 1.0 - full);
    let with_share = |per_second, part| format!("{} ({})", rate(theme, per_second), share(theme, part));
    let is_narrow = !reasons.is_empty() && width < REASONS_WIDTH;
    let told = if h.failed.recent > 0 && is_narrow {
        1
    } else if is_narrow {
        2
    } else {
        3
    };
    let reasons = short_reasons(reasons).into_iter().take(told).collect::<Vec<_>>().join(", ");
    let (full_figure, resumed_figure) = if is_narrow {
        (rate(theme, h.full_per_second), share(theme, resumed_share))
    } else {
        (with_share(h.full_per_second, h.full_share), with_share(h.resumed_per_second, resumed_share))
    };
    let because = if reasons.is_empty() { String::new() } else { format!(": {reasons}") };
    let mut segments = vec![
        StatusItem::figure(theme, 0, "full", full_figure + &because),
        StatusItem::figure(theme, 0, "resumed", resumed_figure),
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

pub(crate) fn listed(items: &[(&str, u64)]) -> String {
    let items: Vec<String> = items.iter().map(|(name, n)| format!("{name} {}", format::count(*n))).collect();
    items.join(", ")
}

fn table(theme: Theme, h: &Handshakes, span: &str, (width, height): (u16, u16)) -> Vec<Line<'static>> {
    let cells = usize::from(width);
    let mut all = format!("{} since the start", format::count(h.full.saturating_add(h.resumed)));
    if h.retransmitted > 0 {
        all = format!("{all}, {} retransmitted", format::count(h.retransmitted));
    }
    if let Some(reason) = &h.absent.all {
        return vec![heading(theme, &["handshakes"], "", width), absent(theme, "all", reason, cells)];
    }
    let mut lines = vec![
        heading(theme, &[&format!("handshakes, {span}"), "handshakes"], &all, width),
        shares(theme, h, cells),
    ];
    lines.extend(reasons(theme, h, cells));
    if let Some(reason) = &h.absent.walls {
        lines.push(absent(theme, "time", reason, cells));
    } else if h.full_reasons.is_some() {
        let types = ["full", "resumed"].into_iter().zip(&h.walls);
        lines.extend(types.map(|(kind, wall)| wall_time(theme, &format!("{kind:<8}"), wall.as_ref(), cells)));
    }
    lines.push(failures(theme, h, cells));
    if let Some(reason) = h.absent.groups.as_ref().filter(|_| lines.len() + 3 <= usize::from(height)) {
        lines.push(absent(theme, "group", reason, cells));
    }
    lines.extend(negotiated(theme, h, cells, usize::from(height).saturating_sub(lines.len())));
    lines
}

/// Draws what handshakes negotiated, a line for each kind of value while there is room; the rest share the last line.
fn negotiated(theme: Theme, h: &Handshakes, cells: usize, rows: usize) -> Vec<Line<'static>> {
    let mut kinds = vec![("version", &*h.versions), ("group", &*h.groups), ("cipher", &*h.ciphers)];
    kinds.retain(|(_, parts)| !parts.is_empty());
    let sum = |parts: &[NamedCount<'_>]| parts.iter().map(|(_, n)| *n as f64).sum::<f64>();
    let whole = if kinds.len() > rows { rows.saturating_sub(1) } else { kinds.len() };
    let shared = kinds.split_off(whole);
    let line = |(name, parts): (&str, &[NamedCount<'_>])| {
        let words = |name: &str, n| format!("{name} {}", format::percent(n as f64 / sum(parts)));
        share_line(theme, name, parts, cells, words)
    };
    let mut lines: Vec<Line<'static>> = kinds.into_iter().map(line).collect();
    let most = shared.into_iter().filter_map(|(_, parts)| {
        let (name, n) = parts.iter().max_by_key(|(_, n)| *n)?;
        let share = *n as f64 / sum(parts);
        Some(if share < 1.0 { format!("{name} {}", whole_percent(share)) } else { (*name).to_owned() })
    });
    let most: Vec<String> = most.collect();
    if !most.is_empty() {
        let words = format::cut(&most.join("  "), cells.saturating_sub(NAMED_CELLS), theme.glyphs);
        lines.push(Line::from(vec![
            Span::styled(format!("{:<NAMED_CELLS$}", "mostly"), theme.label()),
            Span::styled(words, theme.quiet()),
        ]));
    }
    lines
}

/// Draws full and resumed handshakes on both sides of a bar of their shares.
fn shares(theme: Theme, h: &Handshakes, cells: usize) -> Line<'static> {
    let resumed_share = h.full_share.map(|full| 1.0 - full);
    let full = format!("{:>7} {:>6} ", rate(theme, h.full_per_second), share(theme, h.full_share));
    let resumed = format!(" {} {}", share(theme, resumed_share), rate(theme, h.resumed_per_second));
    let texts = "full resumed ".len() + full.len() + format::width(&resumed);
    let per_mille = h.full_share.map_or(0, |share| (share * 1e3).round() as u64);
    let parts = [("", per_mille), ("", 1000 - per_mille)];
    // A bar of one value says nothing.
    let is_one = h.full_share.is_some() && matches!(per_mille, 0 | 1000);
    let bar = if is_one { 0 } else { cells.saturating_sub(texts) };
    let parts = if h.full_share.is_some() { &parts[..] } else { &[] };
    let mut spans = vec![Span::styled("full ", theme.label()), Span::styled(full, theme.figure())];
    spans.extend(share_bar(theme, parts, bar, &[]));
    spans.push(Span::styled(resumed, theme.figure()));
    spans.push(Span::styled(" resumed", theme.label()));
    Line::from(spans)
}

/// Draws why handshakes were full, if records tell.
fn reasons(theme: Theme, h: &Handshakes, cells: usize) -> Option<Line<'static>> {
    if let Some(reason) = &h.absent.full_reasons {
        return Some(absent(theme, "why full", reason, cells));
    }
    let reasons = h.full_reasons.as_deref()?;
    let counted = reason_words(reasons, |name, n, share| {
        format!("{name} {} ({})", format::count(n), format::percent(share))
    });
    let quiet =
        |words: Vec<String>| words.into_iter().map(|word| Span::styled(word, theme.quiet())).collect();
    let words = [counted, short_reasons(reasons)].map(quiet);
    Some(flexible_share_line(theme, "why full", reasons, cells, (&words, &[])))
}

fn reason_words(reasons: &[NamedCount<'_>], words: impl Fn(&str, u64, f64) -> String) -> Vec<String> {
    let sum = reasons.iter().map(|(_, n)| *n as f64).sum::<f64>();
    reasons.iter().map(|&(name, n)| words(name, n, n as f64 / sum)).collect()
}

/// Reasons with their shares only, without decimals.
fn short_reasons(reasons: &[NamedCount<'_>]) -> Vec<String> {
    reason_words(reasons, |name, _, share| format!("{name} {}", whole_percent(share)))
}

/// A share without decimals, which is neither nothing nor all unless it is.
pub(crate) fn whole_percent(share: f64) -> String {
    if share > 0.0 && share < 0.01 {
        return "<1%".to_owned();
    }
    let most = if share < 1.0 { 99.0 } else { 100.0 };
    format!("{:.0}%", (share * 100.0).min(most))
}

/// The name of a part of a handshake where there is little room.
fn short_part(name: &str) -> &str {
    match name {
        "network" => "net",
        "loop delay" => "loop",
        "compute" => "CPU",
        name => name,
    }
}

/// Draws where the mean handshake of a type spent its time: each part in its hue.
fn wall_time(theme: Theme, kind: &str, wall: Option<&MeanHandshake>, cells: usize) -> Line<'static> {
    let Some(wall) = wall else { return flexible_share_line(theme, kind, &[], cells, (&[], &[])) };
    let (sum, hues) = (wall.sum_ns().max(1) as f64, theme.parts());
    let n = format::count(wall.n);
    let head = |text: String| Span::styled(text, theme.figure());
    let shares = || wall.parts.iter().map(|&(name, ns)| ((name, ns), short_part(name))).zip(hues);
    let long = shares().map(|(((name, ns), _), hue)| {
        Span::styled(format!("{name} {}", format::percent(ns as f64 / sum)), hue)
    });
    let short: Vec<Span<'static>> = shares()
        .map(|(((_, ns), name), hue)| Span::styled(format!("{name} {}", whole_percent(ns as f64 / sum)), hue))
        .collect();
    // Without room for all, the largest parts.
    let mut by_size: Vec<usize> = (0..short.len()).collect();
    by_size.sort_by_key(|&at| std::cmp::Reverse(wall.parts[at].1));
    let largest = by_size.into_iter().map(|at| short[at].clone()).collect();
    let ms = format::millis(wall.sum_ns());
    let with = |first: String, rest: &[Span<'static>]| {
        std::iter::once(head(first)).chain(rest.iter().cloned()).collect()
    };
    let words = [
        with(format!("{ms} ms, n {n}"), &long.collect::<Vec<_>>()),
        with(format!("{ms} ms, n {n}"), &short),
        with(format!("n {n}"), &short),
        short,
        largest,
    ];
    flexible_share_line(theme, kind, &wall.parts, cells, (&words, &hues))
}

/// Draws a figure that the log does not give, with the reason.
fn absent(theme: Theme, name: &str, reason: &str, cells: usize) -> Line<'static> {
    let text = format!("{} {reason}", theme.glyphs.none());
    let text = format::cut(&text, cells.saturating_sub(NAMED_CELLS), theme.glyphs);
    Line::from(vec![
        Span::styled(format!("{name:<NAMED_CELLS$}"), theme.label()),
        Span::styled(text, theme.quiet()),
    ])
}

/// Draws failures in the window, with their causes.
fn failures(theme: Theme, h: &Handshakes, cells: usize) -> Line<'static> {
    let is_recent = h.failed.recent > 0;
    let figure = if is_recent { theme.warning() } else { theme.figure() };
    let reasons: Vec<NamedCount<'_>> = h.reasons.iter().map(|(reason, n)| (&**reason, *n)).collect();
    let causes = [listed(if is_recent { &h.recent_causes } else { &h.causes }), listed(&reasons)];
    let absent = h.absent.causes.iter().map(|reason| format!("{} {reason}", theme.glyphs.none()));
    let causes: Vec<String> = causes.into_iter().filter(|causes| !causes.is_empty()).chain(absent).collect();
    let words = h.failed.words();
    let room = cells.saturating_sub(NAMED_CELLS + words.len() + 2);
    let causes = format::cut(&causes.join("; "), room, theme.glyphs);
    Line::from(vec![
        Span::styled(format!("{:<NAMED_CELLS$}", "failed"), theme.label()),
        Span::styled(words, figure),
        Span::styled(format!("  {causes}"), if is_recent { theme.warning() } else { theme.quiet() }),
    ])
}
