//! What a client used lately, in coarse steps: a service keeps no intervals.

use std::collections::VecDeque;
use std::time::Duration;

use records::metrics::ClientCounter;

use super::client::ClientRate;

/// Length of a step in microseconds.
const STEP_US: u64 = 10_000_000;

/// The longest time that is kept.
pub const RECENT_MAX: Duration = Duration::from_secs(300);

/// The steps of [`RECENT_MAX`], the first of which has begun before.
const STEPS_MAX: u64 = RECENT_MAX.as_micros() as u64 / STEP_US + 1;

/// Counts of a client in some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentUse {
    pub connections: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
}

impl RecentUse {
    fn add(&mut self, other: &Self) {
        self.connections = self.connections.saturating_add(other.connections);
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
    }
}

/// The latest steps, oldest first, each with its number since the clock's beginning. Steps without counts are absent.
#[derive(Clone, Debug, Default)]
pub(in crate::runs) struct RecentSteps(VecDeque<(u64, RecentUse)>);

impl RecentSteps {
    /// Adds counts to the step in which they end.
    pub(in crate::runs) fn add(&mut self, rate: &ClientRate) {
        let number = rate.end_us.saturating_sub(1) / STEP_US;
        let counts = RecentUse {
            connections: rate.counters[ClientCounter::Connections],
            bytes_in: rate.counters[ClientCounter::BytesIn],
            bytes_out: rate.counters[ClientCounter::BytesOut],
        };
        match self.0.back_mut() {
            Some((last, sum)) if *last >= number => sum.add(&counts),
            _ => self.0.push_back((number, counts)),
        }
        while self.0.front().is_some_and(|(first, _)| first + STEPS_MAX <= number) {
            self.0.pop_front();
        }
    }

    /// The counts since the beginning of a step.
    pub(in crate::runs) fn since(&self, from_us: u64) -> RecentUse {
        let mut sum = RecentUse::default();
        let later = self.0.iter().rev().take_while(|(number, _)| number * STEP_US >= from_us);
        later.for_each(|(_, counts)| sum.add(counts));
        sum
    }

    pub(in crate::runs) fn heap_bytes(&self) -> usize {
        self.0.capacity() * size_of::<(u64, RecentUse)>()
    }
}

/// The beginning of the step that `last` before `now_us` is in.
pub(in crate::runs) fn step_before(now_us: u64, last: Duration) -> u64 {
    let from_us = now_us.saturating_sub(last.as_micros() as u64);
    from_us / STEP_US * STEP_US
}

#[cfg(test)]
mod tests {
    use records::metrics::Counters;

    use super::*;

    fn rate(end_s: u64, bytes: u64) -> ClientRate {
        let mut counters = Counters::default();
        counters[ClientCounter::BytesOut] = bytes;
        ClientRate { end_us: end_s * 1_000_000, span_us: 1_000_000, counters }
    }

    #[test]
    fn counts_of_the_last_minutes_are_kept_and_older_ones_forgotten() {
        let mut steps = RecentSteps::default();
        (1..=1_000).for_each(|second| steps.add(&rate(second, 1)));
        let since = |now_s: u64, last_s| {
            let from_us = step_before(now_s * 1_000_000, Duration::from_secs(last_s));
            (from_us / 1_000_000, steps.since(from_us).bytes_out)
        };
        assert_eq!(since(1_000, 60), (940, 60));
        assert_eq!(since(1_000, 55), (940, 60), "whole steps");
        assert_eq!(since(1_000, 300), (700, 300));
        assert_eq!(steps.0.len() as u64, STEPS_MAX);
        assert_eq!(since(1_070, 60), (1_010, 0), "it has been silent since");
    }
}
