//! Checks upstreams, each on a thread of its own: a check blocks, and must not delay those of other upstreams.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockAddr;

use crate::accept::proxy_protocol::ProxyProtocol;
use crate::notices::is_shortage;
use crate::upstream::balance::Upstreams;
use crate::upstream::check::{CheckKind, Probe, UpstreamCheck};
use crate::upstream::route::NameRoutes;
use crate::upstream::target::UpstreamTarget;
use crate::worker::control::ProxyControl;

/// What the checks of all upstreams share.
#[derive(Clone, Debug)]
pub(crate) struct CheckSettings {
    pub(crate) check: UpstreamCheck,
    /// The PROXY header that upstreams expect.
    pub(crate) header: Option<ProxyProtocol>,
    /// Whether only upstreams of passed TLS expect it.
    pub(crate) passed_header_only: bool,
    /// Has the present TLS to upstreams.
    pub(crate) control: Arc<ProxyControl>,
    pub(crate) routes: Arc<NameRoutes>,
}

/// Starts a thread for each upstream that has none. It ends within an interval once `upstreams` is dropped, and rests
/// while the upstream is gone.
///
/// # Errors
/// When the kernel refuses a thread.
pub(crate) fn start(upstreams: &Arc<Upstreams>, settings: &CheckSettings) -> io::Result<()> {
    let unchecked = upstreams.members().enumerate().filter(|(_, member)| !member.is_checked.load(Relaxed));
    for (index, member) in unchecked {
        let (settings, verdicts) = (settings.clone(), Verdicts::default());
        let mut checker = Checker { upstreams: Arc::downgrade(upstreams), index, settings, verdicts };
        let run = move || while checker.sleep_and_check().is_some() {};
        thread::Builder::new().name(format!("check-{index}")).spawn(run)?;
        member.is_checked.store(true, Relaxed);
    }
    Ok(())
}

struct Checker {
    upstreams: Weak<Upstreams>,
    index: usize,
    settings: CheckSettings,
    verdicts: Verdicts,
}

impl Checker {
    /// Waits for the next round and checks all addresses; `None` once there is no proxy.
    fn sleep_and_check(&mut self) -> Option<()> {
        thread::sleep(jittered(self.settings.check.interval));
        let upstreams = self.upstreams.upgrade()?;
        if upstreams.is_gone(self.index) {
            self.verdicts = Verdicts::default();
            return Some(());
        }
        let addrs: Vec<(Option<SocketAddr>, SockAddr)> = match upstreams.target(self.index) {
            UpstreamTarget::Unix(path) => {
                let path = path.as_pathname()?;
                vec![(None, SockAddr::unix(path).ok()?)]
            }
            UpstreamTarget::Tcp(addresses) => {
                addresses.addrs().into_iter().map(|addr| (Some(addr), addr.into())).collect()
            }
        };
        let results = self.check(&upstreams, &addrs);
        // What it was like before says nothing of one that returns.
        if !upstreams.is_gone(self.index) {
            self.verdicts.take(&upstreams, self.index, &self.settings.check, results, Instant::now());
        }
        Some(())
    }

    /// Checks all addresses at once, so that the round takes no longer than one check.
    fn check(&self, upstreams: &Upstreams, addrs: &[(Option<SocketAddr>, SockAddr)]) -> Vec<CheckResult> {
        let CheckSettings { check, header, passed_header_only, control, routes } = &self.settings;
        let tls = control.tls();
        // What terminates the TLS of clients has a port to check only.
        let is_of = |&destination: &usize| upstreams.upstreams_of(destination) & 1 << self.index != 0;
        let is_passed = routes.all_passed().iter().any(is_of);
        let kind = if is_passed { &CheckKind::Tcp } else { &check.kind };
        let header = header.filter(|_| is_passed || !passed_header_only);
        let peer = upstreams.tls_peer(self.index).filter(|_| *kind != CheckKind::Tcp);
        let http = match kind {
            // A request of HTTP/1.1 is nothing to an upstream of HTTP/2.
            CheckKind::Http(http) if !upstreams.is_http2(self.index) => {
                Some((http, host(upstreams.name(self.index))))
            }
            CheckKind::Http(_) | CheckKind::Tcp | CheckKind::Tls => None,
        };
        let probe = Probe { header, tls: tls.upstream().zip(peer), http, timeout: check.timeout() };
        // What is short here says nothing of an upstream.
        let check =
            |addr| probe.run(addr).map_or_else(|e| (!is_shortage(&e)).then_some(Err(e)), |()| Some(Ok(())));
        thread::scope(|scope| {
            let spawn = |addr| thread::Builder::new().spawn_scoped(scope, move || check(addr));
            let running: Vec<_> = addrs.iter().map(|(of, addr)| (*of, spawn(addr))).collect();
            let ended = running
                .into_iter()
                .map(|(of, thread)| (of, thread.ok().and_then(|thread| thread.join().ok()?)));
            ended.collect()
        })
    }
}

