//! Sessions that the proxy keeps itself, instead of handing them out in tickets.

use std::sync::Arc;
use std::time::Duration;

use rustls::server::{ServerSessionMemoryCache, StoresServerSessions};

use super::tickets::{AuthDigest, unix_now};

/// A bounded cache of sessions. Those of another `binding` never come near it.
#[derive(Debug)]
pub(super) struct SessionCache {
    size: usize,
    binding: AuthDigest,
    cache: Arc<ServerSessionMemoryCache>,
}

impl SessionCache {
    /// `size`: sessions at most; the library may round it up.
    pub(super) fn new(size: usize, binding: AuthDigest) -> Self {
        Self { size, binding, cache: ServerSessionMemoryCache::new(size) }
    }

    /// The same sessions, or none if it is not to be the same cache.
    pub(super) fn keep_for(&mut self, size: usize, binding: AuthDigest) {
        if (self.size, self.binding) != (size, binding) {
            *self = Self::new(size, binding);
        }
    }

    /// What rustls asks, which by itself does not mind how old a session is.
    pub(super) fn store(&self, lifetime: Duration) -> Arc<dyn StoresServerSessions> {
        Arc::new(Store { cache: Arc::clone(&self.cache), lifetime })
    }
}

#[derive(Debug)]
struct Store {
    cache: Arc<ServerSessionMemoryCache>,
    lifetime: Duration,
}

impl Store {
    /// Behind a session stands when it was put there, in seconds since 1970.
    fn put_at(&self, id: Vec<u8>, mut session: Vec<u8>, now: u64) -> bool {
        session.extend_from_slice(&now.to_be_bytes());
        self.cache.put(id, session)
    }

    fn if_young(&self, mut session: Vec<u8>, now: u64) -> Option<Vec<u8>> {
        let put_at = u64::from_be_bytes(*session.last_chunk()?);
        session.truncate(session.len() - size_of_val(&put_at));
        (now.saturating_sub(put_at) <= self.lifetime.as_secs()).then_some(session)
    }
}

impl StoresServerSessions for Store {
    fn put(&self, id: Vec<u8>, session: Vec<u8>) -> bool {
        self.put_at(id, session, unix_now())
    }

    fn get(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.cache.get(id).and_then(|session| self.if_young(session, unix_now()))
    }

    fn take(&self, id: &[u8]) -> Option<Vec<u8>> {
        self.cache.take(id).and_then(|session| self.if_young(session, unix_now()))
    }

    fn can_cache(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_kept_for_its_lifetime_and_across_configurations() {
        let mut sessions = SessionCache::new(4, [1; 32]);
        let store = |sessions: &SessionCache| Store {
            cache: Arc::clone(&sessions.cache),
            lifetime: Duration::from_secs(60),
        };
        let now = unix_now();
        for (id, age) in [(b"new", 0), (b"old", 3600)] {
            assert!(store(&sessions).put_at(id.to_vec(), b"session".to_vec(), now - age));
        }
        sessions.keep_for(4, [1; 32]);
        assert_eq!(store(&sessions).get(b"new").unwrap(), b"session");
        assert_eq!(store(&sessions).get(b"old"), None);
        assert_eq!(store(&sessions).take(b"old"), None);
        assert_eq!(store(&sessions).take(b"new").unwrap(), b"session");
        assert_eq!(store(&sessions).get(b"new"), None, "it was taken");
        assert!(store(&sessions).put(b"one".to_vec(), b"session".to_vec()));
        sessions.keep_for(4, [2; 32]);
        assert_eq!(store(&sessions).get(b"one"), None, "other clients are asked for");
    }
}
