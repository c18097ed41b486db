//! Tests of HTTP records: they equal the counts, and stay within the budget.

use std::time::Duration;

use proptest::prelude::*;

use super::super::*;
use super::{MemorySink, at, count_of, proxy_delta, read};
use crate::testing::{client, finished};
use model::runs::{Model, Run};
use records::delta::{ClientDelta, FinishedRequest, HttpDelta, NamedDelta as _, ROUTES_MAX};
use records::histogram::Sketch;
use records::metrics::{
    ClientCounter, Counters, HttpCounter, HttpLatency, Metric as _, RequestFailure, RouteCounter,
    RouteLatency,
};

fn names() -> Vec<String> {
    (0..60).map(|n| format!("host/{n}")).collect()
}

fn name(index: usize) -> String {
    if index < ROUTES_MAX { format!("host/{index}") } else { "other".to_owned() }
}

fn begun(per_second: u32) -> Publisher<MemorySink> {
    let mut publisher = Publisher::new(RunId::from_bits(9), MemorySink::default(), per_second, at(0));
    publisher.name_routes(names());
    publisher.start(RunRecord::default(), at(0));
    publisher
}

fn of_http(http: HttpDelta) -> ProxyDelta {
    ProxyDelta { http: Some(Box::new(http)), ..ProxyDelta::default() }
}

/// Requests by route, status and microseconds.
fn counted(requests: &[(usize, u16, u64)]) -> HttpDelta {
    let mut http = HttpDelta::default();
    for &(route, status, us) in requests {
        http.finish(&FinishedRequest {
            route: Some(route),
            status: Some(status),
            failure: (status == 503).then_some(RequestFailure::QueueFull),
            queue: us.is_multiple_of(3).then_some(Duration::from_micros(us)),
            duration: Some(Duration::from_micros(us)),
            ..finished()
        });
    }
    http.gauges.requests = requests.len() as i64;
    http
}

/// A run with a second for each list of requests, and all of them.
fn recorded(seconds: &[Vec<(usize, u16, u64)>]) -> (Publisher<MemorySink>, HttpDelta) {
    let mut publisher = begun(60);
    let mut all = HttpDelta::default();
    for (second, requests) in (1..).zip(seconds) {
        let http = counted(requests);
        all.add(&http);
        publisher.interval(Some(&of_http(http)), None, None, at(second));
    }
    let end = at(seconds.len() as u64 + 1);
    publisher.stop(RunRecord::default(), Some(&ProxyDelta::default()), None, None, end);
    (publisher, all)
}

