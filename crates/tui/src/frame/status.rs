//! The header: what is watched and its state, the four figures that matter most, and quieter details.
//!
//! ```text
//! tlsdash :8443 > unix:/tmp/app.sock  ECDSA P-256, 2 workers            LIVE +03:12
//! 4998 exch/s   p99 3.44 ms response   resumed 80.0%   failed 0
//! OPEN loop 5,000/s  open 64  out 31.2 MB/s  cpu proxy 88% load 61%  window 10 s
//! ```
//!
//! Wide screens have figures and details in one line; small ones have no details. With a journal of others, the owner
//! of the run precedes the target.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use records::metrics::LatencyClass;
use records::text::quantity;

use super::details::{NARROW_MAX, failed, main_latency};
use super::{problem, tiles};
use crate::state::State;
use crate::state::sight;
use crate::state::status::ViewStatus;
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::view_model::classes::LatencyRow;
use crate::widgets::parts::{certificate_words, put, quantile_text, rate, share};

/// The minimum columns for figures and details in one line.
const WIDE_MIN: u16 = 120;
/// The minimum columns for failures of the whole run beside those of the window.
const TOTALS_MIN: u16 = 80;
/// Width below which the figures of HTTP mode have short words.
const NARROW_HTTP_MAX: u16 = 70;
/// The blanks between the four figures.
const FIGURE_GAP: &str = "   ";

/// Returns the rows of the header on a screen: title, problem, and tiles or their figures in a line.
pub(crate) fn height(state: &State) -> u16 {
    if state.awaits_clients() { 2 } else { 2 + sight::tile_rows(state.size).max(1) }
}

pub(crate) fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let mut lines = vec![title(state, area.width)];
    let Some(figures) = state.figures() else { return put(frame, area, &lines) };
    lines.push(problem::line(state, area.width));
    let below = Rect { y: area.y + 2, height: area.height - 2, ..area };
    match below.height {
        0 => {}
        1 => lines.push(Line::from(main_figures(state, figures, area.width))),
        _ => tiles::render(state, figures, frame, below),
    }
    put(frame, area, &lines);
}

/// Returns rate, p99, resumed share and failures.
fn main_figures(state: &State, figures: &ViewModel, width: u16) -> Vec<Span<'static>> {
    let theme = state.theme;
    let is_http = figures.http.is_some();
    // HTTP mode has longer words.
    let is_narrow = width < if is_http { NARROW_HTTP_MAX } else { NARROW_MAX };
    let gap = if is_narrow { "  " } else { FIGURE_GAP };
    let row = main_latency(figures);
    let p99 = row.and_then(|row| row.quantiles[2]);
    let p99 = p99.map_or_else(|| theme.glyphs.none().to_string(), |p99| quantile_text(theme, p99));
    let class = match row {
        Some(row) if is_http => row.class.names().alias,
        Some(row) if width >= WIDE_MIN => row.class.title(),
        _ => "",
    };
    let resumed = share(theme, figures.handshakes.full_share.map(|full| 1.0 - full));
    let failed = failed(figures);
    let failed_words = if width < TOTALS_MIN { format::count(failed.recent) } else { failed.words() };
    let failed_style = if failed.recent > 0 { theme.warning() } else { theme.figure() };
    let words = match (is_narrow, is_http) {
        (true, false) => ["", "ms", "res ", "fail "],
        (true, true) => [" req", "ms ", "", "fail "],
        (false, false) => [" answered", " ms ", "resumed ", "failed "],
        (false, true) => [" requests", " ms ", "resumed ", "failed "],
    };
    let shown = [
        ("", rate(theme, row.and_then(|row| row.per_second)), words[0].to_owned(), theme.figure()),
        ("p99 ", p99, format!("{}{class}", words[1]).trim_end().to_owned(), theme.figure()),
        (words[2], resumed, String::new(), theme.figure()),
        (words[3], failed_words, String::new(), failed_style),
    ];
    let mut spans = Vec::new();
    for (at, ((before, figure, after, style), fires)) in
        shown.into_iter().zip(firing(figures, row)).enumerate()
    {
        // A narrow header names the class of its p99, and so has no room for the share.
        if is_narrow && is_http && at == 2 {
            continue;
        }
        let gap = if spans.is_empty() { "" } else { gap };
        let (sign, style) = if fires { ("!", theme.critical()) } else { ("", style) };
        spans.push(Span::styled(format!("{gap}{before}"), theme.label()));
        spans.extend([Span::styled(format!("{figure}{sign}"), style), Span::styled(after, theme.label())]);
    }
    spans
}

