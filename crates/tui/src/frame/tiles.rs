//! The five figures that matter most, each with its course and what explains it.
//!
//! ```text
//! ┌─ exchange p99 ──────────┐┌─ exchanges ─────────────┐┌─ failed, 10 s ──────────┐
//! │ 1,032 ms      ▁▁▁▂▁▁███ ││ 292/s         ▁▁▁▁▁▁███ ││ 19 (921 total) ▄▆▄▆█▆▄▁ │
//! │ 95 % CI 1,024-1,040     ││ out 5.95 MB/s  in 20 kB ││ alert 11  not TLS 5     │
//! │ p50 1.07 max 2,052 n 87 ││ open 17  accepted 294/s ││                         │
//! └─────────────────────────┘└─────────────────────────┘└─────────────────────────┘
//! ```
//!
//! Small screens have no boxes and one line below the figure.

use model::runs::WorkerActivity;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Block;
use records::metrics::{LatencyClass, ProxyLatency};
use records::text::quantity::three_digits;

use super::details;
use crate::panes::handshakes::model::NamedCount;
use crate::panes::handshakes::view::whole_percent;
use crate::panes::latency::view::bounds;
use crate::panes::timeline::model::TimelineColumn;
use crate::panes::timeline::plot::shown_row;
use crate::state::State;
use crate::state::sight::BOXED_TILE_ROWS;
use crate::theme::{Glyphs, format};
use crate::view_model::ViewModel;
use crate::view_model::classes::LatencyRow;
use crate::view_model::load::LoopState;
use crate::widgets::overlay;
use crate::widgets::parts::{byte_rate, longest_fitting, put, quantile_text, rate, share};
use crate::widgets::sparkline::sparkline;

const COUNT: u16 = 5;
/// The most groups of threads beside the proxy's whose CPU a tile has room for.
const OTHERS_MAX: usize = 2;
/// By how many times the exchanges of all clients are more than those of the load, to be named beside them.
const PART_FACTOR: f64 = 1.1;
/// The cells of a course, and the blanks before it.
const COURSE_CELLS: (usize, usize) = (4, 14);

#[derive(Default)]
struct Tile {
    title: String,
    figure: String,
    /// Of how many it is, where there is room.
    whole: String,
    style: Style,
    /// What the figure was in each column of the timeline.
    course: Vec<Option<f64>>,
    course_style: Style,
    /// What explains it: long, with a second line, and short.
    long: [TileLine; 2],
    short: String,
}

