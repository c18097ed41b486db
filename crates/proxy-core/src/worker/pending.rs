//! The memory that a worker's connections hold for peers that do not read, and which peer has stalled longest.

use std::collections::BTreeSet;
use std::time::Instant;

/// What waits on all connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct PendingBytes {
    /// Memory of buffers that are not empty, and of what handlers hold.
    pub(crate) held_bytes: usize,
    pub(crate) to_client: StallQueue,
    pub(crate) to_upstream: StallQueue,
}

/// Connections ordered by when their socket last took something, the longest wait first. An entry is made
/// when a write falls short, so a connection whose peer keeps up costs nothing.
#[derive(Debug, Default)]
pub(crate) struct StallQueue(BTreeSet<(Instant, usize)>);

/// Since when none of the waiting bytes has been taken. It is stored with the bytes, so the queue's entry can be
/// found.
#[derive(Debug, Default)]
pub(crate) struct StallEntry(Option<Instant>);

impl PendingBytes {
    pub(crate) fn is_empty(&self) -> bool {
        self.held_bytes == 0
    }
}

impl StallEntry {
    /// Since when none was taken, if any waits.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.0
    }
}

impl StallQueue {
    /// Notes that a write to the connection `key` fell short; `has_moved`: it took some bytes.
    pub(crate) fn note(&mut self, stalled: &mut StallEntry, key: usize, has_moved: bool, now: Instant) {
        if has_moved || stalled.0.is_none() {
            self.forget(stalled, key);
            self.0.insert((now, key));
            stalled.0 = Some(now);
        }
    }

    /// Forgets a connection for which nothing waits any more.
    pub(crate) fn forget(&mut self, stalled: &mut StallEntry, key: usize) {
        if let Some(since) = stalled.0.take() {
            self.0.remove(&(since, key));
        }
    }

    /// The connection that has waited longest, and since when.
    pub(crate) fn oldest(&self) -> Option<(Instant, usize)> {
        self.0.first().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_longest_wait_is_the_oldest_until_its_socket_takes_something() {
        let (mut stalls, start) = (StallQueue::default(), Instant::now());
        let after = |ms| start + Duration::from_millis(ms);
        let mut stalled: [StallEntry; 3] = Default::default();
        for (key, ms) in [(2, 0), (0, 10), (1, 20)] {
            stalls.note(&mut stalled[key], key, false, after(ms));
        }
        stalls.note(&mut stalled[2], 2, false, after(30));
        assert_eq!(stalls.oldest(), Some((start, 2)), "nothing was taken");
        stalls.note(&mut stalled[2], 2, true, after(30));
        assert_eq!(stalls.oldest(), Some((after(10), 0)));
        for (key, rest) in [(0, Some((after(20), 1))), (1, Some((after(30), 2))), (2, None)] {
            stalls.forget(&mut stalled[key], key);
            assert_eq!(stalls.oldest(), rest);
        }
    }
}
