//! The status lines: what is watched, and how reliable the figures are.
//!
//! ```text
//! tlsdash :8443 > unix:/tmp/app.sock  ECDSA P-256, 2 workers             LIVE 03:12
//! load   OPEN  offered 5000/s  sent 4998/s  conns 200  resume 80%  keep-alive 10
//! proxy  open 64  accepted 500/s  in 1.2 MB/s  out 31.2 MB/s  failed 0
//! data   window 10 s  journal lag 40 ms  gaps 0  lost 0  file:/tmp/x.journal
//! cpu    proxy 88%  load 61%  upstream 20%  ui 0.4%  journal 1.0%  of one core
//! ```
//!
//! With a journal of others, the owner of the run precedes the target.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};

use super::parts::{StatusItem, byte_rate, put, rate, status_line};
use crate::format;
use crate::state::{State, ViewStatus};
use crate::theme::Theme;
use crate::view_model::{Count, LoadFigures, Loop, ProxyFigures, ViewModel};

/// The minimum cells for the end of a path.
const SOURCE_CELLS_MIN: usize = 12;

/// Returns the rows that it needs.
pub(super) fn height(state: &State) -> u16 {
    let optional = state.figures().map_or(0, |figures| {
        u16::from(figures.load.is_some())
            + u16::from(figures.proxy.is_some())
            + u16::from(!figures.cpu.is_empty())
    });
    2 + optional
}

/// Draws as many lines as fit; CPU and proxy are left out first.
pub(super) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let width = area.width;
    let mut lines = vec![(0, title(state, width))];
    if let Some(figures) = state.figures() {
        lines.extend(figures.load.as_ref().map(|load| (1, load_line(state, figures, load, width))));
        lines.extend(figures.proxy.as_ref().map(|proxy| (3, proxy_line(state, figures, proxy, width))));
    }
    lines.push((2, data_line(state, width)));
    if let Some(figures) = state.figures().filter(|figures| !figures.cpu.is_empty()) {
        lines.push((4, cpu_line(state, figures, width)));
    }
    while lines.len() > usize::from(area.height) {
        let Some(least) = (0..lines.len()).max_by_key(|&at| lines[at].0) else { break };
        lines.remove(least);
    }
    let lines: Vec<Line<'_>> = lines.into_iter().map(|(_, line)| line).collect();
    put(frame, area, &lines);
}

/// Returns the badge: the status of the view, and the run's time.
pub(super) fn badge(state: &State) -> (String, Style) {
    let theme = state.theme;
    let time =
        state.figures().map_or_else(String::new, |figures| format::clock(figures.duration_us / 1_000_000));
    let (text, style) = match state.status {
        ViewStatus::Waiting => ("NO DATA".to_owned(), theme.notice()),
        ViewStatus::Reading => match state.read_share() {
            Some(share) => (format!("READING {:.0}%", share * 100.0), theme.notice()),
            None => (format!("READING {time}"), theme.notice()),
        },
        ViewStatus::Live => (format!("LIVE {time}"), theme.good()),
        ViewStatus::Silent(seconds) => (format!("NO DATA for {}", format::clock(seconds)), theme.critical()),
        ViewStatus::Frozen(seconds) => {
            (format!("FROZEN at +{time} for {}", format::clock(seconds)), theme.notice())
        }
        ViewStatus::Playing => (format!("PLAYING +{time}"), theme.good()),
        ViewStatus::Paused => (format!("PAUSED at +{time}"), theme.notice()),
        ViewStatus::Ended => (format!("ENDED {time}"), theme.notice()),
    };
    (format!(" {text} "), theme.badge(style))
}

