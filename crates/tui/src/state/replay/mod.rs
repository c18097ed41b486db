//! Earlier moments read again from the journal, for what the model holds no more or holds less of; and playing from there.
//!
//! What the model's series tell of a moment is shown at once. Meanwhile the run is read again up to it, into a model of its
//! own (the [`Reel`]), and when that has come the moment is shown as it was, with every pane. Playing lets the reel go on
//! with the records that follow, as time does.

mod reel;
mod restore;
mod speed;
#[cfg(test)]
mod tests;
mod transport;

use telemetry::model::{Level, Run};
use telemetry::{HistoryReply, HistoryRequest, Model, RunId, Seek};

use super::{Span, State, shown_run};
use crate::clock::Now;
use crate::figures::ClientTable;
pub(super) use reel::Reel;
use restore::Whole;
pub use speed::{NoSpeed, Speed};
pub(super) use transport::Transport;
pub(crate) use transport::{Standing, TransportLine};

/// A moment so early in its run is read from the run's beginning: then everything is known of it.
const FROM_BEGINNING_US: u64 = 1_800_000_000;
/// Series that a moment later in its run is read with, at the least: the longest window.
const SERIES_US_MIN: u64 = 900_000_000;
/// And at the most, whatever the columns show.
const SERIES_US_MAX: u64 = 6 * 3_600_000_000;
/// The journal's clock and that of the records may differ by so much.
const CLOCKS_DIFFER_US_MAX: u64 = 2_000_000;
/// A moment so far ahead is reached by reading on; a later one is read anew.
const ON_US_MAX: u64 = 600_000_000;
/// What is read ahead of playing, in microseconds of the person's time; asked for again when half of it is left.
const AHEAD_US: f64 = 4_000_000.0;

/// What is read again, and how it is played.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    ticket: u64,
    /// What is being read.
    asked: Option<Asked>,
    reel: Option<Reel>,
    transport: Option<Transport>,
    /// A run that was read as a whole, and may lack the latest records.
    pending: Option<Whole>,
    /// The moment that could not be read: it is not tried again.
    failed_us: Option<u64>,
}

/// What is being read.
#[derive(Clone, Copy, Debug)]
struct Asked {
    ticket: u64,
    run: RunId,
    from_us: u64,
    until_us: u64,
    reached_us: u64,
    /// True for what follows the reel.
    is_on: bool,
}

impl Replay {
    /// What was read again of a run, with its number.
    pub(super) fn series(&self, run: &Run) -> Option<(u64, &Run)> {
        let reel = self.reel.as_ref()?;
        Some((reel.ticket, reel.run().filter(|again| again.id() == run.id())?))
    }

    pub(super) fn table_mut(&mut self) -> Option<&mut ClientTable> {
        self.reel.as_mut().map(Reel::table_mut)
    }
}

impl State {
    /// The run as it stood at the moment that is shown, if it has been read again.
    pub(super) fn reel(&self) -> Option<&Reel> {
        let us = self.earlier_us()?;
        let run = self.run()?.id();
        self.replay.reel.as_ref().filter(|reel| reel.stands_at(run, us))
    }

    /// The run that holds the series up to a moment: the one that is read, or the one that was read again.
    pub(super) fn series_until(&self, us: u64) -> Option<&Run> {
        let run = self.run()?;
        if self.is_kept(run, us) {
            return Some(run);
        }
        let again = self.replay.reel.as_ref().and_then(Reel::run).filter(|again| again.id() == run.id());
        Some(again.filter(|again| again.kept_from_us() <= us && us <= again.last_us()).unwrap_or(run))
    }

    /// True if the run still has series for the window up to a moment.
    fn is_kept(&self, run: &Run, us: u64) -> bool {
        let Span::Last(span_us) = self.moment_span() else { return true };
        run.kept_from_us() <= us.saturating_sub(span_us).max(run.began_us())
    }

    /// The window of an earlier moment: over the whole run it is only known while it is played.
    pub(super) fn moment_span(&self) -> Span {
        if self.span == Span::WholeRun { Span::default() } else { self.span }
    }

