//! The moment at which something is done, read once at the edge and passed in.

pub(crate) mod zone;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// A reading of the monotonic and the realtime clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    /// The monotonic clock, for durations.
    pub(crate) instant: Instant,
    /// The wall clock, for the log: microseconds since 1970.
    pub(crate) realtime_us: u64,
}

impl ClockReading {
    pub(crate) fn read() -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { instant: Instant::now(), realtime_us: since_1970.as_micros() as u64 }
    }
}
