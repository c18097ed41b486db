//! Effects with their intervals, one per row. An interval that crosses the line of no effect shows no difference.

use maud::{Markup, html};

use super::{number, short};
use crate::compare::ComparisonRow;

/// A row: name and outcome above the interval, so they are readable on a phone too.
const ROW_HEIGHT: f64 = 40.0;
const BOTTOM: f64 = 20.0;
/// Room at each side, in percent of the width.
const MARGIN: f64 = 3.0;
/// The share of the axis that a label takes on a narrow screen.
const LABEL_SHARE: f64 = 0.11;

#[derive(Debug)]
pub(crate) struct EffectRow {
    pub(crate) name: String,
    /// The finding, in words.
    pub(crate) finding: String,
    /// The ends of the interval, and the effect between them.
    pub(crate) low: f64,
    pub(crate) value: f64,
    pub(crate) high: f64,
    /// Whether a difference is shown.
    pub(crate) is_shown: bool,
}

#[derive(Debug)]
pub(crate) struct EffectAxis {
    /// The value without an effect.
    none: f64,
    /// The position of a value, in any unit.
    place: fn(f64) -> f64,
    /// Values below and above the neutral one, outwards from there.
    ticks: [&'static [f64]; 2],
    label: fn(f64) -> String,
}

/// Percent of a figure. The axis is about linear up to 5 % and logarithmic beyond it, so narrow intervals stay
/// readable beside a wide one.
const PERCENT: EffectAxis = EffectAxis {
    none: 0.0,
    place: |percent| (percent / 5.0).asinh(),
    ticks: [
        &[-1.0, -2.0, -5.0, -10.0, -20.0, -50.0, -100.0, -200.0, -500.0, -1_000.0],
        &[1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0],
    ],
    label: |percent| format!("{}{}", if percent > 0.0 { "+" } else { "" }, short(percent)),
};

const PERCENT_LEGEND: &str = "Percent of A's figure, of shares percentage points, on a scale that is logarithmic but near 0. A filled dot shows a difference; an interval that crosses 0 shows none.";

/// Ratios, on a logarithmic axis: a half is as far from 1 as a double.
pub(crate) const RATIO: EffectAxis = EffectAxis {
    none: 1.0,
    place: f64::ln,
    ticks: [
        &[0.99, 0.98, 0.95, 0.9, 0.8, 0.7, 0.5, 0.3, 0.2, 0.1, 0.05, 0.01],
        &[1.01, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 100.0],
    ],
    label: short,
};

/// The plot of compared figures with its legend; empty without differences.
pub(crate) fn of_rows(title: &str, rows: &[ComparisonRow]) -> Markup {
    let effect = |row: &ComparisonRow| {
        let estimate = row.estimate.as_ref()?;
        Some(EffectRow {
            name: row.metric.clone(),
            finding: format!("{}, {}", row.difference(estimate, 1)[0], row.outcome),
            low: estimate.low,
            value: estimate.effect,
            high: estimate.high,
            is_shown: row.outcome.shows_difference(),
        })
    };
    let plot = markup(title, &rows.iter().filter_map(effect).collect::<Vec<_>>(), &PERCENT);
    html! { @if !plot.0.is_empty() { (plot) p.dim { (PERCENT_LEGEND) } } }
}

/// The plot; empty without effects.
pub(crate) fn markup(title: &str, rows: &[EffectRow], axis: &EffectAxis) -> Markup {
    let low = rows.iter().map(|row| row.low).fold(axis.none, f64::min);
    let high = rows.iter().map(|row| row.high).fold(axis.none, f64::max);
    let span = (axis.place)(high) - (axis.place)(low);
    if !span.is_finite() || span <= 0.0 {
        return html! {};
    }
    // In percent of the width, so the text keeps its size at any width.
    let x = |value: f64| {
        let share = ((axis.place)(value) - (axis.place)(low)) / span;
        format!("{:.2}%", MARGIN + share * (100.0 - 2.0 * MARGIN))
    };
    let bottom = rows.len() as f64 * ROW_HEIGHT;
    html! {
        figure {
            figcaption { (title) }
            svg style=(format!("height:{}px", bottom + BOTTOM)) role="img" aria-label=(title) {
                @for value in axis.ticks_between(low, high) {
                    line.grid x1=(x(value)) x2=(x(value)) y1="0" y2=(bottom) {}
                    text x=(x(value)) y=(bottom + 14.0) text-anchor="middle" { ((axis.label)(value)) }
                }
                line.zero x1=(x(axis.none)) x2=(x(axis.none)) y1="0" y2=(bottom) {}
                @for (at, row) in rows.iter().enumerate() { (line(row, at as f64 * ROW_HEIGHT, &x)) }
            }
        }
    }
}

impl EffectAxis {
    /// Ticks far enough from each other that their labels stay apart on a narrow screen, from the middle outwards.
    fn ticks_between(&self, low: f64, high: f64) -> Vec<f64> {
        let mut all = vec![self.none];
        let apart = ((self.place)(high) - (self.place)(low)) * LABEL_SHARE;
        for ticks in self.ticks {
            let mut last = self.none;
            for &tick in ticks.iter().filter(|tick| (low..=high).contains(*tick)) {
                if ((self.place)(tick) - (self.place)(last)).abs() >= apart {
                    all.push(tick);
                    last = tick;
                }
            }
        }
        all
    }
}

fn line(row: &EffectRow, y: f64, x: &dyn Fn(f64) -> String) -> Markup {
    let ends = [row.low, row.high].map(x);
    let (text_y, y) = (number(y + 16.0), y + 29.0);
    html! {
        text x="0" y=(text_y) { (row.name) }
        text x="100%" y=(text_y) text-anchor="end" { (row.finding) }
        line.range x1=(ends[0]) x2=(ends[1]) y1=(number(y)) y2=(number(y)) {}
        @for end in &ends {
            line.range x1=(end) x2=(end) y1=(number(y - 4.0)) y2=(number(y + 4.0)) {}
        }
        circle.dot.hollow[!row.is_shown] cx=(x(row.value)) cy=(number(y)) r="4.5" {}
    }
}
