//! Small plots side by side: each figure of both runs over time.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::{number, seconds, short};
use crate::compare::ComparisonRow;
use crate::numbers::DASH;

const WIDTH: f64 = 300.0;
const HEIGHT: f64 = 120.0;
const LEFT: f64 = 48.0;
const RIGHT: f64 = 6.0;
const TOP: f64 = 6.0;
const BOTTOM: f64 = 18.0;

/// The figure of each block: when it ended, in seconds, and how much it was.
type Points = [(f64, Option<f64>)];

/// A plot for each figure with points, different ones first; empty without any. `names` are the names of the lines.
pub(crate) fn markup(rows: &[ComparisonRow], names: &[String; 2]) -> Markup {
    let mut shown: Vec<(&ComparisonRow, CommonFrame)> =
        rows.iter().filter_map(|row| Some((row, CommonFrame::of(&row.over_time)?))).collect();
    shown.sort_by_key(|(row, _)| !row.outcome.shows_difference());
    html! {
        @if !shown.is_empty() {
            ul.legend {
                @for (at, name) in names.iter().enumerate() {
                    li { svg.key viewBox="0 0 30 8" aria-hidden="true" { path class=(format!("line s{at}")) d="M1 4H29" {} } (name) }
                }
            }
            ul.multiples { @for (row, frame) in &shown { li { (frame.markup(row)) } } }
        }
    }
}

/// The part of the plane that both lines are in. The y axis is logarithmic unless a value is 0.
#[derive(Debug)]
struct CommonFrame {
    left: f64,
    right: f64,
    low: f64,
    high: f64,
    is_log: bool,
}

impl CommonFrame {
    fn of(over_time: &[Vec<(f64, Option<f64>)>; 2]) -> Option<Self> {
        let values = || over_time.iter().flatten().filter_map(|(_, value)| *value);
        let (min, max) = (values().min_by(f64::total_cmp)?, values().max_by(f64::total_cmp)?);
        let ends = || over_time.iter().flatten().map(|(x, _)| *x);
        let (left, right) = (ends().min_by(f64::total_cmp)?, ends().max_by(f64::total_cmp)?);
        let is_log = min > 0.0;
        let (low, high) =
            if is_log { (min / 1.15, max * 1.15) } else { (0.0, if max > 0.0 { max * 1.1 } else { 1.0 }) };
        (right > left && high.is_finite()).then_some(Self { left, right, low, high, is_log })
    }

    fn x(&self, seconds: f64) -> f64 {
        LEFT + (seconds - self.left) / (self.right - self.left) * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP)
    }

    fn path(&self, points: &Points) -> String {
        let mut path = String::new();
        let mut is_drawing = false;
        for (x, value) in points {
            if let Some(value) = value {
                let step = if is_drawing { "L" } else { "M" };
                let _ = write!(path, "{step}{} {}", number(self.x(*x)), number(self.y(*value)));
                if !is_drawing {
                    path.push_str("h0");
                }
            }
            is_drawing = value.is_some();
        }
        path
    }

    /// Round values: the ends of the axis, and one between them where they are far apart.
    fn ticks(&self) -> Vec<f64> {
        let middle = if self.is_log { (self.low * self.high).sqrt() } else { self.high / 2.0 };
        let (low, high) =
            if self.is_log { (self.low * 1.15, self.high / 1.15) } else { (0.0, self.high / 1.1) };
        let is_wide = self.y(low) - self.y(high) > 40.0;
        let mut all = vec![low, high];
        all.extend(is_wide.then_some(middle));
        all
    }

    fn markup(&self, row: &ComparisonRow) -> Markup {
        let caption = caption(row);
        let bottom = HEIGHT - BOTTOM;
        html! {
            figure class="small" {
                figcaption { strong { (row.name()) } br; (caption) }
                svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(format!("{}: {caption}", row.name())) {
                    @for value in self.ticks() {
                        line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(number(self.y(value))) y2=(number(self.y(value))) {}
                        text x=(LEFT - 4.0) y=(number(self.y(value) + 4.0)) text-anchor="end" { (short(row.in_unit_of_name(value))) }
                    }
                    text x=(LEFT) y=(HEIGHT - 4.0) { (short(self.left.round())) " s" }
                    text x=(WIDTH - RIGHT) y=(HEIGHT - 4.0) text-anchor="end" { (short(self.right.round())) " s" }
                    line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(bottom) y2=(bottom) {}
                    @for (at, points) in row.over_time.iter().enumerate() {
                        path class=(format!("line s{at}")) d=(self.path(points)) {}
                        @for (end_s, value) in points.iter().filter_map(|(x, value)| Some((*x, (*value)?))) {
                            circle.at cx=(number(self.x(end_s))) cy=(number(self.y(value))) r="5" {
                                title { (["A", "B"][at]) ", " (seconds(end_s)) ": " (short(row.in_unit_of_name(value))) }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Both figures, their difference and the outcome.
fn caption(row: &ComparisonRow) -> String {
    let [a, b] = row.values(short).map(|value| value.unwrap_or_else(|| DASH.to_owned()));
    let effect = row.estimate.map(|estimate| format!(", {}", row.difference(&estimate, 1)[0]));
    format!("{a} → {b}{}: {}", effect.unwrap_or_default(), row.outcome)
}
