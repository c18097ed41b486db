//! The deadlines of a worker's connections, in order. Each operation costs a step in a tree; none visits all
//! connections.

use std::collections::BTreeSet;
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum TimerKind {
    /// The state of the connection: its handshake, its handler, or its closing.
    State,
    /// The session ticket that waits for the first answer.
    Ticket,
}

/// When a deadline is due. It is stored with its owner, so it can be disarmed.
#[derive(Debug, Default)]
pub(crate) struct Deadline(Option<Instant>);

impl Deadline {
    pub(crate) fn at(&self) -> Option<Instant> {
        self.0
    }
}

#[derive(Debug, Default)]
pub(crate) struct ConnTimers {
    due: BTreeSet<(Instant, usize, TimerKind)>,
}

impl ConnTimers {
    /// Sets the deadline of `kind` of the connection `key`, and replaces the former one.
    pub(crate) fn arm(&mut self, deadline: &mut Deadline, key: usize, kind: TimerKind, at: Instant) {
        self.disarm(deadline, key, kind);
        self.due.insert((at, key, kind));
        deadline.0 = Some(at);
    }

    /// Forgets a deadline, if there is one.
    pub(crate) fn disarm(&mut self, deadline: &mut Deadline, key: usize, kind: TimerKind) {
        if let Some(at) = deadline.0.take() {
            self.due.remove(&(at, key, kind));
        }
    }

    /// When the next deadline is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.due.first().map(|&(at, ..)| at)
    }

    /// Takes a deadline that has passed. Its owner must arm or disarm it then.
    pub(crate) fn expired(&mut self, now: Instant) -> Option<(usize, TimerKind)> {
        let &(at, key, kind) = self.due.first()?;
        (at <= now).then(|| {
            self.due.pop_first();
            (key, kind)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn deadlines_expire_in_order_and_only_when_they_have_passed() {
        let (mut timers, start) = (ConnTimers::default(), Instant::now());
        let after = |ms| start + Duration::from_millis(ms);
        let mut deadlines: [Deadline; 3] = Default::default();
        for (key, ms) in [(0, 30), (1, 10), (2, 20)] {
            timers.arm(&mut deadlines[key], key, TimerKind::State, after(ms));
        }
        timers.arm(&mut deadlines[2], 2, TimerKind::State, after(40));
        timers.disarm(&mut deadlines[0], 0, TimerKind::State);
        assert_eq!(timers.next(), Some(after(10)));
        assert_eq!(timers.expired(after(9)), None);
        assert_eq!(timers.expired(after(10)), Some((1, TimerKind::State)));
        assert_eq!(timers.expired(after(39)), None);
        assert_eq!(timers.expired(after(40)), Some((2, TimerKind::State)));
        assert_eq!(timers.next(), None);
    }
}
