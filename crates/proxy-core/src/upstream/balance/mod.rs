//! The upstreams of a proxy and their states: up, down and why, or drained.

pub(crate) mod choice;
pub(in crate::upstream) mod health;
pub(crate) mod replace;

use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use records::delta::{UpstreamDeltas, UpstreamStatus};
use records::kinds::{Level, UpstreamState};
use records::metrics::UpstreamCounter;

use crate::io::socket::Socket;
use crate::notices::{NoticeLog, Subject, is_shortage};
use crate::tls::TlsPeer;
use crate::upstream::balance::choice::{Balance, Share};
use crate::upstream::balance::health::Health;
use crate::upstream::stream::{UpstreamStream, WorkerTls};
use crate::upstream::target::{Upstream, UpstreamTarget};

/// Most upstreams of a run, those that are gone included: the bits of a word mark the upstreams that a connection has tried.
pub const UPSTREAMS_MAX: usize = 64;

/// All upstreams of a proxy, shared by its workers.
#[derive(Debug)]
pub struct Upstreams {
    /// As many as there may be. Those that a reload adds follow, and none ever leaves: each keeps its index, counts and
    /// state for the whole run.
    members: Box<[OnceLock<UpstreamMember>]>,
    len: AtomicUsize,
    /// The upstreams of each destination, as bits.
    pub(super) destinations: Box<[AtomicU64]>,
    /// The upstreams of no destination, as bits: a reload has removed them.
    pub(super) gone: AtomicU64,
    /// The upstreams that get no new connections, as bits.
    pub(super) drained: AtomicU64,
    /// The upstreams that fail their checks, as bits.
    pub(super) failing: AtomicU64,
    /// Rises whenever an upstream has other addresses.
    pub(super) address_generation: AtomicU64,
    /// The upstreams whose names are to be resolved before their time, as bits.
    pub(super) wanted_names: AtomicU64,
    /// Wakes the resolver's thread; absent if no upstream has a name.
    pub(super) resolver_waker: OnceLock<SyncSender<()>>,
    pub(super) notices: Arc<NoticeLog>,
    pub(super) balance: Balance,
    /// How long the share of an upstream grows that is back.
    pub(super) slow_start: Duration,
    /// When the names were resolved.
    pub(super) epoch: Instant,
}

#[derive(Debug)]
pub(super) struct UpstreamMember {
    pub(super) name: String,
    pub(super) target: UpstreamTarget,
    /// The host and port that are resolved again and again; `None` for an address or a path.
    host: Option<(String, u16)>,
    /// Whether checks have begun.
    pub(super) is_checked: AtomicBool,
    /// Whether it speaks HTTP/2.
    is_http2: bool,
    /// Whom TLS is spoken with, if it is.
    tls: Option<TlsPeer>,
    pub(super) health: Health,
    /// Locked when the state changes, and by the collector once an interval.
    changed: Mutex<StateChange>,
    /// Whether a notice has reported that the upstream answers with TLS.
    has_answered_with_tls: AtomicBool,
    /// Whether the last attempt to resolve its name has failed.
    pub(super) is_unresolved: AtomicBool,
    pub(super) share: Share,
    pub(super) connections: ConnectionCount,
    /// Checks since the last report, and those of them that failed.
    checks: AtomicU64,
    checks_failed: AtomicU64,
}

/// The last change of an upstream's state.
#[derive(Debug)]
struct StateChange {
    at: Instant,
    /// Why it is not up; empty if it is.
    reason: String,
}

/// Connections of one upstream, including attempts. It has two cache lines to itself: processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct ConnectionCount {
    pub(super) open: AtomicUsize,
    /// What all connections that it was given have cost, as far as that matters for its next turn.
    pub(super) given: AtomicU64,
}

/// What an operator does with an upstream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamChange {
    /// It gets no new connections, and in HTTP mode no new requests.
    Drain,
    /// It gets new connections again.
    Return,
}

/// There is no such upstream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no upstream {name}; expected one of {}", .known.join(", "))]
pub struct UnknownUpstream {
    name: String,
    known: Vec<String>,
}

impl Upstreams {
    /// For this many destinations, which have no upstreams yet.
    pub(crate) fn new(destinations: usize, notices: Arc<NoticeLog>) -> Self {
        let (address_generation, wanted_names) = (AtomicU64::new(0), AtomicU64::new(0));
        Self {
            members: (0..UPSTREAMS_MAX).map(|_| OnceLock::new()).collect(),
            len: AtomicUsize::new(0),
            destinations: (0..destinations).map(|_| AtomicU64::new(0)).collect(),
            gone: AtomicU64::new(0),
            drained: AtomicU64::new(0),
            failing: AtomicU64::new(0),
            address_generation,
            wanted_names,
            resolver_waker: OnceLock::new(),
            notices,
            balance: Balance::default(),
            slow_start: Duration::ZERO,
            epoch: Instant::now(),
        }
    }

