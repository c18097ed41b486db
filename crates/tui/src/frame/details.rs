//! The quieter figures of the header: what went wrong, changes that wait, load, proxy, CPU and the window.

use records::metrics::{HttpLatency, LatencyClass, LoadLatency, ProxyLatency};

use crate::input::intent::Intent;
use crate::panes::system::view::{failures, losses};
use crate::state::State;
use crate::state::sight::{self, BOXED_TILE_ROWS};
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::view_model::classes::LatencyRow;
use crate::view_model::load::{LoadFigures, LoopState};
use crate::view_model::span::Count;
use crate::widgets::parts::{StatusItem, byte_rate};

/// The most columns for figures in few letters.
pub(crate) const NARROW_MAX: u16 = 60;

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
        let row = |class| figures.latency(LatencyClass::Http(class)).filter(|row| row.absent.is_none());
        return [HttpLatency::FirstByte, HttpLatency::Request].into_iter().find_map(row);
    }
    let classes = [
        LatencyClass::Load(LoadLatency::Response),
        LatencyClass::Load(LoadLatency::Service),
        LatencyClass::Proxy(ProxyLatency::Exchange),
    ];
    let row = |class| figures.latency(class).filter(|row| row.n > 0);
    classes.into_iter().find_map(row)
}

/// Returns the details: what went wrong first, then load, proxy, CPU and the window.
pub(crate) fn details(state: &State, figures: &ViewModel) -> Vec<StatusItem> {
    let theme = state.theme;
    let quiet = |rank, text: String| StatusItem::text(rank, text, theme.quiet());
    let mut items = changes(state);
    let has_tiles = sight::tile_rows(state.size) > 0;
    if has_tiles {
        let calm = match figures.findings.open.len() {
            _ if state.is_service_open() => {
                "a service: alerts, marks and the log are those of all of them".into()
            }
            0 => "no alert fires, no finding is open".to_owned(),
            // Others are told in the place of this line.
            1 => "no alert fires, 1 finding (info)".to_owned(),
            n => format!("no alert fires, {n} findings (info)"),
        };
        items.push(quiet(0, calm));
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