/// The `Host` of a request to the upstream of this name. A path has none, and stands for `localhost`.
fn host(name: &str) -> &str {
    let addr = name.split_once("://").map_or(name, |(_, addr)| addr);
    if addr.starts_with("unix:") { "localhost" } else { addr.split(',').next().unwrap_or(addr) }
}

/// The address that was checked, if it is not a path, and what has come of it: nothing, if this host was short of sockets
/// or threads.
type CheckResult = (Option<SocketAddr>, Option<io::Result<()>>);

/// What the rounds so far say of each address of an upstream.
#[derive(Debug, Default)]
struct Verdicts {
    addresses: Vec<(Option<SocketAddr>, Streak)>,
    /// Whether the upstream was down at the last round.
    was_down: bool,
}

/// Checks of an address in a row.
#[derive(Clone, Copy, Debug, Default)]
struct Streak {
    passed: u32,
    failed: u32,
    is_failing: bool,
}

impl Verdicts {
    /// Takes over the results of a round, and tells the upstreams what has changed.
    fn take(
        &mut self,
        upstreams: &Upstreams,
        index: usize,
        check: &UpstreamCheck,
        results: Vec<CheckResult>,
        now: Instant,
    ) {
        let is_down = upstreams.is_down(index);
        let has_gone_down = is_down && !self.was_down;
        self.was_down = is_down;
        let (mut last, mut checks, mut failed) = (None, 0, 0);
        let before = std::mem::take(&mut self.addresses);
        for (addr, result) in results {
            let known = before.iter().find(|(other, _)| *other == addr);
            let mut streak = known.map(|(_, streak)| *streak).unwrap_or_default();
            if has_gone_down {
                // What passed before connections found it down says nothing.
                streak.passed = 0;
            }
            if let Some(result) = result {
                checks += 1;
                failed += usize::from(result.is_err());
                streak.add(result.is_ok(), check);
                last = result.err().or(last);
            }
            self.addresses.push((addr, streak));
        }
        upstreams.count_checks(index, checks, failed);
        let mut failing: Vec<_> = self
            .addresses
            .iter()
            .filter(|(_, streak)| streak.is_failing)
            .filter_map(|(addr, _)| *addr)
            .collect();
        if self.addresses.iter().all(|(_, streak)| streak.is_failing) {
            if let Some(error) = last {
                upstreams.failed_checks(index, &error, now);
            }
            // The upstream as a whole is avoided; if it cannot be, all its addresses serve.
            failing.clear();
        } else if is_down && self.addresses.iter().any(|(_, streak)| streak.passed >= check.rise) {
            upstreams.passed_checks(index, now);
        }
        upstreams.set_failing_addresses(index, &failing);
    }
}

impl Streak {
    fn add(&mut self, has_passed: bool, check: &UpstreamCheck) {
        if has_passed {
            *self = Self { passed: self.passed.saturating_add(1), failed: 0, ..*self };
            self.is_failing &= self.passed < check.rise;
        } else {
            *self = Self { passed: 0, failed: self.failed.saturating_add(1), ..*self };
            self.is_failing |= self.failed >= check.fall;
        }
    }
}

