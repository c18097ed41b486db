//! The addresses that have completed a handshake before, in memory of a fixed size.

use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU32, Ordering};

use foldhash::quality::RandomState;
use records::ids::ClientId;

/// Entries of a bucket.
const WAYS: usize = 4;
/// Buckets, 256 KiB in all.
const PLACES: usize = 16 << 10;

/// Addresses that have been seen, as tags of a keyed hash. All workers share it.
///
/// An address is known until four others have taken its place, so hardly any of up to some 30,000 addresses is
/// forgotten. A forgotten address counts as new. An unknown address is taken for a known one with a probability of 1
/// in 10^9.
pub(crate) struct SeenAddresses {
    hashes: RandomState,
    /// 0 marks an empty entry.
    tags: Box<[[AtomicU32; WAYS]]>,
}

impl Default for SeenAddresses {
    fn default() -> Self {
        let tags = (0..PLACES).map(|_| Default::default()).collect();
        Self { hashes: RandomState::default(), tags }
    }
}

impl SeenAddresses {
    /// Marks an address as seen; returns whether it was before. If two threads mark a new address at the same time,
    /// only one gets the result that it is new.
    pub(crate) fn mark(&self, client: ClientId) -> bool {
        let hash = self.hashes.hash_one(client);
        let tags = &self.tags[hash as usize % PLACES];
        let tag = ((hash >> 32) as u32).max(1);
        for known in tags {
            let mut found = known.load(Ordering::Relaxed);
            if found == 0 {
                match known.compare_exchange(0, tag, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(_) => return false,
                    Err(theirs) => found = theirs,
                }
            }
            if found == tag {
                return true;
            }
        }
        let victim = &tags[tag as usize % WAYS];
        victim.swap(tag, Ordering::Relaxed) == tag
    }
}

impl std::fmt::Debug for SeenAddresses {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeenAddresses").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::thread;

    use super::*;

    fn client(n: u32) -> ClientId {
        ClientId::Addr(Ipv4Addr::from_bits(n).into())
    }

    #[test]
    fn an_address_is_new_once() {
        let seen = SeenAddresses::default();
        assert!(!seen.mark(client(1)) && !seen.mark(client(2)));
        assert!(seen.mark(client(1)) && seen.mark(client(2)));
    }

    #[test]
    fn few_of_many_addresses_are_forgotten_and_memory_does_not_grow() {
        let seen = SeenAddresses::default();
        let known = (0..20_000).filter(|&n| seen.mark(client(n))).count();
        assert_eq!(known, 0, "none is taken for another one");
        let forgotten = (0..20_000).filter(|&n| !seen.mark(client(n))).count();
        assert!(forgotten < 500, "{forgotten}");
        (0..1_000_000).for_each(|n| _ = seen.mark(client(n)));
        assert_eq!(seen.tags.len() * WAYS, 64 << 10);
    }

    #[test]
    fn one_of_several_threads_is_the_first_to_see_an_address() {
        let seen = SeenAddresses::default();
        let first = || (0..1_000).filter(|&n| !seen.mark(client(n))).count();
        let all = thread::scope(|scope| {
            let threads = [0; 4].map(|_| scope.spawn(first));
            threads.map(|thread| thread.join().unwrap())
        });
        assert_eq!(all.iter().sum::<usize>(), 1_000);
    }
}
