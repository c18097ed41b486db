//! Schedules to the nanosecond, without a clock.

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
fn a_rate_that_does_not_divide_a_second_does_not_drift() {
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
fn a_counted_schedule_ends_where_the_next_request_would_be_due() {
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
fn no_request_falls_due_during_a_pause() {
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
    // Half of the wait for the second request has passed, and still counts.
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
    all.iter().filter(|at| **at < 100 * SECOND_NS).for_each(|at| counts[(at / 100_000_000) as usize] += 1.0);
    let mean = counts.iter().sum::<f64>() / 1e3;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 1e3;
    assert!((0.85..1.15).contains(&(variance / mean)), "variance {variance}, mean {mean}");
}

proptest! {
    #[test]
    fn requests_are_due_up_to_and_including_now(
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
