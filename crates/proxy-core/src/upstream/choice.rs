//! Which upstream a connection goes to.
//!
//! All workers share the counts, so the fewest connections are those of the whole proxy. The counts are atomics, each
//! on its own cache line, touched twice per connection and never on the path of a byte. With one upstream they are not
//! touched at all.

use std::fmt;
use std::hash::BuildHasher;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use foldhash::quality::FixedState;
use records::ids::ClientId;

use crate::upstream::balance::{UpstreamMember, Upstreams};
use crate::upstream::target::WEIGHT_MAX;

/// The least share of a destination's upstreams that must be up for checks to count, as a divisor: a half. With fewer,
/// those that are left would be overrun, and the checks are more likely wrong than all these upstreams.
const UP_SHARE_MIN: u32 = 2;

/// What a connection to an upstream of the greatest weight costs; to one of weight 1 it costs `WEIGHT_MAX` times as much.
const COST_MIN: u64 = 1 << 10;
/// The least part of its weight that an upstream has at the beginning of its slow start, as a divisor.
const SLOW_START_PARTS: u64 = 100;

/// How connections are spread over the upstreams of a destination, by weight.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Balance {
    /// To the upstream with the fewest connections for its weight.
    #[default]
    LeastConnections,
    /// Those of a client address (IPv6: /64) to the same upstream.
    HashClient,
    /// Requests with the same value of this field to the same upstream; in HTTP mode only.
    HashHeader(String),
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a way to balance; expected least-connections, hash-client or hash-header:NAME")]
pub struct ParseBalanceError(String);

impl Balance {
    /// The key of a connection, by which its upstream is chosen; `None` if that is the one with the fewest connections.
    /// `field` finds the value of a request's field.
    pub fn key<'a>(&self, client: ClientId, field: impl FnOnce(&str) -> Option<&'a [u8]>) -> Option<u64> {
        // Every proxy makes the same key, also after a restart.
        match (self, client) {
            (Self::HashClient, ClientId::Addr(_)) => {
                Some(FixedState::default().hash_one(client.by_prefix_64()))
            }
            (Self::HashHeader(name), _) => field(name).map(|value| FixedState::default().hash_one(value)),
            (Self::LeastConnections | Self::HashClient, _) => None,
        }
    }
}

impl FromStr for Balance {
    type Err = ParseBalanceError;

    fn from_str(text: &str) -> Result<Self, ParseBalanceError> {
        let is_name_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        match (text, text.strip_prefix("hash-header:")) {
            ("least-connections", _) => Ok(Self::LeastConnections),
            ("hash-client", _) => Ok(Self::HashClient),
            // HTTP/2 has no field for the host, and may have a cookie in pieces.
            (_, Some(name)) if ["host", "cookie"].contains(&&*name.to_ascii_lowercase()) => {
                Err(ParseBalanceError(text.to_owned()))
            }
            (_, Some(name)) if !name.is_empty() && name.bytes().all(is_name_byte) => {
                Ok(Self::HashHeader(name.to_ascii_lowercase()))
            }
            _ => Err(ParseBalanceError(text.to_owned())),
        }
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LeastConnections => f.write_str("least-connections"),
            Self::HashClient => f.write_str("hash-client"),
            Self::HashHeader(name) => write!(f, "hash-header:{name}"),
        }
    }
}

/// The share of connections that an upstream gets.
#[derive(Debug)]
pub(super) struct Share {
    /// What a connection to it costs: less by its weight.
    cost: u64,
    /// Until when its slow start lasts, in milliseconds since the upstreams were resolved; 0 without one.
    slow_until_ms: AtomicU64,
    /// The hash of its name.
    seed: u64,
}

impl Share {
    pub(super) fn new(weight: u16, name: &str) -> Self {
        let seed = FixedState::default().hash_one(name);
        let cost = COST_MIN * u64::from(WEIGHT_MAX) / u64::from(weight.max(1));
        Self { cost, slow_until_ms: AtomicU64::new(0), seed }
    }

    /// What a connection to it costs now.
    #[inline]
    fn cost(&self, upstreams: &Upstreams, now: Instant) -> u64 {
        match self.slow_until_ms.load(Ordering::Relaxed) {
            0 => self.cost,
            until => self.cost * self.slowness(until, upstreams, now) / SLOW_START_PARTS,
        }
    }

    /// By how many hundredths connections cost more in a slow start: the share grows evenly with time.
    #[cold]
    fn slowness(&self, until_ms: u64, upstreams: &Upstreams, now: Instant) -> u64 {
        let left_ms = until_ms.saturating_sub(upstreams.ms(now));
        if left_ms == 0 {
            let order = Ordering::Relaxed;
            let _ = self.slow_until_ms.compare_exchange(until_ms, 0, order, order);
        }
        let whole_ms = upstreams.slow_start.as_millis().max(1) as u64;
        let passed_ms = whole_ms.saturating_sub(left_ms).max(whole_ms.div_ceil(SLOW_START_PARTS));
        SLOW_START_PARTS * whole_ms / passed_ms
    }
}

/// The upstreams that a connection may go to.
#[derive(Clone, Copy, Debug)]
pub struct Candidates {
    /// The upstreams of its destination, as bits.
    pub upstreams: u64,
    /// Those of them that it has tried, as bits.
    pub tried: u64,
    /// What its upstream is chosen by, if that is not the number of connections.
    pub key: Option<u64>,
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
    pub fn new(upstreams: u64, key: Option<u64>) -> Self {
        Self { upstreams, tried: 0, key }
    }
}

impl Upstreams {
    /// Chooses the upstream with the fewest connections for its weight among the candidates that are up, not drained and
    /// not tried; of several, the first from `turn` on. With a key, it chooses the same one as always, or if that is not
    /// among them the next one of this key. If all are down, it chooses among those, because clients would be turned away
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
            let first = match candidates.key {
                None => up.min_by_key(|&index| self.load(index, now)),
                Some(key) => {
                    up.min_by(|&a, &b| self.distance(a, key, now).total_cmp(&self.distance(b, key, now)))
                }
            };
            let Some(index) = first else { break };
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

    pub fn balance(&self) -> &Balance {
        &self.balance
    }

    /// Begins the slow start of an upstream that is back.
    pub(super) fn start_slowly(&self, index: usize, now: Instant) {
        if !self.slow_start.is_zero() {
            let until_ms = self.ms(now + self.slow_start);
            self.members[index].share.slow_until_ms.store(until_ms, Ordering::Relaxed);
        }
    }

    fn ms(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.epoch).as_millis() as u64
    }

    /// What the connections of an upstream cost with one more.
    fn load(&self, index: usize, now: Instant) -> u64 {
        let UpstreamMember { open, share, .. } = &self.members[index];
        (open.0.load(Ordering::Relaxed) as u64 + 1) * share.cost(self, now)
    }

    /// How far an upstream is from a key: an exponential variate with its cost as the mean, so the nearest one is each
    /// upstream with a probability by weight, and one that comes or goes moves no key between others (weighted
    /// rendezvous hashing).
    fn distance(&self, index: usize, key: u64, now: Instant) -> f64 {
        let share = &self.members[index].share;
        let hash = FixedState::default().hash_one((share.seed, key));
        let uniform = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -uniform.ln() * share.cost(self, now) as f64
    }
}

/// The places of the bits that are set.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    (0..u64::BITS as usize).filter(move |index| word & (1 << index) != 0)
}

#[cfg(test)]
mod tests;
