//! Latency over time as a heat map: the darker a band, the larger its share of the column's samples.

use maud::{Markup, html};
use telemetry::{Metric, SparseHistogram};

use super::plot::{WIDTH, number, short};
use crate::columns::PlotColumn;

const LEFT: f64 = 60.0;
const BAND_HEIGHT: f64 = 12.0;
const BOTTOM: f64 = 34.0;
/// Bands per doubling of the latency.
const BANDS_A_DOUBLING: f64 = 2.0;
/// Shades, by the share of a column's samples.
const SHADES: [(f64, &str); 6] =
    [(0.2, "1"), (0.05, ".8"), (0.01, ".6"), (0.002, ".45"), (0.000_2, ".3"), (0.0, ".18")];

/// The axes of a heat map; maps to be compared share them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extent {
    lowest: i32,
    highest: i32,
    start_s: f64,
    end_s: f64,
}

impl Extent {
    /// Covers all these columns; `None` without samples.
    pub(super) fn of<'a, C: Metric>(
        columns: impl Iterator<Item = &'a PlotColumn<C>> + Clone,
    ) -> Option<Self> {
        let bands = || columns.clone().flat_map(|column| column.latency.buckets().map(|(ns, _)| band(ns)));
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

    fn y(&self, band: i32) -> f64 {
        f64::from(self.highest - band) * BAND_HEIGHT
    }
}

/// The map of the columns' latencies.
pub(super) fn markup<C: Metric>(title: &str, columns: &[PlotColumn<C>], extent: &Extent) -> Markup {
    let Extent { lowest, highest, start_s, end_s } = *extent;
    let bottom = extent.y(lowest - 1);
    html! {
        figure {
            figcaption { (title) }
            svg.heat viewBox=(format!("0 0 {WIDTH} {}", bottom + BOTTOM)) role="img" aria-label=(title) {
                @for band in (lowest..=highest).filter(|band| band % 2 == 0) {
                    text x=(LEFT - 6.0) y=(number(extent.y(band) + 10.0)) text-anchor="end" {
                        (short(2_f64.powf(f64::from(band) / BANDS_A_DOUBLING) / 1e6))
                    }
                }
                @for column in columns.iter().filter(|column| !column.is_gap) {
                    @let (left, right) = (extent.x(column.start_s), extent.x(column.end_s));
                    @for (band, share) in shares(&column.latency) {
                        rect x=(number(left)) y=(number(extent.y(band))) width=(number(right - left + 0.1)) height=(BAND_HEIGHT) fill-opacity=(shade(share)) {}
                    }
                }
                text x=(LEFT) y=(bottom + 14.0) { (short(start_s)) " s" }
                text x=(WIDTH - 4.0) y=(bottom + 14.0) text-anchor="end" { (short(end_s)) " s" }
                text.name x=(LEFT) y=(bottom + 28.0) { "bands of half a doubling, from below, ms; shades: above 20 %, 5 %, 1 %, 0.2 %, 0.02 % of a column's samples, and less" }
            }
            (table(columns))
        }
    }
}

/// The figures of each column.
fn table<C: Metric>(columns: &[PlotColumn<C>]) -> Markup {
    html! {
        details {
            summary { "The figures" }
            table {
                thead { tr { th.n { "seconds" } th.n { "n" } @for percentile in ["p10", "p50", "p90", "p99", "max"] { th.n { (percentile) ", ms" } } } }
                tbody {
                    @for column in columns {
                        tr {
                            td.n { (short(column.end_s)) }
                            td.n { (column.latency.count()) }
                            @for q in [0.1, 0.5, 0.9, 0.99] { td.n { (column.quantile_ms(q).map_or_else(|| "–".to_owned(), short)) } }
                            td.n { (column.max_ms().map_or_else(|| "–".to_owned(), short)) }
                        }
                    }
                }
            }
        }
    }
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

fn shade(share: f64) -> &'static str {
    SHADES.iter().find(|(above, _)| share > *above).map_or("0", |(_, shade)| shade)
}
