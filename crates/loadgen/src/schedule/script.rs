//! The schedule of a script: its own times, one round after the other.

use std::sync::Arc;

use crate::clock::{SECOND_NS, nanos};
use crate::script::{Script, ScriptPart, ScriptRequest};

/// A thread's requests of a script, which those of its clients are.
#[derive(Debug)]
pub(super) struct ScriptSchedule {
    script: Arc<Script>,
    /// The indices of the own requests.
    own: Box<[u32]>,
    start_ns: u64,
    /// How many own requests have fallen due and were taken, over all rounds.
    due: u64,
    taken: u64,
    /// How far the schedule was followed.
    followed_ns: u64,
}

impl ScriptSchedule {
    pub(super) fn new(part: &ScriptPart) -> Self {
        let script = Arc::clone(&part.script);
        let is_own = |request: &ScriptRequest| part.place(script.lanes[request.lane as usize]).is_some();
        let own = (0..).zip(&script.requests).filter(|(_, request)| is_own(request));
        let own = own.map(|(index, _)| index).collect();
        Self { script, own, start_ns: 0, due: 0, taken: 0, followed_ns: 0 }
    }

    /// How many own requests a round has.
    pub(super) fn round(&self) -> u64 {
        self.own.len() as u64
    }

    /// The own request of this number, and when it is due.
    fn at(&self, number: u64) -> Option<(ScriptRequest, u64)> {
        let (round, place) = (number.checked_div(self.round())?, number.checked_rem(self.round())?);
        let request = self.script.requests[self.own[place as usize] as usize];
        let after_ns =
            nanos(self.script.period).saturating_mul(round).saturating_add(request.after_us * 1_000);
        Some((request, self.start_ns.saturating_add(after_ns)))
    }

    /// Begins, or continues after a pause.
    pub(super) fn run(&mut self, now_ns: u64) {
        let done_ns = self.followed_ns.saturating_sub(self.start_ns);
        self.followed_ns = now_ns;
        self.start_ns = now_ns.saturating_sub(done_ns);
    }

    pub(super) fn next_due_ns(&self) -> Option<u64> {
        self.at(self.due).map(|(_, at_ns)| at_ns)
    }

    pub(super) fn advance(&mut self, now_ns: u64, most: u64) -> u64 {
        self.followed_ns = self.followed_ns.max(now_ns);
        let before = self.due;
        while self.due - before < most && self.next_due_ns().is_some_and(|due_ns| due_ns <= now_ns) {
            self.due += 1;
        }
        self.due - before
    }

    pub(super) fn take(&mut self) -> Option<(ScriptRequest, u64)> {
        let next = self.at(self.taken).filter(|_| self.has_backlog())?;
        self.taken += 1;
        Some(next)
    }

    pub(super) fn has_backlog(&self) -> bool {
        self.taken < self.due
    }

    /// The end of the round of the last request that fell due.
    pub(super) fn end_ns(&self) -> Option<u64> {
        let rounds = self.due.checked_sub(1)? / self.round().max(1) + 1;
        Some(self.start_ns.saturating_add(nanos(self.script.period).saturating_mul(rounds)))
    }

    /// Requests of all threads that fell due in the last second, within the round.
    pub(super) fn rate_at(&self, now_ns: u64) -> f64 {
        let into_ns = now_ns.saturating_sub(self.start_ns) % nanos(self.script.period).max(1);
        let until = |ns: u64| {
            self.script.requests.partition_point(|request| request.after_us.saturating_mul(1_000) <= ns)
        };
        (until(into_ns) - into_ns.checked_sub(SECOND_NS).map_or(0, until)) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::tests::script;

    fn schedule(thread: usize, threads: u32) -> ScriptSchedule {
        let script = Arc::new(script(&[(0, 0), (1, 1), (1, 2), (5, 0)], &[false; 3]));
        ScriptSchedule::new(&ScriptPart::of_threads(&script, threads)[thread])
    }

    fn all(schedule: &mut ScriptSchedule, requests: u64) -> Vec<(u32, u64)> {
        schedule.advance(u64::MAX, requests);
        std::iter::from_fn(|| schedule.take()).map(|(request, at_ns)| (request.lane, at_ns)).collect()
    }

    #[test]
    fn rounds_follow_each_other() {
        let mut schedule = schedule(0, 1);
        schedule.run(1_000_000);
        assert_eq!(schedule.end_ns(), None);
        assert_eq!(schedule.advance(1_001_000, 8), 3, "three of them are due after a microsecond");
        let first = [(0, 1_000_000), (1, 1_001_000), (2, 1_001_000), (0, 1_005_000)];
        let second = [(0, 1_010_000), (1, 1_011_000), (2, 1_011_000), (0, 1_015_000)];
        assert_eq!(all(&mut schedule, 5), [first, second].concat());
        assert_eq!(schedule.end_ns(), Some(1_020_000));
    }

    #[test]
    fn threads_share_it_by_clients() {
        let lanes = [0, 1].map(|thread| {
            let mut schedule = schedule(thread, 2);
            let round = schedule.round();
            all(&mut schedule, round).into_iter().map(|(lane, _)| lane).collect::<Vec<_>>()
        });
        assert_eq!(lanes, [vec![0, 2, 0], vec![1]]);
    }

    #[test]
    fn nothing_falls_due_in_a_pause() {
        let mut schedule = schedule(0, 1);
        schedule.run(1_000_000);
        schedule.advance(1_003_000, 8);
        schedule.run(9_000_000);
        assert_eq!(schedule.next_due_ns(), Some(9_002_000));
    }
}
