//! How much of a run is kept, and where its series start.

use crate::runs::series::MetricSeries;
use records::metrics::Metric;

#[derive(Clone, Copy, Debug)]
pub(in crate::runs) struct SeriesRetention {
    /// Intervals kept of each series.
    pub(super) history: usize,
    /// True if reading started in the middle of the run, with the state from [`super::Run::joined_at`].
    pub(super) is_joined: bool,
    /// True if the run is abridged: only totals and the last ten seconds are kept.
    pub(super) is_brief: bool,
}

#[derive(Clone, Copy, Debug)]
pub(in crate::runs) struct SeriesStart {
    /// `CLOCK_MONOTONIC` of the run's first record, when all counters were 0; `None` if it was not read.
    pub(super) start_us: Option<u64>,
    pub(super) history: usize,
}

impl SeriesStart {
    pub(super) fn series<C: Metric, L: Metric>(self) -> MetricSeries<C, L> {
        MetricSeries::new(self.start_us, self.history)
    }
}
