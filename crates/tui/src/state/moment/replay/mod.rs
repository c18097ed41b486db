//! Reads past moments from the journal, and plays the run from there.
//!
//! A past moment is shown at once from the model in memory. If that model no longer holds everything about the moment,
//! the journal is read up to it into a second model, the [`RereadRun`]. Every pane then shows the moment as it was.
//! Playing applies the records that follow to the second model. It cannot go back: an earlier moment needs a new read.
//!
//! Moments named `us` are on the run's monotonic clock, in microseconds. Keys and clicks seek in [`super::seek`]; this
//! module requests what the shown moment needs ([`State::history_request`]) and applies the replies
//! ([`State::apply_history`]).

mod play;
pub(crate) mod reads;
mod reread_run;
#[cfg(test)]
mod tests;
mod whole_run;

use model::history::{HistoryReply, HistoryRequest, SeekRequest};
use model::runs::{Level, Model, Run};

use crate::clock::ClockReading;
use crate::state::{State, shown_run};
use crate::view_model::span::Span;
use reads::{ReadInFlight, WholeRun};
use reread_run::RereadRun;

/// Up to this long after the run's start, a moment is read from the start, so that nothing is missing.
const FROM_BEGINNING_US: u64 = 1_800_000_000;
/// For a later moment, at least this much time before it is read: the longest window.
const SERIES_US_MIN: u64 = 900_000_000;
/// And at most this much, however much time the timeline's columns cover.
const SERIES_US_MAX: u64 = 6 * 3_600_000_000;
/// The journal's timestamps and those in the records may differ by this much.
const CLOCKS_DIFFER_US_MAX: u64 = 2_000_000;
/// A moment up to this far ahead of the records read is reached by continuing the read; a later one by a new seek.
const CONTINUE_US_MAX: u64 = 600_000_000;
/// How far to read ahead while playing, in microseconds of wall-clock time. More is requested when half of it is left.
const READ_AHEAD_US: f64 = 4_000_000.0;

impl State {
    /// Returns the reread run that the shown figures come from; `None` if they come from the model in memory.
    pub(crate) fn shown_reread(&self) -> Option<&RereadRun> {
        let ticket = self.snapshot().ticket?;
        self.reads.run.as_ref().filter(|reread| reread.ticket == ticket)
    }

    /// Returns the run that holds the series up to a moment: the run in memory, or the reread one.
    pub(crate) fn series_until(&self, us: u64) -> Option<&Run> {
        let run = self.run()?;
        if self.is_kept(run, us) {
            return Some(run);
        }
        let again = self.reads.series(run).map(|(_, again)| again);
        Some(again.filter(|again| again.kept_from_us() <= us && us <= again.last_us()).unwrap_or(run))
    }

    /// Returns whether the run still has series for the whole window up to a moment.
    fn is_kept(&self, run: &Run, us: u64) -> bool {
        run.kept_from_us() <= us.saturating_sub(self.moment_span_us()).max(run.began_us())
    }

    /// Returns the window of a past moment. A window over the whole run can only be shown in a replay; elsewhere the
    /// default window replaces it.
    pub(crate) fn moment_span_us(&self) -> u64 {
        match self.span {
            Span::Last(us) => us,
            Span::WholeRun => Span::DEFAULT_US,
        }
    }

    /// Returns the share of the seek in flight that is done, from 0 to 1.
    pub(crate) fn read_share(&self) -> Option<f64> {
        let read = self.reads.in_flight.filter(|read| !read.is_continue)?;
        let until_us = read.until_us.min(self.last_us());
        let whole_us = until_us.saturating_sub(read.from_us).max(1);
        Some((read.reached_us.saturating_sub(read.from_us) as f64 / whole_us as f64).min(1.0))
    }

    /// Returns the read request that the shown moment needs, unless it is already in flight.
    pub(crate) fn history_request(&mut self) -> Option<HistoryRequest> {
        self.options.history.as_ref()?;
        if self.run().is_some_and(Run::is_brief) {
            return self.request_whole_run();
        }
        let us = self.cursor_us().filter(|us| self.needs_read(*us))?;
        if self.shown_reread().is_some() {
            return self.read_ahead(us);
        }
        let run = shown_run(&self.model, &self.options)?;
        let is_requested =
            self.reads.in_flight.is_some_and(|read| read.run == run.id() && read.until_us >= us);
        // A seek to a later moment would not show this one.
        let leads_here = |read: ReadInFlight| read.is_continue || read.until_us == us;
        if self.reads.failed_us == Some(us) || (is_requested && self.reads.in_flight.is_some_and(leads_here))
        {
            return None;
        }
        let from_us = self.series_from(run, us);
        // The reader can only continue its latest seek.
        let is_near = |reread: &&RereadRun| {
            reread.ticket == self.reads.ticket
                && reread.can_reach(run.id(), us)
                && us <= reread.read_until_us.saturating_add(CONTINUE_US_MAX)
                && reread.from_us <= from_us
        };
        match self.reads.run.as_ref().filter(is_near).map(|reread| reread.ticket) {
            Some(ticket) => self.continue_request(ticket, us),
            None => self.seek_request(us, from_us),
        }
    }

    /// Returns whether a moment is shown from the journal: always in a replay, and in a run that has ended, where
    /// reading disturbs no measurement; otherwise only if the model in memory has dropped a part of its window.
    fn needs_read(&self, us: u64) -> bool {
        let is_needed = |run: &Run| run.stopped().is_some() || !self.is_kept(run, us);
        self.is_replay() || self.run().is_some_and(is_needed)
    }

