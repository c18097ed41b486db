//! What a worker does while memory is short.

use std::time::{Duration, Instant};

use super::Worker;
use crate::connection::handler::Handler;
use crate::memory::MemoryLevel;

/// Idle connections that a worker closes for a sample of memory, which takes it a few milliseconds.
const CLOSED_MAX: usize = 256;
/// A connection on which less time has passed without a byte is in use: closing it would cost a handshake at once. In TCP
/// mode a response may pause for this long.
const IDLE_MIN: Duration = Duration::from_secs(5);

impl<H: Handler> Worker<H> {
    /// Acts on a sample of memory. What waits for peers that do not read may grow by what the sample left, as the next one
    /// may come late. If memory is short, closes connections that have been idle for longest; once it is exhausted, cuts
    /// those that hold much of it, an eighth for each sample.
    #[cold]
    pub(super) fn relieve_memory(&mut self) {
        self.memory_sample = self.control.memory.samples();
        self.context.memory = self.control.memory.level();
        let held_bytes = self.context.pending.held_bytes;
        self.context.pending_bytes_left = match self.context.memory {
            MemoryLevel::Exhausted => held_bytes - held_bytes / 8,
            MemoryLevel::Enough | MemoryLevel::Short => {
                held_bytes.saturating_add(self.control.share(self.control.memory.room_bytes()))
            }
        };
        self.bound_pending();
        let Some(until) = self.context.now.checked_sub(IDLE_MIN) else { return };
        if self.context.memory == MemoryLevel::Enough {
            return;
        }
        H::close_idle_resources(&mut self.resources, until);
        let idle =
            self.connections.iter().filter_map(|(key, connection)| Some((connection.idle_since()?, key)));
        for key in longest_idle(idle.filter(|(since, _)| *since <= until).collect()) {
            self.connections[key].close_idle(&mut self.context, &mut self.resources);
            self.again.push(key);
        }
    }

    /// Reports how much it holds for peers that do not read.
    pub(super) fn report_pending(&mut self) {
        let held_bytes = self.context.pending.held_bytes;
        self.control.memory.report_pending(self.reported_pending, held_bytes);
        self.reported_pending = held_bytes;
    }
}

/// The keys of the connections that have been idle for longest, at most [`CLOSED_MAX`].
fn longest_idle(mut idle: Vec<(Instant, usize)>) -> impl Iterator<Item = usize> {
    if idle.len() > CLOSED_MAX {
        idle.select_nth_unstable(CLOSED_MAX);
        idle.truncate(CLOSED_MAX);
    }
    idle.into_iter().map(|(_, key)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_have_been_idle_for_longest_are_closed_first() {
        let now = Instant::now();
        let idle =
            |n: usize| (0..n).rev().map(|key| (now + Duration::from_millis(key as u64), key)).collect();
        assert_eq!(longest_idle(idle(3)).count(), 3);
        let mut closed: Vec<usize> = longest_idle(idle(1_000)).collect();
        closed.sort_unstable();
        assert_eq!(closed, (0..CLOSED_MAX).collect::<Vec<_>>());
    }
}
