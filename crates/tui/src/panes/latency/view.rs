//! Latencies by class.
//!
//! ```text
//! ─ latency, ms ────────────── p50    p90    p99  p99 95 % CI  p99.9   max     /s       n vs mark 1
//! response CO-corrected       0.88   1.40   3.90    3.87-3.95   11.6  31.2  4,998  49,980   -12% *
//! full handshake              1.92   2.80   6.11       ≥ 5.80 (14.2)  19.8    100   1,002  -3.1% ?
//! ```
//!
//! A percentile in brackets rests on fewer than ten samples above it. `*`: the intervals of 95 % of now and before the mark
//! do not meet; `?`: they do, or too few samples tell.

use model::figures::Statistic;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use records::metrics::{HttpLatency, LatencyClass, Percentile, ProxyLatency};

use crate::panes::{Pane, PaneRows};
use crate::state::State;
use crate::theme::Theme;
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::view_model::classes::{Bounds, LatencyRow, P99Change};
use crate::widgets::parts::{heading, put, quantile};

/// The cells of a class name and its note.
const NAME_CELLS: u16 = 22;
/// The cells of a percentile: a blank, five digits, and a bracket or blank on either side.
const QUANTILE_CELLS: u16 = 8;
const RATE_CELLS: u16 = 8;
const SAMPLES_CELLS: u16 = 10;
/// The cells of a percentile's interval: two figures, and a blank on either side.
const BOUNDS_CELLS: u16 = 13;
/// The cells of the change since a mark.
const CHANGE_CELLS: u16 = 12;
/// The maximum cells of a name beside its figures: across a wider gap, the eye loses the row.
const NAME_CELLS_MAX: u16 = 30;
/// The maximum width: two cells more than the table needs, for the title with the longest window.
const WIDTH_MAX: u16 =
    NAME_CELLS + 2 + 6 * QUANTILE_CELLS + BOUNDS_CELLS + RATE_CELLS + SAMPLES_CELLS + CHANGE_CELLS;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LatencyColumn {
    Quantile(usize),
    Bounds,
    Max,
    Rate,
    Samples,
    Change,
}

impl LatencyColumn {
    const ALL: [Self; 10] = [
        Self::Quantile(0),
        Self::Quantile(1),
        Self::Quantile(2),
        Self::Bounds,
        Self::Quantile(3),
        Self::Quantile(4),
        Self::Max,
        Self::Rate,
        Self::Samples,
        Self::Change,
    ];
    /// The columns that are left out if they do not fit, the most important first.
    const DISPENSABLE: [Self; 8] = [
        Self::Quantile(0),
        Self::Max,
        Self::Change,
        Self::Rate,
        Self::Quantile(1),
        Self::Quantile(3),
        Self::Quantile(4),
        Self::Bounds,
    ];

    fn cells(self) -> u16 {
        match self {
            Self::Quantile(_) | Self::Max => QUANTILE_CELLS,
            Self::Rate => RATE_CELLS,
            Self::Samples => SAMPLES_CELLS,
            Self::Bounds => BOUNDS_CELLS,
            Self::Change => CHANGE_CELLS,
        }
    }

    fn fitting(width: u16, figures: &ViewModel) -> Vec<Self> {
        let mut columns = Self::ALL.to_vec();
        columns.retain(|column| !Self::DISPENSABLE.contains(column));
        let mut needed = NAME_CELLS + columns.iter().map(|column| column.cells()).sum::<u16>();
        for column in Self::DISPENSABLE {
            let has_figures = column != Self::Change || figures.against.is_some();
            if has_figures && needed + column.cells() <= width {
                needed += column.cells();
                columns.push(column);
            }
        }
        Self::ALL.into_iter().filter(|column| columns.contains(column)).collect()
    }

    fn name(self, figures: &ViewModel) -> String {
        let cells = usize::from(self.cells());
        match self {
            Self::Quantile(at) => format!("{:>1$} ", Percentile::TABLE[at].label, cells - 1),
            Self::Bounds => format!("{:>1$} ", "p99 95 % CI", cells - 1),
            Self::Change => {
                let against = figures.against.as_deref().unwrap_or_default();
                format!("{:>cells$}", format!("vs {against}"))
            }
            Self::Max => format!("{:>1$} ", "max", cells - 1),
            Self::Rate => format!("{:>cells$}", "/s"),
            Self::Samples => format!("{:>cells$}", "n"),
        }
    }

    /// The statistic that alerts know it by.
    fn statistic(self) -> Option<Statistic> {
        match self {
            Self::Quantile(at) => Some(Statistic::Percentile(Percentile::TABLE[at].q)),
            Self::Max => Some(Statistic::Max),
            Self::Samples => Some(Statistic::Count),
            Self::Bounds | Self::Change | Self::Rate => None,
        }
    }

