//! When requests fall due.
//!
//! An open loop follows a schedule that is pure arithmetic: request `k` is due when the area under the profile of
//! rates reaches `k`, which for a constant rate is `start + k·10⁹/rate`, in whole nanoseconds. The threads share it by
//! taking every `threads`-th request each, so together they keep exactly the schedule of one. Poisson arrivals draw
//! the distances in that area instead, each thread for itself: several such processes together are one again.
//!
//! A backlog costs nothing, however long it grows: two cursors walk the same schedule, one for what has fallen due and
//! one for what was taken, and random distances come out alike for both.

use super::segments::{Schedule, Segment};
use crate::plan::{Arrivals, Profile, Rate};

/// Hands out requests as they fall due.
#[derive(Debug)]
pub(crate) struct Pacer {
    /// Requests that may still fall due.
    left: u64,
    running: bool,
    kind: LoopKind,
}

#[derive(Debug)]
enum LoopKind {
    /// A request falls due when a connection is free for it.
    Closed,
    Open(Box<Schedule>),
}

/// A request that has fallen due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// When it should be sent; `None` in a closed loop.
    pub(crate) intended_ns: Option<u64>,
}

/// One thread's part of the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadPart {
    /// The thread's number.
    pub(crate) thread: u32,
    /// Number of threads.
    pub(crate) threads: u32,
}

impl ThreadPart {
    /// This thread's part of `total`: the parts differ by one at most, and add up to the total.
    pub(crate) fn of(self, total: u64) -> u64 {
        let (thread, threads) = (u64::from(self.thread), u64::from(self.threads));
        total / threads + u64::from(thread < total % threads)
    }
}

impl Pacer {
    /// A pacer that is not running yet. `requests` is the thread's own part.
    pub(crate) fn new(
        rate: Option<Profile>,
        arrivals: Arrivals,
        requests: Option<u64>,
        part: ThreadPart,
    ) -> Self {
        let kind = rate
            .map_or(LoopKind::Closed, |rate| LoopKind::Open(Box::new(Schedule::new(rate, arrivals, part))));
        Self { left: requests.unwrap_or(u64::MAX), running: false, kind }
    }

    /// Starts, or goes on after a pause; what would have fallen due meanwhile does not. Gives the part of the
    /// backlog that has to be given up, if any.
    pub(crate) fn run(&mut self, now_ns: u64) -> Option<Segment> {
        self.running = true;
        match &mut self.kind {
            LoopKind::Closed => None,
            LoopKind::Open(schedule) => schedule.run(now_ns),
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
            LoopKind::Open(schedule) => schedule.set_rate(now_ns, rate),
            LoopKind::Closed => None,
        }
    }

