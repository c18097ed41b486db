//! Resolves the names of upstreams again, on a thread of its own, because a look-up may block.

use std::io;
use std::net::SocketAddr;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::upstream::balance::Upstreams;
use crate::upstream::names::resolver::Resolver;

/// How often a name is resolved.
const RESOLVE_INTERVAL: Duration = Duration::from_secs(30);
/// How often at most, whatever fails and whoever asks.
const RESOLVE_INTERVAL_MIN: Duration = Duration::from_secs(1);

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
}
