//! Where the view stands towards the run, for the badge at the top.

use std::time::Duration;

use super::State;
use crate::clock::Now;

/// Silence that is not worth a word, however short the interval.
const SILENCE_MIN: Duration = Duration::from_secs(3);
/// Intervals without a record after which a run counts as silent.
const SILENT_INTERVALS: u32 = 3;

/// Where the view stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// No record has been read.
    Waiting,
    /// What the journal already held is being read.
    Reading,
    /// Records come in.
    Live,
    /// No record for so many seconds.
    Silent(u64),
    /// The view stands still for so many seconds.
    Frozen(u64),
    /// The run has ended.
    Ended,
}

impl Phase {
    pub(super) fn of(state: &State, now: Now) -> Self {
        if let Some(frozen) = &state.frozen {
            return Self::Frozen(since(frozen.since, now).as_secs());
        }
        let (Some(figures), Some(last_read)) = (&state.live, state.last_read) else { return Self::Waiting };
        let silence = since(last_read, now);
        let patience = SILENCE_MIN.max(Duration::from_micros(figures.interval_us) * SILENT_INTERVALS);
        match (figures.ended, silence > patience) {
            (true, _) => Self::Ended,
            (false, true) => Self::Silent(silence.as_secs()),
            (false, false) if state.caught_up => Self::Live,
            (false, false) => Self::Reading,
        }
    }
}

fn since(then: Now, now: Now) -> Duration {
    now.instant.saturating_duration_since(then.instant)
}