    /// How much of what is being read has been, from 0 to 1.
    pub(crate) fn recalled_share(&self) -> Option<f64> {
        let asked = self.replay.asked.filter(|asked| !asked.is_on)?;
        let until_us = asked.until_us.min(self.last_us());
        let whole_us = until_us.saturating_sub(asked.from_us).max(1);
        Some((asked.reached_us.saturating_sub(asked.from_us) as f64 / whole_us as f64).min(1.0))
    }

    /// What is to be read, if the moment that is shown needs it and it is not being read yet.
    pub(crate) fn recall(&mut self) -> Option<HistoryRequest> {
        self.options.history.as_ref()?;
        if self.run().is_some_and(Run::is_brief) {
            return self.recall_run();
        }
        let us = self.earlier_us();
        let Some(us) = us.filter(|_| self.needs_recall()) else {
            if self.replay.transport.is_none() && self.frozen.is_none() {
                (self.replay.reel, self.replay.asked) = (None, None);
            }
            return None;
        };
        if self.reel().is_some() {
            return self.read_ahead(us);
        }
        let run = shown_run(&self.model, &self.options)?;
        let is_asked = self.replay.asked.is_some_and(|asked| asked.run == run.id() && asked.until_us >= us);
        let is_on = |asked: Asked| asked.is_on || asked.until_us == us;
        if self.replay.failed_us == Some(us) || (is_asked && self.replay.asked.is_some_and(is_on)) {
            return None;
        }
        let from_us = self.series_from(run, us);
        let is_near = |reel: &&Reel| {
            reel.can_reach(run.id(), us)
                && us <= reel.read_until_us.saturating_add(ON_US_MAX)
                && reel.from_us <= from_us
        };
        match self.replay.reel.as_ref().filter(is_near).map(|reel| reel.ticket) {
            Some(ticket) => self.ask_on(ticket, us),
            None => self.ask_for(us, from_us),
        }
    }

    /// A person who plays sees everything as it was; so does one who looks at what is over, where reading disturbs
    /// nothing that is being measured.
    fn needs_recall(&self) -> bool {
        let Some((run, us)) = self.run().zip(self.earlier_us()) else {
            return false;
        };
        self.replay.transport.is_some() || run.stopped().is_some() || !self.is_kept(run, us)
    }

    /// From when on series are wanted for a moment.
    fn series_from(&self, run: &Run, us: u64) -> u64 {
        let began_us = run.began_us();
        if us.saturating_sub(began_us) <= FROM_BEGINNING_US {
            return began_us;
        }
        let shown_us = self.course_span_us();
        let back_us =
            if run.kept_from_us() <= us.saturating_sub(shown_us).max(began_us) { 0 } else { shown_us };
        us.saturating_sub(back_us.clamp(SERIES_US_MIN, SERIES_US_MAX)).max(began_us)
    }

    fn ask_for(&mut self, until_us: u64, from_us: u64) -> Option<HistoryRequest> {
        let run = shown_run(&self.model, &self.options)?;
        self.replay.ticket += 1;
        let ticket = self.replay.ticket;
        let is_whole = from_us <= run.began_us();
        let is_clock_steady = run.health().clock_step_us == 0;
        let since_us = run.realtime_at(from_us).saturating_sub(CLOCKS_DIFFER_US_MAX);
        let asked = Asked { ticket, run: run.id(), from_us, until_us, reached_us: from_us, is_on: false };
        let seek = Seek {
            ticket,
            run: run.id(),
            origin: run.writer().origin,
            model: if is_whole { Model::default() } else { Model::joining(run, from_us) },
            since_us: if is_clock_steady { since_us } else { 0 },
            until_us,
            last_seq: run.reading().last_seq(),
        };
        self.replay.asked = Some(asked);
        self.replay.failed_us = None;
        Some(HistoryRequest::Seek(Box::new(seek)))
    }

