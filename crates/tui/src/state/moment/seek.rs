//! Seeking: freezing the view and going to another moment of the run.

use crate::input::intent::SeekTarget;
use model::runs::{Interval, MetricSeries};
use records::metrics::{LatencyClass, Metric};

use super::{PastView, View};
use crate::clock::ClockReading;
use crate::state::State;
use crate::view_model::mark_comparison::events_of;
use crate::view_model::span::Span;

impl State {
    /// The past moment that was sought, on the run's monotonic clock.
    pub(crate) fn cursor_us(&self) -> Option<u64> {
        self.view.past()?.cursor_us
    }

    /// The past moment that is shown, on the run's monotonic clock.
    pub(crate) fn past_us(&self) -> Option<u64> {
        self.view.past().map(PastView::us)
    }

    /// Freezes the view at the last record, unless it already shows the past.
    pub(crate) fn freeze(&mut self, now: ClockReading) {
        if self.view.past().is_some() {
            return;
        }
        // Records read but not drawn yet belong to this moment.
        self.refresh(now);
        if let Some(run) = self.run() {
            self.view = View::Frozen(Box::new(PastView::freeze(&self.live, run, now)));
        }
    }

    pub(crate) fn go_live(&mut self) {
        let is_over = self.is_run_over();
        if self.is_replay() && is_over {
            self.span = Span::WholeRun;
        }
        self.view = View::Live;
        self.reads.forget();
        self.stale = true;
    }

