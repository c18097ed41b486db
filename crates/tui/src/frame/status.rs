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
use records::metrics::{HttpLatency, LatencyClass, LoadLatency, ProxyLatency};
use records::text::quantity;

use super::{problem, tiles};
use crate::format;
use crate::input::intent::Intent;
use crate::panes::system::view::{failures, losses};
use crate::state::State;
use crate::state::sight::{self, BOXED_TILE_ROWS};
use crate::state::status::ViewStatus;
use crate::view_model::ViewModel;
use crate::view_model::classes::LatencyRow;
use crate::view_model::load::{LoadFigures, LoopState};
use crate::view_model::span::Count;
use crate::widgets::parts::{StatusItem, byte_rate, certificate_words, put, quantile_text, rate, share};

/// The minimum columns for figures and details in one line.
const WIDE_MIN: u16 = 120;
/// The minimum columns for failures of the whole run beside those of the window.
const TOTALS_MIN: u16 = 80;
/// The most columns for figures in few letters.
pub(crate) const NARROW_MAX: u16 = 60;
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
    let is_narrow = width < NARROW_MAX;
    let gap = if is_narrow { "  " } else { FIGURE_GAP };
    let row = main_latency(figures);
    let p99 = row.and_then(|row| row.quantiles[2]);
    let p99 = p99.map_or_else(|| theme.glyphs.none().to_string(), |p99| quantile_text(theme, p99));
    let is_http = figures.http.is_some();
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

/// Returns failed requests of HTTP mode; else failed requests of the load or failed connections of the proxy, whichever
/// are more.
pub(crate) fn failed(figures: &ViewModel) -> Count {
    if let Some(http) = &figures.http {
        return http.failed;
    }
    let of_load = figures.load.as_ref().map(|load| load.failed);
    let of_proxy = figures.proxy.as_ref().map(|proxy| proxy.failed);
    let both = of_load.into_iter().chain(of_proxy);
    both.max_by_key(|failed| (failed.recent, failed.total)).unwrap_or_default()
}

/// Returns the class that best describes what clients experience.
pub(crate) fn main_latency(figures: &ViewModel) -> Option<&LatencyRow> {
    if figures.http.is_some() {
        // A log of another terminator may lack the first byte.
        let is = |row: &&LatencyRow, class| row.class == LatencyClass::Http(class) && row.absent.is_none();
        let row = |class| figures.latencies.iter().find(|row| is(row, class));
        return [HttpLatency::FirstByte, HttpLatency::Request].into_iter().find_map(row);
    }
    let classes = [
        LatencyClass::Load(LoadLatency::Response),
        LatencyClass::Load(LoadLatency::Service),
        LatencyClass::Proxy(ProxyLatency::Exchange),
    ];
    let row = |class| figures.latencies.iter().find(|row| row.class == class && row.n > 0);
    classes.into_iter().find_map(row)
}

/// Returns the details: what went wrong first, then load, proxy, CPU and the window.
pub(crate) fn details(state: &State, figures: &ViewModel) -> Vec<StatusItem> {
    let theme = state.theme;
    let quiet = |rank, text: String| StatusItem::text(rank, text, theme.quiet());
    let mut items = changes(state);
    let has_tiles = sight::tile_rows(state.size) > 0;
    if has_tiles {
        let calm = if state.is_service_open() {
            "a service: alerts, marks and the log are those of all of them"
        } else {
            "no alert fires, no finding is open"
        };
        items.push(quiet(0, calm.to_owned()));
    }
    if let Some(load) = &figures.load {
        // A tile without a box has no room for it.
        if sight::tile_rows(state.size) < BOXED_TILE_ROWS {
            let is_stopped = load.kind == LoopState::Stopped;
            let (rank, style) = if is_stopped { (0, theme.notice()) } else { (1, theme.quiet()) };
            items.push(StatusItem::text(rank, load_words(load), style));
        }
        let causes = load.causes.iter().map(|&(cause, n)| format!("{cause} {}", format::count(n)));
        items.extend(causes.map(|cause| StatusItem::text(2, cause, theme.warning())));
        items.extend(failures(theme, "never sent", load.never_sent, (1, 3)));
    }
    if let Some(proxy) = &figures.proxy {
        items.extend(failures(theme, "upstream errors", proxy.upstream_errors, (0, 3)));
    }
    items.extend(losses(theme, figures, false).into_iter().map(|loss| loss.with_rank(0)));
    if let Some(proxy) = figures.proxy.as_ref().filter(|_| !has_tiles) {
        let out = if figures.ended {
            format::bytes(proxy.bytes_out as f64)
        } else {
            byte_rate(theme, proxy.out_per_second)
        };
        items.extend(proxy.open.map(|open| quiet(4, format!("open {}", format::count(open)))));
        items.push(quiet(3, format!("out {out}")));
    }
    let of_parts =
        ["proxy", "load"].into_iter().filter_map(|part| figures.cpu.iter().find(|(name, _)| *name == part));
    let cpu: Vec<String> = of_parts.map(|(name, cores)| format!("{name} {}", format::cpu(*cores))).collect();
    if !cpu.is_empty() && !has_tiles {
        items.push(quiet(5, format!("cpu {}", cpu.join(" "))));
    }
    items.push(quiet(2, figures.window()));
    if let Some(lag_us) = figures.health.journal_lag_us {
        items.push(quiet(6, format!("lag {}", format::span(lag_us))));
    }
    items
}

/// Returns changes of settings that no record confirms yet, or that act now while the screen shows the past.
pub(crate) fn changes(state: &State) -> Vec<StatusItem> {
    if let Some(question) = state.recorded.question() {
        return vec![StatusItem::text(0, question, state.theme.notice())];
    }
    let asked = Some(state.control.pending()).filter(|asked| !asked.is_empty());
    let text = unseen_change(state).or_else(|| asked.map(|asked| format!("asked {asked}")));
    text.map(|text| StatusItem::text(0, text, state.theme.notice())).into_iter().collect()
}

/// Returns that a change acts now while the screen shows the past, and the key that shows it.
pub(crate) fn unseen_change(state: &State) -> Option<String> {
    let change = state.unseen_change()?;
    let live = state.options.keymap.names(Intent::Freeze).into_iter().next().unwrap_or_default();
    Some(format!("{change} acts now: {live} shows it"))
}

/// Returns whether the load runs, and at which rate.
pub(crate) fn load_words(load: &LoadFigures) -> String {
    match load.kind {
        LoopState::Stopped => "load STOPPED".to_owned(),
        LoopState::Open => format!("OPEN loop {}/s", format::per_second(load.offered_per_second)),
        LoopState::Closed => "CLOSED loop".to_owned(),
    }
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
    let experiment = crate::screens::experiments::view::badge(state).unwrap_or_default();
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
