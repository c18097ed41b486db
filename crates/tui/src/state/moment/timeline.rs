//! The timeline of the shown run, and its moments in words.

use super::zoom::TimelineExtent;
use crate::state::{State, shown_run};
use crate::view_model::past::PastSetting;

impl State {
    pub(crate) fn column_us(&self) -> u64 {
        let (began_us, kept_from_us, last_us) = self
            .run()
            .map_or((0, 0, 0), |run| (run.began_us(), run.kept_from_us().max(run.began_us()), run.last_us()));
        let edge_us = self.view.past().map_or(last_us, |past| past.edge_us);
        self.time.column_us(TimelineExtent {
            columns: self.sight.timeline_columns.max(1) as u64,
            run_us: edge_us.saturating_sub(began_us),
            kept_us: last_us.saturating_sub(kept_from_us),
            interval_us: self.live.interval_us(),
            is_over: self.is_shown_to_its_end(),
        })
    }

    /// Returns whether a run that is over is shown, and not played.
    fn is_shown_to_its_end(&self) -> bool {
        !self.is_replay() && self.is_run_over()
    }

    /// Returns whether the columns of the timeline are as long as it takes to show the whole run.
    pub(crate) fn is_fitted(&self) -> bool {
        self.time.fits(self.is_shown_to_its_end())
    }

    pub(crate) fn follow_timeline(&mut self) {
        let (columns, column_us) = (self.sight.timeline_columns.max(1), self.column_us());
        let Self { model, options, time, timeline, view, reads, .. } = self;
        let Some(run) = shown_run(model, options) else { return };
        let until_us = view.past().map_or_else(|| run.last_us(), |past| past.edge_us);
        let from_us = until_us.saturating_sub(column_us.saturating_mul(columns as u64)).max(run.began_us());
        let again = if run.kept_from_us() <= from_us { None } else { reads.series(run) };
        let again = again.filter(|(_, again)| again.kept_from_us() < run.kept_from_us());
        let class = time.class(run);
        match again {
            // A reread run ends at the shown moment, and so does the timeline.
            Some((ticket, again)) => {
                timeline.refresh((again, ticket), class, column_us, until_us.min(again.last_us()), columns);
            }
            None => timeline.refresh((run, 0), class, column_us, until_us, columns),
        }
        self.markers = timeline.markers(run);
        self.arms = timeline.arms(run);
    }

    /// The past moment that was sought, on the monotonic clock, with its settings.
    pub(crate) fn earlier(&self) -> Option<(u64, &[PastSetting])> {
        let past = self.view.past()?;
        Some((past.cursor_us?, &past.settings))
    }

    /// How long the shown run had lasted at a moment of its monotonic clock, in microseconds.
    pub(crate) fn elapsed_us(&self, us: u64) -> u64 {
        self.run().map_or(0, |run| run.before_us().saturating_add(us.saturating_sub(run.began_us())))
    }

    /// The wall clock at a moment of the shown run's monotonic clock.
    pub(crate) fn realtime_at(&self, us: u64) -> u64 {
        self.run().map_or(0, |run| run.realtime_at(us))
    }

    /// Formats a time of day in the zone of the screen.
    pub(crate) fn time_of_day(&self, realtime_us: u64) -> String {
        self.options.zone.time_of_day(realtime_us)
    }

    /// Returns the shown moment for a title: ` at 12:04:10Z`, or nothing in the present.
    pub(crate) fn at_past_moment(&self) -> String {
        self.past_us().map_or_else(String::new, |us| format!(" at {}", self.moment_words(us)))
    }

    /// Returns a moment as it can be typed: the time of day, and the time since the run began.
    pub(crate) fn moment_words(&self, us: u64) -> String {
        format!("{}, {}", self.time_of_day(self.realtime_at(us)), self.elapsed_words(us))
    }

    /// Returns the time since the run began as it can be typed: `+01:20`.
    pub(crate) fn elapsed_words(&self, us: u64) -> String {
        let since = self.run().map_or(0, |run| us.saturating_sub(run.began_us()) / 1_000_000);
        format!("+{}", records::text::quantity::elapsed_text(since))
    }
}
