//! The sessions that one client can resume.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

/// Fewest tickets that a client can keep.
const TICKETS_MAX_LEAST: usize = 8;

/// The TLS sessions of a client. [`SessionStore::allow`] decides before each connection whether rustls may resume
/// one. There is one server, so its name is not a key.
///
/// rustls needs a thread-safe store. The mutex is never contended, because a client stays on one thread, and it is
/// locked a few times per connection.
#[derive(Debug)]
pub struct SessionStore {
    kept: Mutex<StoredSessions>,
    forgetting: SessionReset,
}

/// Makes all clients of a load forget their sessions. Clones share their state.
#[derive(Clone, Debug, Default)]
pub struct SessionReset(Arc<AtomicU64>);

impl SessionReset {
    /// Each client forgets its sessions before its next connection.
    pub fn ask(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn asked(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[derive(Debug, Default)]
struct StoredSessions {
    allowed: bool,
    offered: bool,
    /// How often the sessions were forgotten.
    forgotten: u64,
    group: Option<NamedGroup>,
    /// TLS 1.2: one session, used many times.
    session: Option<Tls12ClientSessionValue>,
    /// TLS 1.3: single-use tickets, at most `tickets_max`. The newest is offered first, since it is valid the longest; the
    /// oldest is dropped first.
    tickets: VecDeque<Tls13ClientSessionValue>,
    tickets_max: usize,
}

impl SessionStore {
    /// A store for a client with `connections` at a time: servers send one or two tickets on a connection, and a resumed
    /// connection uses one.
    pub fn new(connections: usize, forgetting: SessionReset) -> Self {
        let tickets_max = connections.saturating_mul(2).max(TICKETS_MAX_LEAST);
        let kept = StoredSessions { tickets_max, forgotten: forgetting.asked(), ..StoredSessions::default() };
        Self { kept: Mutex::new(kept), forgetting }
    }

    /// Sets whether the next connection may offer a session.
    pub fn allow(&self, allowed: bool) {
        let mut kept = self.kept();
        let asked = self.forgetting.asked();
        if std::mem::replace(&mut kept.forgotten, asked) != asked {
            kept.session = None;
            kept.tickets.clear();
        }
        (kept.allowed, kept.offered) = (allowed, false);
    }

    /// Whether the connection that began last was given a session to offer.
    pub fn was_offered(&self) -> bool {
        self.kept().offered
    }

    fn kept(&self) -> MutexGuard<'_, StoredSessions> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientSessionStore for SessionStore {
    fn set_kx_hint(&self, _server: ServerName<'static>, group: NamedGroup) {
        self.kept().group = Some(group);
    }

    fn kx_hint(&self, _server: &ServerName<'_>) -> Option<NamedGroup> {
        self.kept().group
    }

    fn set_tls12_session(&self, _server: ServerName<'static>, session: Tls12ClientSessionValue) {
        self.kept().session = Some(session);
    }

    fn tls12_session(&self, _server: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        let mut kept = self.kept();
        let session = kept.session.clone().filter(|_| kept.allowed);
        kept.offered |= session.is_some();
        session
    }

    fn remove_tls12_session(&self, _server: &ServerName<'static>) {
        self.kept().session = None;
    }

    fn insert_tls13_ticket(&self, _server: ServerName<'static>, ticket: Tls13ClientSessionValue) {
        let mut kept = self.kept();
        if kept.tickets.len() >= kept.tickets_max {
            kept.tickets.pop_front();
        }
        kept.tickets.push_back(ticket);
    }

    fn take_tls13_ticket(&self, _server: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        let mut kept = self.kept();
        let ticket = if kept.allowed { kept.tickets.pop_back() } else { None };
        kept.offered |= ticket.is_some();
        ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_kept_tickets_follows_the_connections() {
        assert_eq!(SessionStore::new(1, SessionReset::default()).kept().tickets_max, TICKETS_MAX_LEAST);
        assert_eq!(SessionStore::new(100, SessionReset::default()).kept().tickets_max, 200);
    }
}