    /// The same, balanced in another way.
    pub(crate) fn balanced(self, balance: Balance, slow_start: Duration) -> Self {
        Self { balance, slow_start, ..self }
    }

    /// Those that are gone included.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// The upstreams of a destination, as bits.
    #[inline]
    pub fn upstreams_of(&self, destination: usize) -> u64 {
        // What a bit stands for is there.
        self.destinations[destination].load(Ordering::Acquire)
    }

    /// Whether a reload has removed the upstream `index`.
    pub fn is_gone(&self, index: usize) -> bool {
        self.gone.load(Ordering::Relaxed) & 1 << index != 0
    }

    #[inline]
    pub(super) fn member(&self, index: usize) -> &UpstreamMember {
        self.members[index].get().expect("an index is given to a member only")
    }

    /// All members, those that are gone included.
    pub(super) fn members(&self) -> impl Iterator<Item = &UpstreamMember> {
        self.members[..self.len()].iter().filter_map(OnceLock::get)
    }

    /// Adds a member at the end, if there is room.
    pub(super) fn push(&self, member: UpstreamMember) {
        let index = self.len();
        if self.members.get(index).is_some_and(|place| place.set(member).is_ok()) {
            self.len.store(index + 1, Ordering::Release);
        }
    }

    /// The upstream `index` as it was configured.
    pub fn name(&self, index: usize) -> &str {
        &self.member(index).name
    }

    /// Whether the upstream `index` speaks HTTP/2.
    pub fn is_http2(&self, index: usize) -> bool {
        self.member(index).is_http2
    }

    /// The upstreams with a name that are not gone, by index, host and port.
    pub(super) fn names(&self) -> impl Iterator<Item = (usize, String, u16)> {
        let name = |(index, member): (usize, &UpstreamMember)| {
            let (host, port) = member.host.clone().filter(|_| !self.is_gone(index))?;
            Some((index, host, port))
        };
        self.members().enumerate().filter_map(name)
    }

    pub fn target(&self, index: usize) -> &UpstreamTarget {
        &self.member(index).target
    }

    /// Whom TLS is spoken with at the upstream `index`, if it is.
    pub(super) fn tls_peer(&self, index: usize) -> Option<&TlsPeer> {
        self.member(index).tls.as_ref()
    }

    /// Takes over a socket to the upstream `index` that may still be connecting.
    ///
    /// # Errors
    /// If no TLS can be spoken with it.
    pub fn stream(&self, index: usize, socket: Socket, worker: &Rc<WorkerTls>) -> io::Result<UpstreamStream> {
        UpstreamStream::new(socket, index, self.member(index).tls.as_ref(), worker)
    }

    /// Drains an upstream, or returns it to service; false if it already is as wanted.
    pub(crate) fn change(&self, name: &str, change: UpstreamChange) -> Result<bool, UnknownUpstream> {
        let present = || self.members().enumerate().filter(|(index, _)| !self.is_gone(*index));
        let index = present().find(|(_, member)| member.name == name).map(|(index, _)| index);
        let index = index.ok_or_else(|| {
            let known = present().map(|(_, member)| member.name.clone()).collect();
            UnknownUpstream { name: records::text::clean::text(name), known }
        })?;
        let bit = 1 << index;
        let before = match change {
            UpstreamChange::Drain => self.drained.fetch_or(bit, Ordering::Relaxed),
            UpstreamChange::Return => self.drained.fetch_and(!bit, Ordering::Relaxed),
        };
        let is_changed = (before & bit != 0) != (change == UpstreamChange::Drain);
        if is_changed {
            let now = Instant::now();
            // Why it is down, if it is, stays as it was.
            self.member(index).changed().at = now;
            if change == UpstreamChange::Return {
                self.start_slowly(index, now);
            }
        }
        Ok(is_changed)
    }

    /// Notes that the upstream `index` could not be reached.
    pub fn failed(&self, index: usize, error: &io::Error, now: Instant) {
        if is_shortage(error) {
            return self.notices.report_turned_away(error, now);
        }
        // A full backlog is not a failure: the upstream is only busy.
        if error.kind() == io::ErrorKind::WouldBlock {
            return;
        }
        self.want_name(index);
        let member = self.member(index);
        if member.has_failed(now, error, || member.health.fail(now)) {
            let text = format!("the upstream {} cannot be reached: {error}", member.name);
            self.notices.say(Subject::Upstream(index), Level::Warning, &text, now);
        }
    }

    /// Notes that the upstream `index` was reached.
    pub fn succeeded(&self, index: usize, now: Instant) {
        let member = self.member(index);
        if member.health.succeed() && !self.fails_checks(index) {
            member.set_changed(now);
            self.start_slowly(index, now);
            let text = format!("the upstream {} can be reached again", member.name);
            self.notices.say(Subject::Upstream(index), Level::Notice, &text, now);
        }
    }

