//! When requests fall due.
//!
//! An open loop follows a schedule that is pure arithmetic: request `k` is due at `start + k·10⁹/rate`, in whole
//! nanoseconds. The threads share it by taking every `threads`-th request each, so together they keep exactly the
//! schedule of one. A backlog is a range of indices: it costs nothing, however long it grows.

use std::collections::VecDeque;

use crate::plan::Rate;

/// Pieces of schedule, each with its own rate, that may wait to be sent. When a person changes the rate more often
/// than that while nothing at all is sent, what fell due first is given up as never sent.
const SEGMENTS_MAX: usize = 64;
/// Nanoseconds in the thousand seconds that [`Rate`] counts by.
const KILOSECOND_NS: u128 = 1_000_000_000_000;

/// Hands out requests as they fall due.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Requests that may still fall due.
    left: u64,
    running: bool,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A request falls due when a connection is free for it.
    Closed,
    Open(Schedule),
}

/// A request that has fallen due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// When it should be sent; `None` in a closed loop.
    pub(crate) intended_ns: Option<u64>,
}

/// One thread's part of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// The thread's number.
    pub(crate) thread: u32,
    /// Number of threads.
    pub(crate) threads: u32,
}

impl Part {
    /// This thread's part of `total`: the parts differ by one at most, and add up to the total.
    pub(crate) fn of(self, total: u64) -> u64 {
        let (thread, threads) = (u64::from(self.thread), u64::from(self.threads));
        total / threads + u64::from(thread < total % threads)
    }
}

impl Pacer {
    /// A pacer that is not running yet. `requests` is the thread's own part.
    pub(crate) fn new(rate: Option<Rate>, requests: Option<u64>, part: Part) -> Self {
        let kind = rate.map_or(Kind::Closed, |rate| Kind::Open(Schedule::new(rate, part)));
        Self { left: requests.unwrap_or(u64::MAX), running: false, kind }
    }

    /// Starts, or goes on after a pause; what would have fallen due meanwhile does not. Gives the part of the
    /// backlog that has to be given up, if any.
    pub(crate) fn run(&mut self, now_ns: u64) -> Option<Segment> {
        self.running = true;
        match &mut self.kind {
            Kind::Closed => None,
            Kind::Open(schedule) => schedule.run(now_ns),
        }
    }

    /// Lets nothing more fall due from now on. The backlog stays.
    pub(crate) fn pause(&mut self) {
        self.running = false;
    }

    /// Changes the rate of an open loop from now on; the wait for the next request shrinks or grows with it.
    /// Gives the part of the backlog that has to be given up, if any.
    pub(crate) fn set_rate(&mut self, now_ns: u64, rate: Rate) -> Option<Segment> {
        match &mut self.kind {
            Kind::Open(schedule) if schedule.current.rate != rate => schedule.set_rate(now_ns, rate),
            _ => None,
        }
    }

    /// Lets fall due what is due up to and including `now_ns`, and gives its number.
    pub(crate) fn advance(&mut self, now_ns: u64) -> u64 {
        match &mut self.kind {
            Kind::Open(schedule) if self.running => {
                let fell_due = schedule.advance(now_ns, self.left);
                self.left -= fell_due;
                fell_due
            }
            _ => 0,
        }
    }

    /// The request that fell due first and was not yet taken. In a closed loop one falls due by being taken.
    pub(crate) fn take(&mut self) -> Option<Due> {
        match &mut self.kind {
            Kind::Open(schedule) => schedule.take().map(|at_ns| Due { intended_ns: Some(at_ns) }),
            Kind::Closed if self.running && self.left > 0 => {
                self.left -= 1;
                Some(Due { intended_ns: None })
            }
            Kind::Closed => None,
        }
    }

    /// True if requests have fallen due and were not taken.
    pub(crate) fn has_backlog(&self) -> bool {
        match &self.kind {
            Kind::Closed => false,
            Kind::Open(schedule) => schedule.has_backlog(),
        }
    }

    /// True if no request will ever fall due again.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// When the next request falls due, if the schedule runs.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match &self.kind {
            Kind::Open(schedule) if self.running && self.left > 0 => Some(schedule.current.next_due_ns()),
            _ => None,
        }
    }
}

#[derive(Debug)]
struct Schedule {
    part: Part,
    /// Pieces that fell due at earlier rates and are not sent yet; oldest first, none empty.
    past: VecDeque<Segment>,
    current: Segment,
}

impl Schedule {
    fn new(rate: Rate, part: Part) -> Self {
        let current = Segment::new(0, part.thread, part.threads, rate);
        Self { part, past: VecDeque::new(), current }
    }

    fn run(&mut self, now_ns: u64) -> Option<Segment> {
        self.begin(Segment::new(now_ns, self.part.thread, self.part.threads, self.current.rate))
    }