    /// What the latest moment is called.
    pub(crate) fn present_words(&self) -> &'static str {
        if self.is_run_over() { "the run's end" } else { "live" }
    }

    /// Whether the shown run has ended.
    pub(crate) fn is_run_over(&self) -> bool {
        self.run().is_some_and(|run| run.stopped().is_some())
    }

    /// Goes to another moment, and freezes the view for it. Without such a moment, a live view stays live.
    pub(crate) fn seek(&mut self, target: SeekTarget, now: ClockReading) {
        let is_over = self.is_run_over();
        // The end of a running run is the present. A replay of an ended run remains a replay at its end.
        if target == SeekTarget::End && !(is_over && self.is_replay()) {
            self.go_live();
            return self.say(self.present_words(), now);
        }
        let was_live = matches!(self.view, View::Live);
        self.freeze(now);
        self.follow_timeline();
        match self.target_us(target) {
            Ok(us) => {
                self.show_moment(us, now);
                self.say(self.place_words(target), now);
            }
            Err(why) => {
                self.say(why, now);
                if was_live {
                    self.go_live();
                }
            }
        }
    }

    /// Goes to a moment, and freezes the view for it.
    pub(crate) fn go_to(&mut self, us: u64, now: ClockReading) {
        self.freeze(now);
        self.show_moment(us, now);
        self.say(self.place_words(SeekTarget::Columns(0)), now);
        self.stale = true;
        self.renew_status(now);
    }

    /// Shows the past moment again, after the window has changed.
    pub(crate) fn refresh_past_moment(&mut self, now: ClockReading) {
        if let Some(us) = self.view.past().map(PastView::us) {
            self.show_moment(us, now);
        }
    }

    /// Shows a moment from the model in memory, until the journal has been read up to it.
    fn show_moment(&mut self, us: u64, now: ClockReading) {
        let is_replay = self.is_replay();
        let mut view = std::mem::take(&mut self.view);
        if let Some((past, run)) = view.past_mut().zip(self.run()) {
            if is_replay {
                past.end_us = run.last_us();
            }
            let series = self.series_until(us).unwrap_or(run);
            // Without a journal to read, nothing before the kept series can be shown.
            let us = if self.options.history.is_none() { us.max(run.kept_from_us()) } else { us };
            past.go_to((&self.model, series), us, self.moment_span_us());
        }
        self.view = view;
        self.follow_cursor();
        self.catch_up();
        if let Some((us, playback)) = self.cursor_us().zip(self.view.playback_mut()) {
            playback.go_on_from(us, now);
        }
    }

    /// Shows a later moment of the run that was read from the journal.
    pub(crate) fn play_to(&mut self, us: u64) {
        let mut view = std::mem::take(&mut self.view);
        if let Some((past, run)) = view.past_mut().zip(self.run()) {
            past.end_us = run.last_us();
            past.set_cursor(run, us);
        }
        self.view = view;
        self.follow_cursor();
        self.catch_up();
    }

    /// Time that all columns of the timeline cover, in microseconds.
    pub(crate) fn timeline_span_us(&self) -> u64 {
        self.column_us().saturating_mul(self.sight.timeline_columns.max(1) as u64)
    }

    /// Scrolls the timeline if the cursor would leave it.
    fn follow_cursor(&mut self) {
        let shown_us = self.timeline_span_us();
        let Some(past) = self.view.past_mut() else { return };
        let Some(us) = past.cursor_us else { return };
        if us.saturating_add(shown_us) <= past.edge_us || us > past.edge_us {
            past.edge_us = us.saturating_add(shown_us / 2).min(past.end_us.max(us));
        }
    }

    /// The moment to go to.
    ///
    /// # Errors
    /// With a message if there is no such moment.
    fn target_us(&self, target: SeekTarget) -> Result<u64, &'static str> {
        let (Some(run), Some(past)) = (self.run(), self.view.past()) else {
            return Err("there is no run yet");
        };
        let cursor_us = past.us();
        let column_us = self.timeline.column_us();
        let end_us = self.timeline.snap(cursor_us);
        // A mark is shown at the end of its interval: columns may be much longer, and hold several marks.
        let step_us = self.interval_us().min(column_us);
        let at_mark = |us: u64| {
            let steps = us.saturating_sub(run.began_us()) / step_us + 1;
            run.began_us().saturating_add(steps.saturating_mul(step_us)).min(past.end_us)
        };
        let marks =
            || events_of(run).map(|marker| marker.mono_us).filter(|&us| us <= past.end_us).map(at_mark);
        match target {
            SeekTarget::Columns(n) => Ok(end_us.saturating_add_signed(n.saturating_mul(column_us as i64))),
            // From the present, the newest mark counts even if it is of the last interval.
            SeekTarget::PreviousMark => marks()
                .rfind(|&us| past.cursor_us.is_none_or(|cursor_us| us < cursor_us))
                .ok_or("no earlier mark or change"),
            SeekTarget::NextMark => marks().find(|&us| us > cursor_us).ok_or("no later mark or change"),
            // Ticks wander: an interval may end after the column that it belongs to, and then the column's end counts.
            SeekTarget::Worst => self
                .worst()
                .map(|worst| worst.end_us.min(self.timeline.snap(worst.place_us + 1)))
                .ok_or("there are no latencies yet"),
            SeekTarget::Rise => {
                self.rise_us().ok_or("p99 has not risen by half or more in what memory holds")
            }
            SeekTarget::NextInterval => Ok(cursor_us.saturating_add(self.interval_us())),
            SeekTarget::PreviousInterval => Ok(cursor_us.saturating_sub(self.interval_us())),
            SeekTarget::Beginning => Ok(run.began_us()),
            SeekTarget::End => Ok(past.end_us),
        }
    }

    /// Time between the records of the run.
    fn interval_us(&self) -> u64 {
        self.live.interval_us().max(1)
    }

    /// The end of the last interval before the shown moment from which on p99 of the timeline's class is higher.
    fn rise_us(&self) -> Option<u64> {
        let (run, past) = (self.run()?, self.view.past()?);
        let until_us = past.cursor_us.map_or(past.end_us, |us| us.saturating_sub(1));
        let known = match self.time.class(run) {
            LatencyClass::Proxy(class) => p99_of(run.proxy()?, class),
            LatencyClass::Tls(class) => p99_of(run.tls()?, class),
            LatencyClass::Http(class) => p99_of(run.http()?, class),
            LatencyClass::Load(class) => p99_of(run.load()?, class),
        };
        last_rise(&known, until_us)
    }
}

/// The ends of the intervals with samples, and their p99 in nanoseconds.
fn p99_of<C: Metric, L: Metric>(series: &MetricSeries<C, L>, class: L) -> Vec<(u64, u64)> {
    let p99 = |interval: &Interval<C, L>| Some((interval.end_us, interval.latency(class).quantile_ns(0.99)?));
    series.timeline().filter_map(|interval| p99(interval)).collect()
}