    /// Lets fall due what is due up to and including `now_ns`, and gives its number.
    pub(crate) fn advance(&mut self, now_ns: u64) -> u64 {
        match &mut self.kind {
            LoopKind::Open(schedule) if self.running => {
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
            LoopKind::Open(schedule) => schedule.take().map(|at_ns| Due { intended_ns: Some(at_ns) }),
            LoopKind::Closed if self.running && self.left > 0 => {
                self.left -= 1;
                Some(Due { intended_ns: None })
            }
            LoopKind::Closed => None,
        }
    }

    /// Requests a second that fall due now, over all threads; 0 in a closed loop.
    pub(crate) fn rate_at(&self, now_ns: u64) -> f64 {
        match &self.kind {
            LoopKind::Open(schedule) => schedule.current.rate_at(now_ns),
            LoopKind::Closed => 0.0,
        }
    }

    /// True if requests have fallen due and were not taken.
    pub(crate) fn has_backlog(&self) -> bool {
        match &self.kind {
            LoopKind::Closed => false,
            LoopKind::Open(schedule) => schedule.has_backlog(),
        }
    }

    /// True if no request will ever fall due again.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// When the schedule of what has fallen due ends: where one more request would be due. `None` in a closed loop, and
    /// before anything was due.
    pub(crate) fn end_ns(&self) -> Option<u64> {
        match &self.kind {
            LoopKind::Open(schedule) => schedule.end_ns(),
            LoopKind::Closed => None,
        }
    }

    /// When the next request falls due, if the schedule runs.
    pub(crate) fn next_due_ns(&self) -> Option<u64> {
        match &self.kind {
            LoopKind::Open(schedule) if self.running && self.left > 0 => schedule.current.next_due_ns(),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALONE: ThreadPart = ThreadPart { thread: 0, threads: 1 };
    const SECOND_NS: u64 = 1_000_000_000;

    fn rate(per_second: f64) -> Rate {
        Rate::per_second(per_second).unwrap()
    }

    fn running(per_second: f64, requests: Option<u64>, part: ThreadPart) -> Pacer {
        following(&Profile::constant(rate(per_second)).to_string(), Arrivals::Even, requests, part)
    }

    fn following(profile: &str, arrivals: Arrivals, requests: Option<u64>, part: ThreadPart) -> Pacer {
        let mut pacer = Pacer::new(Some(profile.parse().unwrap()), arrivals, requests, part);
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
                let mut pacer = running(700.0, None, ThreadPart { thread, threads: 3 });
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
            let sum: u64 = (0..8).map(|thread| ThreadPart { thread, threads: 8 }.of(total)).sum();
            assert_eq!(sum, total);
        }
    }

    #[test]
    fn no_more_requests_fall_due_than_the_plan_has() {
        let mut pacer = running(1_000.0, Some(10), ALONE);
        assert_eq!(pacer.advance(SECOND_NS), 10);
        assert!(pacer.is_exhausted());
        assert_eq!(pacer.next_due_ns(), None);
        let mut closed = Pacer::new(None, Arrivals::Even, Some(2), ALONE);
        closed.run(0);
        assert_eq!(std::iter::from_fn(|| closed.take()).count(), 2);
    }

    #[test]
    fn a_schedule_of_so_many_requests_ends_where_one_more_would_be_due() {
        let end_ns = |profile: &str, requests: u64, threads: u32| {
            let end_ns = |thread| {
                let part = ThreadPart { thread, threads };
                let mut pacer = following(profile, Arrivals::Even, Some(part.of(requests)), part);
                pacer.advance(99 * SECOND_NS);
                pacer.end_ns()
            };
            (0..threads).filter_map(end_ns).max().unwrap()
        };
        for threads in [1, 2, 3, 7] {
            assert_eq!(end_ns("500", 1_000, threads), 2 * SECOND_NS);
            assert_eq!(end_ns("4", 1, threads), SECOND_NS / 4);
            assert_eq!(end_ns("100/1s+200/1s", 200, threads), 3 * SECOND_NS / 2);
        }
        // A ramp from nothing, which has its second request after a tenth of its time.
        assert!(end_ns("0..200/1s", 1, 1).abs_diff(SECOND_NS / 10) < 10);
        assert_eq!(Pacer::new(None, Arrivals::Even, Some(9), ALONE).end_ns(), None);
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

    #[test]
    fn stages_follow_one_another_and_end() {
        let mut pacer = following("100/1s+0/1s+0..100/2s", Arrivals::Even, None, ALONE);
        assert_eq!(pacer.advance(SECOND_NS - 1), 100);
        assert_eq!(pacer.advance(2 * SECOND_NS), 1, "the ramp begins with one");
        // Half of the ramp's time holds a quarter of its requests.
        assert_eq!(pacer.advance(3 * SECOND_NS - 1), 24);
        assert_eq!(pacer.advance(99 * SECOND_NS), 75);
        assert_eq!(pacer.next_due_ns(), None);
        let taken = take_all(&mut pacer);
        assert_eq!(taken.len(), 200);
        assert!(taken.is_sorted());
    }

    #[test]
    fn threads_share_a_ramp() {
        let total: u64 = (0..3)
            .map(|thread| {
                let part = ThreadPart { thread, threads: 3 };
                following("0..1000/3s", Arrivals::Even, None, part).advance(10 * SECOND_NS)
            })
            .sum();
        assert_eq!(total, 1_500);
    }

    #[test]
    fn a_pause_stops_the_profile_too() {
        let mut pacer = following("100/1s+200/1s", Arrivals::Even, None, ALONE);
        assert_eq!(pacer.advance(SECOND_NS / 2 - 1), 50);
        pacer.pause();
        pacer.run(10 * SECOND_NS);
        assert_eq!(pacer.advance(11 * SECOND_NS - 2), 50 + 100);
        assert!((pacer.rate_at(11 * SECOND_NS) - 200.0).abs() < 1e-9);
    }

    #[test]
    fn poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process() {
        let both: Vec<Vec<u64>> = (0..2)
            .map(|thread| {
                let part = ThreadPart { thread, threads: 2 };
                let mut pacer = following("1000", Arrivals::Poisson, None, part);
                pacer.advance(100 * SECOND_NS);
                take_all(&mut pacer)
            })
            .collect();
        assert_ne!(both[0][..100], both[1][..100]);
        let mut all = both.concat();
        all.sort_unstable();
        assert!(all.len().abs_diff(100_000) < 1_500, "{}", all.len());
        // The number in a tenth of a second varies by its own mean.
        let mut counts = [0_f64; 1_000];
        all.iter()
            .filter(|at| **at < 100 * SECOND_NS)
            .for_each(|at| counts[(at / 100_000_000) as usize] += 1.0);
        let mean = counts.iter().sum::<f64>() / 1e3;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 1e3;
        assert!((0.85..1.15).contains(&(variance / mean)), "variance {variance}, mean {mean}");
    }

    proptest! {
        #[test]
        fn what_has_fallen_due_is_exactly_what_is_not_later_than_now(
            milli in 1_u64..2_000_000,
            elapsed_ns in 0_u64..10 * SECOND_NS,
            thread in 0_u32..8,
        ) {
            let mut pacer = running(milli as f64 / 1e3, None, ThreadPart { thread, threads: 8 });
            let fell_due = pacer.advance(elapsed_ns);
            let taken = take_all(&mut pacer);
            prop_assert_eq!(taken.len() as u64, fell_due);
            prop_assert!(taken.iter().all(|at_ns| *at_ns <= elapsed_ns));
            prop_assert!(pacer.next_due_ns().is_some_and(|due_ns| due_ns > elapsed_ns));
        }
    }
}
