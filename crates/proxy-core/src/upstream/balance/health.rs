//! Passive health: when something that could not be reached is tried again.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// How long it rests after its first failure. The time doubles with each further one.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// Longest such rest, and so the longest time until it is found to be back while others serve.
pub(in crate::upstream) const BACK_OFF_MAX: Duration = Duration::from_secs(10);

/// The health of an upstream, or of one of its addresses. Written only when that fails or recovers, so reading is cheap.
#[derive(Debug)]
pub(in crate::upstream) struct Health {
    /// The reference instant of `down_until_ms`.
    epoch: Instant,
    /// Failures since the last success.
    failures: AtomicU32,
    /// Until when it rests, in milliseconds since the epoch.
    down_until_ms: AtomicU64,
}

impl Health {
    pub(in crate::upstream) fn new(epoch: Instant) -> Self {
        Self { epoch, failures: AtomicU32::new(0), down_until_ms: AtomicU64::new(0) }
    }

    /// Whether it has not failed, or is due to be tried again.
    pub(in crate::upstream) fn is_up(&self, now: Instant) -> bool {
        self.failures.load(Ordering::Relaxed) == 0 || self.down_until_ms() <= self.ms(now)
    }

    /// Claims the right to try it: after a failure one connection at a time has it.
    pub(in crate::upstream) fn claim(&self, now: Instant) -> bool {
        let failures = self.failures.load(Ordering::Relaxed);
        if failures == 0 {
            return true;
        }
        let (due, now_ms) = (self.down_until_ms(), self.ms(now));
        let until = now_ms + back_off(failures).as_millis() as u64;
        let order = Ordering::Relaxed;
        due <= now_ms && self.down_until_ms.compare_exchange(due, until, order, order).is_ok()
    }

    /// Notes a failure; true if it is the first since the last success.
    pub(in crate::upstream) fn fail(&self, now: Instant) -> bool {
        let before = self.failures.fetch_add(1, Ordering::Relaxed);
        self.down_until_ms.store(self.ms(now + back_off(before)), Ordering::Relaxed);
        before == 0
    }

    /// Notes a success; true if it had failed before.
    pub(in crate::upstream) fn succeed(&self) -> bool {
        let has_failed =
            self.failures.load(Ordering::Relaxed) != 0 && self.failures.swap(0, Ordering::Relaxed) != 0;
        if has_failed {
            self.end_rest();
        }
        has_failed
    }

    /// Whether it has failed since its last success.
    pub(in crate::upstream) fn has_failed(&self) -> bool {
        self.failures.load(Ordering::Relaxed) != 0
    }

    /// Lets the next connection try it.
    pub(in crate::upstream) fn end_rest(&self) {
        self.down_until_ms.store(0, Ordering::Relaxed);
    }

    /// Until when it rests, as a number to compare.
    pub(in crate::upstream) fn down_until_ms(&self) -> u64 {
        self.down_until_ms.load(Ordering::Relaxed)
    }

    fn ms(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX)
    }
}

/// How long something rests that has failed `before` times before.
pub(in crate::upstream) fn back_off(before: u32) -> Duration {
    BACK_OFF_MIN.saturating_mul(1 << before.min(20)).min(BACK_OFF_MAX)
}