/// Intervals with samples before a rise, whose median p99 counts.
const BEFORE: usize = 10;
/// Intervals from a rise on, whose median p99 counts: one slow interval is a spike and no rise.
const AFTER: usize = 3;
/// How many times as high p99 must be.
const RISE_MIN: f64 = 1.5;

/// The end of the last interval from which on p99 is higher than before.
fn last_rise(known: &[(u64, u64)], until_us: u64) -> Option<u64> {
    let median = |part: &[(u64, u64)]| {
        let mut values: Vec<u64> = part.iter().map(|(_, ns)| *ns).collect();
        values.sort_unstable();
        values[values.len() / 2] as f64
    };
    let is_high = |at: usize| {
        let before = &known[at.saturating_sub(BEFORE)..at];
        let high = median(before) * RISE_MIN;
        known[at].1 as f64 >= high && median(&known[at..(at + AFTER).min(known.len())]) >= high
    };
    // Of the intervals of a rise, the first.
    let rises = (AFTER..known.len()).filter(|&at| is_high(at) && !(at > AFTER && is_high(at - 1)));
    rises.map(|at| known[at].0).rfind(|end_us| *end_us <= until_us)
}

#[cfg(test)]
mod tests {
    use super::last_rise;
    use crate::app::testing::{TestDashboard, options};

    #[test]
    fn the_end_of_a_run_that_goes_on_is_the_present() {
        let mut stage = TestDashboard::live(options(), 10);
        stage.screen(120, 40);
        stage.press('<');
        stage.press('$');
        stage.pass(5);
        assert!(stage.screen(120, 40).contains("LIVE +00:15"), "{}", stage.screen(120, 40));
        stage.press('$');
        assert!(stage.screen(120, 40).contains("LIVE +00:15"));
    }

    #[test]
    fn the_last_rise_of_p99_is_found_and_a_spike_is_none() {
        let run = |p99s: &[u64]| -> Vec<(u64, u64)> { (1..).zip(p99s.iter().copied()).collect() };
        let rises = run(&[
            10, 11, 9, 10, 50, 10, 11, 10, 20, 21, 19, 20, 20, 20, 20, 20, 20, 20, 40, 41, 39, 40, 12, 11,
        ]);
        assert_eq!(last_rise(&rises, 100), Some(19));
        assert_eq!(last_rise(&rises, 18), Some(9), "the one before");
        assert_eq!(last_rise(&rises, 8), None, "a spike is no rise");
        assert_eq!(last_rise(&run(&[10, 12, 13, 14, 13, 12, 14]), 100), None);
        assert_eq!(last_rise(&run(&[10, 10]), 100), None);
    }

    #[test]
    fn steps_through_time_are_short_without_a_timeline() {
        let mut stage = TestDashboard::live(options(), 25);
        stage.screen(40, 10);
        stage.want(crate::input::intent::Intent::Seek(crate::input::intent::SeekTarget::Columns(-1)));
        assert!(stage.screen(40, 10).contains("FROZEN at +00:24"), "{}", stage.screen(40, 10));
    }

    #[test]
    fn a_change_while_the_past_is_shown_says_that_it_acts_now() {
        let mut stage = TestDashboard::live(options(), 10);
        let hint = "5500/s acts now: Space shows it";
        stage.screen(120, 40);
        stage.press(' ');
        assert!(!stage.screen(120, 40).contains("acts now"));
        stage.press(']');
        assert!(stage.screen(120, 40).contains(hint), "{}", stage.screen(120, 40));
        let change = stage.run.set("load.rate", records::setting::Value::Number(5500.0)).unwrap();
        stage.read(vec![change]);
        stage.pass(9);
        for (columns, rows) in [(80, 24), (40, 10)] {
            assert!(stage.screen(columns, rows).contains(hint), "{}", stage.screen(columns, rows));
        }
        stage.press(' ');
        assert!(!stage.screen(120, 40).contains("acts now"));
    }
}
