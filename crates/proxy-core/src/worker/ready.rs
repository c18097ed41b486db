//! The connections that are ready, in two classes: handshakes, each of which takes the worker a fraction of a
//! millisecond, and all others, which take microseconds and are served first.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::connection::handler::Handler;

/// CPU time of handshakes in a turn, which the last one may exceed: an established connection that becomes
/// ready meanwhile waits that long. A shorter slice costs more looks at the kernel's events. One RSA-2048
/// signature takes longer.
const HANDSHAKE_SLICE: Duration = Duration::from_micros(250);
/// How long a ready handshake may wait for the worker before fewer are taken from the backlog.
const HANDSHAKE_WAIT: Duration = Duration::from_millis(5);
/// Handshakes that may be ready at once, at most.
const HANDSHAKES_READY_MAX: usize = 64;

/// When the handshakes of a turn must end if they begin at `now` and the other connections were served from `began_at`
/// on. Handshakes get as much time as the others, so neither class takes more than half of the CPU.
pub(super) fn handshakes_until(began_at: Instant, now: Instant) -> Instant {
    now + now.saturating_duration_since(began_at).max(HANDSHAKE_SLICE)
}

/// Connections that wait for the worker.
#[derive(Debug)]
pub(super) struct ReadyQueue {
    pub(super) established: Vec<usize>,
    /// In the order in which they became ready, each with the time since when it is ready.
    handshakes: VecDeque<(usize, Instant)>,
    /// The number of ready handshakes at which no further connection is accepted. Clients that have sent nothing are
    /// not ready, so they take no place.
    handshakes_max: usize,
    /// Handshakes taken since `handshakes_max` last changed.
    taken: usize,
}

impl Default for ReadyQueue {
    fn default() -> Self {
        Self {
            established: Vec::new(),
            handshakes: VecDeque::new(),
            handshakes_max: HANDSHAKES_READY_MAX,
            taken: 0,
        }
    }
}

impl ReadyQueue {
    /// Adds a connection, unless it is there already.
    pub(super) fn push<H: Handler>(&mut self, connection: &mut Connection<H>, key: usize, now: Instant) {
        if connection.is_listed {
            return;
        }
        connection.is_listed = true;
        if connection.is_handshaking() {
            self.handshakes.push_back((key, now));
        } else {
            self.established.push(key);
        }
    }

    /// How many handshakes are ready.
    pub(super) fn handshakes(&self) -> usize {
        self.handshakes.len()
    }

    /// Takes the handshake that has waited longest, in the turn that began at `began_at`. A handshake that became
    /// ready in this turn has not waited, however long the other connections take. Returns it with the time since it
    /// became ready.
    pub(super) fn take_handshake(&mut self, began_at: Instant) -> Option<(usize, Instant)> {
        let (key, since) = self.handshakes.pop_front()?;
        self.adapt(began_at.saturating_duration_since(since));
        Some((key, since))
    }

    /// How many connections may be accepted.
    pub(super) fn room(&self) -> usize {
        self.handshakes_max.saturating_sub(self.handshakes.len())
    }

    /// Allows one more ready handshake, or half as many, depending on how long one had to wait. The bound
    /// changes once it has been reached in handshakes taken, as with AIMD in TCP: only then does the last
    /// change show.
    fn adapt(&mut self, waited: Duration) {
        self.taken += 1;
        if self.taken < self.handshakes_max {
            return;
        }
        self.taken = 0;
        self.handshakes_max = if waited > HANDSHAKE_WAIT {
            (self.handshakes_max / 2).max(1)
        } else {
            (self.handshakes_max + 1).min(HANDSHAKES_READY_MAX)
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Serves `n` handshakes that each waited `waited` for a turn.
    fn take(queue: &mut ReadyQueue, n: usize, waited: Duration) {
        let since = Instant::now();
        for _ in 0..n {
            queue.handshakes.push_back((7, since));
            assert_eq!(queue.take_handshake(since + waited), Some((7, since)));
        }
    }

    #[test]
    fn handshakes_get_as_long_as_the_others_and_a_slice_at_least() {
        let began_at = Instant::now();
        let after = |us| began_at + Duration::from_micros(us);
        assert_eq!(handshakes_until(began_at, began_at), began_at + HANDSHAKE_SLICE);
        assert_eq!(handshakes_until(began_at, after(100)), after(100) + HANDSHAKE_SLICE);
        assert_eq!(handshakes_until(began_at, after(3_000)), after(6_000));
    }

    #[test]
    fn the_handshake_that_has_waited_longest_is_taken() {
        let (mut queue, now) = (ReadyQueue::default(), Instant::now());
        queue.handshakes.extend([(3, now), (1, now), (2, now)]);
        let mut take = || queue.take_handshake(now).map(|(key, _)| key);
        assert_eq!([take(), take(), take(), take()], [Some(3), Some(1), Some(2), None]);
    }

    #[test]
    fn fewer_are_accepted_while_handshakes_wait_too_long() {
        let mut queue = ReadyQueue::default();
        assert_eq!(queue.room(), HANDSHAKES_READY_MAX);
        let long = HANDSHAKE_WAIT + Duration::from_micros(1);
        // Handshakes from before the limit was lowered do not show the waiting time since.
        for expected in [32, 16, 8, 4, 2, 1, 1] {
            let taken = queue.handshakes_max;
            take(&mut queue, taken - 1, long);
            assert_eq!(queue.room(), taken);
            take(&mut queue, 1, long);
            assert_eq!(queue.room(), expected);
        }
        for expected in [2, 3, 4] {
            let taken = queue.handshakes_max;
            take(&mut queue, taken, HANDSHAKE_WAIT);
            assert_eq!(queue.room(), expected);
        }
        let now = Instant::now();
        queue.handshakes.extend([(1, now); 3]);
        assert_eq!(queue.room(), 1);
        queue.handshakes.extend([(1, now); 3]);
        assert_eq!(queue.room(), 0);
    }

    #[test]
    fn handshakes_served_in_their_first_turn_need_no_limit() {
        let mut queue = ReadyQueue::default();
        take(&mut queue, HANDSHAKES_READY_MAX, HANDSHAKE_WAIT * 2);
        assert!(queue.room() < HANDSHAKES_READY_MAX);
        // A connection that became ready in a long turn may be later than the turn's beginning.
        let began_at = Instant::now();
        for _ in 0..HANDSHAKES_READY_MAX * HANDSHAKES_READY_MAX {
            queue.handshakes.push_back((7, began_at + HANDSHAKE_WAIT * 2));
            queue.take_handshake(began_at);
        }
        assert_eq!(queue.room(), HANDSHAKES_READY_MAX);
    }

    proptest! {
        #[test]
        fn some_may_always_be_ready_and_never_too_many(waits in prop::collection::vec(0..20_000_u64, 0..1_000)) {
            let mut queue = ReadyQueue::default();
            for us in waits {
                take(&mut queue, 1, Duration::from_micros(us));
                prop_assert!((1..=HANDSHAKES_READY_MAX).contains(&queue.room()));
            }
        }
    }
}
