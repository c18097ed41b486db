//! The addresses of a TCP upstream: shared by all workers, replaced as a whole, and tried in turn.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use crate::upstream::balance::health::Health;

/// Most addresses of an upstream; the resolver's further ones are not used. The bits of a word mark the addresses that a
/// connection has tried.
pub(crate) const ADDRESSES_MAX: usize = 64;

/// The present addresses of an upstream.
#[derive(Debug)]
pub struct UpstreamAddresses {
    /// Locked by a worker once for each connection that it opens, and by the resolver's thread to replace the list.
    list: Mutex<Arc<[Arc<UpstreamAddress>]>>,
    /// Where the next connection begins.
    turn: AtomicUsize,
    epoch: Instant,
}

#[derive(Debug)]
struct UpstreamAddress {
    addr: SocketAddr,
    health: Health,
    /// Whether the name no longer has this address.
    has_vanished: AtomicBool,
    /// Whether checks find it out of order, while another address of the upstream passes them.
    fails_checks: AtomicBool,
}

/// The addresses that one connection may use, and those of them that it has tried.
#[derive(Debug)]
pub struct AddressAttempts {
    list: Arc<[Arc<UpstreamAddress>]>,
    start: usize,
    /// As bits.
    tried: u64,
    /// The index of the address in use.
    current: usize,
}

impl UpstreamAddresses {
    pub(crate) fn new(addrs: &[SocketAddr]) -> Self {
        let epoch = Instant::now();
        let list = unique(addrs).map(|addr| Arc::new(UpstreamAddress::new(addr, epoch))).collect();
        Self { list: Mutex::new(list), turn: AtomicUsize::new(0), epoch }
    }

    /// The attempts of a new connection. Each connection begins at another address.
    pub fn attempts(&self) -> AddressAttempts {
        let list = Arc::clone(&self.lock());
        let start = if list.len() > 1 { self.turn.fetch_add(1, Ordering::Relaxed) % list.len() } else { 0 };
        AddressAttempts { list, start, tried: 0, current: 0 }
    }

    /// Replaces the addresses. Those that stay keep their health. Returns false if they are the same.
    pub(in crate::upstream) fn replace(&self, addrs: &[SocketAddr]) -> bool {
        let addrs: Vec<_> = unique(addrs).collect();
        let mut list = self.lock();
        let is_kept = |address: &Arc<UpstreamAddress>| addrs.contains(&address.addr);
        if list.len() == addrs.len() && list.iter().all(is_kept) {
            return false;
        }
        for address in list.iter().filter(|address| !is_kept(address)) {
            address.has_vanished.store(true, Ordering::Relaxed);
        }
        let known = |addr| list.iter().find(|address| address.addr == addr).cloned();
        let new = |addr| Arc::new(UpstreamAddress::new(addr, self.epoch));
        let replaced = addrs.into_iter().map(|addr| known(addr).unwrap_or_else(|| new(addr))).collect();
        *list = replaced;
        true
    }

    /// Lets all addresses get nothing new, or takes that back.
    pub(in crate::upstream) fn set_vanished(&self, have_vanished: bool) {
        self.lock().iter().for_each(|one| one.has_vanished.store(have_vanished, Ordering::Relaxed));
    }

    /// All addresses, up or not.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Takes over which addresses fail their checks. Returns false if they are the same.
    pub(in crate::upstream) fn set_failing(&self, failing: &[SocketAddr]) -> bool {
        let mut is_changed = false;
        for address in self.lock().iter() {
            let fails = failing.contains(&address.addr);
            is_changed |= address.fails_checks.swap(fails, Ordering::Relaxed) != fails;
        }
        is_changed
    }

