//! The time shown by the timeline: its position, and the length of a column.

use telemetry::LatencyClass;
use telemetry::model::Run;

use crate::view_model::{first_class, next_class};

/// The selectable lengths of a column, in microseconds.
const COLUMNS_US: [u64; 8] =
    [1_000_000, 2_000_000, 5_000_000, 10_000_000, 30_000_000, 60_000_000, 120_000_000, 300_000_000];

/// The part of the timeline that is shown if there is no room for all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum TimelineMode {
    /// The heat map.
    #[default]
    Heat,
    /// The percentiles.
    Percentiles,
}

/// The settings of the timeline.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeView {
    pub(crate) mode: TimelineMode,
    /// `None` for the most important class.
    class: Option<LatencyClass>,
    zoom: usize,
}

impl Default for TimeView {
    fn default() -> Self {
        Self { mode: TimelineMode::default(), class: None, zoom: 1 }
    }
}

impl TimeView {
    /// Returns the shown class.
    pub(crate) fn class(&self, run: &Run) -> LatencyClass {
        self.class.unwrap_or_else(|| first_class(run))
    }

    /// Returns the length of a column: at least the run's interval, since shorter columns would be blank.
    pub(crate) fn column_us(&self, interval_us: u64) -> u64 {
        COLUMNS_US[self.zoom].max(interval_us)
    }

    pub(super) fn next_class(&mut self, run: &Run) {
        self.class = Some(next_class(self.class(run), run));
    }

    pub(super) fn toggle_mode(&mut self) {
        self.mode = match self.mode {
            TimelineMode::Heat => TimelineMode::Percentiles,
            TimelineMode::Percentiles => TimelineMode::Heat,
        };
    }

    /// Longer columns.
    pub(super) fn zoom_out(&mut self) {
        self.zoom = (self.zoom + 1).min(COLUMNS_US.len() - 1);
    }

    /// Shorter columns.
    pub(super) fn zoom_in(&mut self) {
        self.zoom = self.zoom.saturating_sub(1);
    }
}