fn title(state: &State, width: u16) -> Line<'static> {
    let theme = state.theme;
    let figures = state.figures();
    let mut target = state.options.title.clone();
    if target.is_empty() {
        target = figures.map_or_else(String::new, |figures| figures.target.clone());
    }
    let setup = figures.map_or("", |figures| &figures.setup);
    let (badge, badge_style) = badge(state);
    let (recording, recording_style) = recording(state);
    let (alerts, alerts_style) = super::alerts::badge(state);
    let badges = [&badge, &recording, &alerts].map(|text| format::width(text)).iter().sum::<usize>();
    let room = usize::from(width).saturating_sub(badges + 9);
    // The writer chooses the contents of a run, but not its own identity.
    let account = match &*state.account() {
        "" => String::new(),
        account => format!("{}  ", format::cut(account, room.saturating_sub(2) / 2, theme.glyphs)),
    };
    let room = room.saturating_sub(format::width(&account));
    let target = format::cut(&target, room, theme.glyphs);
    let left = room - format::width(&target);
    let mut run = figures.map_or_else(String::new, |figures| format!("run {}", figures.run));
    let place = state.run_place().map(|(at, of, host)| format!("{host} {at}/{of}")).unwrap_or_default();
    if !place.is_empty() {
        run = format!("{place} {run}");
    }
    let mut extra = String::new();
    let experiment = super::experiment::badge(state).unwrap_or_default();
    for part in [&experiment, setup, &run].into_iter().filter(|part| !part.is_empty()) {
        if format::width(&extra) + format::width(part) + 3 <= left {
            extra = format!("{extra}  {part}");
        }
    }
    let fill = left - format::width(&extra);
    Line::from(vec![
        Span::styled("tlsdash ", theme.heading()),
        Span::styled(account, theme.label()),
        Span::styled(target, theme.figure()),
        Span::styled(extra, theme.quiet()),
        Span::raw(" ".repeat(fill + 1)),
        Span::styled(recording, recording_style),
        Span::styled(alerts, alerts_style),
        Span::styled(badge, badge_style),
    ])
}

/// Returns how long the run has been recorded; empty if it is not.
fn recording(state: &State) -> (String, Style) {
    match state.recording() {
        None => (String::new(), state.theme.quiet()),
        Some((seconds, false)) => (format!("[REC {}] ", format::clock(seconds)), state.theme.notice()),
        Some((seconds, true)) => {
            (format!("[NOT RECORDING {}] ", format::clock(seconds)), state.theme.critical())
        }
    }
}

fn load_line(state: &State, figures: &ViewModel, load: &LoadFigures, width: u16) -> Line<'static> {
    let theme = state.theme;
    let (word, style) = match load.kind {
        Loop::Stopped => ("STOPPED", theme.notice()),
        Loop::Open => ("OPEN loop", theme.good()),
        Loop::Closed => ("CLOSED loop", theme.good()),
    };
    let figure = |rank, name, text: String| StatusItem::figure(theme, rank, name, text);
    let mut segments = vec![StatusItem::text(0, word, style)];
    let asked = state.control.pending();
    if !asked.is_empty() {
        segments.push(StatusItem::text(0, format!("asked {asked}"), theme.notice()));
    }
    if figures.ended {
        segments.extend([
            figure(0, "sent", format::count(load.sent)),
            figure(1, "ok", format::count(load.ok)),
            figure(0, "failed", format::count(load.failed.total)),
            figure(2, "never sent", format::count(load.never_sent.total)),
            figure(3, "unfinished", format::count(load.unfinished)),
        ]);
    } else {
        if load.offered_per_second > 0.0 {
            let name = if load.kind == Loop::Stopped { "rate" } else { "offered" };
            segments.push(figure(1, name, format!("{}/s", format::plain(load.offered_per_second))));
        }
        segments.push(figure(1, "sent", rate(theme, load.sent_per_second)));
        segments.extend(failures(theme, "failed", load.failed, (0, 3)));
        let causes = load.causes.iter().map(|&(cause, n)| format!("{cause} {}", format::count(n)));
        segments.extend(causes.map(|cause| StatusItem::text(1, cause, theme.warning())));
        segments.extend(failures(theme, "never sent", load.never_sent, (1, 3)));
    }
    segments.extend([
        figure(3, "conns", format::count(load.connections)),
        figure(2, "resume", format!("{}%", format::plain(load.resume_percent))),
    ]);
    if !load.keep_alive.is_empty() {
        segments.push(figure(4, "keep-alive", load.keep_alive.clone()));
    }
    status_line(theme, "load", segments, width)
}

