//! Going back in time.

use telemetry::model::Level;

use super::State;
use super::frozen::Frozen;
use crate::clock::Now;
use crate::figures::Subject;
use crate::view::layout;

/// Where a person wants to go in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leap {
    /// So many columns; backwards if negative.
    Columns(i64),
    PreviousMark,
    NextMark,
    /// The interval with the highest latency of the class that is looked at.
    Worst,
    /// The interval after, or before.
    NextInterval,
    PreviousInterval,
    /// The run's first record, or its last.
    Beginning,
    End,
}

impl State {
    /// The earlier moment that is shown, by the run's monotonic clock; `None` if there is none.
    pub(super) fn earlier_us(&self) -> Option<u64> {
        self.frozen.as_ref()?.earlier_us()
    }

    /// Freezes the view, if it is not, at what has been read.
    pub(super) fn freeze(&mut self, now: Now) {
        if self.frozen.is_some() {
            return;
        }
        // What has been read and not been drawn yet still belongs to this moment.
        self.stale = true;
        self.refresh(now);
        let kept = self.live.clone().zip(self.run());
        self.frozen = kept.map(|(figures, run)| Frozen::new(figures, self.table.clone(), run, now));
    }

    /// Goes to another moment, and freezes the view for it.
    pub(super) fn leap(&mut self, leap: Leap, now: Now) {
        self.freeze(now);
        self.follow_course();
        match self.target_us(leap) {
            Ok(us) => self.show_moment(us, now),
            Err(why) => self.notice(Level::Notice, why, now),
        }
    }

    /// Goes to a moment, and freezes the view for it.
    pub(super) fn go_to(&mut self, us: u64, now: Now) {
        self.freeze(now);
        self.show_moment(us, now);
        self.stale = true;
        self.phase = super::Phase::of(self, now);
    }

    /// Computes what is shown of an earlier moment anew, after the window has changed.
    pub(super) fn show_moment_anew(&mut self, now: Now) {
        if let Some(us) = self.frozen.as_ref().map(|frozen| frozen.earlier_us().unwrap_or(frozen.moment_us)) {
            self.show_moment(us, now);
            self.show_reel_anew();
        }
    }

    /// Shows what the series tell of a moment, until it has been read again.
    fn show_moment(&mut self, us: u64, now: Now) {
        let Some(mut frozen) = self.frozen.take() else { return };
        if let Some(run) = self.run().filter(|_| self.is_replay()) {
            frozen.moment_us = run.last_us();
        }
        // What neither the series nor the journal can tell is not gone to.
        let first_us = match self.run().filter(|_| self.options.history.is_none()) {
            Some(run) => us.max(run.kept_from_us()),
            None => us,
        };
        if let Some(run) = self.series_until(us) {
            frozen.go_to(run, first_us, self.span);
        }
        self.frozen = Some(frozen);
        self.follow_cursor();
        self.catch_up();
        if let Some(us) = self.earlier_us() {
            self.play_on_from(us, now);
        }
    }

    /// Shows a moment up to which the reel can go on.
    pub(super) fn stand_at(&mut self, us: u64) {
        let Some(mut frozen) = self.frozen.take() else { return };
        if let Some(run) = self.run() {
            frozen.stand_at(run, us);
        }
        self.frozen = Some(frozen);
        self.follow_cursor();
        self.catch_up();
    }

    /// Time that all columns together show.
    pub(super) fn course_span_us(&self) -> u64 {
        self.column_us().saturating_mul(layout::course_columns(self).max(1) as u64)
    }

    /// The course moves along where the cursor would leave it.
    fn follow_cursor(&mut self) {
        let shown_us = self.course_span_us();
        let Some(frozen) = &mut self.frozen else { return };
        let Some(us) = frozen.earlier_us() else { return };
        if us.saturating_add(shown_us) <= frozen.edge_us || us > frozen.edge_us {
            frozen.edge_us = us.saturating_add(shown_us / 2).min(frozen.moment_us.max(us));
        }
    }

    /// The moment to go to.
    ///
    /// # Errors
    /// With a sentence for the person where there is none.
    fn target_us(&self, leap: Leap) -> Result<u64, &'static str> {
        let (Some(run), Some(frozen)) = (self.run(), &self.frozen) else { return Err("there is no run yet") };
        let cursor_us = frozen.earlier_us().unwrap_or(frozen.moment_us);
        let column_us = self.course.column_us();
        let end_us = self.course.snap(cursor_us);
        let deeds = || run.markers().map(|marker| marker.mono_us).filter(|&us| us <= frozen.moment_us);
        let at_mark = |us: u64| self.course.snap(us + 1);
        match leap {
            Leap::Columns(n) => Ok(end_us.saturating_add_signed(n.saturating_mul(column_us as i64))),
            Leap::PreviousMark => deeds()
                .rfind(|&us| us < end_us.saturating_sub(column_us))
                .map(at_mark)
                .ok_or("no earlier mark"),
            Leap::NextMark => deeds().find(|&us| us >= end_us).map(at_mark).ok_or("no later mark"),
            Leap::Worst => self.worst_us().ok_or("there are no latencies yet"),
            Leap::NextInterval => Ok(cursor_us.saturating_add(self.interval_us())),
            Leap::PreviousInterval => Ok(cursor_us.saturating_sub(self.interval_us())),
            Leap::Beginning => Ok(run.began_us()),
            Leap::End => Ok(frozen.moment_us),
        }
    }

    /// Time between the records of the run.
    fn interval_us(&self) -> u64 {
        self.live.as_ref().map_or(0, |figures| figures.interval_us).max(1)
    }

    /// The moment that shows the interval with the highest latency.
    fn worst_us(&self) -> Option<u64> {
        let (run, until_us) = (self.run()?, self.frozen.as_ref()?.moment_us);
        let worst = match self.time.subject(run) {
            Subject::Proxy(class) => {
                let known = run.proxy()?.timeline().filter(|interval| interval.end_us <= until_us);
                known
                    .map(|interval| (interval.latency(class).max_ns(), self.course.moment_of(interval)))
                    .max()
            }
            Subject::Load(class) => {
                let known = run.load()?.timeline().filter(|interval| interval.end_us <= until_us);
                known
                    .map(|interval| (interval.latency(class).max_ns(), self.course.moment_of(interval)))
                    .max()
            }
        };
        worst.filter(|&(max_ns, _)| max_ns > 0).map(|(_, us)| us)
    }
}
