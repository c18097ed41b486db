//! Resolves the names of upstreams again, on a thread of its own, because a look-up may block.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::upstream::balance::Upstreams;
use crate::upstream::target::Upstream;

/// How often a name is resolved.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(30);
/// How often at most, whatever fails and whoever asks.
const RESOLVE_INTERVAL_MIN: Duration = Duration::from_secs(1);

type LookUp = dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync;

/// Looks up the addresses of a host and port. The default is the system's look-up, with `/etc/hosts`.
#[derive(Clone)]
pub struct Resolver(Arc<LookUp>);

impl Resolver {
    /// A resolver that calls `look_up`, which may block.
    pub fn new(look_up: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync + 'static) -> Self {
        Self(Arc::new(look_up))
    }

    /// Looks up the names of these upstreams now, which may block: the result answers from memory.
    pub(crate) fn looked_up<'a>(&self, upstreams: impl IntoIterator<Item = &'a Upstream>) -> Self {
        let names = upstreams.into_iter().filter_map(Upstream::name);
        let look_up = |(host, port): (&str, u16)| {
            ((host.to_owned(), port), self.resolve(host, port).map_err(|error| error.to_string()))
        };
        let known: HashMap<_, _> = names.map(look_up).collect();
        let absent = || Err("it has not been looked up".to_owned());
        Self::new(move |host, port| {
            // An address needs no look-up.
            if let Ok(ip) = host.parse::<IpAddr>() {
                return Ok(vec![SocketAddr::new(ip, port)]);
            }
            known.get(&(host.to_owned(), port)).cloned().unwrap_or_else(absent).map_err(io::Error::other)
        })
    }

    /// The addresses of a host and port, at least one.
    ///
    /// # Errors
    /// When there is none, or they cannot be looked up.
    pub(crate) fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        let addrs = (self.0)(host, port)?;
        if addrs.is_empty() {
            return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address"));
        }
        Ok(addrs)
    }
}

impl Default for Resolver {
    fn default() -> Self {
        Self::new(|host, port| Ok((host, port).to_socket_addrs()?.collect()))
    }
}

impl fmt::Debug for Resolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resolver").finish_non_exhaustive()
    }
}

/// A name that is resolved again and again.
#[derive(Debug)]
struct ScheduledName {
    /// The upstream's index.
    index: usize,
    host: String,
    port: u16,
    resolved_at: Instant,
    /// Whether it is to be resolved before its time.
    is_wanted: bool,
}

impl ScheduledName {
    fn due_at(&self) -> Instant {
        self.resolved_at + if self.is_wanted { RESOLVE_INTERVAL_MIN } else { RESOLVE_INTERVAL }
    }
}

/// Starts the thread `resolver`, unless no upstream has a name; if it runs, tells it of new names. It ends once
/// `upstreams` is dropped. Nobody waits for it, since a look-up may hang. `own` are the proxy's own addresses.
///
/// # Errors
/// When the kernel refuses a thread.
pub(crate) fn start(upstreams: &Arc<Upstreams>, own: Vec<SocketAddr>, resolver: Resolver) -> io::Result<()> {
    if upstreams.wake_resolver() || upstreams.names().next().is_none() {
        return Ok(());
    }
    // One message is enough to wake the thread; the upstreams note what is wanted.
    let (wake, woken) = mpsc::sync_channel(1);
    upstreams.set_resolver_waker(wake);
    let mut thread =
        ResolverThread { upstreams: Arc::downgrade(upstreams), names: Vec::new(), own, resolver };
    thread.update_names(upstreams, Instant::now());
    thread::Builder::new().name("resolver".to_owned()).spawn(move || thread.run(&woken))?;
    Ok(())
}

struct ResolverThread {
    upstreams: Weak<Upstreams>,
    names: Vec<ScheduledName>,
    own: Vec<SocketAddr>,
    resolver: Resolver,
}

impl ResolverThread {
    fn run(mut self, woken: &Receiver<()>) {
        loop {
            let next = self.names.iter().map(ScheduledName::due_at).min();
            let timeout = next.map_or(RESOLVE_INTERVAL, |at| at.saturating_duration_since(Instant::now()));
            if woken.recv_timeout(timeout) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            let Some(upstreams) = self.upstreams.upgrade() else { return };
            self.update_names(&upstreams, Instant::now());
            let wanted = upstreams.wanted_names();
            drop(upstreams);
            for name in &mut self.names {
                name.is_wanted |= wanted & (1 << name.index) != 0;
            }
            self.resolve_due(Instant::now());
        }
    }

    /// Takes over which upstreams have names. New ones have just been resolved.
    fn update_names(&mut self, upstreams: &Upstreams, now: Instant) {
        let before = std::mem::take(&mut self.names);
        let resolved_at = |index| before.iter().find(|name| name.index == index).map(|name| name.resolved_at);
        let name = |(index, host, port)| {
            let resolved_at = resolved_at(index).unwrap_or(now);
            ScheduledName { index, host, port, resolved_at, is_wanted: false }
        };
        self.names = upstreams.names().map(name).collect();
    }

    fn resolve_due(&mut self, now: Instant) {
        for name in self.names.iter_mut().filter(|name| name.due_at() <= now) {
            // The upstreams are not held meanwhile: a look-up may outlive them.
            let resolved = self.resolver.resolve(&name.host, name.port);
            let Some(upstreams) = self.upstreams.upgrade() else { return };
            let ended_at = Instant::now();
            upstreams.set_resolved(name.index, resolved, &self.own, ended_at);
            (name.resolved_at, name.is_wanted) = (ended_at, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_resolved_every_30_seconds_and_on_request_once_a_second() {
        let now = Instant::now();
        let mut name =
            ScheduledName { index: 0, host: "app".into(), port: 80, resolved_at: now, is_wanted: false };
        assert_eq!(name.due_at() - now, Duration::from_secs(30));
        name.is_wanted = true;
        assert_eq!(name.due_at() - now, Duration::from_secs(1));
    }

    #[test]
    fn the_systems_resolver_knows_addresses_and_the_hosts_file() {
        let resolver = Resolver::default();
        for (host, port) in [("127.0.0.1", 80), ("::1", 80), ("localhost", 8080)] {
            let addrs = resolver.resolve(host, port).unwrap();
            assert!(addrs.iter().all(|addr| addr.ip().is_loopback() && addr.port() == port), "{addrs:?}");
        }
        assert!(Resolver::new(|_, _| Ok(Vec::new())).resolve("app", 80).is_err());
    }
}
