//! Which upstream a connection goes to.
//!
//! All workers share the counts, so the fewest connections are those of the whole proxy. The counts are atomics, each
//! on its own cache line, touched twice per connection and never on the path of a byte. With one upstream they are not
//! touched at all.

use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::upstream::balance::Upstreams;

/// The least share of a destination's upstreams that must be up for checks to count, as a divisor: a half. With fewer,
/// those that are left would be overrun, and the checks are more likely wrong than all these upstreams.
const UP_SHARE_MIN: u32 = 2;

/// The upstreams that a connection may go to.
#[derive(Clone, Copy, Debug)]
pub struct Candidates {
    /// The upstreams of its destination, as bits.
    pub upstreams: u64,
    /// Those of them that it has tried, as bits.
    pub tried: u64,
}

/// The upstream that a connection goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamChoice {
    /// Its place in the configuration.
    pub index: usize,
    /// False if it has failed lately, and is tried only because all others have too.
    pub is_up: bool,
}

impl Candidates {
    pub fn new(upstreams: u64) -> Self {
        Self { upstreams, tried: 0 }
    }
}

impl Upstreams {
    /// Chooses the upstream with the fewest connections among the candidates that are up, not drained and not tried; of
    /// several, the first from `turn` on. If all are down, it chooses among those, because clients would be turned away
    /// otherwise. [`Upstreams::leave`] must follow.
    pub fn choose(&self, candidates: Candidates, turn: usize, now: Instant) -> Option<UpstreamChoice> {
        let n = self.members.len();
        let out = self.out(candidates);
        let failing = self.heeded_checks(candidates, now);
        let among =
            |out: u64| (0..n).map(move |i| (turn + i) % n).filter(move |index| out & (1 << index) == 0);
        let mut choice = None;
        // One connection tries an upstream whose rest has ended; the next connections choose others.
        while choice.is_none() {
            let up = among(out | failing).filter(|&index| self.members[index].health.is_up(now));
            let Some(index) = up.min_by_key(|&index| self.load(index)) else { break };
            choice = self.members[index].health.claim(now).then_some(UpstreamChoice { index, is_up: true });
        }
        let choice = choice.or_else(|| {
            let soonest = among(out).min_by_key(|&index| self.members[index].health.down_until_ms())?;
            self.report_all_down(candidates, now);
            Some(UpstreamChoice { index: soonest, is_up: false })
        })?;
        if n > 1 {
            self.members[choice.index].open.0.fetch_add(1, Ordering::Relaxed);
        }
        Some(choice)
    }

    /// How many candidates that are up are neither drained nor tried.
    pub fn up(&self, candidates: Candidates, now: Instant) -> usize {
        let out = self.out(candidates) | self.heeded_checks(candidates, now);
        self.members
            .iter()
            .enumerate()
            .filter(|(index, member)| out & (1 << index) == 0 && member.health.is_up(now))
            .count()
    }

    /// Counts the end of a connection, or of an attempt, to the upstream `index`.
    pub fn leave(&self, index: usize) {
        if self.members.len() > 1 {
            self.members[index].open.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The upstreams that cannot be chosen, whatever their health, as bits.
    fn out(&self, candidates: Candidates) -> u64 {
        !candidates.upstreams | candidates.tried | self.drained.load(Ordering::Relaxed)
    }

    /// The upstreams that are not to be chosen because they fail their checks, as bits: none if too few are up.
    #[inline]
    fn heeded_checks(&self, candidates: Candidates, now: Instant) -> u64 {
        match self.failing.load(Ordering::Relaxed) {
            0 => 0,
            failing => self.heeded(failing, candidates, now),
        }
    }

    #[cold]
    fn heeded(&self, failing: u64, candidates: Candidates, now: Instant) -> u64 {
        let (all, up) = self.destination(candidates, now);
        if up * UP_SHARE_MIN >= all.count_ones() {
            return failing;
        }
        // That a single one is down is said already.
        if all.count_ones() > 1 {
            let names = || self.names_of(all);
            let text = || {
                format!(
                    "{up} of the upstreams {} are up, fewer than half: the checks of the others are ignored",
                    names()
                )
            };
            self.notices.report_few_upstreams(text, now);
        }
        0
    }

    #[cold]
    fn report_all_down(&self, candidates: Candidates, now: Instant) {
        let (all, up) = self.destination(candidates, now);
        // Others may be up that this connection could not reach.
        if up == 0 && all.count_ones() > 1 {
            let text = || {
                format!("all upstreams are down: {}; connections try them nevertheless", self.names_of(all))
            };
            self.notices.report_few_upstreams(text, now);
        }
    }

    /// The upstreams of a destination that are not drained, as bits, and how many of them are up.
    fn destination(&self, candidates: Candidates, now: Instant) -> (u64, u32) {
        let known = u64::MAX >> (u64::BITS as usize - self.members.len());
        let all = known & !self.out(Candidates { tried: 0, ..candidates });
        let sound = all & !self.failing.load(Ordering::Relaxed);
        let up = bits(sound).filter(|&index| self.members[index].health.is_up(now)).count();
        (all, up as u32)
    }

    fn names_of(&self, upstreams: u64) -> String {
        bits(upstreams).map(|index| self.name(index)).collect::<Vec<_>>().join(", ")
    }

    fn load(&self, index: usize) -> usize {
        self.members[index].open.0.load(Ordering::Relaxed)
    }
}

/// The places of the bits that are set.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |index| word & (1 << index) != 0)
}