    /// Returns where a read for a moment starts.
    fn series_from(&self, run: &Run, us: u64) -> u64 {
        let began_us = run.began_us();
        if us.saturating_sub(began_us) <= FROM_BEGINNING_US {
            return began_us;
        }
        let shown_us = self.timeline_span_us();
        let back_us =
            if run.kept_from_us() <= us.saturating_sub(shown_us).max(began_us) { 0 } else { shown_us };
        us.saturating_sub(back_us.clamp(SERIES_US_MIN, SERIES_US_MAX)).max(began_us)
    }

    /// Requests the run up to a moment, read into a new model.
    fn seek_request(&mut self, until_us: u64, from_us: u64) -> Option<HistoryRequest> {
        let run = shown_run(&self.model, &self.options)?;
        self.reads.ticket += 1;
        let ticket = self.reads.ticket;
        let is_whole = from_us <= run.began_us();
        let is_clock_steady = run.health().clock_steps().is_none();
        let since_us = run.realtime_at(from_us).saturating_sub(CLOCKS_DIFFER_US_MAX);
        let read = ReadInFlight {
            ticket,
            run: run.id(),
            from_us,
            until_us,
            reached_us: from_us,
            is_continue: false,
        };
        let seek = SeekRequest {
            ticket,
            run: run.id(),
            origin: run.writer().origin,
            model: if is_whole { Model::default() } else { Model::joining(run, from_us) },
            since_us: if is_clock_steady { since_us } else { 0 },
            until_us,
            last_seq: run.reading().last_seq(),
        };
        self.reads.in_flight = Some(read);
        self.reads.failed_us = None;
        Some(HistoryRequest::Seek(Box::new(seek)))
    }

    /// Requests the records after those of the seek with this ticket.
    fn continue_request(&mut self, ticket: u64, until_us: u64) -> Option<HistoryRequest> {
        let (run, last_seq) = self.run().map(|run| (run.id(), run.reading().last_seq()))?;
        let from_us = self.reads.run.as_ref().map_or(0, |reread| reread.read_until_us);
        self.reads.in_flight =
            Some(ReadInFlight { ticket, run, from_us, until_us, reached_us: from_us, is_continue: true });
        Some(HistoryRequest::Continue { ticket, until_us, last_seq })
    }

    /// Requests the next records before playing needs them.
    fn read_ahead(&mut self, us: u64) -> Option<HistoryRequest> {
        let times = self.view.playback().filter(|it| it.is_playing())?.speed().times();
        let reread = self.reads.run.as_ref()?;
        let (ticket, read_until_us) = (reread.ticket, reread.read_until_us);
        let end_us = self.last_us();
        let has_enough = read_until_us >= us.saturating_add((READ_AHEAD_US / 2.0 * times) as u64).min(end_us);
        if has_enough || self.reads.in_flight.is_some() || self.reads.failed_us.is_some() {
            return None;
        }
        self.continue_request(ticket, us.saturating_add((READ_AHEAD_US * times) as u64).min(end_us))
    }

    /// Applies a reply of the history reader; returns whether the screen changes.
    pub(crate) fn apply_history(&mut self, reply: HistoryReply, now: ClockReading) -> bool {
        let read = self.reads.in_flight;
        let is_wanted = |ticket| read.is_some_and(|read| read.ticket == ticket);
        match reply {
            HistoryReply::Progress { ticket, mono_us } if is_wanted(ticket) => {
                if let Some(read) = &mut self.reads.in_flight {
                    read.reached_us = mono_us.max(read.from_us);
                }
                true
            }
            HistoryReply::Reached { ticket, model, until_us } if is_wanted(ticket) => {
                let Some(read) = self.reads.in_flight.take() else { return false };
                if read.until_us == u64::MAX {
                    self.restore(WholeRun { ticket, run: read.run, model });
                    return true;
                }
                self.reads.run = Some(RereadRun::new(ticket, read.run, *model, read.from_us, until_us));
                // The cursor may have moved since the request.
                self.catch_up();
                true
            }
            HistoryReply::Records { ticket, records, until_us } if self.is_pending(ticket) => {
                self.complete(records, until_us.is_some())
            }
            HistoryReply::Records { ticket, records, until_us } => {
                let reread = self.reads.run.as_mut().filter(|reread| reread.ticket == ticket);
                if let Some(reread) = reread {
                    reread.extend(records, until_us);
                    if until_us.is_some() && is_wanted(ticket) {
                        self.reads.in_flight = None;
                    }
                }
                self.catch_up()
            }
            HistoryReply::Failed { ticket, why } if is_wanted(ticket) => {
                self.reads.failed_us = self.reads.in_flight.take().map(|read| read.until_us);
                self.answer(Level::Warning, format!("cannot read that time from the journal: {why}"), now);
                true
            }
            _ => false,
        }
    }

    /// Advances the reread run to the cursor's moment and shows it; returns whether the screen changes.
    pub(crate) fn catch_up(&mut self) -> bool {
        // In a replay, the window over the whole run covers the run up to the moment.
        let span = if self.is_replay() { self.span } else { Span::Last(self.moment_span_us()) };
        let Some(run) = self.run() else { return false };
        let (run, has_http) = (run.id(), run.http().is_some());
        let Self { view, reads, .. } = self;
        let (Some(past), Some(reread)) = (view.past_mut(), &mut reads.run) else { return false };
        let Some(us) = past.cursor_us.filter(|us| reread.can_reach(run, *us)) else { return false };
        let is_shown = past.snapshot.ticket == Some(reread.ticket) && reread.at_us == us;
        if is_shown || !reread.go_on_to(us) {
            return false;
        }
        reread.show(&mut past.snapshot, span);
        // The panes of HTTP mode stay at a moment before its first record.
        if let Some(figures) = past.snapshot.figures.as_mut().filter(|_| has_http) {
            figures.http.get_or_insert_default();
        }
        true
    }
}
