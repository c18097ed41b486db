//! Several upstreams: which one a connection goes to, and which ones rest after a failure.
//!
//! All workers share the counts, so the fewest connections are those of the whole proxy. The counts are atomics, each
//! on its own cache line, touched twice per connection and never on the path of a byte. With one upstream they are not
//! touched at all.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use records::delta::{UpstreamDeltas, UpstreamStatus};
use records::kinds::{Level, UpstreamState};

use crate::io::socket::Socket;
use crate::notices::{NoticeLog, Subject, is_shortage};
use crate::tls::UpstreamName;
use crate::upstream::stream::{UpstreamStream, WorkerTls};
use crate::upstream::target::{ResolveError, Upstream, UpstreamTarget};

/// Most upstreams of a proxy: the bits of a word mark the upstreams that a connection has tried.
pub const UPSTREAMS_MAX: usize = 64;
/// How long an upstream rests after its first failure. The time doubles with each further one.
const BACK_OFF_MIN: Duration = Duration::from_millis(100);
/// Longest such rest, and so the longest time until an upstream is found to be back while others serve.
const BACK_OFF_MAX: Duration = Duration::from_secs(10);

/// All upstreams of a proxy, shared by its workers.
#[derive(Debug)]
pub struct Upstreams {
    members: Box<[UpstreamMember]>,
    /// The reference instant of the times in `UpstreamHealth`.
    epoch: Instant,
    notices: Arc<NoticeLog>,
}

#[derive(Debug)]
struct UpstreamMember {
    name: String,
    target: UpstreamTarget,
    /// The name that it is asked for, if it speaks TLS.
    tls_name: Option<UpstreamName>,
    health: UpstreamHealth,
    open: ConnectionCount,
}

/// Written only when an upstream fails or recovers, so reading is cheap.
#[derive(Debug, Default)]
struct UpstreamHealth {
    /// Failures since the last success.
    failures: AtomicU32,
    /// Until when it rests, in milliseconds since the epoch.
    down_until_ms: AtomicU64,
    /// Whether a notice has reported that the upstream answers with TLS.
    has_answered_with_tls: AtomicBool,
    /// Locked when the state changes, and by the collector once an interval.
    changed: Mutex<StateChange>,
}

/// The last change between up and down.
#[derive(Debug, Default)]
struct StateChange {
    /// In milliseconds since the epoch; 0 if it was always up.
    at_ms: u64,
    /// Why it is down; empty if it is up.
    reason: String,
}