fn assert_counted(run: &Run, all: &HttpDelta) {
    let http = run.http().unwrap();
    assert_eq!(*http.totals(), all.counters);
    let record = run.http_record().unwrap();
    assert_eq!((&record.statuses, record.requests), (&all.statuses, all.gauges.requests as u64));
    let latencies = all.latencies();
    for &class in HttpLatency::ALL {
        assert_eq!(http.whole()[class].to_sparse(), latencies[class].to_sparse(), "{class:?}");
        assert_eq!(http.samples_total(class), latencies[class].count());
    }
    let served = all.routes.iter().filter(|route| !route.counters.is_zero());
    assert_eq!(run.routes().len(), served.count());
    for (index, expected) in all.routes.iter().enumerate().filter(|(_, route)| !route.counters.is_zero()) {
        let route = run.routes().get(&name(index)).unwrap();
        assert_eq!(*route.totals(), expected.counters, "{index}");
        for &class in RouteLatency::ALL {
            assert_eq!(route.series().whole()[class].to_sparse(), expected.latency(class));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    #[test]
    fn http_counters_read_back_equal_despite_losses(
        seconds in prop::collection::vec(
            prop::collection::vec((0_usize..60, prop::sample::select(vec![101_u16, 200, 204, 404, 500, 503]), 1_u64..90_000_000), 0..20),
            1..8,
        ),
        losses in prop::collection::vec(any::<bool>(), 300),
    ) {
        let (publisher, all) = recorded(&seconds);
        let entries = publisher.into_sink().entries;
        let whole = read(&entries, |_| false);
        assert_counted(whole.current().unwrap(), &all);
        prop_assert_eq!(whole.current().unwrap().reading().lost(), 0);
        // The last record of every route, and of the run.
        let routes = all.routes.iter().filter(|route| !route.counters.is_zero()).count();
        let keep_from = entries.len() - routes - 1;
        let lossy = read(&entries, |i| i < keep_from && losses[i % losses.len()]);
        assert_counted(lossy.current().unwrap(), &all);
    }
}

#[test]
fn each_interval_of_a_route_is_its_own_and_a_lost_one_is_a_gap() {
    let seconds: Vec<Vec<_>> = (1..=5).map(|n| vec![(0, 200, 1_000); n]).collect();
    let (publisher, _) = recorded(&seconds);
    let entries = publisher.into_sink().entries;
    let requests = |model: &Model| -> Vec<(u64, bool)> {
        let route = model.current().unwrap().routes().get("host/0").unwrap();
        let intervals = route.series().intervals();
        intervals.map(|it| (it.counters[RouteCounter::Requests], it.after_loss)).collect()
    };
    let whole = read(&entries, |_| false);
    assert_eq!(requests(&whole), [1, 2, 3, 4, 5].map(|n| (n, false)));
    let is_route = |i: &usize| entries[*i].0.iter().any(|field| field == ("TLSDASH_KIND", b"route"));
    let third = (0..entries.len()).filter(is_route).nth(2).unwrap();
    let lossy = read(&entries, |i| i == third);
    assert_eq!(requests(&lossy), [(1, false), (2, false), (7, true), (5, false)]);
}

#[test]
fn a_silent_route_does_nothing_and_its_rate_says_so() {
    let busy = vec![(0, 200, 1_000); 10];
    let with_both: Vec<_> = busy.iter().copied().chain([(1, 200, 1_000); 30]).collect();
    let mut publisher = begun(60);
    for second in 1..=40 {
        let requests = if (5..10).contains(&second) { &with_both } else { &busy };
        publisher.interval(Some(&of_http(counted(requests))), None, None, at(second));
    }
    let model = read(&publisher.into_sink().entries, |_| false);
    let run = model.current().unwrap();
    let rate = |route: &str, end_s: u64, span_s: u64| {
        let route = run.routes().get(route).unwrap();
        let window = run.named_window(route, at(end_s).monotonic_us, span_s * 1_000_000);
        (window.rate(RouteCounter::Requests).unwrap(), window.latency(RouteLatency::Request).count())
    };
    assert_eq!(rate("host/0", 40, 10), (10.0, 100));
    assert_eq!(rate("host/1", 40, 10), (0.0, 0));
    assert_eq!(rate("host/1", 9, 5), (30.0, 150));
    assert_eq!(rate("host/1", 14, 10), (15.0, 150));
    assert_eq!(rate("host/1", 10, 100), (15.0, 150), "the run began ten seconds before");
}

#[test]
fn many_routes_and_clients_take_turns_within_the_budget() {
    for per_second in [RECORDS_PER_SECOND_SYSTEM, RECORDS_PER_SECOND_OWN] {
        let mut publisher = begun(per_second);
        for second in 1..=60 {
            let requests: Vec<_> = (0..55).map(|route| (route, 200, 1_000)).collect();
            let mut delta = of_http(counted(&requests));
            for n in 0..200 {
                let mut counters = Counters::default();
                counters[ClientCounter::BytesIn] = 1;
                let client = client(n);
                delta.clients.push(ClientDelta {
                    client,
                    open_change: 0,
                    counters,
                    rtt_us: 0,
                    exchange: Sketch::default(),
                });
            }
            publisher.interval(Some(&delta), None, Some(HostRecord::default()), at(second));
            assert!(publisher.made() <= u64::from(per_second) * (second + 1), "second {second}");
        }
        let model = read(&publisher.into_sink().entries, |_| false);
        let run = model.current().unwrap();
        assert_eq!((run.routes().len(), run.clients().len()), (ROUTES_MAX + 1, 200));
        for route in run.routes().iter() {
            let silent_s = (run.last_us() - route.series().last_us()) / 1_000_000;
            assert!(silent_s <= 8, "{} for {silent_s} s of {per_second}/s", route.name());
            let expected = if route.name() == "other" { 5.0 } else { 1.0 };
            let rate = run.named_window(route, run.last_us(), 10_000_000).rate(RouteCounter::Requests);
            assert_eq!(rate, Some(expected), "{}", route.name());
        }
    }
}

#[test]
fn failed_requests_come_first_and_those_without_room_are_counted() {
    let mut publisher = begun(20);
    let statuses = [503, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200, 200];
    let requests: Vec<_> = (0..600).map(|n| (n % 2, statuses[n % 12], 1_000 + n as u64)).collect();
    publisher.interval(Some(&of_http(counted(&requests))), None, None, at(1));
    publisher.interval(Some(&of_http(HttpDelta::default())), None, None, at(2));
    let over_budget = publisher.health().over_budget_total;
    let kept = count_of(&publisher, "request");
    let model = read(&publisher.into_sink().entries, |_| false);
    let run = model.current().unwrap();
    let errors = run.requests().errors().len();
    assert!(errors > 4 && errors == kept, "{errors} of {kept}");
    let unrecorded = run.http().unwrap().totals()[HttpCounter::Unrecorded];
    assert_eq!(errors as u64 + over_budget + unrecorded, 50);
    let first = run.requests().errors().next().unwrap();
    assert_eq!((&*first.request.route, first.request.status), ("host/0", 503));
    assert_eq!(first.request.failure, Some(RequestFailure::QueueFull));
    assert!(!run.log().any(|line| line.text.contains("queue-full")), "they do not flood the log");
}

#[test]
fn the_slowest_requests_are_recorded_with_a_sample_of_the_rest() {
    let mut publisher = begun(60);
    let requests: Vec<_> = (0..1_000).map(|n| (0, 200, 1_000 + n * 7 % 1_000)).collect();
    publisher.interval(Some(&of_http(counted(&requests))), None, None, at(1));
    let model = read(&publisher.into_sink().entries, |_| false);
    let run = model.current().unwrap();
    let slowest: Vec<u64> =
        run.requests().slowest(0, u64::MAX).iter().map(|it| it.request.duration_us).collect();
    assert_eq!(slowest[..4], [1_999, 1_998, 1_997, 1_996]);
    assert!((5..=8).contains(&slowest.len()), "{slowest:?}");
    assert_eq!(run.requests().errors().len(), 0);
}

#[test]
fn a_run_in_tcp_mode_has_no_record_of_http() {
    let mut publisher = begun(60);
    (1..=3).for_each(|second| publisher.interval(Some(&proxy_delta(second)), None, None, at(second)));
    publisher.stop(RunRecord::default(), None, None, None, at(4));
    assert!(publisher.kinds().iter().all(|kind| !["http", "route", "request"].contains(&&**kind)));
    let model = read(&publisher.into_sink().entries, |_| false);
    let run = model.current().unwrap();
    assert!(run.http().is_none() && run.routes().is_empty());
}

#[test]
fn a_journal_that_takes_nothing_for_a_while_costs_resolution_only() {
    let mut publisher = begun(60);
    let mut all = HttpDelta::default();
    for second in 1..=10 {
        publisher.sink().room = if (3..7).contains(&second) { 2 } else { usize::MAX };
        let http = counted(&[(0, 200, second * 1_000), (1, 503, second), (55, 404, second)]);
        all.add(&http);
        publisher.interval(Some(&of_http(http)), None, None, at(second));
    }
    publisher.stop(RunRecord::default(), None, None, None, at(11));
    let model = read(&publisher.into_sink().entries, |_| false);
    let run = model.current().unwrap();
    assert_counted(run, &all);
    assert_eq!((run.reading().lost(), run.requests().errors().len()), (0, 10));
    let route = run.routes().get("host/0").unwrap();
    let spans: Vec<_> = route.series().intervals().map(|it| (it.length_us(), it.after_loss)).collect();
    assert_eq!(spans.iter().map(|(us, _)| us).sum::<u64>(), 10_000_000);
    assert!(spans.len() < 10 && spans.iter().all(|(_, after_loss)| !after_loss), "{spans:?}");
}

#[test]
fn a_run_reread_from_its_middle_keeps_totals_of_idle_routes() {
    let mut publisher = begun(60);
    for second in 1..=20 {
        let idle = [(1, 200, 1_000)];
        let requests: Vec<_> = idle.into_iter().filter(|_| second < 5).chain([(0, 200, 1_000)]).collect();
        publisher.interval(Some(&of_http(counted(&requests))), None, None, at(second));
    }
    let records = publisher.records();
    let model = read(&publisher.into_sink().entries, |_| false);
    let mut joined = Model::joining(model.current().unwrap(), at(10).monotonic_us);
    let later = records.into_iter().filter(|record| record.stamp.mono_us > at(10).monotonic_us);
    later.for_each(|record| joined.apply(record, None));
    let run = joined.current().unwrap();
    let requests = |name: &str| run.routes().get(name).unwrap().totals()[RouteCounter::Requests];
    assert_eq!((requests("host/0"), requests("host/1")), (20, 4));
    assert_eq!(run.http().unwrap().totals()[HttpCounter::Requests], 24);
    let rate = |name: &str| {
        let route = run.routes().get(name).unwrap();
        run.named_window(route, run.last_us(), 5_000_000).rate(RouteCounter::Requests)
    };
    assert_eq!((rate("host/0"), rate("host/1")), (Some(1.0), Some(0.0)));
}
