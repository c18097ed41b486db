//! The series of a run as columns of a plot.

use model::runs::{Interval, MetricSeries};
use records::histogram::SparseHistogram;
use records::metrics::{Counters, Metric};

use crate::report::Report;

/// The most columns of a plot over time; intervals are merged until they fit.
const COLUMNS_MAX: u64 = 240;

/// One or more merged intervals.
#[derive(Debug)]
pub(crate) struct PlotColumn<C: Metric> {
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    /// A part of its time has no records.
    pub(crate) is_gap: bool,
    pub(crate) counters: Counters<C>,
    pub(crate) latency: SparseHistogram,
}

impl<C: Metric> PlotColumn<C> {
    pub(crate) fn rate(&self, amount: u64) -> Option<f64> {
        let seconds = self.end_s - self.start_s;
        (!self.is_gap && seconds > 0.0).then(|| amount as f64 / seconds)
    }

    pub(crate) fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.latency.quantile_ns(q).filter(|_| !self.is_gap).map(|ns| ns as f64 / 1e6)
    }

    pub(crate) fn max_ms(&self) -> Option<f64> {
        (!self.is_gap && !self.latency.is_empty()).then(|| self.latency.max_ns() as f64 / 1e6)
    }
}

/// A series as the columns of a plot, with one class of its latencies.
pub(crate) fn columns<C: Metric, L: Metric>(
    report: &Report<'_>,
    series: &MetricSeries<C, L>,
    class: L,
) -> Vec<PlotColumn<C>> {
    let intervals: Vec<&Interval<C, L>> = series.timeline().map(|interval| &**interval).collect();
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else { return Vec::new() };
    // By time, because old intervals are kept as rollups of ten seconds.
    let width_us = last.end_us.saturating_sub(first.start_us) / COLUMNS_MAX;
    let at = |interval: &Interval<C, L>| {
        interval.middle_us().saturating_sub(first.start_us).checked_div(width_us).unwrap_or(0)
    };
    // The last interval of a run may be too short for a rate: it is merged with the previous one.
    let is_rest = |a: &Interval<C, L>, b: &Interval<C, L>| {
        b.end_us == last.end_us && !(a.after_loss || b.after_loss) && b.length_us() * 2 < a.length_us()
    };
    let is_together = |a: &&Interval<C, L>, b: &&Interval<C, L>| {
        is_rest(a, b) || (intervals.len() > COLUMNS_MAX as usize && at(a) == at(b))
    };
    let column = |chunk: &[&Interval<C, L>]| {
        let (first, last) = (chunk.first()?, chunk.last()?);
        let mut counters = Counters::default();
        for interval in chunk {
            counters.add(&interval.counters);
        }
        Some(PlotColumn {
            start_s: report.seconds_at(first.start_us),
            end_s: report.seconds_at(last.end_us),
            is_gap: chunk.iter().any(|interval| interval.after_loss),
            counters,
            latency: SparseHistogram::merged(chunk.iter().map(|interval| interval.latency(class))),
        })
    };
    intervals.chunk_by(is_together).filter_map(column).collect()
}
