//! Sessions that the proxy keeps itself, instead of handing them out in tickets.

use std::fmt;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lru::LruCache;
use rustls::server::StoresServerSessions;
use zeroize::Zeroizing;

use crate::tls::certificates::authorities::AuthDigest;
use crate::tls::resumption::session;
use crate::tls::resumption::session::OfferedSession;
use crate::tls::resumption::tickets::Ticketer;
use crate::tls::server::evidence::HandshakeNotes;

/// Longest session identifier; rustls makes its own this long. A longer value is a ticket.
const ID_BYTES_MAX: usize = 32;

/// A bounded cache of sessions, which evicts the least recently used one.
#[derive(Clone, Debug)]
pub(in crate::tls) struct SessionCache(Arc<Mutex<CachedSessions>>);

struct CachedSessions {
    size: usize,
    by_id: LruCache<Box<[u8]>, CachedSession>,
    /// Hashes of the identifiers of recently evicted or used sessions, at most `size`.
    gone: LruCache<u64, ()>,
    hashes: RandomState,
}

struct CachedSession {
    secret: Zeroizing<Vec<u8>>,
    /// When its first handshake was, in seconds since 1970.
    began_at: u64,
    binding: AuthDigest,
}

impl SessionCache {
    pub(in crate::tls) fn new(size: usize) -> Self {
        Self(Arc::new(Mutex::new(CachedSessions {
            size,
            by_id: LruCache::unbounded(),
            gone: LruCache::unbounded(),
            hashes: RandomState::new(),
        })))
    }

    pub(in crate::tls) fn resize(&self, size: usize) {
        let mut sessions = lock(&self.0);
        sessions.size = size;
        sessions.fit();
    }

    /// An empty cache, which remembers that it had these sessions.
    pub(in crate::tls) fn emptied(&self) -> Self {
        let mut sessions = lock(&self.0);
        let (size, hashes) = (sessions.size, sessions.hashes.clone());
        while sessions.evict().is_some() {}
        let gone = std::mem::replace(&mut sessions.gone, LruCache::unbounded());
        Self(Arc::new(Mutex::new(CachedSessions { size, by_id: LruCache::unbounded(), gone, hashes })))
    }

    /// The storage of rustls, which checks neither the age of a session nor its binding. `tickets` classifies offered
    /// tickets.
    pub(in crate::tls) fn store(
        &self,
        lifetime: Duration,
        binding: AuthDigest,
        tickets: Arc<Ticketer>,
    ) -> Arc<dyn StoresServerSessions> {
        Arc::new(Store { cache: self.clone(), lifetime, binding, tickets })
    }
}

fn lock(sessions: &Mutex<CachedSessions>) -> MutexGuard<'_, CachedSessions> {
    sessions.lock().unwrap_or_else(PoisonError::into_inner)
}

impl CachedSessions {
    fn put(&mut self, id: Vec<u8>, session: CachedSession) {
        self.by_id.put(id.into(), session);
        self.fit();
    }

    /// Evicts sessions beyond the limit.
    fn fit(&mut self) {
        while self.by_id.len() > self.size {
            self.evict();
        }
        while self.gone.len() > self.size {
            self.gone.pop_lru();
        }
    }

    fn evict(&mut self) -> Option<()> {
        let (id, _) = self.by_id.pop_lru()?;
        self.remember_gone(&id);
        Some(())
    }

    fn remember_gone(&mut self, id: &[u8]) {
        self.gone.put(self.hashes.hash_one(id), ());
        if self.gone.len() > self.size {
            self.gone.pop_lru();
        }
    }

    fn was_here(&self, id: &[u8]) -> bool {
        self.gone.contains(&self.hashes.hash_one(id))
    }
}

impl fmt::Debug for CachedSessions {
    // By hand, so no secret can appear.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("len", &self.by_id.len()).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Store {
    cache: SessionCache,
    lifetime: Duration,
    binding: AuthDigest,
    tickets: Arc<Ticketer>,
}

impl Store {
    fn put_begun(&self, id: Vec<u8>, session: Vec<u8>, began_at: u64) -> bool {
        let session = CachedSession { secret: Zeroizing::new(session), began_at, binding: self.binding };
        lock(&self.cache.0).put(id, session);
        true
    }

