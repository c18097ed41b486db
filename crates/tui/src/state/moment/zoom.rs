//! The time shown by the timeline: its position, and the length of a column.

use model::runs::Run;
use records::metrics::LatencyClass;

use crate::panes::timeline::model::{first_class, next_class};

/// The lengths of a column, in microseconds.
const COLUMNS_US: [u64; 11] = [
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
    600_000_000,
    1_800_000_000,
    3_600_000_000,
];

/// How long a column is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Zoom {
    /// A second, or about the run's interval if that is longer; of a run that is over, as [`Self::Fit`].
    #[default]
    Automatic,
    /// As long as it takes to show the whole run.
    Fit,
    /// This many microseconds.
    Fixed(u64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TimelineExtent {
    /// Columns that fit.
    pub(crate) columns: u64,
    /// Time from the run's beginning to the right edge, in microseconds.
    pub(crate) run_us: u64,
    /// Time of which the series are kept in memory, in microseconds.
    pub(crate) kept_us: u64,
    /// Time between two records, in microseconds.
    pub(crate) interval_us: u64,
    /// Whether the run is over.
    pub(crate) is_over: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TimeView {
    /// Whether the plot has a heat map behind its lines.
    pub(crate) shows_heat: bool,
    /// `None` for the most important class.
    class: Option<LatencyClass>,
    zoom: Zoom,
}

impl Default for TimeView {
    fn default() -> Self {
        Self { shows_heat: true, class: None, zoom: Zoom::Automatic }
    }
}

impl TimeView {
    pub(crate) fn class(&self, run: &Run) -> LatencyClass {
        self.class.unwrap_or_else(|| first_class(run))
    }

    /// Returns the length of a column: about the run's interval at least, which may jitter; each record fills
    /// columns that are a little shorter.
    pub(crate) fn column_us(&self, extent: TimelineExtent) -> u64 {
        let least = |us: &u64| *us + *us / 2 >= extent.interval_us;
        let least_us = COLUMNS_US.into_iter().find(least).unwrap_or(extent.interval_us);
        match self.zoom {
            Zoom::Fixed(us) => us.max(least_us),
            _ if self.fits(extent.is_over) => fitting_us(extent).max(least_us),
            Zoom::Automatic | Zoom::Fit => least_us,
        }
    }

    /// Returns whether the columns are as long as it takes to show the whole run.
    pub(crate) fn fits(&self, is_over: bool) -> bool {
        self.zoom == Zoom::Fit || (self.zoom == Zoom::Automatic && is_over)
    }

    pub(crate) fn next_class(&mut self, run: &Run) {
        self.class = Some(next_class(self.class(run), run));
    }

    /// Longer columns than those shown.
    pub(crate) fn zoom_out(&mut self, shown_us: u64) {
        self.zoom = Zoom::Fixed(COLUMNS_US.into_iter().find(|&us| us > shown_us).unwrap_or(shown_us));
    }

    /// Shorter columns than those shown.
    pub(crate) fn zoom_in(&mut self, shown_us: u64) {
        self.zoom = Zoom::Fixed(COLUMNS_US.into_iter().rfind(|&us| us < shown_us).unwrap_or(shown_us));
    }

    /// As long columns as it takes to show so many microseconds in so many columns.
    pub(crate) fn zoom_to(&mut self, span_us: u64, columns: u64) {
        let least_us = span_us.div_ceil(columns.max(1));
        let known = COLUMNS_US.into_iter().find(|&us| us >= least_us);
        self.zoom = Zoom::Fixed(known.unwrap_or(least_us));
    }

    /// As long columns as it takes to show the whole run.
    pub(crate) fn zoom_to_fit(&mut self) {
        self.zoom = Zoom::Fit;
    }
}

/// Returns the shortest columns that show the whole run, or the longest that show nothing but what is in memory.
fn fitting_us(extent: TimelineExtent) -> u64 {
    let shown_us = |us: u64| us.saturating_mul(extent.columns);
    let at = if extent.run_us <= extent.kept_us {
        COLUMNS_US.partition_point(|&us| shown_us(us) < extent.run_us)
    } else {
        COLUMNS_US.partition_point(|&us| shown_us(us) <= extent.kept_us).saturating_sub(1)
    };
    COLUMNS_US[at.min(COLUMNS_US.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the column length in seconds that suits a run of `run` seconds with `kept` seconds in memory.
    fn automatic(run: u64, kept: u64) -> u64 {
        let extent = TimelineExtent {
            columns: 100,
            run_us: run * 1_000_000,
            kept_us: kept * 1_000_000,
            interval_us: 1_000_000,
            is_over: true,
        };
        TimeView::default().column_us(extent) / 1_000_000
    }

    #[test]
    fn columns_grow_with_the_run_so_that_all_of_it_is_shown() {
        for (run, column) in [(0, 1), (100, 1), (101, 2), (200, 2), (201, 5), (3_600, 60)] {
            assert_eq!(automatic(run, run), column, "{run} s");
        }
    }

    #[test]
    fn a_run_that_is_partly_in_memory_fills_the_width_with_that_part() {
        assert_eq!(automatic(90_000, 21_600), 120);
        assert_eq!(automatic(90_000, 50), 1);
    }

    #[test]
    fn columns_stay_round_when_the_interval_jitters() {
        let column_us = |interval_us| {
            let extent = TimelineExtent {
                columns: 100,
                run_us: 9_000_000,
                kept_us: 9_000_000,
                interval_us,
                is_over: false,
            };
            TimeView::default().column_us(extent)
        };
        assert_eq!([250_000, 1_013_000, 15_000_000].map(column_us), [1_000_000, 1_000_000, 10_000_000]);
    }

    #[test]
    fn zooming_by_hand_begins_at_what_is_shown_and_can_be_left() {
        let extent = TimelineExtent {
            columns: 100,
            run_us: 201_000_000,
            kept_us: 201_000_000,
            interval_us: 500_000,
            is_over: false,
        };
        let mut view = TimeView::default();
        assert_eq!(view.column_us(extent), 1_000_000, "a run that goes on");
        view.zoom_to_fit();
        view.zoom_in(view.column_us(extent));
        assert_eq!(view.column_us(extent), 2_000_000);
        (0..3).for_each(|_| view.zoom_in(view.column_us(extent)));
        assert_eq!(view.column_us(extent), 1_000_000);
        view.zoom_to_fit();
        assert_eq!(view.column_us(extent), 5_000_000);
    }
}
