//! Several upstreams: which one a connection goes to, and which ones rest after a failure.
//!
//! All workers share the counts, so the fewest connections are those of the whole proxy. The counts are atomics, each
//! on its own cache line, touched twice per connection and never on the path of a byte. With one upstream they are not
//! touched at all.

use std::io;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use records::delta::{UpstreamDeltas, UpstreamStatus};
use records::kinds::{Level, UpstreamState};

use crate::io::socket::Socket;
use crate::notices::{NoticeLog, Subject, is_shortage};
use crate::tls::TlsPeer;
use crate::upstream::health::Health;
use crate::upstream::resolver::Resolver;
use crate::upstream::stream::{UpstreamStream, WorkerTls};
use crate::upstream::target::{ResolveError, Upstream, UpstreamTarget};

/// Most upstreams of a proxy: the bits of a word mark the upstreams that a connection has tried.
pub const UPSTREAMS_MAX: usize = 64;

/// All upstreams of a proxy, shared by its workers.
#[derive(Debug)]
pub struct Upstreams {
    pub(super) members: Box<[UpstreamMember]>,
    /// The upstreams that get no new connections, as bits.
    drained: AtomicU64,
    /// Rises whenever an upstream has other addresses.
    pub(super) address_generation: AtomicU64,
    /// The upstreams whose names are to be resolved before their time, as bits.
    pub(super) wanted_names: AtomicU64,
    /// Wakes the resolver's thread; absent if no upstream has a name.
    pub(super) resolver_waker: OnceLock<SyncSender<()>>,
    pub(super) notices: Arc<NoticeLog>,
}

#[derive(Debug)]
pub(super) struct UpstreamMember {
    pub(super) name: String,
    pub(super) target: UpstreamTarget,
    /// The host and port that are resolved again and again; `None` for an address or a path.
    host: Option<(String, u16)>,
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
    open: ConnectionCount,
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
struct ConnectionCount(AtomicUsize);

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

/// The upstream that a connection goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UpstreamChoice {
    /// Its place in the configuration.
    pub index: usize,
    /// False if it has failed lately, and is tried only because all others have too.
    pub is_up: bool,
}

impl Upstreams {
    /// Resolves the names of `upstreams`.
    pub(crate) fn resolve(
        upstreams: &[Upstream],
        resolver: &Resolver,
        notices: Arc<NoticeLog>,
    ) -> Result<Self, ResolveError> {
        let epoch = Instant::now();
        let member = |upstream: &Upstream| {
            Ok(UpstreamMember {
                name: upstream.to_string(),
                target: upstream.resolve(resolver)?,
                host: upstream.name().map(|(host, port)| (host.to_owned(), port)),
                is_http2: upstream.scheme.is_http2(),
                tls: upstream.tls_peer(),
                health: Health::new(epoch),
                changed: Mutex::new(StateChange { at: epoch, reason: String::new() }),
                has_answered_with_tls: AtomicBool::new(false),
                is_unresolved: AtomicBool::new(false),
                open: ConnectionCount::default(),
            })
        };
        let members = upstreams.iter().map(member).collect::<Result<_, _>>()?;
        let (address_generation, wanted_names) = (AtomicU64::new(0), AtomicU64::new(0));
        let drained = AtomicU64::new(0);
        Ok(Self {
            members,
            drained,
            address_generation,
            wanted_names,
            resolver_waker: OnceLock::new(),
            notices,
        })
    }

    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The upstream `index` as it was configured.
    pub fn name(&self, index: usize) -> &str {
        &self.members[index].name
    }

    /// Whether the upstream `index` speaks HTTP/2.
    pub fn is_http2(&self, index: usize) -> bool {
        self.members[index].is_http2
    }

    /// The upstreams with a name, by index, host and port.
    pub(super) fn names(&self) -> impl Iterator<Item = (usize, String, u16)> {
        let name = |(index, member): (usize, &UpstreamMember)| {
            let (host, port) = member.host.clone()?;
            Some((index, host, port))
        };
        self.members.iter().enumerate().filter_map(name)
    }

    pub fn target(&self, index: usize) -> &UpstreamTarget {
        &self.members[index].target
    }

    /// Takes over a socket to the upstream `index` that may still be connecting.
    ///
    /// # Errors
    /// If no TLS can be spoken with it.
    pub fn stream(&self, index: usize, socket: Socket, worker: &Rc<WorkerTls>) -> io::Result<UpstreamStream> {
        UpstreamStream::new(socket, index, self.members[index].tls.as_ref(), worker)
    }