    /// The session, if it may be resumed, and the evidence about it.
    fn look(&self, id: &[u8], is_taken: bool, now: u64) -> Option<Vec<u8>> {
        let mut sessions = lock(&self.cache.0);
        let Some(found) = sessions.by_id.get(id) else {
            let was_here = sessions.was_here(id);
            drop(sessions);
            HandshakeNotes::offered(|_| match id.len() {
                ..=ID_BYTES_MAX => was_here.then_some(OfferedSession::Evicted),
                _ => self.tickets.refuse(id),
            });
            return None;
        };
        let began_at = found.began_at;
        let opened = if found.binding == self.binding {
            session::age(&found.secret, began_at, now, self.lifetime, self.tickets.revocation.as_ref())
                .map(|age| (found.secret.to_vec(), age))
        } else {
            Err(OfferedSession::ClientAuth)
        };
        if is_taken {
            sessions.by_id.pop(id);
            sessions.remember_gone(id);
        }
        drop(sessions);
        HandshakeNotes::offered(|name| match &opened {
            Ok((session, age)) => OfferedSession::opened(session, began_at, *age, name),
            Err(refused) => Some(*refused),
        });
        opened.ok().map(|(session, _)| session)
    }
}

impl StoresServerSessions for Store {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        self.put_begun(
            id,
            session,
            HandshakeNotes::resumed_session_began_at().unwrap_or_else(self.tickets.clock),
        )
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.look(id, false, (self.tickets.clock)())
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.look(id, true, (self.tickets.clock)())
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::tls::clock::unix_now;
    use crate::tls::resumption::tickets::RotatingTicketKeys;
    use crate::tls::testing::SESSION;

    fn store(cache: &SessionCache, binding: u8) -> Store {
        let (lifetime, binding) = (Duration::from_secs(60), [binding; 32]);
        let keys = RotatingTicketKeys::new(Instant::now()).unwrap().keys();
        let tickets = Arc::new(Ticketer::new(keys, lifetime, binding));
        Store { cache: cache.clone(), lifetime, binding, tickets }
    }

    /// The note of the last call.
    fn noted() -> Option<OfferedSession> {
        HandshakeNotes::take().offered
    }

    #[test]
    fn a_session_is_kept_for_its_lifetime_and_across_configurations() {
        let cache = SessionCache::new(4);
        let now = unix_now();
        for (id, age) in [(b"new", 0), (b"old", 3600)] {
            assert!(store(&cache, 1).put_begun(id.to_vec(), SESSION.to_vec(), now - age));
        }
        cache.resize(3);
        assert_eq!(store(&cache, 1).get(b"new").unwrap(), SESSION);
        assert!(matches!(noted(), Some(OfferedSession::Opened { .. })));
        assert_eq!(store(&cache, 1).get(b"old"), None);
        let is_expired =
            |noted| matches!(noted, Some(OfferedSession::Expired { age }) if age.as_secs() >= 3600);
        assert!(is_expired(noted()));
        assert_eq!(store(&cache, 1).take(b"old"), None);
        assert!(is_expired(noted()));
        assert_eq!(store(&cache, 2).get(b"new"), None, "other clients are asked for");
        assert_eq!(noted(), Some(OfferedSession::ClientAuth));
        assert_eq!(store(&cache, 1).take(b"new").unwrap(), SESSION);
        noted();
        assert_eq!(store(&cache, 1).get(b"new"), None, "it was taken");
        assert_eq!(noted(), Some(OfferedSession::Evicted));
    }

    #[test]
    fn the_session_longest_unused_makes_room_and_is_remembered_for_a_while() {
        let cache = SessionCache::new(2);
        let store = store(&cache, 1);
        for id in [b"a", b"b"] {
            store.put(id.to_vec(), SESSION.to_vec());
        }
        assert!(store.get(b"a").is_some());
        store.put(b"c".to_vec(), SESSION.to_vec());
        noted();
        assert!(store.get(b"b").is_none());
        assert_eq!(noted(), Some(OfferedSession::Evicted));
        assert!(store.get(b"never").is_none());
        assert_eq!(noted(), None, "nobody knows whose it is");
        for id in 0..100_u8 {
            store.put(vec![id, 0], SESSION.to_vec());
        }
        noted();
        assert!(store.get(b"b").is_none());
        assert_eq!(noted(), None, "what is known of former sessions is bounded too");
        let sessions = lock(&cache.0);
        assert_eq!((sessions.by_id.len(), sessions.gone.len()), (2, 2));
    }

    #[test]
    fn sessions_that_were_forgotten_are_known_to_be_gone() {
        let cache = SessionCache::new(2);
        store(&cache, 1).put(b"a".to_vec(), SESSION.to_vec());
        let emptied = cache.emptied();
        assert!(store(&emptied, 1).get(b"a").is_none());
        assert_eq!(noted(), Some(OfferedSession::Evicted));
        store(&cache, 1).put(b"late".to_vec(), SESSION.to_vec());
        assert!(store(&emptied, 1).get(b"late").is_none(), "a handshake under way ends with the former one");
    }
}