fn proxy_line(state: &State, figures: &ViewModel, proxy: &ProxyFigures, width: u16) -> Line<'static> {
    let theme = state.theme;
    let figure = |rank, name, text: String| StatusItem::figure(theme, rank, name, text);
    let mut segments = vec![figure(0, "open", format::count(proxy.open))];
    if figures.ended {
        segments.extend([
            figure(1, "accepted", format::count(proxy.accepted)),
            figure(1, "in", format::bytes(proxy.bytes_in as f64)),
            figure(1, "out", format::bytes(proxy.bytes_out as f64)),
        ]);
    } else {
        segments.extend([
            figure(1, "accepted", rate(theme, proxy.accepted_per_second)),
            figure(1, "in", byte_rate(theme, proxy.in_per_second)),
            figure(1, "out", byte_rate(theme, proxy.out_per_second)),
        ]);
    }
    // Errors stay if there is little room; the upstream's errors explain best why connections failed.
    for (name, count, rank) in [("failed", proxy.failed, 2), ("upstream errors", proxy.upstream_errors, 0)] {
        let none = || StatusItem::text(3, format!("{name} 0"), theme.label());
        segments.push(failures(theme, name, count, (rank, 3)).unwrap_or_else(none));
    }
    status_line(theme, "proxy", segments, width)
}

/// Failures within the window are highlighted and have their own rank; earlier ones do not.
fn failures(theme: Theme, name: &str, count: Count, (rank, rank_before): (u8, u8)) -> Option<StatusItem> {
    let text = format!("{name} {}", count.words());
    match (count.recent, count.total) {
        (0, 0) => None,
        (0, _) => Some(StatusItem::text(rank_before, text, theme.label())),
        (_, _) => Some(StatusItem::text(rank, text, theme.warning())),
    }
}

fn data_line(state: &State, width: u16) -> Line<'static> {
    let theme = state.theme;
    let mut segments = Vec::new();
    if let Some(figures) = state.figures() {
        let health = &figures.health;
        segments.push(StatusItem::figure(theme, 0, "window", figures.span.words()));
        if let Some(lag_us) = health.journal_lag_us {
            segments.push(StatusItem::figure(theme, 2, "journal lag", format::span(lag_us)));
        }
        let counts = [
            (1, "gaps", health.gaps, true),
            (1, "lost", health.lost, true),
            (1, "refused", health.refused, false),
            (1, "dropped", health.dropped, false),
            (1, "suppressed", health.suppressed, false),
            (2, "foreign", health.foreign, false),
            (3, "merged", health.merged, false),
            (2, "malformed", health.malformed, false),
            (3, "unrecorded", health.unrecorded, false),
        ];
        for (rank, name, n, always) in counts {
            if n > 0 {
                segments.push(StatusItem::text(
                    rank,
                    format!("{name} {}", format::count(n)),
                    theme.warning(),
                ));
            } else if always {
                segments.push(StatusItem::figure(theme, rank, name, "0"));
            }
        }
        if health.skipped_bytes > 0 {
            let skipped = format!("unreadable {}", format::bytes(health.skipped_bytes as f64));
            segments.push(StatusItem::text(2, skipped, theme.warning()));
        }
    }
    let mut line = status_line(theme, "data", segments, width);
    let room = usize::from(width).saturating_sub(line.width() + 2);
    if room >= SOURCE_CELLS_MIN {
        let gap = if state.figures().is_some() { "  " } else { "" };
        let source = format::cut_front(&state.options.source, room, theme.glyphs);
        line.push_span(Span::styled(format!("{gap}{source}"), theme.quiet()));
    }
    line
}

fn cpu_line(state: &State, figures: &ViewModel, width: u16) -> Line<'static> {
    let theme = state.theme;
    let mut segments: Vec<StatusItem> = figures
        .cpu
        .iter()
        .zip(0..)
        .map(|(&(name, cores), rank)| StatusItem::figure(theme, rank, name, format::cpu(cores)))
        .collect();
    segments.push(StatusItem::text(6, "of one core", theme.quiet()));
    if let Some(host) = &figures.host {
        segments.push(StatusItem::figure(theme, 7, "memory", format::bytes(host.memory_bytes as f64)));
        if host.memory_pss_bytes > 0 {
            segments.push(StatusItem::figure(theme, 8, "PSS", format::bytes(host.memory_pss_bytes as f64)));
        }
        segments.push(StatusItem::figure(theme, 9, "descriptors", format::count(host.descriptors)));
    }
    status_line(theme, "cpu", segments, width)
}
