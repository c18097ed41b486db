//! The speed of a run that is played, and what the line about it says.

use std::time::Instant;

use crate::clock::ClockReading;
use crate::options::speed::Speed;

#[derive(Debug)]
pub(crate) struct Playback {
    pub(super) speed: Speed,
    /// The start of playing, and the moment of the run's monotonic clock from which it plays; `None` while
    /// paused.
    pub(super) playing: Option<(Instant, u64)>,
}

impl Playback {
    pub(crate) fn is_playing(&self) -> bool {
        self.playing.is_some()
    }

    pub(crate) fn speed(&self) -> Speed {
        self.speed
    }

    pub(super) fn moment_us(&self, now: ClockReading) -> Option<u64> {
        let (since, from_us) = self.playing?;
        let passed = now.instant.saturating_duration_since(since).as_secs_f64() * self.speed.times();
        Some(from_us.saturating_add((passed * 1e6) as u64))
    }

    /// Continues from a moment.
    pub(crate) fn go_on_from(&mut self, us: u64, now: ClockReading) {
        if let Some(playing) = &mut self.playing {
            *playing = (now.instant, us);
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlaybackState {
    Playing,
    Paused,
    /// Paused at the end.
    AtEnd,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PlaybackLine {
    pub(crate) state: PlaybackState,
    pub(crate) speed: Speed,
    /// The time from the run's first record to the moment, and to its last record, in microseconds.
    pub(crate) at_us: u64,
    pub(crate) length_us: u64,
    /// `CLOCK_REALTIME` of the moment, in microseconds.
    pub(crate) realtime_us: u64,
    /// Marks and changes at shares of the length; true for marks.
    pub(crate) marks: Vec<(f64, bool)>,
}
