//! Plots over time.

use maud::Markup;
use records::metrics::Metric;

use super::{AxisScale, Plot, PlotLine, TimeMarks, seconds, time_ticks};
use crate::report::columns::PlotColumn;

/// A line: its name, its columns, and its value in each.
pub(crate) type Line<'a, C> = (&'a str, &'a [PlotColumn<C>], &'a dyn Fn(&PlotColumn<C>) -> Option<f64>);

/// Lines over the time since each run began, with marks.
pub(crate) fn markup<C: Metric>(
    title: String,
    (y_name, scale): (&'static str, AxisScale),
    lines: &[Line<'_, C>],
    marks: &TimeMarks,
) -> Markup {
    let ends = || lines.iter().flat_map(|(_, columns, _)| columns.iter().map(|column| column.end_s));
    let first = ends().min_by(f64::total_cmp).unwrap_or(0.0);
    let last = ends().max_by(f64::total_cmp).unwrap_or(0.0);
    let series = lines.iter().map(|(name, columns, of)| PlotLine {
        name: (*name).to_owned(),
        points: columns.iter().map(|column| (column.end_s, of(column))).collect(),
    });
    let plot = Plot {
        title,
        x_name: "time since the beginning",
        x_ticks: time_ticks(first, last),
        x_text: seconds,
        y_name,
        scale,
        series: series.collect(),
        marks: marks.clone(),
    };
    plot.markup()
}
