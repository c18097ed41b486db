//! Decides when to draw: at once for input, at a limited rate for data, and never without a change.

use std::time::{Duration, Instant};

/// The minimum interval between frames for input: 30 per second.
const INPUT_GAP: Duration = Duration::from_millis(33);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Urgency {
    /// With the next frame of data.
    Soon,
    /// At once: a person is waiting.
    Now,
}

#[derive(Debug)]
pub(crate) struct FrameScheduler {
    data_gap: Duration,
    last: Option<Instant>,
    wanted: Option<Urgency>,
}

impl FrameScheduler {
    /// Returns a schedule with at most this many frames per second for data.
    pub(crate) fn new(data_frames_per_second_max: u32) -> Self {
        let data_gap = Duration::from_secs(1) / data_frames_per_second_max.clamp(1, 30);
        Self { data_gap, last: None, wanted: Some(Urgency::Now) }
    }

    pub(crate) fn want(&mut self, urgency: Urgency) {
        self.wanted = self.wanted.max(Some(urgency));
    }

    /// Returns the time until the next frame is due; `None` if nothing has changed.
    pub(crate) fn wait(&self, now: Instant) -> Option<Duration> {
        let gap = match self.wanted? {
            Urgency::Now => INPUT_GAP,
            Urgency::Soon => self.data_gap,
        };
        Some(self.last.map_or(Duration::ZERO, |last| (last + gap).saturating_duration_since(now)))
    }

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
        let mut pace = FrameScheduler::new(4);
        assert_eq!(pace.wait(now), Some(Duration::ZERO), "the first frame");
        pace.drawn(now);
        assert_eq!(pace.wait(now + Duration::from_secs(60)), None);
    }

    #[test]
    fn data_is_rate_limited_and_input_is_drawn_at_once() {
        let start = Instant::now();
        let mut pace = FrameScheduler::new(4);
        pace.drawn(start);
        pace.want(Urgency::Soon);
        assert_eq!(pace.wait(start), Some(Duration::from_millis(250)));
        pace.want(Urgency::Now);
        pace.want(Urgency::Soon);
        assert_eq!(pace.wait(start), Some(INPUT_GAP));
        assert_eq!(pace.wait(start + Duration::from_millis(40)), Some(Duration::ZERO));
    }
}
