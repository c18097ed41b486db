//! Latency over time as a heat map: the darker a band, the larger its share of the column's samples.

use std::fmt::Write as _;

use maud::{Markup, html};
use records::histogram::SparseHistogram;
use records::metrics::Metric;

use super::{WIDTH, number, positions, seconds, short, time_ticks};
use crate::html::{figures, wide};
use crate::numbers::{DASH, grouped};
use crate::report::columns::PlotColumn;

const LEFT: f64 = 60.0;
const TOP: f64 = 22.0;
const BAND_HEIGHT: f64 = 12.0;
const BOTTOM: f64 = 34.0;
const BANDS_A_DOUBLING: f64 = 2.0;
/// Shades, by the share of a column's samples, with their meaning.
const SHADES: [(f64, &str, &str); 6] = [
    (0.2, "1", "above 20 %"),
    (0.05, ".8", "above 5 %"),
    (0.01, ".6", "above 1 %"),
    (0.002, ".45", "above 0.2 %"),
    (0.000_2, ".3", "above 0.02 %"),
    (0.0, ".18", "less"),
];

/// The axes of a heat map; maps to be compared share them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    lowest: i32,
    highest: i32,
    start_s: f64,
    end_s: f64,
}

impl Extent {
    /// Covers all these columns; `None` without samples. Gaps are not drawn.
    pub(crate) fn of<'a, C: Metric>(
        columns: impl Iterator<Item = &'a PlotColumn<C>> + Clone,
    ) -> Option<Self> {
        let known = || columns.clone().filter(|column| !column.is_gap);
        let bands = || known().flat_map(|column| column.latency.buckets().map(|(ns, _)| band(ns)));
        Some(Self {
            lowest: bands().min()?,
            highest: bands().max()?,
            start_s: columns.clone().map(|column| column.start_s).min_by(f64::total_cmp)?,
            end_s: columns.map(|column| column.end_s).max_by(f64::total_cmp)?,
        })
    }

    fn x(&self, seconds: f64) -> f64 {
        let whole_s = (self.end_s - self.start_s).max(f64::MIN_POSITIVE);
        LEFT + (seconds - self.start_s) / whole_s * (WIDTH - LEFT)
    }

    /// The upper edge of a band.
    fn y(&self, band: i32) -> f64 {
        TOP + f64::from(self.highest - band) * BAND_HEIGHT
    }

    /// Round latencies of the axis, in milliseconds, with their places.
    fn ticks(&self) -> Vec<(f64, f64)> {
        let decades = -4..=5;
        let all = decades.flat_map(|power| [1.0, 2.0, 5.0].map(|factor| factor * 10_f64.powi(power)));
        let place = |ms: f64| {
            let bands = (ms * 1e6).log2() * BANDS_A_DOUBLING;
            (ms, TOP + (f64::from(self.highest) + 1.0 - bands) * BAND_HEIGHT)
        };
        let (top, bottom) = (TOP, self.y(self.lowest - 1));
        all.map(place).filter(|(_, y)| (top..=bottom).contains(y)).collect()
    }
}

pub(crate) fn markup<C: Metric>(title: &str, columns: &[PlotColumn<C>], extent: &Extent) -> Markup {
    let bottom = extent.y(extent.lowest - 1);
    let label = format!("{title}, heat map");
    let drawing = html! {
        svg.heat viewBox=(format!("0 0 {WIDTH} {}", bottom + BOTTOM)) role="img" aria-label=(label) {
            @for (shade, path) in paths(columns, extent) { path fill-opacity=(shade) d=(path) {} }
            @for (ms, y) in extent.ticks() {
                line.grid x1=(LEFT - 4.0) x2=(LEFT) y1=(number(y)) y2=(number(y)) {}
                text x=(LEFT - 6.0) y=(number(y + 4.0)) text-anchor="end" { (short(ms)) }
            }
            @for (at, label) in time_ticks(extent.start_s, extent.end_s) {
                line.grid x1=(number(extent.x(at))) x2=(number(extent.x(at))) y1=(bottom) y2=(bottom + 4.0) {}
                text x=(number(extent.x(at).min(WIDTH - 24.0))) y=(bottom + 16.0) text-anchor="middle" { (label) }
            }
            text.name x=(LEFT) y=(bottom + 30.0) { "time since the beginning" }
            text.name x="2" y="12" { "ms, log" }
        }
    };
    html! {
        figure {
            figcaption { (title) }
            (wide(&label, &drawing))
            ul.legend {
                li { "Share of a column's samples:" }
                @for (_, shade, meaning) in SHADES {
                    li { svg.key.heat viewBox="0 0 30 8" aria-hidden="true" { path fill-opacity=(shade) d="M0 0H30V8H0Z" {} } (meaning) }
                }
            }
            (table(title, columns, extent))
        }
    }
}

/// A path of rectangles for each shade.
fn paths<C: Metric>(columns: &[PlotColumn<C>], extent: &Extent) -> Vec<(&'static str, String)> {
    let mut paths: Vec<(&'static str, String)> =
        SHADES.iter().map(|(_, shade, _)| (*shade, String::new())).collect();
    for column in columns.iter().filter(|column| !column.is_gap) {
        let (left, right) = (extent.x(column.start_s), extent.x(column.end_s));
        for (band, share) in shares(&column.latency) {
            let shade = SHADES.iter().position(|(above, ..)| share > *above);
            if let Some((_, path)) = shade.and_then(|at| paths.get_mut(at)) {
                let (x, y, width) = (number(left), extent.y(band), number(right - left + 0.1));
                let _ = write!(path, "M{x} {y}h{width}v{BAND_HEIGHT}h-{width}z");
            }
        }
    }
    paths.retain(|(_, path)| !path.is_empty());
    paths
}

/// The figures of each column.
fn table<C: Metric>(title: &str, columns: &[PlotColumn<C>], extent: &Extent) -> Markup {
    let middles = columns.iter().map(|column| extent.x(f64::midpoint(column.start_s, column.end_s)));
    let cell = |value: Option<f64>| value.map_or_else(|| DASH.to_owned(), short);
    let table = html! {
        thead { tr { th data-x=(positions(middles)) { "time since the beginning" } th { "n" } @for percentile in ["p10", "p50", "p90", "p99", "max"] { th { (percentile) ", ms" } } } }
        tbody {
            @for column in columns {
                tr {
                    td { (seconds(column.end_s)) }
                    td { (grouped(column.latency.count())) }
                    @for q in [0.1, 0.5, 0.9, 0.99] { td { (cell(column.quantile_ms(q))) } }
                    td { (cell(column.max_ms())) }
                }
            }
        }
    };
    let caption = format!("The figures of {title}, heat map");
    figures(&caption, &table)
}

fn band(ns: u64) -> i32 {
    ((ns.max(1) as f64).log2() * BANDS_A_DOUBLING).floor() as i32
}

/// The share of samples in each band.
fn shares(latency: &SparseHistogram) -> Vec<(i32, f64)> {
    let mut counts: Vec<(i32, u64)> = Vec::new();
    for (ns, count) in latency.buckets() {
        match counts.last_mut().filter(|(last, _)| *last == band(ns)) {
            Some((_, sum)) => *sum += count,
            None => counts.push((band(ns), count)),
        }
    }
    counts.into_iter().map(|(band, count)| (band, count as f64 / latency.count().max(1) as f64)).collect()
}
