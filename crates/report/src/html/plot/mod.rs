//! Plots as SVG: lines that differ in colour and dashes, with their figures in a table below.

pub(super) mod curves;
pub(super) mod effects;
pub(super) mod heat;
pub(super) mod multiples;
pub(super) mod stacked;
pub(super) mod time;

use std::fmt::Write as _;

use maud::{Markup, html};
use records::kinds::Arm;
use records::text::quantity::elapsed_text;

use super::{figures, wide};
use crate::numbers::DASH;
pub(super) use crate::numbers::short;

pub(super) const WIDTH: f64 = 860.0;
const HEIGHT: f64 = 262.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 22.0;
const BOTTOM: f64 = 34.0;
/// A label centred further right than this would cross the edge.
const LAST_LABEL: f64 = WIDTH - 24.0;
/// Labels of marks need so much room; those without it are left out, their lines are not.
const MARK_ROOM: f64 = 26.0;
/// The height of the strip of an experiment, and the width of a stretch with its letter.
const RIBBON: f64 = 11.0;
const ARM_ROOM: f64 = 10.0;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AxisScale {
    Linear,
    /// Logarithmic; only values above 0 are drawn.
    Log,
}

/// A position on the x axis, with its label.
pub(super) type AxisTick = (f64, String);

/// What happened in the time that the x axis shows.
#[derive(Clone, Debug, Default)]
pub(super) struct TimeMarks {
    /// Vertical marks, labelled as in the list of events.
    pub(super) ticks: Vec<AxisTick>,
    /// The values that experiments had in force: from, to, and which.
    pub(super) arms: Vec<(f64, f64, Arm)>,
}

/// One line; a `None` breaks it.
#[derive(Debug)]
pub(super) struct PlotLine {
    pub(super) name: String,
    pub(super) points: Vec<(f64, Option<f64>)>,
}

#[derive(Debug)]
pub(super) struct Plot {
    /// The caption, which screen readers read too.
    pub(super) title: String,
    pub(super) x_name: &'static str,
    pub(super) x_ticks: Vec<AxisTick>,
    /// How the table writes an x.
    pub(super) x_text: fn(f64) -> String,
    pub(super) y_name: &'static str,
    pub(super) scale: AxisScale,
    pub(super) series: Vec<PlotLine>,
    pub(super) marks: TimeMarks,
}

impl Plot {
    pub(super) fn markup(&self) -> Markup {
        let Some(frame) = self.frame() else { return html! {} };
        let drawing = html! {
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(self.title) {
                (self.axes(&frame))
                @for (at, series) in self.series.iter().enumerate() {
                    path class=(format!("line s{at}")) d=(frame.path(series)) {}
                }
            }
        };
        html! {
            figure {
                figcaption { (self.title) }
                (wide(&self.title, &drawing))
                ul.legend {
                    @for (at, series) in self.series.iter().enumerate() {
                        li { svg.key viewBox="0 0 30 8" aria-hidden="true" { path class=(format!("line s{at}")) d="M1 4H29" {} } (series.name) }
                    }
                }
                (self.table(&frame))
            }
        }
    }

    fn axes(&self, frame: &PlotFrame) -> Markup {
        let bottom = HEIGHT - BOTTOM;
        html! {
            @for value in frame.y_ticks() {
                @let y = frame.y(value).unwrap_or(bottom);
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(number(y)) y2=(number(y)) {}
                text x=(LEFT - 6.0) y=(number(y + 4.0)) text-anchor="end" { (short(value)) }
            }
            @for (value, label) in &self.x_ticks {
                @if let Some(x) = frame.x(*value) {
                    line.grid x1=(number(x)) x2=(number(x)) y1=(TOP) y2=(bottom) {}
                    text x=(number(x.min(LAST_LABEL))) y=(bottom + 14.0) text-anchor="middle" { (label) }
                }
            }
            @for (x, label) in self.shown_marks(frame) {
                line.mark x1=(number(x)) x2=(number(x)) y1=(TOP) y2=(bottom) {}
                @if let Some(label) = label { text.mark x=(number(x)) y=(TOP - 4.0) text-anchor="middle" { (label) } }
            }
            (self.ribbon(frame, bottom))
            text.name x=(LEFT) y=(HEIGHT - 4.0) { (self.x_name) }
            text.name x="2" y="12" { (self.y_name) @if self.scale == AxisScale::Log { ", log" } }
        }
    }