/// Connections of one upstream, including attempts. It has two cache lines to itself: processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct ConnectionCount(AtomicUsize);

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
    pub(crate) fn resolve(upstreams: &[Upstream], notices: Arc<NoticeLog>) -> Result<Self, ResolveError> {
        let member = |upstream: &Upstream| {
            Ok(UpstreamMember {
                name: upstream.to_string(),
                target: upstream.resolve()?,
                tls_name: upstream.tls_name(),
                health: UpstreamHealth::default(),
                open: ConnectionCount::default(),
            })
        };
        let members = upstreams.iter().map(member).collect::<Result<_, _>>()?;
        Ok(Self { members, epoch: Instant::now(), notices })
    }

    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// The first upstream that is one of the proxy's own addresses, or that a socket on all addresses answers
    /// for.
    pub(crate) fn any_at(&self, addrs: &[SocketAddr]) -> Option<usize> {
        let is_at = |target: &SocketAddr| {
            addrs.iter().any(|addr| {
                let (ip, own) = (target.ip().to_canonical(), addr.ip().to_canonical());
                let is_own = ip == own || (own.is_unspecified() && ip.is_loopback());
                target.port() == addr.port() && is_own
            })
        };
        let is_itself = |member: &UpstreamMember| matches!(&member.target, UpstreamTarget::Tcp(targets) if targets.iter().any(is_at));
        self.members.iter().position(is_itself)
    }

    /// The upstream `index` as it was configured.
    pub fn name(&self, index: usize) -> &str {
        &self.members[index].name
    }

    pub fn target(&self, index: usize) -> &UpstreamTarget {
        &self.members[index].target
    }

    /// Takes over a socket to the upstream `index` that may still be connecting.
    ///
    /// # Errors
    /// If no TLS can be spoken with it.
    pub fn stream(&self, index: usize, socket: Socket, worker: &Rc<WorkerTls>) -> io::Result<UpstreamStream> {
        UpstreamStream::new(socket, index, self.members[index].tls_name.as_ref(), worker)
    }

    /// Chooses the upstream with the fewest connections among those that are up and not in the bits of `tried`; of
    /// several, the first from `turn` on. If all are down, it chooses among those, because clients would be turned
    /// away otherwise. [`Upstreams::leave`] must follow.
    pub fn choose(&self, tried: u64, turn: usize, now: Instant) -> Option<UpstreamChoice> {
        let n = self.members.len();
        let untried = || (0..n).map(|i| (turn + i) % n).filter(|index| tried & (1 << index) == 0);
        let now_ms = self.since_epoch_ms(now);
        let mut choice = None;
        // One connection tries an upstream whose rest has ended; the next connections choose others.
        while choice.is_none() {
            let up = untried().filter(|&index| self.members[index].health.is_up(now_ms));
            let Some(index) = up.min_by_key(|&index| self.load(index)) else { break };
            choice =
                self.members[index].health.claim(now_ms).then_some(UpstreamChoice { index, is_up: true });
        }
        let choice = choice.or_else(|| {
            let soonest = untried()
                .min_by_key(|&index| self.members[index].health.down_until_ms.load(Ordering::Relaxed))?;
            Some(UpstreamChoice { index: soonest, is_up: false })
        })?;
        if n > 1 {
            self.members[choice.index].open.0.fetch_add(1, Ordering::Relaxed);
        }
        Some(choice)
    }

    /// How many upstreams that are up are not in the bits of `tried`.
    pub fn up(&self, tried: u64, now: Instant) -> usize {
        let now_ms = self.since_epoch_ms(now);
        let is_left = |(index, member): &(usize, &UpstreamMember)| {
            tried & (1 << index) == 0 && member.health.is_up(now_ms)
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
        let member = &self.members[index];
        let before = member.health.failures.fetch_add(1, Ordering::Relaxed);
        let until = self.since_epoch_ms(now + back_off(before));
        member.health.down_until_ms.store(until, Ordering::Relaxed);
        if before == 0 {
            member.health.set_changed(self.since_epoch_ms(now), error.to_string());
            let text = format!("the upstream {} cannot be reached: {error}", member.name);
            self.notices.say(Subject::Upstream(index), Level::Warning, &text, now);
        }
    }

    /// Notes that the upstream `index` was reached.
    pub fn succeeded(&self, index: usize, now: Instant) {
        let member = &self.members[index];
        if member.health.failures.load(Ordering::Relaxed) != 0
            && member.health.failures.swap(0, Ordering::Relaxed) != 0
        {
            member.health.down_until_ms.store(0, Ordering::Relaxed);
            member.health.set_changed(self.since_epoch_ms(now), String::new());
            let text = format!("the upstream {} can be reached again", member.name);
            self.notices.say(Subject::Upstream(index), Level::Notice, &text, now);
        }
    }

    /// Notes that the upstream `index` answered plaintext with a TLS record, once.
    pub fn answered_with_tls(&self, index: usize, now: Instant) {
        let member = &self.members[index];
        if !member.health.has_answered_with_tls.swap(true, Ordering::Relaxed) {
            let text = format!(
                "the upstream {} answers with TLS, and is sent plaintext: put tls:// in front of it, or name its port for plain HTTP",
                member.name
            );
            self.notices.say(Subject::Upstream(index), Level::Warning, &text, now);
        }
    }

    /// Adds the state of each upstream to the counts of an interval.
    pub(crate) fn report(&self, into: &mut UpstreamDeltas, now: Instant) {
        let now_ms = self.since_epoch_ms(now);
        for (index, member) in self.members.iter().enumerate() {
            into.at(index).status = Some(member.health.status(now_ms));
        }
    }

    fn load(&self, index: usize) -> usize {
        self.members[index].open.0.load(Ordering::Relaxed)
    }

    fn since_epoch_ms(&self, at: Instant) -> u64 {
        u64::try_from(at.saturating_duration_since(self.epoch).as_millis()).unwrap_or(u64::MAX)
    }
}

impl UpstreamHealth {
    /// Whether it has not failed, or is due to be tried again.
    fn is_up(&self, now_ms: u64) -> bool {
        self.failures.load(Ordering::Relaxed) == 0 || self.down_until_ms.load(Ordering::Relaxed) <= now_ms
    }

    /// Claims the right to try it: after a failure one connection at a time has it.
    fn claim(&self, now_ms: u64) -> bool {
        let failures = self.failures.load(Ordering::Relaxed);
        if failures == 0 {
            return true;
        }
        let due = self.down_until_ms.load(Ordering::Relaxed);
        let until = now_ms + back_off(failures).as_millis() as u64;
        let order = Ordering::Relaxed;
        due <= now_ms && self.down_until_ms.compare_exchange(due, until, order, order).is_ok()
    }
}

impl UpstreamHealth {
    fn status(&self, now_ms: u64) -> UpstreamStatus {
        let changed = self.changed();
        let is_down = self.failures.load(Ordering::Relaxed) > 0;
        UpstreamStatus {
            state: if is_down { UpstreamState::Down } else { UpstreamState::Up },
            age: Duration::from_millis(now_ms.saturating_sub(changed.at_ms)),
            reason: if is_down { changed.reason.clone() } else { String::new() },
        }
    }

    fn set_changed(&self, at_ms: u64, reason: String) {
        *self.changed() = StateChange { at_ms, reason: records::text::clean::text(&reason) };
    }

