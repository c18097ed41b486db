//! Differences with their intervals, one below the other. An interval that crosses the line at 0 shows no difference.

use maud::{Markup, html};

use super::plot::{number, short};
use crate::compare::{ComparisonRow, RowEstimate, RowOutcome};

/// A row: name and outcome above the interval, so that they are readable on a telephone too.
const ROW_HEIGHT: f64 = 40.0;
const BOTTOM: f64 = 20.0;
/// Room at each side, in percent of the width.
const MARGIN: f64 = 3.0;
/// The axis is about linear up to this percentage and logarithmic beyond it, so that narrow intervals stay readable
/// beside a wide one.
const EVEN_TO: f64 = 5.0;
const TICKS: [f64; 10] = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0];
/// The share of the axis that a label takes on a narrow screen.
const LABEL_SHARE: f64 = 0.11;
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
    // In percent of the width, so that the text keeps its size whatever the width.
    let x = |percent: f64| {
        let share = (place(percent) - place(low)) / span;
        format!("{:.2}%", MARGIN + share * (100.0 - 2.0 * MARGIN))
    };
    let bottom = rows.len() as f64 * ROW_HEIGHT;
    html! {
        figure {
            figcaption { (TITLE) }
            svg style=(format!("height:{}px", bottom + BOTTOM)) role="img" aria-label=(TITLE) {
                @for value in ticks(low, high, &place) {
                    line.grid x1=(x(value)) x2=(x(value)) y1="0" y2=(bottom) {}
                    text x=(x(value)) y=(bottom + 14.0) text-anchor="middle" { (signed(value)) }
                }
                line.zero x1=(x(0.0)) x2=(x(0.0)) y1="0" y2=(bottom) {}
                @for (at, (row, figures)) in rows.iter().enumerate() {
                    (line(row, figures, at as f64 * ROW_HEIGHT, &x))
                }
            }
            p.dim { "Percent of A's figure, of shares percentage points, on a scale that is logarithmic but near 0. A filled dot shows a difference; an interval that crosses 0 shows none." }
        }
    }
}

/// Ticks far enough from each other that their labels stay apart on a narrow screen, from 0 outwards.
fn ticks(low: f64, high: f64, place: &dyn Fn(f64) -> f64) -> Vec<f64> {
    let mut all = vec![0.0];
    let apart = (place(high) - place(low)) * LABEL_SHARE;
    for sign in [-1.0, 1.0] {
        let mut last = 0.0;
        for tick in TICKS.map(|tick| sign * tick).into_iter().filter(|tick| (low..=high).contains(tick)) {
            if (place(tick) - place(last)).abs() >= apart {
                all.push(tick);
                last = tick;
            }
        }
    }
    all
}

fn line(row: &ComparisonRow, figures: &RowEstimate, y: f64, x: &dyn Fn(f64) -> String) -> Markup {
    let is_shown = row.outcome == RowOutcome::Differs;
    let ends = [figures.low_percent, figures.high_percent].map(x);
    let (text_y, y) = (number(y + 16.0), y + 29.0);
    html! {
        text x="0" y=(text_y) { (row.metric) }
        text x="100%" y=(text_y) text-anchor="end" { (format!("{:+.1} {}, {}", figures.effect_percent, row.unit_of_effect(), row.outcome)) }
        line.range x1=(ends[0]) x2=(ends[1]) y1=(number(y)) y2=(number(y)) {}
        @for end in &ends {
            line.range x1=(end) x2=(end) y1=(number(y - 4.0)) y2=(number(y + 4.0)) {}
        }
        circle.dot.hollow[!is_shown] cx=(x(figures.effect_percent)) cy=(number(y)) r="4.5" {}
    }
}

fn signed(value: f64) -> String {
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{}", short(value))
}
