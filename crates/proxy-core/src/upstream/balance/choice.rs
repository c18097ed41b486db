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
pub(in crate::upstream) struct Share {
    /// What a connection to it costs: less by its weight.
    cost: AtomicU64,
    /// Until when its slow start lasts, in milliseconds since the upstreams were resolved; 0 without one.
    slow_until_ms: AtomicU64,
    /// The hash of its name.
    seed: u64,
}

impl Share {
    pub(in crate::upstream) fn new(weight: u16, name: &str) -> Self {
        let seed = FixedState::default().hash_one(name);
        let (cost, slow_until_ms) = (AtomicU64::new(cost(weight)), AtomicU64::new(0));
        Self { cost, slow_until_ms, seed }
    }

    pub(in crate::upstream) fn set_weight(&self, weight: u16) {
        self.cost.store(cost(weight), Ordering::Relaxed);
    }

    /// What a connection to it costs now.
    #[inline]
    fn cost(&self, upstreams: &Upstreams, now: Instant) -> u64 {
        match self.slow_until_ms.load(Ordering::Relaxed) {
            0 => self.cost.load(Ordering::Relaxed),
            until => {
                self.cost.load(Ordering::Relaxed) * self.slowness(until, upstreams, now) / SLOW_START_PARTS
            }
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

/// What a connection to an upstream of this weight costs.
fn cost(weight: u16) -> u64 {
    COST_MIN * u64::from(WEIGHT_MAX) / u64::from(weight.max(1))
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
    /// Whether it counts the connection: a single upstream does not.
    is_counted: bool,
}

impl Candidates {
    pub fn new(upstreams: u64, key: Option<u64>) -> Self {
        Self { upstreams, tried: 0, key }
    }

    /// The place of the upstream whose turn it is, so that all have theirs, whatever their places are.
    fn nth(&self, turn: usize) -> u32 {
        let count = self.upstreams.count_ones().max(1) as usize;
        let left = (0..turn % count).fold(self.upstreams, |left, _| left & left.wrapping_sub(1));
        left.trailing_zeros() % u64::BITS
    }
}

impl Upstreams {
    /// Chooses the upstream with the fewest connections for its weight among the candidates that are up, not drained and
    /// not tried; of several, in turns by weight, which begin with the first from `turn` on. With a key, it chooses the
    /// same one as always, or if that is not among them the next one of this key. If all are down, it chooses among those,
    /// because clients would be turned away otherwise. [`Upstreams::leave`] must follow.
    pub fn choose(&self, candidates: Candidates, turn: usize, now: Instant) -> Option<UpstreamChoice> {
        let untried = self.untried(candidates);
        let sound = untried & !self.heeded_checks(candidates, now);
        let first = candidates.nth(turn);
        let mut choice = None;
        // One connection tries an upstream whose rest has ended; the next connections choose others.
        while choice.is_none() {
            let up = self.up_among(sound, now);
            let best = match candidates.key {
                None => self.least_loaded(up, first, now),
                Some(key) => bits_from(up, first)
                    .min_by(|&a, &b| self.distance(a, key, now).total_cmp(&self.distance(b, key, now))),
            };
            let Some(index) = best else { break };
            choice = self.member(index).health.claim(now).then_some((index, true));
        }
        let (index, is_up) = choice.or_else(|| {
            let down_until = |&index: &usize| self.member(index).health.down_until_ms();
            let soonest = bits_from(untried, first).min_by_key(down_until)?;
            self.report_all_down(candidates, now);
            Some((soonest, false))
        })?;
        let is_counted = self.len() > 1;
        if is_counted {
            self.member(index).connections.open.fetch_add(1, Ordering::Relaxed);
        }
        Some(UpstreamChoice { index, is_up, is_counted })
    }

    /// How many candidates that are up are neither drained nor tried.
    pub fn up(&self, candidates: Candidates, now: Instant) -> usize {
        let sound = self.untried(candidates) & !self.heeded_checks(candidates, now);
        self.up_among(sound, now).count_ones() as usize
    }

    /// Those of these upstreams that have not failed lately, as bits.
    fn up_among(&self, upstreams: u64, now: Instant) -> u64 {
        let up = bits(upstreams).filter(|&index| self.member(index).health.is_up(now));
        up.fold(0, |up, index| up | 1 << index)
    }

    /// Counts the end of a connection, or of an attempt, to the upstream that was chosen.
    pub fn leave(&self, choice: UpstreamChoice) {
        if choice.is_counted {
            self.member(choice.index).connections.open.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The candidates that are neither drained nor tried, as bits.
    fn untried(&self, candidates: Candidates) -> u64 {
        candidates.upstreams & !candidates.tried & !self.drained.load(Ordering::Relaxed)
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
        let all = self.untried(Candidates { tried: 0, ..candidates });
        let sound = all & !self.failing.load(Ordering::Relaxed);
        (all, self.up_among(sound, now).count_ones())
    }

    fn names_of(&self, upstreams: u64) -> String {
        bits(upstreams).map(|index| self.name(index)).collect::<Vec<_>>().join(", ")
    }

    pub fn balance(&self) -> &Balance {
        &self.balance
    }

    /// Begins the slow start of an upstream that is back.
    pub(in crate::upstream) fn start_slowly(&self, index: usize, now: Instant) {
        if !self.slow_start.is_zero() {
            let until_ms = self.ms(now + self.slow_start);
            self.member(index).share.slow_until_ms.store(until_ms, Ordering::Relaxed);
        }
    }

    fn ms(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.epoch).as_millis() as u64
    }

    /// What the connections of an upstream cost with one more.
    fn load(&self, index: usize, now: Instant) -> u64 {
        let UpstreamMember { connections, share, .. } = self.member(index);
        (connections.open.load(Ordering::Relaxed) as u64 + 1) * share.cost(self, now)
    }

    /// The upstream with the least load. Where loads differ by less than a connection costs, the one that has been given
    /// the least comes first: otherwise the lighter of two idle upstreams would get nothing.
    fn least_loaded(&self, up: u64, first: u32, now: Instant) -> Option<usize> {
        if up.count_ones() < 2 {
            return bits(up).next();
        }
        let given = |index: usize| &self.member(index).connections.given;
        let cost = |index: usize| self.member(index).share.cost(self, now);
        let given_max = bits(up).map(|index| given(index).load(Ordering::Relaxed)).max()?;
        // An upstream that was away does not make up for what it missed.
        let given_min = given_max.saturating_sub(bits(up).map(cost).max()?);
        let given_to = |index: usize| given(index).load(Ordering::Relaxed).max(given_min);
        let least = bits_from(up, first).min_by_key(|&index| {
            let load = self.load(index, now);
            (load + given_to(index), load)
        })?;
        given(least).store(given_to(least) + cost(least), Ordering::Relaxed);
        Some(least)
    }

    /// How far an upstream is from a key: an exponential variate with its cost as the mean, so the nearest one is each
    /// upstream with a probability by weight, and one that comes or goes moves no key between others (weighted
    /// rendezvous hashing).
    fn distance(&self, index: usize, key: u64, now: Instant) -> f64 {
        let share = &self.member(index).share;
        let hash = FixedState::default().hash_one((share.seed, key));
        let uniform = ((hash >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
        -uniform.ln() * share.cost(self, now) as f64
    }
}

/// The places of the bits that are set.
pub(in crate::upstream) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = (word != 0).then(|| word.trailing_zeros() as usize);
        word &= word.wrapping_sub(1);
        place
    })
}

/// The same, from the place `first` on.
fn bits_from(word: u64, first: u32) -> impl Iterator<Item = usize> {
    let below = word & !(u64::MAX << first);
    bits(word ^ below).chain(bits(below))
}

#[cfg(test)]
mod tests;