/// An interval, up to a tenth longer or shorter: proxies that start together do not check together.
fn jittered(interval: Duration) -> Duration {
    let random = RandomState::new().hash_one(()) as f64 / u64::MAX as f64;
    interval.mul_f64(0.9 + 0.2 * random)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::notices::NoticeLog;
    use crate::upstream::names::resolver::Resolver;

    /// An upstream with the ports 1 and 2.
    fn two_addresses() -> (Upstreams, Arc<NoticeLog>) {
        let notices = Arc::new(NoticeLog::default());
        let resolver = Resolver::new(|_, _| Ok(addrs().to_vec()));
        let upstreams = Upstreams::resolve(&["app:80".parse().unwrap()], &resolver, Arc::clone(&notices));
        (upstreams.unwrap(), notices)
    }

    fn addrs() -> [SocketAddr; 2] {
        [1, 2].map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// Takes rounds in which each address passes or not, and returns whether the upstream is down after each.
    fn rounds<const N: usize>(
        upstreams: &Upstreams,
        verdicts: &mut Verdicts,
        rounds: [[bool; 2]; N],
    ) -> [bool; N] {
        let check: UpstreamCheck = "tcp,rise=2,fall=3".parse().unwrap();
        let late = || Err(io::ErrorKind::TimedOut.into());
        rounds.map(|passes| {
            let of = |(addr, passes)| (Some(addr), Some(if passes { Ok(()) } else { late() }));
            let results = addrs().into_iter().zip(passes).map(of).collect();
            verdicts.take(upstreams, 0, &check, results, Instant::now());
            upstreams.is_down(0)
        })
    }

    fn said(notices: &NoticeLog) -> Vec<String> {
        notices.take(Instant::now()).into_iter().map(|notice| notice.text).collect()
    }

    const PASS: [bool; 2] = [true; 2];
    const FAIL: [bool; 2] = [false; 2];

    #[test]
    fn an_upstream_falls_after_three_failed_checks_and_rises_after_two_passed() {
        let (upstreams, notices) = two_addresses();
        let mut verdicts = Verdicts::default();
        let down = rounds(&upstreams, &mut verdicts, [PASS, FAIL, FAIL, FAIL, FAIL, PASS, FAIL, PASS, PASS]);
        assert_eq!(down, [false, false, false, true, true, true, true, true, false]);
        let expected = [
            "the upstream app:80 fails its checks: timed out",
            "the upstream app:80 passes its checks again",
        ];
        assert_eq!(said(&notices), expected);
    }

    #[test]
    fn an_upstream_that_flaps_faster_than_it_falls_stays_as_it_is() {
        let (upstreams, notices) = two_addresses();
        let mut verdicts = Verdicts::default();
        let down = rounds(&upstreams, &mut verdicts, [FAIL, FAIL, PASS, FAIL, FAIL, PASS, FAIL, FAIL]);
        assert_eq!((down, said(&notices)), ([false; 8], Vec::new()));
        rounds(&upstreams, &mut verdicts, [FAIL]);
        let down = rounds(&upstreams, &mut verdicts, [PASS, FAIL, PASS, FAIL, PASS, FAIL]);
        assert_eq!(down, [true; 6]);
    }

    #[test]
    fn one_failing_address_of_two_is_withdrawn_and_none_if_all_fail() {
        let (upstreams, notices) = two_addresses();
        let UpstreamTarget::Tcp(addresses) = upstreams.target(0) else { panic!() };
        let mut attempts = addresses.attempts();
        attempts.next(Instant::now());
        let mut verdicts = Verdicts::default();
        let generation = upstreams.address_generation();
        assert_eq!(rounds(&upstreams, &mut verdicts, [[false, true]; 3]), [false; 3]);
        assert!(attempts.is_withdrawn() && upstreams.address_generation() == generation + 1);
        assert_eq!(rounds(&upstreams, &mut verdicts, [FAIL; 3]), [false, false, true]);
        assert!(!attempts.is_withdrawn(), "the upstream is down as a whole");
        assert_eq!(rounds(&upstreams, &mut verdicts, [[true, false]; 2]), [true, false]);
        assert!(!attempts.is_withdrawn(), "the other one is");
        assert_eq!(said(&notices).len(), 2);
    }

    #[test]
    fn what_connections_found_down_is_up_after_checks_that_passed_since() {
        let (upstreams, _) = two_addresses();
        let mut verdicts = Verdicts::default();
        rounds(&upstreams, &mut verdicts, [PASS; 9]);
        upstreams.failed(0, &io::ErrorKind::ConnectionRefused.into(), Instant::now());
        assert_eq!(rounds(&upstreams, &mut verdicts, [PASS, PASS]), [true, false]);
    }

    #[test]
    fn a_connection_does_not_return_what_fails_its_checks() {
        let (upstreams, _) = two_addresses();
        let mut verdicts = Verdicts::default();
        rounds(&upstreams, &mut verdicts, [FAIL; 3]);
        upstreams.failed(0, &io::ErrorKind::ConnectionRefused.into(), Instant::now());
        upstreams.succeeded(0, Instant::now());
        assert!(upstreams.is_down(0));
        assert_eq!(rounds(&upstreams, &mut verdicts, [PASS, PASS]), [true, false]);
    }

    #[test]
    fn checks_without_a_result_change_nothing() {
        let (upstreams, _) = two_addresses();
        let mut verdicts = Verdicts::default();
        rounds(&upstreams, &mut verdicts, [FAIL; 2]);
        let check: UpstreamCheck = "tcp,rise=2,fall=3".parse().unwrap();
        for _ in 0..9 {
            let results = addrs().into_iter().map(|addr| (Some(addr), None)).collect();
            verdicts.take(&upstreams, 0, &check, results, Instant::now());
        }
        assert!(!upstreams.is_down(0));
        assert_eq!(rounds(&upstreams, &mut verdicts, [FAIL]), [true]);
    }

    #[test]
    fn the_host_of_a_request_is_the_address_without_its_scheme() {
        let hosts = ["unix:/a", "tls://unix:/a", "app:80", "tls://app:443,name=a", "[::1]:80"].map(host);
        assert_eq!(hosts, ["localhost", "localhost", "app:80", "app:443", "[::1]:80"]);
    }

    #[test]
    fn intervals_differ_by_a_tenth_at_most() {
        let intervals: Vec<_> = (0..100).map(|_| jittered(Duration::from_secs(10))).collect();
        assert!(intervals.iter().all(|at| (9_000..=11_000).contains(&at.as_millis())), "{intervals:?}");
        assert!(intervals.iter().any(|at| at != &intervals[0]));
    }
}
