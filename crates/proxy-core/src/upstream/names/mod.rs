//! The names of upstreams and their addresses: what the resolver's thread sets, and what workers connect to.

pub(crate) mod addresses;
pub(crate) mod refresh;
pub(crate) mod resolver;

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use mio::{Registry, Token};
use records::kinds::Level;

use crate::io::socket::Socket;
use crate::notices::{Subject, is_shortage};
use crate::upstream::balance::Upstreams;
use crate::upstream::names::addresses::AddressAttempts;
use crate::upstream::target::UpstreamTarget;

/// Addresses that a notice lists.
const LISTED_ADDRESSES_MAX: usize = 8;

impl Upstreams {
    /// Begins to connect to the next address of the upstream `index` that the kernel does not refuse at once. `failed` is
    /// why the address in use could not be reached, if there is one.
    ///
    /// # Errors
    /// The last address's, when none is left.
    pub fn connect_next(
        &self,
        index: usize,
        attempts: &mut AddressAttempts,
        (registry, token): (&Rc<Registry>, Token),
        mut failed: Option<io::Error>,
        now: Instant,
    ) -> io::Result<Socket> {
        loop {
            if failed.as_ref().is_some_and(|error| !is_shortage(error)) {
                attempts.failed(now);
                self.want_name(index);
            }
            let Some(addr) = attempts.next(now) else {
                return Err(failed.unwrap_or_else(|| io::ErrorKind::TimedOut.into()));
            };
            match Socket::connect_tcp(addr, registry, token) {
                Ok(socket) => return Ok(socket),
                Err(error) => failed = Some(error),
            }
        }
    }

    pub(super) fn set_resolver_waker(&self, waker: SyncSender<()>) {
        // A proxy starts one resolver.
        let _ = self.resolver_waker.set(waker);
    }

    /// Asks for the names of all upstreams to be resolved soon.
    pub(crate) fn want_all_names(&self) {
        (0..self.len()).for_each(|index| self.want_name(index));
    }

    /// Lets the resolver look which names there are; false if it has not begun.
    pub(super) fn wake_resolver(&self) -> bool {
        let waker = self.resolver_waker.get();
        // If it is full, the thread is about to wake.
        waker.map(|waker| waker.try_send(())).is_some()
    }

    /// Asks for the name of the upstream `index` to be resolved soon.
    pub(super) fn want_name(&self, index: usize) {
        let bit = 1 << index;
        if self.resolver_waker.get().is_some()
            && self.wanted_names.fetch_or(bit, Ordering::Relaxed) & bit == 0
        {
            self.wake_resolver();
        }
    }

    /// The upstreams whose names are wanted, as bits. Nobody wakes the resolver for these again.
    pub(super) fn wanted_names(&self) -> u64 {
        self.wanted_names.load(Ordering::Relaxed)
    }

    /// Rises whenever an upstream has other addresses, others of them fail their checks, or upstreams come or go.
    pub fn address_generation(&self) -> u64 {
        self.address_generation.load(Ordering::Acquire)
    }

    /// Takes over which addresses of the upstream `index` fail their checks while another passes.
    pub(super) fn set_failing_addresses(&self, index: usize, failing: &[SocketAddr]) {
        let UpstreamTarget::Tcp(addresses) = &self.member(index).target else { return };
        if addresses.set_failing(failing) {
            self.address_generation.fetch_add(1, Ordering::Release);
        }
    }

    /// Takes over what resolving the name of the upstream `index` has led to. Without addresses other than the proxy's
    /// `own`, it keeps the last ones.
    pub(super) fn set_resolved(
        &self,
        index: usize,
        resolved: io::Result<Vec<SocketAddr>>,
        own: &[SocketAddr],
        now: Instant,
    ) {
        self.wanted_names.fetch_and(!(1 << index), Ordering::Relaxed);
        let member = self.member(index);
        let UpstreamTarget::Tcp(addresses) = &member.target else { return };
        if self.is_gone(index) {
            return;
        }
        let say = |level, text: &str| self.notices.say(Subject::UpstreamName(index), level, text, now);
        let problem = match &resolved {
            Err(error) => Some(error.to_string()),
            Ok(addrs) => is_any_own(addrs, own).then(|| "that is where the proxy itself listens".to_owned()),
        };
        let was_unresolved = member.is_unresolved.swap(problem.is_some(), Ordering::Relaxed);
        let (name, kept) = (&member.name, "its last addresses are kept");
        match (resolved, problem) {
            (_, Some(problem)) if !was_unresolved => {
                say(Level::Warning, &format!("the upstream {name} cannot be resolved: {problem}; {kept}"));
            }
            (Ok(addrs), None) => {
                let is_changed = addresses.replace(&addrs);
                if is_changed {
                    self.address_generation.fetch_add(1, Ordering::Release);
                    // What has failed may be gone.
                    member.health.end_rest();
                }
                if is_changed || was_unresolved {
                    let again = if was_unresolved { "can be resolved again, and " } else { "" };
                    let addrs = listed(&addresses.addrs());
                    say(Level::Notice, &format!("the upstream {name} {again}has {addrs}"));
                }
            }
            _ => {}
        }
    }
}

/// Whether one of `addrs` is among the proxy's own, or one that its socket on all addresses answers for.
pub(super) fn is_any_own(addrs: &[SocketAddr], own: &[SocketAddr]) -> bool {
    let is_own = |addr: &SocketAddr| {
        own.iter().any(|own| {
            let (ip, own_ip) = (addr.ip().to_canonical(), own.ip().to_canonical());
            addr.port() == own.port() && (ip == own_ip || (own_ip.is_unspecified() && ip.is_loopback()))
        })
    };
    addrs.iter().any(is_own)
}

/// Addresses in a sentence, without their port.
fn listed(addrs: &[SocketAddr]) -> String {
    let ips: Vec<_> = addrs.iter().take(LISTED_ADDRESSES_MAX).map(|addr| addr.ip().to_string()).collect();
    let plural = if addrs.len() == 1 { "" } else { "es" };
    let more = match addrs.len() - ips.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("the address{plural} {}{more}", ips.join(", "))
}