    fn changed(&self) -> MutexGuard<'_, StateChange> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long an upstream rests that has failed `before` times before.
fn back_off(before: u32) -> Duration {
    BACK_OFF_MIN.saturating_mul(1 << before.min(20)).min(BACK_OFF_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    fn upstreams(n: u16) -> (Upstreams, Arc<NoticeLog>) {
        let notices = Arc::new(NoticeLog::default());
        let members: Vec<Upstream> =
            (1..=n).map(|port| format!("127.0.0.1:{port}").parse().unwrap()).collect();
        (Upstreams::resolve(&members, Arc::clone(&notices)).unwrap(), notices)
    }

    fn refused() -> io::Error {
        Errno::CONNREFUSED.into()
    }

    fn chosen(upstreams: &Upstreams, tried: u64, turn: usize, now: Instant) -> (usize, bool) {
        let choice = upstreams.choose(tried, turn, now).unwrap();
        (choice.index, choice.is_up)
    }

    #[test]
    fn the_upstream_with_the_fewest_connections_is_chosen_in_turns() {
        let (upstreams, _) = upstreams(3);
        let now = Instant::now();
        let turns: Vec<_> = (0..6).map(|turn| chosen(&upstreams, 0, turn, now).0).collect();
        assert_eq!(turns, [0, 1, 2, 0, 1, 2]);
        upstreams.leave(2);
        assert_eq!(chosen(&upstreams, 0, 0, now), (2, true));
        assert_eq!(chosen(&upstreams, 0b101, 0, now), (1, true));
        assert_eq!(upstreams.choose(0b111, 0, now), None);
    }

    #[test]
    fn a_failed_upstream_rests_ever_longer_and_one_connection_tries_it() {
        let (upstreams, notices) = upstreams(2);
        let mut now = upstreams.epoch;
        for expected_ms in [100, 200, 400, 800] {
            upstreams.failed(0, &refused(), now);
            now += Duration::from_millis(expected_ms - 1);
            assert_eq!(chosen(&upstreams, 0, 0, now), (1, true), "{expected_ms} ms");
            now += Duration::from_millis(1);
            assert_eq!(chosen(&upstreams, 0, 0, now), (0, true), "{expected_ms} ms");
            assert_eq!(chosen(&upstreams, 0, 0, now), (1, true), "a second one does not try it");
            upstreams.leave(0);
        }
        assert_eq!(back_off(3000), BACK_OFF_MAX);
        upstreams.succeeded(0, now);
        assert_eq!(chosen(&upstreams, 0, 0, now), (0, true));
        let said: Vec<_> = notices.take(now).into_iter().map(|notice| notice.text).collect();
        assert_eq!(said.len(), 2, "once an episode: {said:?}");
        assert!(said[0].contains("127.0.0.1:1 cannot be reached") && said[1].contains("again"), "{said:?}");
    }

    #[test]
    fn the_state_of_an_upstream_is_reported_with_its_age_and_its_reason() {
        let (upstreams, _) = upstreams(2);
        let status = |now| {
            let mut deltas = UpstreamDeltas::default();
            upstreams.report(&mut deltas, now);
            deltas.all().iter().map(|delta| delta.status.clone().unwrap()).collect::<Vec<_>>()
        };
        let at = |s| upstreams.epoch + Duration::from_secs(s);
        upstreams.failed(1, &refused(), at(2));
        upstreams.failed(1, &Errno::HOSTUNREACH.into(), at(4));
        let [up, down] = &status(at(5))[..] else { panic!() };
        assert_eq!((up.state, up.age, &*up.reason), (UpstreamState::Up, Duration::from_secs(5), ""));
        assert_eq!((down.state, down.age), (UpstreamState::Down, Duration::from_secs(3)));
        assert!(down.reason.contains("refused"), "the failure that it began with: {}", down.reason);
        upstreams.succeeded(1, at(6));
        let back = &status(at(7))[1];
        assert_eq!((back.state, back.age, &*back.reason), (UpstreamState::Up, Duration::from_secs(1), ""));
    }

    #[test]
    fn upstreams_are_tried_even_if_all_are_down() {
        let (upstreams, _) = upstreams(2);
        let now = upstreams.epoch;
        upstreams.failed(1, &refused(), now);
        upstreams.failed(0, &refused(), now + Duration::from_millis(50));
        assert_eq!(upstreams.up(0, now), 0);
        assert_eq!(chosen(&upstreams, 0, 0, now), (1, false), "the one that is due first");
        assert_eq!(chosen(&upstreams, 0b10, 0, now), (0, false));
    }

    #[test]
    fn a_local_shortage_is_not_a_failure_of_the_upstream() {
        let (upstreams, notices) = upstreams(2);
        let now = upstreams.epoch;
        for errno in [Errno::MFILE, Errno::ADDRNOTAVAIL, Errno::AGAIN] {
            upstreams.failed(0, &errno.into(), now);
        }
        assert_eq!(upstreams.up(0, now), 2);
        let said = notices.take(now);
        assert!(said.len() == 1 && said[0].topic == "descriptors", "{said:?}");
    }
}