    fn ask_on(&mut self, ticket: u64, until_us: u64) -> Option<HistoryRequest> {
        let (run, last_seq) = self.run().map(|run| (run.id(), run.reading().last_seq()))?;
        let from_us = self.replay.reel.as_ref().map_or(0, |reel| reel.read_until_us);
        self.replay.asked = Some(Asked { ticket, run, from_us, until_us, reached_us: from_us, is_on: true });
        Some(HistoryRequest::Continue { ticket, until_us, last_seq })
    }

    /// What is played next is read beforehand.
    fn read_ahead(&mut self, us: u64) -> Option<HistoryRequest> {
        let times = self.replay.transport.as_ref().filter(|it| it.is_playing())?.speed().times();
        let reel = self.replay.reel.as_ref()?;
        let (ticket, read_until_us) = (reel.ticket, reel.read_until_us);
        let end_us = self.last_us();
        let has_enough = read_until_us >= us.saturating_add((AHEAD_US / 2.0 * times) as u64).min(end_us);
        if has_enough || self.replay.asked.is_some() {
            return None;
        }
        self.ask_on(ticket, us.saturating_add((AHEAD_US * times) as u64).min(end_us))
    }

    /// Takes in what was read again. True if something is to be drawn.
    pub(super) fn hear(&mut self, news: HistoryReply, now: Now) -> bool {
        let asked = self.replay.asked;
        let is_wanted = |ticket| asked.is_some_and(|asked| asked.ticket == ticket);
        match news {
            HistoryReply::Progress { ticket, mono_us } if is_wanted(ticket) => {
                if let Some(asked) = &mut self.replay.asked {
                    asked.reached_us = mono_us.max(asked.from_us);
                }
                true
            }
            HistoryReply::Reached { ticket, model, until_us } if is_wanted(ticket) => {
                let Some(asked) = self.replay.asked.take() else { return false };
                if asked.until_us == u64::MAX {
                    self.restore(Whole { ticket, run: asked.run, model: *model });
                    return true;
                }
                self.take_reel(Reel::new(ticket, asked.run, *model, asked.from_us, until_us));
                true
            }
            HistoryReply::Records { ticket, records, until_us } if self.is_pending(ticket) => {
                self.complete(records, until_us.is_some())
            }
            HistoryReply::Records { ticket, records, until_us } => {
                let reel = self.replay.reel.as_mut().filter(|reel| reel.ticket == ticket);
                if let Some(reel) = reel {
                    reel.extend(records, until_us);
                    if until_us.is_some() && is_wanted(ticket) {
                        self.replay.asked = None;
                    }
                }
                self.catch_up()
            }
            HistoryReply::Failed { ticket, why } if is_wanted(ticket) => {
                self.replay.failed_us = self.replay.asked.take().map(|asked| asked.until_us);
                self.notice(Level::Warning, format!("that time cannot be read again: {why}"), now);
                true
            }
            _ => false,
        }
    }

    fn take_reel(&mut self, mut reel: Reel) {
        reel.take_figures(self.reel_span());
        self.replay.reel = Some(reel);
        // A person may have gone on meanwhile.
        self.catch_up();
    }

    /// Lets the reel go on to the moment that is shown, if it can; true if it did.
    pub(super) fn catch_up(&mut self) -> bool {
        let Some(us) = self.earlier_us() else { return false };
        let (span, run) = (self.reel_span(), self.run().map(Run::id));
        let Some(reel) = self.replay.reel.as_mut() else { return false };
        if !run.is_some_and(|run| reel.can_reach(run, us) && !reel.stands_at(run, us)) || !reel.go_on_to(us) {
            return false;
        }
        reel.take_figures(span);
        true
    }

    /// Takes the figures of the reel anew, after the window has changed.
    pub(super) fn show_reel_anew(&mut self) {
        let span = self.reel_span();
        if let Some(reel) = &mut self.replay.reel {
            reel.take_figures(span);
        }
    }

    /// While it is played the whole run is what it was so far.
    fn reel_span(&self) -> Span {
        if self.replay.transport.is_some() { self.span } else { self.moment_span() }
    }
}