    fn set_rate(&mut self, now_ns: u64, rate: Rate) -> Option<Segment> {
        let wait_ns = self.current.next_due_ns().saturating_sub(now_ns);
        let scaled = u128::from(wait_ns) * u128::from(self.current.rate.milli_per_s())
            / u128::from(rate.milli_per_s());
        let start_ns = now_ns.saturating_add(u64::try_from(scaled).unwrap_or(u64::MAX));
        self.begin(Segment::new(start_ns, 0, self.part.threads, rate))
    }

    /// Goes over to another segment; the ended one waits behind the past ones if any of it is not taken.
    fn begin(&mut self, segment: Segment) -> Option<Segment> {
        let ended = std::mem::replace(&mut self.current, segment);
        if ended.taken < ended.due {
            self.past.push_back(ended);
        }
        if self.past.len() > SEGMENTS_MAX { self.past.pop_front() } else { None }
    }

    fn advance(&mut self, now_ns: u64, most: u64) -> u64 {
        let due = self.current.due_at(now_ns).min(self.current.due.saturating_add(most));
        let fell_due = due.saturating_sub(self.current.due);
        self.current.due += fell_due;
        fell_due
    }

    fn take(&mut self) -> Option<u64> {
        while let Some(oldest) = self.past.front_mut() {
            if let Some(at_ns) = oldest.take() {
                return Some(at_ns);
            }
            self.past.pop_front();
        }
        self.current.take()
    }

    fn has_backlog(&self) -> bool {
        self.current.taken < self.current.due || self.past.iter().any(|s| s.taken < s.due)
    }
}

/// A stretch of schedule at one rate, of which this thread has the requests `offset`, `offset + stride`, …
#[derive(Clone, Debug)]
pub(crate) struct Segment {
    start_ns: u64,
    offset: u64,
    stride: u64,
    rate: Rate,
    /// Own requests that have fallen due.
    due: u64,
    /// Own requests that were taken; never more than `due`.
    taken: u64,
}

impl Segment {
    fn new(start_ns: u64, offset: u32, stride: u32, rate: Rate) -> Self {
        Self { start_ns, offset: offset.into(), stride: stride.into(), rate, due: 0, taken: 0 }
    }

    /// When the own request `index` is due.
    fn at_ns(&self, index: u64) -> u64 {
        let k = u128::from(index) * u128::from(self.stride) + u128::from(self.offset);
        let after = k * KILOSECOND_NS / u128::from(self.rate.milli_per_s());
        self.start_ns.saturating_add(u64::try_from(after).unwrap_or(u64::MAX))
    }

    fn next_due_ns(&self) -> u64 {
        self.at_ns(self.due)
    }

    /// Number of own requests that are due up to and including `now_ns`: the inverse of [`Self::at_ns`].
    fn due_at(&self, now_ns: u64) -> u64 {
        let Some(elapsed) = now_ns.checked_sub(self.start_ns) else { return 0 };
        // ⌊k·10¹²/rate⌋ ≤ elapsed holds up to this k.
        let last = ((u128::from(elapsed) + 1) * u128::from(self.rate.milli_per_s()) - 1) / KILOSECOND_NS;
        match last.checked_sub(u128::from(self.offset)) {
            Some(beyond) => u64::try_from(beyond / u128::from(self.stride) + 1).unwrap_or(u64::MAX),
            None => 0,
        }
    }

