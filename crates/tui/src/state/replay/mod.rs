//! Reading earlier moments from the journal, and playing from there.
//!
//! A past moment is shown at once from the model in memory. If that no longer holds all of it, the journal is read up to
//! the moment into a second model, the [`RereadRun`], and every pane then shows the moment as it was. Playing applies the
//! records that follow to that model.

mod playback;
mod reread_run;
mod speed;
#[cfg(test)]
mod tests;
mod whole_run;

use telemetry::model::{Level, Run};
use telemetry::{HistoryReply, HistoryRequest, Model, RunId, Seek};

use super::{Span, State, shown_run};
use crate::clock::Now;
pub(super) use playback::Playback;
pub(crate) use playback::{PlayControl, PlaybackLine, PlaybackState};
use reread_run::RereadRun;
pub use speed::{ParseSpeedError, Speed};
use whole_run::WholeRun;

/// A moment this early in its run is read from the run's start, and so in full.
const FROM_BEGINNING_US: u64 = 1_800_000_000;
/// For a later moment at least this much before it is read: the longest window.
const SERIES_US_MIN: u64 = 900_000_000;
/// At most this much is read, however much the columns show.
const SERIES_US_MAX: u64 = 6 * 3_600_000_000;
/// The clocks of the journal and of the records may differ by this much.
const CLOCKS_DIFFER_US_MAX: u64 = 2_000_000;
/// A moment up to this far ahead is reached by reading on; a later one by a new read.
const ON_US_MAX: u64 = 600_000_000;
/// Read ahead while playing, in microseconds of wall-clock time; requested again when half of it is left.
const AHEAD_US: f64 = 4_000_000.0;

/// What was read from the journal again, and the read in flight.
#[derive(Debug, Default)]
pub(super) struct JournalReads {
    ticket: u64,
    /// What is being read.
    in_flight: Option<ReadInFlight>,
    run: Option<RereadRun>,
    /// A run read in full that still lacks its latest records.
    pending: Option<WholeRun>,
    /// The moment that could not be read; it is not retried.
    failed_us: Option<u64>,
}

/// What is being read.
#[derive(Clone, Copy, Debug)]
struct ReadInFlight {
    ticket: u64,
    run: RunId,
    from_us: u64,
    until_us: u64,
    reached_us: u64,
    /// True for what follows the run that was read again.
    is_on: bool,
}

impl JournalReads {
    /// What was read again of a run, with its ticket.
    pub(super) fn series(&self, run: &Run) -> Option<(u64, &Run)> {
        let reread = self.run.as_ref()?;
        Some((reread.ticket, reread.run().filter(|again| again.id() == run.id())?))
    }

    /// Drops what was read, when the present is shown again.
    pub(super) fn forget(&mut self) {
        (self.run, self.in_flight, self.failed_us) = (None, None, None);
    }
}

impl State {
    /// The run read again that the shown figures were taken from; `None` if they are of the model in memory.
    pub(super) fn shown_reread(&self) -> Option<&RereadRun> {
        let ticket = self.snapshot().ticket?;
        self.reads.run.as_ref().filter(|reread| reread.ticket == ticket)
    }

    /// The run that holds the series up to a moment: the one that is read, or the one that was read again.
    pub(super) fn series_until(&self, us: u64) -> Option<&Run> {
        let run = self.run()?;
        if self.is_kept(run, us) {
            return Some(run);
        }
        let again = self.reads.series(run).map(|(_, again)| again);
        Some(again.filter(|again| again.kept_from_us() <= us && us <= again.last_us()).unwrap_or(run))
    }

    /// True if the run still has series for the window up to a moment.
    fn is_kept(&self, run: &Run, us: u64) -> bool {
        run.kept_from_us() <= us.saturating_sub(self.moment_span_us()).max(run.began_us())
    }

    /// The window of an earlier moment: over the whole run it is only known while it is played.
    pub(super) fn moment_span_us(&self) -> u64 {
        match self.span {
            Span::Last(us) => us,
            Span::WholeRun => Span::DEFAULT_US,
        }
    }

    /// The share of the read in flight that is done, from 0 to 1.
    pub(crate) fn read_share(&self) -> Option<f64> {
        let asked = self.reads.in_flight.filter(|asked| !asked.is_on)?;
        let until_us = asked.until_us.min(self.last_us());
        let whole_us = until_us.saturating_sub(asked.from_us).max(1);
        Some((asked.reached_us.saturating_sub(asked.from_us) as f64 / whole_us as f64).min(1.0))
    }

