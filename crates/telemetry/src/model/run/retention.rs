//! How much of a run is kept, and from where.

use crate::metrics::Metric;
use crate::model::series::MetricSeries;

/// How much of a run is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Retention {
    /// Intervals of each series.
    pub(super) history: usize,
    /// True if reading began in the middle of the run, with what was known of it.
    pub(super) is_joined: bool,
    /// True if only totals and the last interval are kept.
    pub(super) is_brief: bool,
}

/// How the series of a run begins.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeriesStart {
    /// When everything stood at nothing, if that was read.
    pub(super) start_us: Option<u64>,
    pub(super) history: usize,
}

impl SeriesStart {
    pub(super) fn series<C: Metric, L: Metric>(self) -> MetricSeries<C, L> {
        MetricSeries::new(self.start_us, self.history)
    }
}
