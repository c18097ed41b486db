//! Differences with their intervals, one below the other. An interval that crosses the line at 0 shows no difference.

use maud::{Markup, html};

use super::plot::{WIDTH, number, short};
use crate::compare::{ComparisonRow, RowEstimate, RowOutcome};

const LEFT: f64 = 170.0;
const RIGHT: f64 = 160.0;
const ROW_HEIGHT: f64 = 24.0;
const BOTTOM: f64 = 34.0;
/// The axis is about linear up to this percentage and logarithmic beyond it, so that narrow intervals stay readable
/// beside a wide one.
const EVEN_TO: f64 = 5.0;
const TICKS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0];
/// Ticks left out of a wide axis, where they would overlap.
const TICKS_NEAR: [f64; 2] = [1.0, 2.0];
const TITLE: &str = "B against A: the difference of each figure, with its interval within the runs";

/// The plot; empty without differences.
pub(super) fn markup(rows: &[ComparisonRow]) -> Markup {
    let rows: Vec<(&ComparisonRow, &RowEstimate)> =
        rows.iter().filter_map(|row| Some((row, row.estimate.as_ref()?))).collect();
    let low = rows.iter().map(|(_, figures)| figures.low_percent).fold(0.0, f64::min);
    let high = rows.iter().map(|(_, figures)| figures.high_percent).fold(0.0, f64::max);
    let place = |percent: f64| (percent / EVEN_TO).asinh();
    let span = place(high) - place(low);
    if !span.is_finite() || span <= 0.0 {
        return html! {};
    }
    let x = |percent: f64| number(LEFT + (place(percent) - place(low)) / span * (WIDTH - LEFT - RIGHT));
    let bottom = rows.len() as f64 * ROW_HEIGHT;
    html! {
        figure {
            figcaption { (TITLE) }
            svg viewBox=(format!("0 0 {WIDTH} {}", bottom + BOTTOM)) role="img" aria-label=(TITLE) {
                @for value in ticks(low, high) {
                    line.grid x1=(x(value)) x2=(x(value)) y1="0" y2=(bottom) {}
                    text x=(x(value)) y=(bottom + 14.0) text-anchor="middle" { (signed(value)) }
                }
                line.zero x1=(x(0.0)) x2=(x(0.0)) y1="0" y2=(bottom) {}
                @for (at, (row, figures)) in rows.iter().enumerate() {
                    (line(row, figures, (at as f64 + 0.5) * ROW_HEIGHT, &x))
                }
                text.name x=(LEFT) y=(bottom + 28.0) { "percent of A's figure; of shares, percentage points; the scale is logarithmic but near 0. Filled: a difference is shown" }
            }
        }
    }
}

fn ticks(low: f64, high: f64) -> impl Iterator<Item = f64> {
    let is_wide = low.abs().max(high) > 4.0 * EVEN_TO;
    let shown = TICKS.into_iter().filter(move |tick| !is_wide || !TICKS_NEAR.contains(tick));
    let both = shown.flat_map(|tick| [-tick, tick]).chain([0.0]);
    both.filter(move |tick| (low..=high).contains(tick))
}

fn line(row: &ComparisonRow, figures: &RowEstimate, y: f64, x: &dyn Fn(f64) -> String) -> Markup {
    let is_shown = row.outcome == RowOutcome::Differs;
    let ends = [figures.low_percent, figures.high_percent].map(x);
    html! {
        text x=(LEFT - 8.0) y=(number(y + 4.0)) text-anchor="end" { (row.metric) }
        line.range x1=(ends[0]) x2=(ends[1]) y1=(number(y)) y2=(number(y)) {}
        @for end in &ends {
            line.range x1=(end) x2=(end) y1=(number(y - 4.0)) y2=(number(y + 4.0)) {}
        }
        circle.dot.hollow[!is_shown] cx=(x(figures.effect_percent)) cy=(number(y)) r="4.5" {}
        text x=(WIDTH - RIGHT + 8.0) y=(number(y + 4.0)) { (row.outcome.to_string()) }
    }
}

fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", short(value))
}