    /// When the oldest own request was due that has fallen due and was not taken.
    pub(crate) fn take(&mut self) -> Option<u64> {
        (self.taken < self.due).then(|| {
            self.taken += 1;
            self.at_ns(self.taken - 1)
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALONE: Part = Part { thread: 0, threads: 1 };
    const SECOND_NS: u64 = 1_000_000_000;

    fn rate(per_second: f64) -> Rate {
        Rate::per_second(per_second).unwrap()
    }

    fn running(per_second: f64, requests: Option<u64>, part: Part) -> Pacer {
        let mut pacer = Pacer::new(Some(rate(per_second)), requests, part);
        pacer.run(0);
        pacer
    }

    fn take_all(pacer: &mut Pacer) -> Vec<u64> {
        std::iter::from_fn(|| pacer.take()).map(|due| due.intended_ns.unwrap()).collect()
    }

    #[test]
    fn two_seconds_at_500_are_exactly_1000_requests_2_ms_apart() {
        let mut pacer = running(500.0, None, ALONE);
        assert_eq!(pacer.advance(2 * SECOND_NS - 1), 1_000);
        assert_eq!(pacer.next_due_ns(), Some(2 * SECOND_NS));
        assert_eq!(take_all(&mut pacer), (0..1_000).map(|k| k * 2_000_000).collect::<Vec<_>>());
    }

    #[test]
    fn a_rate_that_does_not_divide_a_second_drifts_by_nothing() {
        let mut pacer = running(3.0, None, ALONE);
        let day_ns = 86_400 * SECOND_NS;
        assert_eq!(pacer.advance(day_ns - 1), 3 * 86_400);
        assert_eq!(pacer.next_due_ns(), Some(day_ns));
    }

    #[test]
    fn threads_together_keep_the_schedule_of_one() {
        let mut together: Vec<u64> = (0..3)
            .flat_map(|thread| {
                let mut pacer = running(700.0, None, Part { thread, threads: 3 });
                pacer.advance(SECOND_NS);
                take_all(&mut pacer)
            })
            .collect();
        together.sort_unstable();
        let mut alone = running(700.0, None, ALONE);
        alone.advance(SECOND_NS);
        assert_eq!(together, take_all(&mut alone));
    }

    #[test]
    fn parts_add_up_to_the_whole() {
        for total in [0, 1, 7, 8, 1_000_003] {
            let sum: u64 = (0..8).map(|thread| Part { thread, threads: 8 }.of(total)).sum();
            assert_eq!(sum, total);
        }
    }

    #[test]
    fn no_more_requests_fall_due_than_the_plan_has() {
        let mut pacer = running(1_000.0, Some(10), ALONE);
        assert_eq!(pacer.advance(SECOND_NS), 10);
        assert!(pacer.is_exhausted());
        assert_eq!(pacer.next_due_ns(), None);
        let mut closed = Pacer::new(None, Some(2), ALONE);
        closed.run(0);
        assert_eq!(std::iter::from_fn(|| closed.take()).count(), 2);
    }

    #[test]
    fn what_would_fall_due_during_a_pause_does_not() {
        let mut pacer = running(100.0, None, ALONE);
        pacer.advance(SECOND_NS - 1);
        pacer.pause();
        assert_eq!(pacer.advance(5 * SECOND_NS), 0);
        pacer.run(5 * SECOND_NS);
        assert_eq!(pacer.advance(6 * SECOND_NS - 1), 100);
        assert_eq!(take_all(&mut pacer).len(), 200);
    }

    #[test]
    fn a_new_rate_begins_at_once_and_keeps_the_backlog() {
        let mut pacer = running(1.0, None, ALONE);
        pacer.advance(SECOND_NS / 2);
        // Half of the wait for the second request is over, and stays over.
        assert!(pacer.set_rate(SECOND_NS / 2, rate(1_000.0)).is_none());
        assert_eq!(pacer.next_due_ns(), Some(SECOND_NS / 2 + 500_000));
        pacer.advance(SECOND_NS / 2 + 1_500_000);
        assert_eq!(take_all(&mut pacer), [0, SECOND_NS / 2 + 500_000, SECOND_NS / 2 + 1_500_000]);
    }

    #[test]
    fn changing_the_rate_often_neither_adds_requests_nor_starves_them() {
        let mut pacer = running(100.0, None, ALONE);
        let mut fell_due = 0;
        for step in 1..=1_000 {
            let now_ns = step * SECOND_NS / 1_000;
            fell_due += pacer.advance(now_ns);
            pacer.set_rate(now_ns, rate(if step % 2 == 0 { 100.0 } else { 101.0 }));
            pacer.take();
        }
        assert!((99..=102).contains(&fell_due), "{fell_due}");
    }

    #[test]
    fn a_backlog_in_too_many_pieces_gives_up_its_oldest() {
        let mut pacer = running(1_000.0, None, ALONE);
        let (mut fell_due, mut given_up) = (0, 0);
        for step in 1..=100_u64 {
            fell_due += pacer.advance(step * SECOND_NS);
            if let Some(mut piece) = pacer.set_rate(step * SECOND_NS, rate(1_000.0 + (step % 2) as f64)) {
                given_up += std::iter::from_fn(|| piece.take()).count();
            }
        }
        assert!(given_up > 0);
        assert_eq!((given_up + take_all(&mut pacer).len()) as u64, fell_due);
    }

    proptest! {
        #[test]
        fn what_has_fallen_due_is_exactly_what_is_not_later_than_now(
            milli in 1_u64..20_000_000,
            elapsed_ns in 0_u64..100 * SECOND_NS,
            thread in 0_u32..8,
        ) {
            let part = Part { thread, threads: 8 };
            let segment = Segment::new(7, part.thread, part.threads, rate(milli as f64 / 1_000.0));
            let due = segment.due_at(7 + elapsed_ns);
            prop_assert!(segment.at_ns(due) > 7 + elapsed_ns);
            prop_assert!(due == 0 || segment.at_ns(due - 1) <= 7 + elapsed_ns);
        }
    }
}