    /// The read request that the shown moment needs, unless it is already in flight.
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
        let is_asked =
            self.reads.in_flight.is_some_and(|asked| asked.run == run.id() && asked.until_us >= us);
        let is_on = |asked: ReadInFlight| asked.is_on || asked.until_us == us;
        if self.reads.failed_us == Some(us) || (is_asked && self.reads.in_flight.is_some_and(is_on)) {
            return None;
        }
        let from_us = self.series_from(run, us);
        let is_near = |reread: &&RereadRun| {
            reread.can_reach(run.id(), us)
                && us <= reread.read_until_us.saturating_add(ON_US_MAX)
                && reread.from_us <= from_us
        };
        match self.reads.run.as_ref().filter(is_near).map(|reread| reread.ticket) {
            Some(ticket) => self.continue_request(ticket, us),
            None => self.seek_request(us, from_us),
        }
    }

    /// Playing always reads the journal. So does seeking in a run that has ended: reading it disturbs no measurement.
    fn needs_read(&self, us: u64) -> bool {
        let is_needed = |run: &Run| run.stopped().is_some() || !self.is_kept(run, us);
        self.is_replay() || self.run().is_some_and(is_needed)
    }

    /// The start of the series that a moment needs.
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

    fn seek_request(&mut self, until_us: u64, from_us: u64) -> Option<HistoryRequest> {
        let run = shown_run(&self.model, &self.options)?;
        self.reads.ticket += 1;
        let ticket = self.reads.ticket;
        let is_whole = from_us <= run.began_us();
        let is_clock_steady = run.health().clock_step_us == 0;
        let since_us = run.realtime_at(from_us).saturating_sub(CLOCKS_DIFFER_US_MAX);
        let asked =
            ReadInFlight { ticket, run: run.id(), from_us, until_us, reached_us: from_us, is_on: false };
        let seek = Seek {
            ticket,
            run: run.id(),
            origin: run.writer().origin,
            model: if is_whole { Model::default() } else { Model::joining(run, from_us) },
            since_us: if is_clock_steady { since_us } else { 0 },
            until_us,
            last_seq: run.reading().last_seq(),
        };
        self.reads.in_flight = Some(asked);
        self.reads.failed_us = None;
        Some(HistoryRequest::Seek(Box::new(seek)))
    }

    fn continue_request(&mut self, ticket: u64, until_us: u64) -> Option<HistoryRequest> {
        let (run, last_seq) = self.run().map(|run| (run.id(), run.reading().last_seq()))?;
        let from_us = self.reads.run.as_ref().map_or(0, |reread| reread.read_until_us);
        self.reads.in_flight =
            Some(ReadInFlight { ticket, run, from_us, until_us, reached_us: from_us, is_on: true });
        Some(HistoryRequest::Continue { ticket, until_us, last_seq })
    }

    /// Requests the next records before playing needs them.
    fn read_ahead(&mut self, us: u64) -> Option<HistoryRequest> {
        let times = self.view.playback().filter(|it| it.is_playing())?.speed().times();
        let reread = self.reads.run.as_ref()?;
        let (ticket, read_until_us) = (reread.ticket, reread.read_until_us);
        let end_us = self.last_us();
        let has_enough = read_until_us >= us.saturating_add((AHEAD_US / 2.0 * times) as u64).min(end_us);
        if has_enough || self.reads.in_flight.is_some() {
            return None;
        }
        self.continue_request(ticket, us.saturating_add((AHEAD_US * times) as u64).min(end_us))
    }

    /// Takes a reply of the history reader; true if the screen changes.
    pub(super) fn take_history(&mut self, news: HistoryReply, now: Now) -> bool {
        let asked = self.reads.in_flight;
        let is_wanted = |ticket| asked.is_some_and(|asked| asked.ticket == ticket);
        match news {
            HistoryReply::Progress { ticket, mono_us } if is_wanted(ticket) => {
                if let Some(asked) = &mut self.reads.in_flight {
                    asked.reached_us = mono_us.max(asked.from_us);
                }
                true
            }
            HistoryReply::Reached { ticket, model, until_us } if is_wanted(ticket) => {
                let Some(asked) = self.reads.in_flight.take() else { return false };
                if asked.until_us == u64::MAX {
                    self.restore(WholeRun { ticket, run: asked.run, model: *model });
                    return true;
                }
                self.reads.run = Some(RereadRun::new(ticket, asked.run, *model, asked.from_us, until_us));
                // The cursor may have moved meanwhile.
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
                self.reads.failed_us = self.reads.in_flight.take().map(|asked| asked.until_us);
                self.notice(Level::Warning, format!("cannot read that time from the journal: {why}"), now);
                true
            }
            _ => false,
        }
    }

    /// Advances the reread run to the shown moment and shows it; true if the screen changes.
    pub(super) fn catch_up(&mut self) -> bool {
        // While playing, the whole run is the run so far.
        let span = if self.is_replay() { self.span } else { Span::Last(self.moment_span_us()) };
        let Some(run) = self.run().map(Run::id) else { return false };
        let Self { view, reads, .. } = self;
        let (Some(past), Some(reread)) = (view.past_mut(), &mut reads.run) else { return false };
        let Some(us) = past.cursor_us.filter(|us| reread.can_reach(run, *us)) else { return false };
        let is_shown = past.snapshot.ticket == Some(reread.ticket) && reread.at_us == us;
        if is_shown || !reread.go_on_to(us) {
            return false;
        }
        reread.show(&mut past.snapshot, span);
        true
    }
}
