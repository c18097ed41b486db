//! Bounds how many records are written: one token bucket for all kinds.

/// Records a second into a file of our own.
pub const RECORDS_PER_SECOND_OWN: u32 = 60;

/// Records a second into the system's journal. journald silently drops what a service logs above 10,000 messages in
/// 30 s (`RateLimitBurst=` of journald.conf(5)), and the service may log other messages too.
pub const RECORDS_PER_SECOND_SYSTEM: u32 = 20;

/// Records that a run may write at once at its end, in seconds of its budget: half of what journald accepts.
const BURST_SECONDS: u32 = 250;

/// A token bucket. Mandatory records always pass and may put it into debt; optional records wait until the debt is
/// paid.
#[derive(Debug)]
pub(crate) struct Budget {
    per_second: f64,
    /// Records that a run may write at once at its end.
    burst: usize,
    /// May be negative: mandatory records are always written, and optional ones wait until that is paid for.
    tokens: f64,
    refilled_us: u64,
}

impl Budget {
    pub(crate) fn new(per_second: u32, now_us: u64) -> Self {
        Self {
            per_second: f64::from(per_second),
            burst: per_second as usize * BURST_SECONDS as usize,
            tokens: f64::from(per_second),
            refilled_us: now_us,
        }
    }

    /// Takes a share of a budget of so many records a second: that of one of several runs, but at least `least` a second.
    pub(crate) fn share(&mut self, per_second: u32, runs: u32, least: u32) {
        self.per_second = f64::from((per_second / runs).max(least));
        self.burst = (per_second * BURST_SECONDS / runs) as usize;
    }

    /// Adds the tokens since the last call, up to one second's, or to those of a longer interval.
    pub(crate) fn refill(&mut self, now_us: u64) {
        let elapsed_s = now_us.saturating_sub(self.refilled_us) as f64 / 1e6;
        let most = self.per_second * elapsed_s.clamp(1.0, 60.0);
        self.tokens = (self.tokens + self.per_second * elapsed_s).min(most);
        self.refilled_us = now_us;
    }

    /// Pays for a mandatory record. The debt is limited to one second's tokens.
    pub(crate) fn spend(&mut self) {
        self.tokens = (self.tokens - 1.0).max(-self.per_second);
    }

    /// Records that may still be written now.
    pub(crate) fn left(&self) -> usize {
        self.tokens.max(0.0) as usize
    }

    /// Records that a run may write at once at its end.
    pub(crate) fn burst(&self) -> usize {
        self.burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_records_wait_until_the_necessary_ones_are_paid_for() {
        let mut budget = Budget::new(10, 0);
        for _ in 0..15 {
            budget.spend();
        }
        assert_eq!(budget.left(), 0);
        budget.refill(500_000);
        assert_eq!(budget.left(), 0);
        budget.refill(1_000_000);
        assert_eq!(budget.left(), 5);
    }

    #[test]
    fn an_idle_hour_does_not_allow_a_burst_of_an_hour() {
        let mut budget = Budget::new(10, 0);
        budget.refill(3_600_000_000);
        assert_eq!(budget.left(), 600);
    }
}