    /// Counts the checks of a round at all addresses of the upstream `index`, and those of them that failed.
    pub(super) fn count_checks(&self, index: usize, checks: usize, failed: usize) {
        let member = self.member(index);
        member.checks.fetch_add(checks as u64, Ordering::Relaxed);
        member.checks_failed.fetch_add(failed as u64, Ordering::Relaxed);
    }

    /// Whether the upstream `index` could not be reached, or fails its checks.
    pub(super) fn is_down(&self, index: usize) -> bool {
        self.member(index).health.has_failed() || self.fails_checks(index)
    }

    fn fails_checks(&self, index: usize) -> bool {
        self.failing.load(Ordering::Relaxed) & 1 << index != 0
    }

    /// Notes that the upstream `index` has failed enough checks in a row to be down.
    pub(super) fn failed_checks(&self, index: usize, error: &io::Error, now: Instant) {
        let was_down = self.is_down(index);
        let fail = || {
            let failing = self.failing.fetch_or(1 << index, Ordering::Relaxed);
            failing & 1 << index == 0 && !was_down
        };
        let member = self.member(index);
        if member.has_failed(now, error, fail) {
            let text = format!("the upstream {} fails its checks: {error}", member.name);
            self.notices.say(Subject::Upstream(index), Level::Warning, &text, now);
        }
    }

    /// Notes that the upstream `index`, which was down, has passed enough checks in a row to be up.
    pub(super) fn passed_checks(&self, index: usize, now: Instant) {
        let member = self.member(index);
        let was_failing = self.failing.fetch_and(!(1 << index), Ordering::Relaxed) & 1 << index != 0;
        if member.health.succeed() || was_failing {
            member.set_changed(now);
            self.start_slowly(index, now);
            let text = format!("the upstream {} passes its checks again", member.name);
            self.notices.say(Subject::Upstream(index), Level::Notice, &text, now);
        }
    }

    /// Notes that the upstream `index` answered plaintext with a TLS record, once.
    pub fn answered_with_tls(&self, index: usize, now: Instant) {
        let member = self.member(index);
        if !member.has_answered_with_tls.swap(true, Ordering::Relaxed) {
            let text = format!(
                "the upstream {} answers with TLS, and is sent plaintext: put tls:// in front of it, or name its port for plain HTTP",
                member.name
            );
            self.notices.say(Subject::Upstream(index), Level::Warning, &text, now);
        }
    }

    /// Adds the state of each upstream to the counts of an interval.
    pub(crate) fn report(&self, into: &mut UpstreamDeltas, now: Instant) {
        for (index, member) in self.members().enumerate() {
            let upstream = into.at(index);
            upstream.count(UpstreamCounter::Checks, member.checks.swap(0, Ordering::Relaxed));
            upstream.count(UpstreamCounter::ChecksFailed, member.checks_failed.swap(0, Ordering::Relaxed));
            upstream.status = Some(self.status(index, now));
        }
    }

    fn status(&self, index: usize, now: Instant) -> UpstreamStatus {
        let changed = self.member(index).changed();
        let is_drained = self.drained.load(Ordering::Relaxed) & 1 << index != 0;
        let (state, reason) = if self.is_gone(index) {
            (UpstreamState::Gone, "a reload has removed it".to_owned())
        } else if is_drained {
            (UpstreamState::Drained, "drained by an operator".to_owned())
        } else if self.is_down(index) {
            (UpstreamState::Down, changed.reason.clone())
        } else {
            (UpstreamState::Up, String::new())
        };
        UpstreamStatus { state, age: now.saturating_duration_since(changed.at), reason }
    }
}

impl UpstreamMember {
    pub(super) fn new(upstream: &Upstream, target: UpstreamTarget, now: Instant) -> Self {
        let name = upstream.unweighted().to_string();
        Self {
            share: Share::new(upstream.weight, &name),
            name,
            target,
            host: upstream.name().map(|(host, port)| (host.to_owned(), port)),
            is_checked: AtomicBool::new(false),
            is_http2: upstream.scheme.is_http2(),
            tls: upstream.tls_peer(),
            health: Health::new(now),
            changed: Mutex::new(StateChange { at: now, reason: String::new() }),
            has_answered_with_tls: AtomicBool::new(false),
            is_unresolved: AtomicBool::new(false),
            connections: ConnectionCount::default(),
            checks: AtomicU64::new(0),
            checks_failed: AtomicU64::new(0),
        }
    }

    pub(super) fn set_changed(&self, at: Instant) {
        *self.changed() = StateChange { at, reason: String::new() };
    }

    /// Whether `fail` makes it fail that did not before. Nobody sees it down without the reason.
    fn has_failed(&self, at: Instant, error: &io::Error, fail: impl FnOnce() -> bool) -> bool {
        let mut changed = self.changed();
        let has_failed = fail();
        if has_failed {
            *changed = StateChange { at, reason: records::text::clean::text(&error.to_string()) };
        }
        has_failed
    }

    fn changed(&self) -> MutexGuard<'_, StateChange> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
