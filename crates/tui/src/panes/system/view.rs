//! Load, proxy, journal and CPU in detail, a line for each. Once it is chosen, a table of the workers takes the place of
//! their line.
//!
//! ```text
//! ─ system ─────────────────────────────────────────────────
//! load   OPEN  offered 5,000/s  sent 4,998/s  conns 200  resume 80%  keep-alive 10
//! proxy  open 64  accepted 500/s  in 1.2 MB/s  out 31.2 MB/s  failed 0
//! data   window 10 s  journal lag 40 ms  gaps 0  lost 0  file:/tmp/x.journal
//! cpu    proxy 88%  load 61%  upstream 20%  ui 0.4%  journal 1.0%  of one core
//! worker proxy-0 45%  proxy-1 43%  of one core
//! procs  haproxy 4711 0.0%  haproxy 4713 43%  of one core  memory 36 MB
//!
//! ─ workers 1-2/2, 10 s   CPU  of busiest        delay ms   conns   acc/s    hs/s  resumed
//! ▶0                      45%  ████████████████     0.850      33     251     250    80.1%
//!  1                      22%  ████████             0.140      31     249     249    79.8%
//! ```

use model::runs::WorkerActivity;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use records::values::ProcessCpu;

use super::model::WorkerRow;
use crate::input::intent::{Intent, List};
use crate::input::keymap::hints::hint;
use crate::panes::{Pane, PaneId, PaneRows};
use crate::state::State;
use crate::state::sight;
use crate::theme::Theme;
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::view_model::load::{LoadFigures, LoopState};
use crate::view_model::proxy::ProxyFigures;
use crate::view_model::span::Count;
use crate::widgets::parts::{StatusItem, bar, byte_rate, heading, put, rate, status_line};
use crate::widgets::table::{self, Columns, extent};

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        let is_chosen = state.panes.in_focus() == Some(PaneId::System);
        let shown = state.figures().filter(|_| is_chosen || sight::has_room_for_details(state.size));
        let Some(figures) = shown else { return PaneRows::default() };
        let (above, workers) = (rows_above(figures, is_chosen), figures.workers.len());
        let with = |workers: usize| above + 1 + workers as u16;
        // The header has the most important of it: beside other panes it takes the rows that they leave.
        let (enough, wanted) = if is_chosen && workers > 0 {
            (with(workers.min(WORKERS_ENOUGH)), with(workers))
        } else {
            // In HTTP mode the plot would lose these rows.
            (if figures.http.is_some() { 0 } else { above.min(LINES_ENOUGH) }, above)
        };
        PaneRows { min: above.min(LINES_MIN), enough, wanted, grows: false }
    },
    ranks: [8, 8, 8],
    render,
    target: |state, area, at| {
        let below = workers_area(state, area).filter(|below| below.contains(at.into()))?;
        table::target(List::Workers, &state.workers.table, below, at)
    },
    hints: &[hint(&[Intent::SortNext], "sort"), hint(&[Intent::Filter], "filter")],
    arrange,
    sight: |state, area| workers_area(state, area).map_or(0, table::rows),
    ..Pane::PLAIN
};

/// Updates the workers in sight.
fn arrange(state: &mut State) {
    if state.workers.table.sight > 0 {
        let workers = state.figures().map_or(&[][..], |figures| &figures.workers);
        let rows = workers.iter().copied().map(WorkerRow).collect();
        state.workers.set(rows);
        state.workers.arrange();
    }
}

fn render(state: &State, frame: &mut Frame<'_>, area: Rect) {
    let Some(figures) = state.figures() else { return };
    let workers = workers_area(state, area);
    let mut shown = vec![heading(state.theme, &["system"], "", area.width)];
    shown.extend(lines(state, figures, area.width, workers.is_some()));
    put(frame, area, &shown);
    if let Some(below) = workers {
        put(frame, below, &worker_lines(state, figures, below));
    }
}

/// The rows, with the heading, that it gets first, and before less important panes.
const LINES_MIN: u16 = 3;
const LINES_ENOUGH: u16 = 4;
/// Workers that have a line before less important panes get theirs.
const WORKERS_ENOUGH: usize = 4;
/// The minimum cells for the end of a path.
const SOURCE_CELLS_MIN: usize = 12;

