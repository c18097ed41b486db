//! The bound on connections of one client, over all workers.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use records::ids::ClientId;

/// Parts of the table with their own locks, so workers seldom wait for each other.
const PARTS: usize = 64;

/// The number of connections of each client. Only used with a limit; each connection then takes a mutex twice, for a
/// table lookup.
#[derive(Debug)]
pub(crate) struct ClientConnCounts {
    parts: [Mutex<HashMap<ClientId, usize>>; PARTS],
    /// Keyed at random in each process, so no client can choose addresses that share a shard.
    hasher: RandomState,
}

impl Default for ClientConnCounts {
    fn default() -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()), hasher: RandomState::new() }
    }
}

impl ClientConnCounts {
    /// Takes one of the `max` connections of `client`, if one is free. IPv6 counts by /64, the range of one
    /// subscriber.
    pub(crate) fn enter(&self, client: ClientId, max: usize) -> bool {
        self.change(client, |open| {
            let has_room = *open < max;
            *open += usize::from(has_room);
            has_room
        })
    }

    pub(crate) fn leave(&self, client: ClientId) {
        self.change(client, |open| *open -= 1);
    }

    fn change<T>(&self, client: ClientId, change: impl FnOnce(&mut usize) -> T) -> T {
        let client = client.by_prefix_64();
        let part = self.hasher.hash_one(client) as usize % PARTS;
        let mut part = self.parts[part].lock().unwrap_or_else(PoisonError::into_inner);
        let open = part.entry(client).or_insert(0);
        let result = change(open);
        if *open == 0 {
            part.remove(&client);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::IpAddr;

    #[test]
    fn the_limit_per_client_holds_and_its_entry_is_removed() {
        let id = |text: &str| ClientId::from(text.parse::<IpAddr>().unwrap());
        let table = ClientConnCounts::default();
        assert!(table.enter(id("192.0.2.1"), 2) && table.enter(id("192.0.2.1"), 2));
        assert!(!table.enter(id("192.0.2.1"), 2) && table.enter(id("192.0.2.2"), 2));
        table.leave(id("192.0.2.1"));
        assert!(table.enter(id("192.0.2.1"), 2));
        assert!(table.enter(id("2001:db8::1"), 1) && !table.enter(id("2001:db8::2"), 1));
        assert!(!table.enter(id("192.0.2.9"), 0));
        for client in ["192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::7"] {
            table.leave(id(client));
        }
        assert!(table.parts.iter().all(|part| part.lock().unwrap().is_empty()));
    }
}
