//! Open loops: the schedule is kept, and being late shows.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use loadgen::LoadConfig;
use records::histogram::Histogram;
use records::metrics::{LoadCounter as C, LoadLatency as L};

use crate::support::{ServerAction, TestServer, TlsVersion, config, run};

fn samples_above(histogram: &Histogram, limit: Duration) -> u64 {
    let limit_ns = limit.as_nanos() as u64;
    let sparse = histogram.to_sparse();
    sparse.buckets().filter(|(value_ns, _)| *value_ns > limit_ns).map(|(_, count)| count).sum()
}

/// Runs two seconds of a schedule, and tells whether it was kept: each request answered, half of them sent in time.
fn keeps_the_schedule(threads: u32) -> bool {
    let server = TestServer::tls(TlsVersion::V13, |_| ServerAction::ok(10));
    let (all, _) = run(config(&server, &format!("rate=500,duration=2s,connections=8,threads={threads}")));
    let counts = &all.counters;
    assert_eq!(counts[C::Scheduled], 1_000);
    assert_eq!((counts[C::Failed], server.seen().requests), (0, counts[C::Sent]));
    for (class, count) in
        [(L::Response, 1_000), (L::Lag, 1_000), (L::Service, counts[C::Ok] + counts[C::Unfinished])]
    {
        assert_eq!(all.latencies[class].count(), count, "{class:?}");
    }
    counts[C::Ok] == 1_000 && all.latencies[L::Lag].quantile_ns(0.5).unwrap() < 20_000_000
}

/// A busy machine can make a generator late, but not each time.
#[test]
fn the_schedule_is_kept_to_the_request() {
    for threads in [1, 2] {
        assert!((0..10).any(|_| keeps_the_schedule(threads)), "{threads} threads are late each time");
    }
}

#[test]
fn the_number_of_requests_ends_the_schedule() {
    let server = TestServer::plain(|_| ServerAction::ok(10));
    let (all, load) = run(config(&server, "rate=2000,requests=101,connections=4,threads=3"));
    assert_eq!((all.counters[C::Scheduled], all.counters[C::Ok]), (101, 101));
    assert_eq!(load.measured().scheduled, Duration::from_micros(50_500), "where the 102nd would be due");
}

/// A server that answers so many requests, and nothing after that.
fn freezes_after(answers: u64) -> TestServer {
    TestServer::plain(
        move |exchange| if exchange.nth < answers { ServerAction::ok(10) } else { ServerAction::Stall },
    )
}

#[test]
fn the_measured_time_equals_the_schedule() {
    let server = freezes_after(50);
    let (all, load) = run(config(&server, "rate=200,duration=1s,connections=4"));
    assert_eq!((all.counters[C::Ok], all.counters[C::Unfinished]), (50, 4), "{:?}", all.counters);
    assert_eq!(all.counters[C::Throttled], 0, "it was the server that took its time");
    let second = Duration::from_secs(1);
    assert_eq!((load.measured().scheduled, load.measured().whole), (second, second));
    // So it does if a number of requests ends it, and however long they take to fail.
    let server = freezes_after(50);
    let config = config(&server, "rate=200,requests=200,connections=200");
    let (all, load) = run(LoadConfig { request_timeout: 2 * second, ..config });
    assert_eq!((all.counters[C::Ok], all.counters[C::FailedTimeout]), (50, 150), "{:?}", all.counters);
    assert_eq!((load.measured().scheduled, load.measured().whole), (second, second));
}

#[test]
fn answers_after_the_end_of_the_schedule_lengthen_what_is_measured() {
    // One connection and 20 ms an answer: 50 a second at most.
    let server = TestServer::plain(|_| {
        std::thread::sleep(Duration::from_millis(20));
        ServerAction::ok(1)
    });
    let (all, load) = run(config(&server, "rate=200,requests=40,connections=1"));
    assert_eq!(all.counters[C::Ok], 40);
    assert_eq!(load.measured().scheduled, Duration::from_millis(200));
    assert!(load.measured().whole >= Duration::from_millis(800), "{:?}", load.measured());
}

#[test]
fn response_is_service_and_lag() {
    let server = TestServer::plain(|_| ServerAction::ok(10));
    let (all, _) = run(config(&server, "rate=1000,requests=500,connections=4"));
    let sum = |class: L| all.latencies[class].sum_ns();
    assert_eq!(sum(L::Response), sum(L::Service) + sum(L::Lag));
}

#[test]
fn a_stall_shows_in_the_response_and_not_in_the_service() {
    const STALL: Duration = Duration::from_secs(1);
    let stalled_at = OnceLock::new();
    let server = TestServer::plain(move |exchange| {
        if exchange.nth >= 500 {
            let ends = *stalled_at.get_or_init(Instant::now) + STALL;
            std::thread::sleep(ends.saturating_duration_since(Instant::now()));
        }
        ServerAction::ok(10)
    });
    let (all, _) = run(config(&server, "rate=1000,duration=3s,connections=8"));
    assert_eq!((all.counters[C::Scheduled], all.counters[C::Ok]), (3_000, 3_000));
    // A thousand fell due during the stall; a tenth of them waited less than 100 ms for its end.
    let slow = samples_above(&all.latencies[L::Response], Duration::from_millis(100));
    assert!((850..=1_400).contains(&slow), "{slow} slow responses");
    let slow = samples_above(&all.latencies[L::Service], Duration::from_millis(100));
    assert!((1..=16).contains(&slow), "{slow} slow services");
}

#[test]
fn requests_to_a_stalled_server_are_counted_as_failures() {
    let server = TestServer::plain(|_| ServerAction::Stall);
    let (all, _) = run(config(&server, "rate=1000,duration=500ms,connections=4"));
    let counts = &all.counters;
    assert_eq!(counts[C::Scheduled], 500);
    assert_eq!((counts[C::Sent], counts[C::Unfinished], counts[C::NeverSent]), (4, 4, 496));
    assert_eq!(all.latencies[L::Response].count(), 500);
    assert_eq!(all.latencies[L::Lag].count(), 500);
    assert_eq!(all.latencies[L::Service].count(), 4);
    // They enter at their elapsed time: the first was due 2.5 s before the end of the grace, and the last that was
    // not sent 1 s before it was given up.
    assert!(all.latencies[L::Response].max_ns() >= 2_400_000_000);
    assert!(all.latencies[L::Response].quantile_ns(0.01).unwrap() >= 950_000_000);
}

#[test]
fn a_rate_beyond_the_server_is_reported_as_not_reached() {
    // One connection and 20 ms an answer: 50 a second at most.
    let server = TestServer::plain(|_| {
        std::thread::sleep(Duration::from_millis(20));
        ServerAction::ok(1)
    });
    let (all, _) = run(config(&server, "rate=200,duration=1s,connections=1"));
    assert_eq!(all.counters[C::Scheduled], 200);
    assert!(all.counters[C::Ok] <= 151, "{:?}", all.counters);
    assert!(all.counters[C::NeverSent] >= 49, "{:?}", all.counters);
}