/// Where the workers are listed, below the lines: heading and one worker at least.
fn workers_area(state: &State, area: Rect) -> Option<Rect> {
    let figures = state.figures().filter(|_| state.panes.in_focus() == Some(PaneId::System))?;
    // A proxy whose log is counted does not say how many connections are open, and nothing of its workers.
    figures.proxy.as_ref()?.open?;
    let above = rows_above(figures, true);
    let height = area.height.checked_sub(above).filter(|height| *height >= 2)?;
    Some(Rect { y: area.y + above, height, ..area })
}

/// Returns the rows of heading and lines; the line of the workers gives way to their table.
fn rows_above(figures: &ViewModel, has_table: bool) -> u16 {
    let parts = [
        figures.load.is_some(),
        figures.proxy.is_some(),
        !figures.cpu.is_empty(),
        figures.workers.len() > 1 && !has_table,
        !figures.observed.is_empty(),
    ];
    2 + parts.into_iter().filter(|&is_there| is_there).count() as u16
}

fn worker_lines(state: &State, figures: &ViewModel, area: Rect) -> Vec<Line<'static>> {
    let (theme, table) = (state.theme, &state.workers.table);
    let busiest = figures.workers.iter().map(WorkerActivity::cores).fold(f64::MIN_POSITIVE, f64::max);
    let draw_bar =
        |_: &'static str, row: &WorkerRow, cells: usize| bar(theme, row.0.cores() / busiest, cells);
    let titles = |_: &State, columns: &Columns<WorkerRow>, shown| {
        let by = columns.hidden_order(theme, table).filter(|_| table.order.column != 0);
        let by = by.map_or_else(String::new, |order| format!(" by {order}"));
        let extent = extent(table, shown);
        vec![format!("workers {extent}{by}, 10 s"), format!("workers {extent}"), "workers".to_owned()]
    };
    let mut lines = table::lines(state, table, area, titles, draw_bar);
    if figures.workers.is_empty() {
        lines.push(Line::styled(" no record says what each worker does", theme.quiet()));
    }
    lines
}

fn lines(state: &State, figures: &ViewModel, width: u16, has_table: bool) -> Vec<Line<'static>> {
    let mut lines = Vec::new();
    lines.extend(figures.load.as_ref().map(|load| load_line(state, figures, load, width)));
    lines.extend(figures.proxy.as_ref().map(|proxy| proxy_line(state, figures, proxy, width)));
    lines.push(data_line(state, figures, width));
    if !figures.cpu.is_empty() {
        lines.push(cpu_line(state, figures, width));
    }
    if figures.workers.len() > 1 && !has_table {
        lines.push(workers_line(state, figures, width));
    }
    if !figures.observed.is_empty() {
        lines.push(processes_line(state, figures, width));
    }
    lines
}

fn load_line(state: &State, figures: &ViewModel, load: &LoadFigures, width: u16) -> Line<'static> {
    let theme = state.theme;
    let (word, style) = match load.kind {
        LoopState::Stopped => ("STOPPED", theme.notice()),
        LoopState::Open => ("OPEN loop", theme.good()),
        LoopState::Closed => ("CLOSED loop", theme.good()),
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
            let name = if load.kind == LoopState::Stopped { "rate" } else { "offered" };
            segments.push(figure(1, name, format!("{}/s", format::per_second(load.offered_per_second))));
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
    let open = proxy.open.map(|open| figure(0, "open", format::count(open)));
    let mut segments: Vec<_> = open.into_iter().collect();
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
pub(crate) fn failures(
    theme: Theme,
    name: &str,
    count: Count,
    (rank, rank_before): (u8, u8),
) -> Option<StatusItem> {
    let text = format!("{name} {}", count.words());
    match (count.recent, count.total) {
        (0, 0) => None,
        (0, _) => Some(StatusItem::text(rank_before, text, theme.label())),
        (_, _) => Some(StatusItem::text(rank, text, theme.warning())),
    }
}

fn data_line(state: &State, figures: &ViewModel, width: u16) -> Line<'static> {
    let theme = state.theme;
    let mut segments = vec![StatusItem::text(0, figures.window(), theme.label())];
    if let Some(lag_us) = figures.health.journal_lag_us {
        segments.push(StatusItem::figure(theme, 2, "journal lag", format::span(lag_us)));
    }
    segments.extend(losses(theme, figures, true));
    let mut line = status_line(theme, "data", segments, width);
    let room = usize::from(width).saturating_sub(line.width() + 2);
    if room >= SOURCE_CELLS_MIN {
        let source = format::cut_front(&state.options.source, room, theme.glyphs);
        line.push_span(Span::styled(format!("  {source}"), theme.quiet()));
    }
    line
}