/// Items and their separator.
#[derive(Default)]
struct TileLine(Vec<String>, &'static str);

impl TileLine {
    fn new(items: impl IntoIterator<Item = String>) -> Self {
        Self(items.into_iter().filter(|item| !item.is_empty()).collect(), "  ")
    }

    /// As many items as fit, the first one cut if it must be.
    fn fitting(&self, cells: usize, glyphs: Glyphs) -> String {
        let Self(items, between) = self;
        let whole = (1..=items.len()).rev().map(|n| items[..n].join(between));
        let fitting = whole.into_iter().find(|line| format::width(line) <= cells);
        fitting
            .unwrap_or_else(|| items.first().map_or_else(String::new, |item| cut_label(item, cells, glyphs)))
    }
}

/// An item whose label is cut where it is too long, not its number.
fn cut_label(item: &str, cells: usize, glyphs: Glyphs) -> String {
    let is_number = |at: &usize| item[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let number_at = item.match_indices(' ').map(|(at, _)| at).find(is_number);
    match number_at.map(|at| item.split_at(at)) {
        Some((label, number)) if format::width(item) > cells && format::width(number) < cells => {
            format::cut(label, cells - format::width(number), glyphs) + number
        }
        _ => format::cut(item, cells, glyphs),
    }
}

pub(crate) fn render(state: &State, figures: &ViewModel, frame: &mut Frame<'_>, area: Rect) {
    let is_boxed = area.height >= BOXED_TILE_ROWS;
    let gap = if is_boxed { 1 } else { 2 };
    let width = (area.width + gap) / COUNT;
    for (tile, at) in tiles(state, figures).into_iter().zip(0..) {
        // The last one gets what is left.
        let x = area.x + at * width;
        let width = if at + 1 == COUNT { area.right() - x } else { width - gap };
        let place = Rect { x, width, ..area };
        if is_boxed {
            boxed(state, frame, place, &tile);
        } else {
            plain(state, frame, place, &tile);
        }
    }
}

fn boxed(state: &State, frame: &mut Frame<'_>, area: Rect, tile: &Tile) {
    let theme = state.theme;
    let heading = Span::styled(format!(" {} ", tile.title), theme.heading());
    let block = Block::bordered().border_set(overlay::border(theme.glyphs)).border_style(theme.quiet());
    frame.render_widget(block.title(heading), area);
    let inside = Rect { x: area.x + 2, y: area.y + 1, width: area.width - 4, height: 3 };
    let cells = usize::from(inside.width);
    let [first, second] = [&tile.long[0], &tile.long[1]].map(|line| line.fitting(cells, theme.glyphs));
    let lines =
        [figure(state, tile, cells), Line::styled(first, theme.label()), Line::styled(second, theme.quiet())];
    put(frame, inside, &lines);
}

fn plain(state: &State, frame: &mut Frame<'_>, area: Rect, tile: &Tile) {
    let theme = state.theme;
    let cells = usize::from(area.width);
    // In HTTP mode most classes are of HTTP.
    let heading = longest_fitting(theme, &[&tile.title, &tile.title.replace("HTTP ", "")], cells);
    let short = cut_label(&tile.short, cells, theme.glyphs);
    let lines = [
        Line::styled(heading, theme.heading()),
        figure(state, tile, cells),
        Line::styled(short, theme.quiet()),
    ];
    put(frame, area, &lines);
}

/// Draws a figure, with its course at the right.
fn figure(state: &State, tile: &Tile, cells: usize) -> Line<'static> {
    let long = format!("{}{}", tile.figure, tile.whole);
    let text = if format::width(&long) + 1 + COURSE_CELLS.0 <= cells { &long } else { &tile.figure };
    let text = format::cut(text, cells, state.theme.glyphs);
    let room = cells.saturating_sub(format::width(&text) + 1);
    let mut spans = vec![Span::styled(text, tile.style)];
    if room >= COURSE_CELLS.0 && !tile.course.is_empty() {
        let course = sparkline(state.theme, &tile.course, room.min(COURSE_CELLS.1));
        spans.push(Span::styled(format!("{course:>0$}", room + 1), tile.course_style));
    }
    Line::from(spans)
}

fn tiles(state: &State, figures: &ViewModel) -> [Tile; COUNT as usize] {
    [
        latency(state, figures),
        answered(state, figures),
        failed(state, figures),
        resumed(state, figures),
        cpu(state, figures),
    ]
}

/// Returns what the columns of the timeline were up to the shown moment, of those that fit into a tile.
fn course(state: &State, of: impl Fn(&TimelineColumn) -> Option<f64>) -> Vec<Option<f64>> {
    let columns = state.timeline.columns_before(state.past_us().unwrap_or(u64::MAX));
    let n = columns.len();
    columns.skip(n.saturating_sub(COURSE_CELLS.1)).map(of).collect()
}

/// p99 of the class that the plot shows.
fn latency(state: &State, figures: &ViewModel) -> Tile {
    let theme = state.theme;
    let row = shown_row(state);
    let none = || theme.glyphs.none().to_string();
    let at = |at: usize| row.and_then(|row| row.quantiles[at]).map(|quantile| quantile_text(theme, quantile));
    let fires = row.is_some_and(|row| figures.has_alert_on_p99(row.class));
    let ci = row.and_then(|row| bounds(theme, row)).unwrap_or_else(none);
    let is_of_few = row.and_then(|row| row.quantiles[2]).is_some_and(|p99| p99.thin);
    let n = row.map_or(0, |row| row.n);
    let max = row.and_then(|row| row.max_ns).map_or_else(none, format::millis);
    Tile {
        title: format!("p99 {}", state.timeline.class().map_or("", LatencyClass::title)),
        // The sign of the table, so that colour is not all that says it.
        figure: at(2).map_or_else(none, |p99| format!("{p99}{} ms", if fires { "!" } else { "" })),
        style: if fires { theme.critical() } else { theme.figure() },
        course: course(state, |column| column.quantiles[2].map(|ns| ns as f64)),
        course_style: theme.p99(),
        long: [
            TileLine::new([if is_of_few { format!("few samples: {ci}") } else { format!("95 % CI {ci}") }]),
            TileLine(
                vec![
                    format!("p50 {}", at(0).unwrap_or_else(none)),
                    format!("max {max}"),
                    format!("n {}", format::count(n)),
                ],
                " ",
            ),
        ],
        short: format!("CI {ci}"),
        ..Tile::default()
    }
}

/// What is answered a second.
fn answered(state: &State, figures: &ViewModel) -> Tile {
    let theme = state.theme;
    let row = details::main_latency(figures);
    let title = match (&figures.http, row.map(|row| row.class)) {
        (Some(_), _) => "requests",
        (None, Some(LatencyClass::Load(_))) => "answered, load",
        (None, None) if state.run().is_some_and(|run| run.load().is_some()) => "answered, load",
        _ => "exchanges",
    };
    let load = figures.load.as_ref().map(details::load_words);
    let proxy = figures.proxy.as_ref();
    let out = proxy.map(|proxy| format!("out {}", byte_rate(theme, proxy.out_per_second)));
    let into = proxy.map(|proxy| format!("in {}", byte_rate(theme, proxy.in_per_second)));
    let open = proxy.and_then(|proxy| proxy.open).map(|open| format!("open {}", format::count(open)));
    let accepted = proxy.map(|proxy| format!("accepted {}", rate(theme, proxy.accepted_per_second)));
    let all =
        row.and_then(|row| others(figures, row)).map(|all| format!("all clients {}", rate(theme, Some(all))));
    // Of both there is no room for the rate that is wanted of the load.
    let wanted = load.clone().filter(|_| all.is_none());
    let second = [all, wanted, open, accepted.filter(|_| load.is_none())];
    let is_stopped = figures.load.as_ref().is_some_and(|load| load.kind == LoopState::Stopped);
    Tile {
        title: title.to_owned(),
        figure: rate(theme, row.and_then(|row| row.per_second)),
        style: theme.figure(),
        course: course(state, TimelineColumn::rate),
        course_style: theme.graph(),
        long: [
            TileLine::new(out.clone().into_iter().chain(into)),
            TileLine::new(second.into_iter().flatten()),
        ],
        short: load.filter(|_| is_stopped).or(out).unwrap_or_default(),
        ..Tile::default()
    }
}

/// Returns the exchanges of all clients a second, if the load, whose answers are shown, makes only a part of them.
fn others(figures: &ViewModel, load: &LatencyRow) -> Option<f64> {
    let all = figures.latency(LatencyClass::Proxy(ProxyLatency::Exchange))?.per_second?;
    let is_load = matches!(load.class, LatencyClass::Load(_));
    (is_load && all > load.per_second? * PART_FACTOR).then_some(all)
}

/// Failures in the window, with their causes; in HTTP mode of requests, then of connections.
fn failed(state: &State, figures: &ViewModel) -> Tile {
    let theme = state.theme;
    let failed = details::failed(figures);
    let of_load = figures.load.as_ref().filter(|load| load.failed.recent > 0);
    let (whole, causes): (_, &[NamedCount<'_>]) = match (&figures.http, of_load) {
        (Some(http), _) => ("request", &http.recent_causes),
        (None, Some(load)) => ("request", &load.causes),
        (None, None) => ("connection", &figures.handshakes.recent_causes),
    };
    let words = |causes: &[NamedCount<'_>]| {
        causes.iter().map(|(cause, n)| format!("{cause} {}", format::count(*n))).collect::<Vec<_>>()
    };
    let causes = words(causes);
    let connections =
        figures.proxy.as_ref().filter(|_| figures.http.is_some()).map(|proxy| proxy.failed.recent);
    let connections = connections.filter(|connections| *connections > 0).map(|connections| {
        let why = words(&figures.handshakes.recent_causes).into_iter().next();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        format!("connections {}{why}", format::count(connections))
    });
    let total = if failed.total > failed.recent {
        format!("{} total", format::count(failed.total))
    } else {
        String::new()
    };
    // Where there are three lines, the total is the least.
    let lines = [causes.clone(), connections.clone().into_iter().collect(), vec![total.clone()]];
    let mut lines = lines.into_iter().filter(|line| !line.is_empty()).map(TileLine::new);
    let long = [lines.next().unwrap_or_default(), lines.next().unwrap_or_default()];
    let is_failing = failed.recent > 0;
    Tile {
        title: format!("failed, {}", figures.span.words()),
        figure: format::count(failed.recent),
        whole: format!(" {whole}{}", if failed.recent == 1 { "" } else { "s" }),
        style: if is_failing { theme.critical() } else { theme.figure() },
        course: course(state, TimelineColumn::failed_rate),
        course_style: if is_failing { theme.critical() } else { theme.quiet() },
        long,
        short: causes.into_iter().next().or(connections).unwrap_or(total),
    }
}

/// The share of resumed handshakes, and why the others were full.
fn resumed(state: &State, figures: &ViewModel) -> Tile {
    let theme = state.theme;
    let h = &figures.handshakes;
    let of = |class| figures.latency(LatencyClass::Proxy(class)).map_or(0, |row| row.n);
    let n = of(ProxyLatency::HandshakeFull) + of(ProxyLatency::HandshakeResumed);
    let n = if n > 0 { format!(" of {}", format::count(n)) } else { String::new() };
    let are_known = h.absent.full_reasons.is_none();
    let reasons = h.full_reasons.as_deref().filter(|_| are_known).unwrap_or(&[]);
    let all = reasons.iter().map(|(_, n)| *n).sum::<u64>().max(1) as f64;
    let reasons: Vec<String> =
        reasons.iter().map(|(name, n)| format!("{name} {}", whole_percent(*n as f64 / all))).collect();
    let mut why = reasons.clone();
    if let Some(first) = why.first_mut() {
        first.insert_str(0, "full: ");
    }
    Tile {
        title: "resumed".to_owned(),
        figure: share(theme, h.full_share.map(|full| 1.0 - full)),
        whole: n,
        style: theme.figure(),
        course: course(state, TimelineColumn::resumed_share),
        course_style: theme.graph(),
        long: [
            TileLine(why, ", "),
            TileLine::new([
                format!("full {}", rate(theme, h.full_per_second)),
                format!("resumed {}", rate(theme, h.resumed_per_second)),
            ]),
        ],
        short: reasons
            .into_iter()
            .next()
            .unwrap_or_else(|| format!("full {}", rate(theme, h.full_per_second))),
    }
}

/// CPU of the proxy, or of the load where there is none.
fn cpu(state: &State, figures: &ViewModel) -> Tile {
    let theme = state.theme;
    let (mut groups, mut title) = (figures.cpu.clone(), "CPU of a core");
    let observed: f64 = figures.observed.iter().map(|(_, cores)| cores).sum();
    if !figures.observed.is_empty() {
        groups.insert(0, ("terminator", observed));
        title = "CPU of it, of a core";
    }
    let main = groups.first().copied();
    let others = groups.iter().skip(1).take(OTHERS_MAX);
    let others: Vec<String> = others.map(|(name, cores)| format!("{name} {}", format::cpu(*cores))).collect();
    let accepted =
        figures.proxy.as_ref().and_then(|proxy| proxy.accepted_per_second).filter(|rate| *rate > 0.0);
    let each = main.filter(|(name, _)| *name != "load").zip(accepted);
    let each = each.map(|((_, cores), accepted)| format!("{} ms", three_digits(cores * 1e3 / accepted)));
    let text = main.map_or_else(|| theme.glyphs.none().to_string(), |(_, cores)| format::cpu(cores));
    let name = main.map_or("", |(name, _)| name);
    let of_each = |words: &str| each.as_ref().map_or_else(String::new, |each| format!("{each}{words}"));
    // One worker may be busy all the time while the mean is low.
    let busiest = figures.workers.iter().map(WorkerActivity::cores).max_by(f64::total_cmp);
    let second = match busiest.filter(|_| figures.workers.len() > 1) {
        Some(cores) => TileLine::new([format!("max worker {}", format::cpu(cores)), of_each("/conn")]),
        None => TileLine::new([of_each(" a connection")]),
    };
    Tile {
        title: title.to_owned(),
        figure: format!("{name} {text}").trim_start().to_owned(),
        style: theme.figure(),
        course: if figures.observed.is_empty() {
            course(state, |column| column.counted.proxy_cores)
        } else {
            Vec::new()
        },
        course_style: theme.graph(),
        long: [TileLine::new(others), second],
        short: of_each("/conn"),
        ..Tile::default()
    }
}