    /// A strip above the x axis with the values that experiments had in force.
    fn ribbon(&self, frame: &PlotFrame, bottom: f64) -> Markup {
        let clamped = |value: f64| frame.x(value.clamp(frame.left, frame.right));
        let shown = self.marks.arms.iter().filter(|(from, to, _)| *from < frame.right && *to > frame.left);
        let cells = shown.filter_map(|(from, to, arm)| Some((clamped(*from)?, clamped(*to)?, arm)));
        html! {
            @for (from, to, arm) in cells {
                @let name = arm.word().to_uppercase();
                rect class=(format!("arm {}", arm.word())) x=(number(from)) width=(number(to - from)) y=(number(bottom - RIBBON)) height=(RIBBON) { title { (name) } }
                @if to - from >= ARM_ROOM { text class=(format!("arm {}", arm.word())) x=(number(f64::midpoint(from, to))) y=(number(bottom - 2.0)) text-anchor="middle" { (name) } }
            }
        }
    }

    /// The positions of the marks, with the labels that do not overlap the previous one.
    fn shown_marks(&self, frame: &PlotFrame) -> Vec<(f64, Option<&str>)> {
        let mut marks: Vec<(f64, &str)> =
            self.marks.ticks.iter().filter_map(|(value, label)| Some((frame.x(*value)?, &**label))).collect();
        marks.sort_by(|(a, _), (b, _)| a.total_cmp(b));
        // The name of the y axis is on the left.
        let mut free_from = LEFT + MARK_ROOM;
        let shown = marks.into_iter().map(|(x, label)| {
            let is_free = (free_from..=WIDTH - RIGHT).contains(&x);
            if is_free {
                free_from = x + MARK_ROOM;
            }
            (x, is_free.then_some(label))
        });
        shown.collect()
    }

    /// The figures as a table; lines with other x positions get a separate x column.
    fn table(&self, frame: &PlotFrame) -> Markup {
        let places = |group: &[PlotLine]| {
            let points = group.iter().take(1).flat_map(|series| &series.points);
            positions(points.map(|(x, _)| frame.x(*x).unwrap_or(LEFT)))
        };
        let has_places_of_last = |a: &PlotLine, b: &PlotLine| {
            let places =
                |series: &PlotLine| series.points.iter().map(|(x, _)| x.to_bits()).collect::<Vec<_>>();
            places(a) == places(b)
        };
        let groups: Vec<&[PlotLine]> = self.series.chunk_by(has_places_of_last).collect();
        let rows = self.series.iter().map(|series| series.points.len()).max().unwrap_or(0);
        let cell = |value: Option<f64>| value.map_or_else(|| DASH.to_owned(), short);
        let table = html! {
            thead { tr { @for group in &groups {
                th data-x=(places(group)) { (self.x_name) }
                @for series in *group { th { (series.name) ", " (self.y_name) } }
            } } }
            tbody {
                @for row in 0..rows {
                    tr { @for group in &groups {
                        td { (group.first().and_then(|series| series.points.get(row)).map_or_else(|| DASH.to_owned(), |(x, _)| (self.x_text)(*x))) }
                        @for series in *group { td { (cell(series.points.get(row).and_then(|(_, y)| *y))) } }
                    } }
                }
            }
        };
        let caption = format!("The figures of {}", self.title);
        figures(&caption, &table)
    }

    /// The part of the plane to draw; `None` without points.
    fn frame(&self) -> Option<PlotFrame> {
        let points = || self.series.iter().flat_map(|series| &series.points);
        let is_drawn = |y: &f64| y.is_finite() && (self.scale == AxisScale::Linear || *y > 0.0);
        let ys: Vec<f64> = points().filter_map(|(_, y)| *y).filter(is_drawn).collect();
        let max = ys.iter().copied().max_by(f64::total_cmp)?;
        let min = ys.iter().copied().min_by(f64::total_cmp)?;
        let left = points().map(|(x, _)| *x).min_by(f64::total_cmp)?;
        let right = points().map(|(x, _)| *x).max_by(f64::total_cmp)?;
        let (low, high) = match self.scale {
            AxisScale::Linear => (0.0, if max > 0.0 { max * 1.05 } else { 1.0 }),
            AxisScale::Log => (min / 1.2, max * 1.2),
        };
        let right = if right > left { right } else { left + 1.0 };
        Some(PlotFrame { scale: self.scale, left, right, low, high })
    }
}