/// Returns which of the four figures an alert that fires is about; `row` has the first two.
fn firing(figures: &ViewModel, row: Option<&LatencyRow>) -> [bool; 4] {
    let fires = |names: &[&str]| figures.alerts.iter().any(|alert| alert.is_about_any(names));
    let rate: &[&str] = match row.map(|row| row.class) {
        Some(LatencyClass::Load(_)) => &["rate.achieved", "requests.rate"],
        Some(LatencyClass::Proxy(_)) => &["exchanges.rate"],
        Some(LatencyClass::Tls(_)) => &["handshakes.rate"],
        Some(LatencyClass::Http(_)) => &["http.requests.rate"],
        None => &[],
    };
    [
        fires(rate),
        row.is_some_and(|row| figures.has_alert_on_p99(row.class)),
        fires(&["resumed.ratio"]),
        fires(&[
            "failed.ratio",
            "requests.failed",
            "connections.failed",
            "errors",
            "http.failed",
            "http.failed.ratio",
        ]),
    ]
}

/// Returns the badge: the status of the view, and the run's time.
pub(crate) fn badge(state: &State) -> (String, Style) {
    let theme = state.theme;
    let time = state
        .figures()
        .map_or_else(String::new, |figures| quantity::elapsed_text(figures.duration_us / 1_000_000));
    let (text, style) = match state.status {
        ViewStatus::Waiting => ("NO DATA".to_owned(), theme.notice()),
        ViewStatus::Reading => match state.read_share() {
            Some(share) => (format!("READING {:.0}%", share * 100.0), theme.notice()),
            None => (format!("READING +{time}"), theme.notice()),
        },
        ViewStatus::Live => (format!("LIVE +{time}"), theme.good()),
        ViewStatus::Silent(seconds) => {
            (format!("NO DATA for {}", quantity::elapsed_text(seconds)), theme.critical())
        }
        ViewStatus::Frozen(seconds) => {
            (format!("FROZEN at +{time} for {}", quantity::elapsed_text(seconds)), theme.notice())
        }
        ViewStatus::Playing => (format!("PLAYING +{time}"), theme.good()),
        ViewStatus::Paused => (format!("PAUSED at +{time}"), theme.notice()),
        ViewStatus::Ended => (format!("ENDED at +{time}"), theme.notice()),
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
    if let Some(run) = state.run().filter(|run| run.is_service()) {
        target = format!("{} of {target}", run.service());
    }
    let setup = figures.map_or("", |figures| &figures.setup);
    let (badge, badge_style) = badge(state);
    let (recording, recording_style) = recording(state);
    let (alerts, alerts_style) = crate::widgets::alerts::badge(state);
    let (findings, findings_style) = crate::panes::findings::view::badge(state);
    let (certificate, certificate_style) = certificate(state, width);
    // A line that short has room for what it is about, and for alerts.
    let findings = if width < NARROW_MAX { String::new() } else { findings };
    let badges = [&badge, &recording, &alerts, &findings, &certificate]
        .map(|text| format::width(text))
        .iter()
        .sum::<usize>();
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
    let experiment = crate::screens::experiments::view::badge(state);
    // It says how far the experiment is now.
    let experiment = experiment.filter(|_| state.past_us().is_none()).unwrap_or_default();
    // The zone of the times on the screen.
    let zone = figures.map_or_else(String::new, |_| state.options.zone.name(state.last_realtime_us()));
    for part in [&experiment, setup, &run, &zone].into_iter().filter(|part| !part.is_empty()) {
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
        Span::styled(certificate, certificate_style),
        Span::styled(recording, recording_style),
        Span::styled(alerts, alerts_style),
        Span::styled(findings, findings_style),
        Span::styled(badge, badge_style),
    ])
}

/// Returns the days that the certificate has which ends first; on narrow screens only if they are few.
fn certificate(state: &State, width: u16) -> (String, Style) {
    let expiry = state.figures().and_then(|figures| figures.certificate_expiry);
    let expiry = expiry.filter(|expiry| width >= WIDE_MIN || expiry.severity.is_some());
    expiry.map_or_else(Default::default, |expiry| {
        let (text, style) = certificate_words(state.theme, expiry);
        (format!("{text}  "), style)
    })
}

/// Returns how long the run has been recorded; empty if it is not.
fn recording(state: &State) -> (String, Style) {
    match state.recorded.progress() {
        None => (String::new(), state.theme.quiet()),
        Some((seconds, false)) => {
            (format!("[REC {}] ", quantity::elapsed_text(seconds)), state.theme.notice())
        }
        Some((seconds, true)) => {
            (format!("[NOT RECORDING {}] ", quantity::elapsed_text(seconds)), state.theme.critical())
        }
    }
}