    fn cell(self, theme: Theme, row: &LatencyRow) -> Span<'static> {
        let cells = usize::from(self.cells());
        let none = || Span::styled(format!("{:>1$} ", theme.glyphs.none(), cells - 1), theme.quiet());
        match self {
            Self::Quantile(at) => row.quantiles[at].map_or_else(none, |at| quantile(theme, at, cells)),
            Self::Bounds => match bounds(theme, row) {
                Some(text) => Span::styled(format!("{text:>0$} ", cells - 1), theme.label()),
                None => none(),
            },
            Self::Change => row.change.map_or_else(none, |change| self::change(theme, change, cells)),
            Self::Max => row.max_ns.map_or_else(none, |ns| {
                let text = format::latency(ns, row.resolution, theme.glyphs);
                Span::styled(format!("{text:>0$} ", cells - 1), theme.figure())
            }),
            Self::Rate => {
                let text = row.per_second.map_or_else(|| theme.glyphs.none().to_string(), format::per_second);
                Span::styled(format!("{text:>cells$}"), theme.label())
            }
            Self::Samples => Span::styled(format!("{:>cells$}", format::count(row.n)), theme.label()),
        }
    }
}

/// Formats an interval, or its lower end; `None` for too few samples.
pub(crate) fn bounds(theme: Theme, row: &LatencyRow) -> Option<String> {
    let ms = |ns| format::latency(ns, row.resolution, theme.glyphs);
    let Bounds { low_ns, high_ns } = row.p99;
    let low = ms(low_ns?);
    Some(match high_ns.map(ms) {
        Some(high) if high == low => low,
        Some(high) => format!("{}-{high}", low.replace(' ', "")),
        None => format!("{} {low}", theme.glyphs.at_least()),
    })
}

/// A significant change is marked and highlighted; any other may be chance.
fn change(theme: Theme, change: P99Change, cells: usize) -> Span<'static> {
    let percent = match change.percent {
        percent if percent > 999.0 => ">+999%".to_owned(),
        percent if percent.abs() < 9.95 => format!("{percent:+.1}%"),
        percent => format!("{percent:+.0}%"),
    };
    let (sign, style) = if change.is_told { ('*', theme.figure()) } else { ('?', theme.quiet()) };
    Span::styled(format!("{:>cells$}", format!("{percent} {sign}")), style)
}

/// Returns the width that it can use.
pub(crate) fn width(state: &State) -> u16 {
    let compares = state.figures().is_some_and(|figures| figures.against.is_some());
    if compares { WIDTH_MAX } else { WIDTH_MAX - CHANGE_CELLS }
}

/// Returns the rows that it needs, with the heading.
fn height(state: &State) -> u16 {
    state.figures().map_or(0, |figures| 1 + figures.latencies.len() as u16)
}

pub(crate) const PANE: Pane = Pane {
    rows: |state| {
        let all = height(state);
        PaneRows { min: all.min(LATENCY_MIN), enough: all.min(LATENCY_ENOUGH), wanted: all, grows: false }
    },
    // The panes beside it wait for the clients with what they want beyond its height.
    ranks: [2, 7, 10],
    render: |state, frame, area| {
        state.figures().into_iter().for_each(|figures| render(state, figures, frame, area));
    },
    ..Pane::PLAIN
};

/// The rows, with the heading, that latencies get first, and before less important panes.
const LATENCY_MIN: u16 = 4;
const LATENCY_ENOUGH: u16 = 7;

/// Draws the rows that fit; less important ones are left out.
pub(crate) fn render(state: &State, figures: &ViewModel, frame: &mut Frame<'_>, area: Rect) {
    if area.is_empty() {
        return;
    }
    let theme = state.theme;
    let columns = LatencyColumn::fitting(area.width, figures);
    let cells: u16 = columns.iter().map(|column| column.cells()).sum();
    let name_cells = (area.width - cells.min(area.width)).min(NAME_CELLS_MAX);
    let table = Rect { width: (name_cells + cells).min(area.width), ..area };
    let names: String = columns.iter().map(|column| column.name(figures)).collect();
    let span = figures.span.words();
    let titles = [format!("where the time goes, {span}"), format!("latency, {span}"), format!("ms, {span}")];
    let mut lines = vec![heading(theme, &titles.each_ref().map(String::as_str), &names, table.width)];
    lines.extend(figures.latencies.iter().take(usize::from(area.height) - 1).map(|row| {
        let mut spans = name(theme, row, usize::from(name_cells));
        if let Some(reason) = &row.absent {
            let text = format!("{} {reason}", theme.glyphs.none());
            let text = format::cut(&text, usize::from(cells), theme.glyphs);
            spans.push(Span::styled(text, theme.quiet()));
            return Line::from(spans);
        }
        spans.extend(columns.iter().map(|column| {
            crate::widgets::alerts::mark(theme, figures, row, column.statistic(), column.cell(theme, row))
        }));
        Line::from(spans)
    }));
    put(frame, table, &lines);
}

fn name(theme: Theme, row: &LatencyRow, cells: usize) -> Vec<Span<'static>> {
    let name = format::cut(row.class.title(), cells, theme.glyphs);
    let note_cells = cells.saturating_sub(format::width(&name) + 1);
    let note = match row.class {
        // What an exchange is, its name does not say.
        LatencyClass::Proxy(ProxyLatency::Exchange) => "upstream TTFB",
        // Its note is in the help.
        LatencyClass::Http(HttpLatency::Request) => "",
        class => class.names().note,
    };
    let note = format::cut(note, note_cells, theme.glyphs);
    let fill = cells.saturating_sub(format::width(&name) + 1 + format::width(&note));
    vec![
        Span::styled(name, theme.label()),
        Span::styled(format!(" {note}{}", " ".repeat(fill)), theme.quiet()),
    ]
}