/// Returns what became of records; with zeros if wanted.
pub(crate) fn losses(theme: Theme, figures: &ViewModel, with_zeros: bool) -> Vec<StatusItem> {
    let health = &figures.health;
    let mut segments = Vec::new();
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
            segments.push(StatusItem::text(rank, format!("{name} {}", format::count(n)), theme.warning()));
        } else if always && with_zeros {
            segments.push(StatusItem::figure(theme, rank, name, "0"));
        }
    }
    if health.skipped_bytes > 0 {
        let skipped = format!("unreadable {}", format::bytes(health.skipped_bytes as f64));
        segments.push(StatusItem::text(2, skipped, theme.warning()));
    }
    segments
}

fn of_one_core(figures: &ViewModel) -> &'static str {
    if figures.is_whole() { "of one core, mean of the whole run" } else { "of one core" }
}

fn cpu_line(state: &State, figures: &ViewModel, width: u16) -> Line<'static> {
    let theme = state.theme;
    let mut segments: Vec<StatusItem> = figures
        .cpu
        .iter()
        .zip(0..)
        .map(|(&(name, cores), rank)| StatusItem::figure(theme, rank, name, format::cpu(cores)))
        .collect();
    segments.push(StatusItem::text(6, of_one_core(figures), theme.quiet()));
    if let Some(host) = &figures.host {
        segments.push(StatusItem::figure(theme, 7, "memory", format::bytes(host.memory_bytes as f64)));
        if host.memory_pss_bytes > 0 {
            segments.push(StatusItem::figure(theme, 8, "PSS", format::bytes(host.memory_pss_bytes as f64)));
        }
        segments.push(StatusItem::figure(theme, 9, "descriptors", format::count(host.descriptors)));
    }
    status_line(theme, "cpu", segments, width)
}

/// Returns the CPU of each of several. Those that use the most stay if there is little room.
fn each_cpu(theme: Theme, of: impl Iterator<Item = (String, f64)>) -> Vec<StatusItem> {
    let of: Vec<_> = of.collect();
    let item = |(name, cores): &(String, f64)| {
        let busier = of.iter().filter(|(_, others)| others > cores).count();
        StatusItem::figure(theme, u8::try_from(busier).unwrap_or(u8::MAX), name, format::cpu(*cores))
    };
    of.iter().map(item).collect()
}

/// The proxy's workers, each a thread.
fn workers_line(state: &State, figures: &ViewModel, width: u16) -> Line<'static> {
    let theme = state.theme;
    let mut segments = each_cpu(theme, figures.workers.iter().map(|worker| (worker.name(), worker.cores())));
    segments.push(StatusItem::text(1, "of one core", theme.quiet()));
    status_line(theme, "worker", segments, width)
}

/// The processes of the terminator.
fn processes_line(state: &State, figures: &ViewModel, width: u16) -> Line<'static> {
    let theme = state.theme;
    let named = |(process, cores): &(ProcessCpu, f64)| (format!("{} {}", process.name, process.pid), *cores);
    let mut segments = each_cpu(theme, figures.observed.iter().map(named));
    segments.push(StatusItem::text(1, of_one_core(figures), theme.quiet()));
    if let Some(host) = &figures.host {
        let memory = format::bytes(host.observed_memory_bytes as f64);
        segments.push(StatusItem::figure(theme, 2, "memory", memory));
        segments.push(StatusItem::figure(theme, 3, "descriptors", format::count(host.observed_descriptors)));
        segments.push(StatusItem::figure(theme, 4, "backlog", format::count(host.observed_backlog)));
    }
    status_line(theme, "procs", segments, width)
}
