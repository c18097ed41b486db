//! Playing and pausing a run, and its speed.

use crate::input::intent::PlayControl;

use model::history::{Moment, ParseMomentError};
use model::runs::{Level, Run, TimelineEvent};

use crate::clock::ClockReading;
use crate::options::speed::Speed;
use crate::state::State;
use crate::state::moment::playback::{Playback, PlaybackLine, PlaybackState};
use crate::state::status::ViewStatus;
use crate::view_model::mark_comparison::events_of;
use crate::view_model::span::Span;

impl State {
    /// Returns the contents of the playback line; `None` outside a replay.
    pub(crate) fn playback_line(&self) -> Option<PlaybackLine> {
        let playback = self.view.playback()?;
        let (run, us) = self.run().zip(self.cursor_us())?;
        let began_us = run.began_us();
        let length_us = run.last_us().saturating_sub(began_us);
        let share = |us: u64| us.saturating_sub(began_us) as f64 / length_us.max(1) as f64;
        let is_mark = |event: &TimelineEvent| matches!(event, TimelineEvent::Mark { .. });
        Some(PlaybackLine {
            state: match (playback.is_playing(), us >= run.last_us()) {
                (true, _) => PlaybackState::Playing,
                (false, true) => PlaybackState::AtEnd,
                (false, false) => PlaybackState::Paused,
            },
            speed: playback.speed,
            at_us: us.saturating_sub(began_us),
            length_us,
            realtime_us: run.realtime_at(us),
            marks: events_of(run).map(|marker| (share(marker.mono_us), is_mark(&marker.event))).collect(),
        })
    }

    /// Returns whether a replay is playing or paused.
    pub(crate) fn is_replay(&self) -> bool {
        self.view.playback().is_some()
    }

    pub(crate) fn is_playing(&self) -> bool {
        self.view.playback().is_some_and(Playback::is_playing)
    }

    /// Toggles playing from the shown moment. At its end, a run is played from its start.
    fn toggle_play(&mut self, now: ClockReading) {
        if self.options.history.is_none() {
            return self.answer(Level::Notice, "only tlsdash watch can play a run", now);
        }
        if let Some(playback) = self.view.playback_mut().filter(|playback| playback.is_playing()) {
            playback.playing = None;
            return;
        }
        let speed = self.view.playback().map(Playback::speed).unwrap_or_default();
        let Some(us) = self.moment_to_play() else {
            return self.answer(Level::Notice, "there is no run to play yet", now);
        };
        self.play_from(us, Some(speed), now);
    }

    fn moment_to_play(&self) -> Option<u64> {
        let run = self.run()?;
        let us = self.cursor_us();
        Some(us.filter(|us| *us < run.last_us()).unwrap_or_else(|| run.began_us()))
    }

    /// Moves to a moment, and plays from there; without a speed, it pauses.
    fn play_from(&mut self, us: u64, speed: Option<Speed>, now: ClockReading) {
        // First, because freezing an ended run selects the whole run as the window.
        self.freeze(now);
        // A replay looks like a live run.
        if self.span == Span::WholeRun {
            self.span = Span::default();
        }
        let playing = speed.map(|_| (now.instant, us));
        self.view.play(Playback { speed: speed.unwrap_or_default(), playing });
        self.go_to(us, now);
    }

    /// Executes the command line's request, once everything has been read.
    pub(crate) fn open_replay(&mut self, now: ClockReading) {
        let Some(opening) = self.options.opening.take() else { return };
        let Some(run) = self.run() else { return };
        let from_us = match opening.from {
            None => Ok(run.began_us()),
            Some(from) => from.mono_us(run).and_then(|us| self.within(run, us, "that moment")),
        };
        match from_us {
            Ok(us) => self.play_from(us, opening.speed, now),
            Err(why) => self.answer(Level::Warning, why, now),
        }
    }

    /// Returns the moment that a text names.
    ///
    /// # Errors
    /// With what can be typed instead.
    pub(crate) fn typed_moment(&self, text: &str) -> Result<u64, String> {
        let run = self.run().ok_or("there is no run yet")?;
        let moment: Moment = text.trim().parse().map_err(|error: ParseMomentError| error.to_string())?;
        let us = moment.in_zone(self.options.zone.ahead_s(run.last_realtime_us())).mono_us(run)?;
        self.within(run, us, text.trim())
    }

    /// A moment that must lie within the run.
    fn within(&self, run: &Run, us: u64, name: &str) -> Result<u64, String> {
        let (from_us, until_us) = (run.began_us(), run.last_us());
        // A shown time has no fraction of its second.
        if us + 1_000_000 > from_us && us < until_us + 1_000_000 {
            return Ok(us.clamp(from_us, until_us));
        }
        let time = |us| self.time_of_day(run.realtime_at(us));
        let length = records::text::quantity::elapsed_text((until_us - from_us) / 1_000_000);
        Err(format!(
            "{name} is outside the run: it goes from {} to {}, +00:00 to +{length}",
            time(from_us),
            time(until_us)
        ))
    }

    pub(crate) fn play(&mut self, control: PlayControl, now: ClockReading) {
        match control {
            PlayControl::Toggle => self.toggle_play(now),
            PlayControl::Slower => self.change_speed(Speed::slower, now),
            PlayControl::Faster => self.change_speed(Speed::faster, now),
            PlayControl::Normal => self.change_speed(|_| Speed::default(), now),
        }
        self.renew_status(now);
    }

    fn change_speed(&mut self, change: impl FnOnce(Speed) -> Speed, now: ClockReading) {
        let cursor_us = self.cursor_us();
        let Some(playback) = self.view.playback_mut() else { return };
        playback.speed = change(playback.speed);
        if let Some(us) = cursor_us {
            playback.go_on_from(us, now);
        }
    }

    /// Advances the playback to the current time; returns whether to draw.
    pub(crate) fn play_on(&mut self, now: ClockReading) -> bool {
        let wanted_us = self.view.playback().and_then(|playback| playback.moment_us(now));
        let Some((wanted_us, cursor_us)) = wanted_us.zip(self.cursor_us()) else { return false };
        let Some((end_us, has_ended)) = self.run().map(|run| (run.last_us(), run.stopped().is_some())) else {
            return false;
        };
        // Playing waits until the moment has been read.
        let read_until_us = self.shown_reread().map_or(cursor_us, |reread| reread.read_until_us);
        let us = wanted_us.min(read_until_us).min(end_us).max(cursor_us);
        if let Some(playback) = self.view.playback_mut().filter(|_| us < wanted_us) {
            playback.go_on_from(us, now);
        }
        if self.shown_reread().is_none() {
            return false;
        }
        if us > cursor_us {
            self.play_to(us);
        }
        if us >= end_us {
            self.end_play(has_ended, now);
        }
        us > cursor_us || us >= end_us
    }

    /// At its end, an ended run pauses; a running one becomes live.
    fn end_play(&mut self, has_ended: bool, now: ClockReading) {
        if !has_ended && self.present_status(now) == ViewStatus::Live {
            self.go_live();
            return self.answer(Level::Notice, "played to the present", now);
        }
        if let Some(playback) = self.view.playback_mut() {
            playback.playing = None;
        }
    }
}