    /// Drains an upstream, or returns it to service; false if it already is as wanted.
    pub(crate) fn change(&self, name: &str, change: UpstreamChange) -> Result<bool, UnknownUpstream> {
        let index = self.members.iter().position(|member| member.name == name).ok_or_else(|| {
            let known = self.members.iter().map(|member| member.name.clone()).collect();
            UnknownUpstream { name: records::text::clean::text(name), known }
        })?;
        let bit = 1 << index;
        let before = match change {
            UpstreamChange::Drain => self.drained.fetch_or(bit, Ordering::Relaxed),
            UpstreamChange::Return => self.drained.fetch_and(!bit, Ordering::Relaxed),
        };
        let is_changed = (before & bit != 0) != (change == UpstreamChange::Drain);
        if is_changed {
            // Why it is down, if it is, stays as it was.
            self.members[index].changed().at = Instant::now();
        }
        Ok(is_changed)
    }

    /// Chooses the upstream with the fewest connections among those that are up, not drained and not in the bits of
    /// `tried`; of several, the first from `turn` on. If all are down, it chooses among those, because clients would be turned
    /// away otherwise. [`Upstreams::leave`] must follow.
    pub fn choose(&self, tried: u64, turn: usize, now: Instant) -> Option<UpstreamChoice> {
        let n = self.members.len();
        let tried = tried | self.drained.load(Ordering::Relaxed);
        let untried = || (0..n).map(|i| (turn + i) % n).filter(|index| tried & (1 << index) == 0);
        let mut choice = None;
        // One connection tries an upstream whose rest has ended; the next connections choose others.
        while choice.is_none() {
            let up = untried().filter(|&index| self.members[index].health.is_up(now));
            let Some(index) = up.min_by_key(|&index| self.load(index)) else { break };
            choice = self.members[index].health.claim(now).then_some(UpstreamChoice { index, is_up: true });
        }
        let choice = choice.or_else(|| {
            let soonest = untried().min_by_key(|&index| self.members[index].health.down_until_ms())?;
            Some(UpstreamChoice { index: soonest, is_up: false })
        })?;
        if n > 1 {
            self.members[choice.index].open.0.fetch_add(1, Ordering::Relaxed);
        }
        Some(choice)
    }

    /// How many upstreams that are up are neither drained nor in the bits of `tried`.
    pub fn up(&self, tried: u64, now: Instant) -> usize {
        let tried = tried | self.drained.load(Ordering::Relaxed);
        let is_left = |(index, member): &(usize, &UpstreamMember)| {
            tried & (1 << index) == 0 && member.health.is_up(now)
        };
        self.members.iter().enumerate().filter(is_left).count()
    }

    /// Counts the end of a connection, or of an attempt, to the upstream `index`.
    pub fn leave(&self, index: usize) {
        if self.members.len() > 1 {
            self.members[index].open.0.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Notes that the upstream `index` could not be reached.
    pub fn failed(&self, index: usize, error: &io::Error, now: Instant) {
        if is_shortage(error) {
            let what = || format!("upstreams cannot be connected to: {error}; clients are turned away");
            return self.notices.report_shortage(what, now);
        }
        // A full backlog is not a failure: the upstream is only busy.
        if error.kind() == io::ErrorKind::WouldBlock {
            return;
        }
        self.want_name(index);
        let member = &self.members[index];
        if member.health.fail(now) {
            member.set_changed(now, &error.to_string());
            let text = format!("the upstream {} cannot be reached: {error}", member.name);
            self.notices.say(Subject::Upstream(index), Level::Warning, &text, now);
        }
    }

    /// Notes that the upstream `index` was reached.
    pub fn succeeded(&self, index: usize, now: Instant) {
        let member = &self.members[index];
        if member.health.succeed() {
            member.set_changed(now, "");
            let text = format!("the upstream {} can be reached again", member.name);
            self.notices.say(Subject::Upstream(index), Level::Notice, &text, now);
        }
    }

    /// Notes that the upstream `index` answered plaintext with a TLS record, once.
    pub fn answered_with_tls(&self, index: usize, now: Instant) {
        let member = &self.members[index];
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
        let drained = self.drained.load(Ordering::Relaxed);
        for (index, member) in self.members.iter().enumerate() {
            into.at(index).status = Some(member.status(drained & 1 << index != 0, now));
        }
    }

    fn load(&self, index: usize) -> usize {
        self.members[index].open.0.load(Ordering::Relaxed)
    }
}

impl UpstreamMember {
    fn status(&self, is_drained: bool, now: Instant) -> UpstreamStatus {
        let changed = self.changed();
        let (state, reason) = match (is_drained, self.health.has_failed()) {
            (true, _) => (UpstreamState::Drained, "drained by an operator".to_owned()),
            (false, true) => (UpstreamState::Down, changed.reason.clone()),
            (false, false) => (UpstreamState::Up, String::new()),
        };
        UpstreamStatus { state, age: now.saturating_duration_since(changed.at), reason }
    }

    fn set_changed(&self, at: Instant, reason: &str) {
        *self.changed() = StateChange { at, reason: records::text::clean::text(reason) };
    }

    fn changed(&self) -> MutexGuard<'_, StateChange> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
