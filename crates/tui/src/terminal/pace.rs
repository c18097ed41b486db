//! When to draw: at once for a person, seldom for data, never for nothing.

use std::time::{Duration, Instant};

/// Frames for input are at least this far apart: 30 a second.
const INPUT_GAP: Duration = Duration::from_millis(33);

/// How soon a change is to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// With the next frame of data.
    Soon,
    /// At once: a person waits for it.
    Now,
}

/// The frames drawn and asked for.
#[derive(Debug)]
pub(crate) struct Pace {
    data_gap: Duration,
    last: Option<Instant>,
    wanted: Option<Urgency>,
}

impl Pace {
    /// At most so many frames a second for data.
    pub(crate) fn new(data_frames_per_second_max: u32) -> Self {
        let data_gap = Duration::from_secs(1) / data_frames_per_second_max.clamp(1, 30);
        Self { data_gap, last: None, wanted: Some(Urgency::Now) }
    }

    /// Something changed.
    pub(crate) fn want(&mut self, urgency: Urgency) {
        self.wanted = self.wanted.max(Some(urgency));
    }

    /// How long to wait until a frame is due; `None` if nothing is to be drawn.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let gap = match self.wanted? {
            Urgency::Now => INPUT_GAP,
            Urgency::Soon => self.data_gap,
        };
        Some(self.last.map_or(Duration::ZERO, |last| (last + gap).saturating_duration_since(now)))
    }

    /// A frame was drawn.
    pub(crate) fn drawn(&mut self, now: Instant) {
        self.last = Some(now);
        self.wanted = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_drawn_when_nothing_changed() {
        let now = Instant::now();
        let mut pace = Pace::new(4);
        assert_eq!(pace.wait(now), Some(Duration::ZERO), "the first frame");
        pace.drawn(now);
        assert_eq!(pace.wait(now + Duration::from_secs(60)), None);
    }

    #[test]
    fn data_waits_for_its_turn_and_input_overtakes_it() {
        let start = Instant::now();
        let mut pace = Pace::new(4);
        pace.drawn(start);
        pace.want(Urgency::Soon);
        assert_eq!(pace.wait(start), Some(Duration::from_millis(250)));
        pace.want(Urgency::Now);
        pace.want(Urgency::Soon);
        assert_eq!(pace.wait(start), Some(INPUT_GAP));
        assert_eq!(pace.wait(start + Duration::from_millis(40)), Some(Duration::ZERO));
    }
}