    pub(in crate::upstream) fn addrs(&self) -> Vec<SocketAddr> {
        self.lock().iter().map(|address| address.addr).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Arc<[Arc<UpstreamAddress>]>> {
        // Only a whole new list is stored.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The first addresses, each once, in the resolver's order.
fn unique(addrs: &[SocketAddr]) -> impl Iterator<Item = SocketAddr> + '_ {
    let is_first = |(i, addr): &(usize, &SocketAddr)| !addrs[..*i].contains(addr);
    addrs.iter().enumerate().filter(is_first).map(|(_, addr)| *addr).take(ADDRESSES_MAX)
}

impl UpstreamAddress {
    fn new(addr: SocketAddr, epoch: Instant) -> Self {
        let (has_vanished, fails_checks) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { addr, health: Health::new(epoch), has_vanished, fails_checks }
    }

    fn is_withdrawn(&self) -> bool {
        self.has_vanished.load(Ordering::Relaxed) || self.fails_checks.load(Ordering::Relaxed)
    }

    fn claim(&self, now: Instant) -> bool {
        !self.is_withdrawn() && self.health.claim(now)
    }

    /// The order in which addresses are tried that are down: withdrawn ones last.
    fn rest(&self) -> (bool, u64) {
        (self.is_withdrawn(), self.health.down_until_ms())
    }
}

impl AddressAttempts {
    /// Goes on to the next address: one that is up, else the one that is due first.
    pub(in crate::upstream) fn next(&mut self, now: Instant) -> Option<SocketAddr> {
        let n = self.list.len();
        let untried = (0..n).map(|i| (self.start + i) % n).filter(|i| self.tried & (1 << i) == 0);
        let up = untried.clone().find(|&i| self.list[i].claim(now));
        let index = up.or_else(|| untried.min_by_key(|&i| self.list[i].rest()))?;
        self.tried |= 1 << index;
        self.current = index;
        Some(self.list[index].addr)
    }

    /// All addresses, tried or not.
    #[expect(clippy::len_without_is_empty, reason = "there is at least one")]
    pub fn len(&self) -> usize {
        self.list.len()
    }

    /// Addresses that are not tried yet.
    pub(in crate::upstream) fn left(&self) -> usize {
        self.list.len() - self.tried.count_ones() as usize
    }

    /// Notes that the address in use was reached.
    pub fn succeeded(&self) {
        self.list[self.current].health.succeed();
    }

    /// Notes that the address in use could not be reached.
    pub fn failed(&self, now: Instant) {
        self.list[self.current].health.fail(now);
    }

    /// Whether the address in use is to get nothing new: the name no longer has it, or it fails its checks.
    pub fn is_withdrawn(&self) -> bool {
        self.list[self.current].is_withdrawn()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn addrs(ports: impl IntoIterator<Item = u16>) -> Vec<SocketAddr> {
        ports.into_iter().map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect()
    }

    /// The ports in the order in which the next connection tries them.
    fn order(addresses: &UpstreamAddresses, now: Instant) -> Vec<u16> {
        let mut attempts = addresses.attempts();
        std::iter::from_fn(|| attempts.next(now)).map(|addr| addr.port()).collect()
    }

    #[test]
    fn each_connection_begins_at_another_address_and_tries_all() {
        let addresses = UpstreamAddresses::new(&addrs([1, 2, 3]));
        let now = Instant::now();
        let orders = [0; 4].map(|_| order(&addresses, now));
        assert_eq!(orders, [[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]]);
    }

    #[test]
    fn an_address_that_has_failed_is_tried_last_until_it_is_due() {
        let addresses = UpstreamAddresses::new(&addrs([1, 2]));
        let now = Instant::now();
        let mut attempts = addresses.attempts();
        assert_eq!(attempts.next(now).unwrap().port(), 1);
        attempts.failed(now);
        assert_eq!([0; 2].map(|_| order(&addresses, now)), [[2, 1], [2, 1]]);
        let later = now + Duration::from_millis(200);
        addresses.turn.store(0, Ordering::Relaxed);
        assert_eq!(order(&addresses, later), [1, 2], "one connection tries it");
        addresses.turn.store(0, Ordering::Relaxed);
        assert_eq!(order(&addresses, later), [2, 1], "and the others do not");
        attempts.succeeded();
        addresses.turn.store(0, Ordering::Relaxed);
        assert_eq!(order(&addresses, later), [1, 2]);
    }

    #[test]
    fn addresses_are_replaced_as_a_whole_and_those_that_stay_keep_their_health() {
        let addresses = UpstreamAddresses::new(&addrs([1, 2]));
        let now = Instant::now();
        let [mut first, mut second] = [0; 2].map(|_| addresses.attempts());
        assert!(first.next(now) != second.next(now));
        second.failed(now);
        assert!(!addresses.replace(&addrs([2, 1])), "another order is no change");
        assert!(addresses.replace(&addrs([2, 3])));
        assert!(first.is_withdrawn() && !second.is_withdrawn());
        assert_eq!(first.next(now).unwrap().port(), 2, "an older attempt goes on");
        assert_eq!([0; 2].map(|_| order(&addresses, now)), [[3, 2], [3, 2]]);
        assert!(addresses.replace(&addrs([1, 2])));
        assert!(first.next(now).is_none());
    }

    #[test]
    fn an_address_that_fails_its_checks_is_tried_last() {
        let addresses = UpstreamAddresses::new(&addrs([1, 2]));
        let now = Instant::now();
        let mut first = addresses.attempts();
        first.next(now);
        assert!(addresses.set_failing(&addrs([1])) && !addresses.set_failing(&addrs([1])));
        assert!(first.is_withdrawn());
        assert_eq!([0; 2].map(|_| order(&addresses, now)), [[2, 1], [2, 1]]);
        assert!(addresses.set_failing(&[]) && !first.is_withdrawn());
        assert_eq!([0; 2].map(|_| order(&addresses, now)), [[2, 1], [1, 2]]);
    }

    #[test]
    fn addresses_are_bounded_and_unique() {
        let addresses = UpstreamAddresses::new(&addrs((1..=1000).flat_map(|port| [port, port])));
        assert_eq!(addresses.addrs(), addrs(1..=ADDRESSES_MAX as u16));
        assert_eq!(order(&addresses, Instant::now()).len(), ADDRESSES_MAX);
    }
}