/// The visible part of the plane.
#[derive(Debug)]
struct PlotFrame {
    scale: AxisScale,
    left: f64,
    right: f64,
    low: f64,
    high: f64,
}

impl PlotFrame {
    fn x(&self, value: f64) -> Option<f64> {
        let share = (value - self.left) / (self.right - self.left);
        (0.0..=1.0).contains(&share).then_some(LEFT + share * (WIDTH - LEFT - RIGHT))
    }

    fn y(&self, value: f64) -> Option<f64> {
        let share = match self.scale {
            AxisScale::Linear => (value - self.low) / (self.high - self.low),
            AxisScale::Log if value <= 0.0 => return None,
            AxisScale::Log => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        share.is_finite().then_some(HEIGHT - BOTTOM - share * (HEIGHT - BOTTOM - TOP))
    }

    fn path(&self, series: &PlotLine) -> String {
        let mut path = String::new();
        let mut is_drawing = false;
        for (x, y) in &series.points {
            let at = self.x(*x).zip(y.and_then(|y| self.y(y)));
            if let Some((x, y)) = at {
                // A lone point is a line of no length, which its round ends make a dot.
                let step = if is_drawing { "L" } else { "M" };
                let _ = write!(path, "{step}{} {}", number(x), number(y));
                if !is_drawing {
                    path.push_str("h0");
                }
            }
            is_drawing = at.is_some();
        }
        path
    }

    fn y_ticks(&self) -> Vec<f64> {
        match self.scale {
            AxisScale::Linear => round_steps(self.low, self.high, 5.0),
            AxisScale::Log => {
                let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
                let factors: &[f64] = if last - first > 3 { &[1.0] } else { &[1.0, 2.0, 5.0] };
                let all =
                    (first..=last).flat_map(|power| factors.iter().map(move |f| f * 10_f64.powi(power)));
                all.filter(|value| (self.low..=self.high).contains(value)).collect()
            }
        }
    }
}

/// The steps of an axis of time, in seconds.
const TIME_STEPS: [f64; 16] = [
    1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0, 21_600.0,
    43_200.0, 86_400.0,
];
/// Ticks of an axis of time, in steps that a clock has, as moments are typed.
pub(super) fn time_ticks(from_s: f64, to_s: f64) -> Vec<AxisTick> {
    let raw = (to_s - from_s) / 9.0;
    let Some(step) = TIME_STEPS.into_iter().find(|step| *step >= raw).filter(|_| raw >= 0.1) else {
        return round_steps(from_s, to_s, 8.0).into_iter().map(|at| (at, seconds(at))).collect();
    };
    let first = (from_s / step).ceil() as u64;
    let at = (first..).map(|n| n as f64 * step).take_while(|at| *at <= to_s).take(50);
    at.map(|at| (at, format!("+{}", elapsed_text(at as u64)))).collect()
}

/// Round values from `low` to `high`, `about` of them.
pub(super) fn round_steps(low: f64, high: f64, about: f64) -> Vec<f64> {
    let raw = (high - low) / about;
    if !raw.is_finite() || raw <= 0.0 {
        return Vec::new();
    }
    let power = 10_f64.powf(raw.log10().floor());
    let step = [1.0, 2.0, 5.0, 10.0].map(|f| f * power).into_iter().find(|step| *step >= raw).unwrap_or(raw);
    let first = (low / step).ceil() as i64;
    (first..).map(|n| n as f64 * step).take_while(|value| *value <= high).take(50).collect()
}

/// The positions of a table's rows in the drawing, for the script that shows the row at the pointer.
pub(super) fn positions(all: impl Iterator<Item = f64>) -> String {
    all.map(number).collect::<Vec<_>>().join(" ")
}

/// The time since the beginning.
pub(super) fn seconds(value: f64) -> String {
    format!("{} s", short(value))
}

/// A coordinate, to a tenth.
pub(super) fn number(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plot(points: Vec<(f64, Option<f64>)>, scale: AxisScale) -> Plot {
        Plot {
            title: "<b>".to_owned(),
            x_name: "s",
            x_ticks: Vec::new(),
            x_text: short,
            y_name: "ms",
            scale,
            series: vec![PlotLine { name: "p50".to_owned(), points }],
            marks: TimeMarks { ticks: vec![(1.0, "1".to_owned())], arms: Vec::new() },
        }
    }

    #[test]
    fn a_gap_breaks_the_line_and_a_lone_point_is_a_dot() {
        let points = vec![(0.0, Some(1.0)), (1.0, Some(2.0)), (2.0, None), (3.0, Some(1.0))];
        let plot = plot(points, AxisScale::Linear);
        let path = plot.frame().unwrap().path(&plot.series[0]);
        assert_eq!((path.matches('M').count(), path.matches('L').count()), (2, 1), "{path}");
    }

    #[test]
    fn whatever_is_plotted_coordinates_are_numbers_and_text_is_escaped() {
        let all: [&[(f64, Option<f64>)]; 5] = [
            &[],
            &[(0.0, None)],
            &[(5.0, Some(0.0))],
            &[(0.0, Some(f64::INFINITY)), (1.0, Some(1e-9))],
            &[(0.0, Some(1e300)), (1.0, Some(1e-300))],
        ];
        for points in all {
            for scale in [AxisScale::Linear, AxisScale::Log] {
                let text = plot(points.to_vec(), scale).markup().into_string();
                assert!(!text.contains("NaN") && !text.contains("<b>"), "{text}");
                let coordinates = text
                    .split(" d=\"")
                    .skip(1)
                    .all(|path| !path.split('"').next().unwrap_or("").contains("inf"));
                assert!(coordinates, "{text}");
            }
        }
    }

    #[test]
    fn time_is_labelled_in_steps_of_a_clock() {
        let labels = |to: f64| time_ticks(0.0, to).into_iter().map(|(_, label)| label).collect::<Vec<_>>();
        assert_eq!(labels(0.4)[..2], ["0 s", "0.05 s"]);
        assert_eq!(labels(20.0), ["+00:00", "+00:05", "+00:10", "+00:15", "+00:20"]);
        assert_eq!(labels(3_600.0)[..3], ["+00:00", "+10:00", "+20:00"]);
        assert_eq!(labels(36_000.0)[..2], ["+00:00", "+2:00:00"]);
        assert!(time_ticks(5.0, 5.0).is_empty());
    }

    #[test]
    fn labels_of_marks_do_not_cover_each_other() {
        let mut plot = plot((0..=100).map(|x| (f64::from(x), Some(1.0))).collect(), AxisScale::Linear);
        plot.marks.ticks = (0..=100).map(|x| (f64::from(x), x.to_string())).collect();
        let frame = plot.frame().unwrap();
        let marks = plot.shown_marks(&frame);
        let labelled: Vec<f64> = marks.iter().filter(|(_, label)| label.is_some()).map(|(x, _)| *x).collect();
        assert_eq!(marks.len(), 101);
        assert!(labelled.windows(2).all(|pair| pair[1] - pair[0] >= MARK_ROOM), "{labelled:?}");
    }

    #[test]
    fn each_row_of_the_figures_has_a_position_for_the_pointer() {
        let plot = plot((0..=4).map(|x| (f64::from(x), Some(1.0))).collect(), AxisScale::Linear);
        let html = plot.markup().into_string();
        assert!(html.contains(r#"<th data-x="60.0 257.0 454.0 651.0 848.0">s</th>"#), "{html}");
    }

    #[test]
    fn the_values_of_an_experiment_are_a_strip_within_the_plot() {
        let mut plot = plot((0..=10).map(|x| (f64::from(x), Some(1.0))).collect(), AxisScale::Linear);
        plot.marks.arms = vec![(-5.0, 2.0, Arm::A), (2.0, 4.0, Arm::B), (20.0, 30.0, Arm::A)];
        let text = plot.markup().into_string();
        assert_eq!(text.matches("<rect").count(), 2, "one lies outside");
        assert!(text.contains("class=\"arm a\" x=\"60.0\"") && text.contains("<title>B</title>"), "{text}");
    }

    #[test]
    fn steps_are_round() {
        assert_eq!(round_steps(0.0, 10.0, 5.0), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
        assert_eq!(round_steps(0.0, 0.0, 5.0), Vec::<f64>::new());
    }
}
