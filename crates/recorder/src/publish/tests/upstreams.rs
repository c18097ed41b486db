//! Tests of upstream records: they equal the counts, and take turns within the budget.

use std::time::Duration;

use super::super::*;
use super::{MemorySink, at, count_of, read};
use records::delta::UpstreamStatus;
use records::kinds::UpstreamState;
use records::metrics::{UpstreamCounter, UpstreamLatency};

fn begun(upstreams: usize) -> Publisher<MemorySink> {
    let mut publisher = Publisher::new(RunId::from_bits(9), MemorySink::default(), 60, at(0));
    let names: Vec<String> = (0..upstreams).map(|n| format!("unix:/{n}")).collect();
    publisher.name_upstreams(&names);
    publisher.start(RunRecord::default(), at(0));
    publisher
}

/// A second of so many upstreams that are up, with as many exchanges of each.
fn counted(upstreams: usize, exchanges: u64) -> ProxyDelta {
    let mut delta = ProxyDelta::default();
    for index in 0..upstreams {
        let upstream = delta.upstreams.at(index);
        upstream.count(UpstreamCounter::Exchanges, exchanges);
        (0..exchanges).for_each(|_| upstream.time(UpstreamLatency::FirstByte, Duration::from_millis(3)));
        let (state, age) = (UpstreamState::Up, Duration::from_secs(1));
        upstream.status = Some(UpstreamStatus { state, age, reason: String::new() });
    }
    delta
}

#[test]
fn an_upstream_has_a_record_at_first_and_when_something_changes() {
    let mut publisher = begun(2);
    publisher.interval(Some(&counted(2, 0)), None, None, at(1));
    publisher.interval(Some(&counted(2, 0)), None, None, at(2));
    assert_eq!(count_of(&publisher, "upstream"), 2, "each is seen, and nothing has happened");

    let mut publisher = begun(2);
    publisher.interval(Some(&counted(2, 0)), None, None, at(1));
    let mut failed = counted(2, 0);
    let status = failed.upstreams.at(1).status.as_mut().unwrap();
    (status.state, status.reason) = (UpstreamState::Down, "refused".to_owned());
    publisher.interval(Some(&failed), None, None, at(2));
    publisher.interval(Some(&failed), None, None, at(3));
    let model = read(&publisher.sink().entries, |_| false);
    let down = model.current().unwrap().upstreams().get("unix:/1").unwrap();
    assert_eq!((down.record().state, &*down.record().reason), (UpstreamState::Down, "refused"));
    let state_at = |s| down.state_at(at(s).monotonic_us).map(|(_, told)| told.state);
    assert_eq!(
        [1, 2, 3].map(state_at),
        [UpstreamState::Up, UpstreamState::Down, UpstreamState::Down].map(Some)
    );
    assert_eq!(count_of(&publisher, "upstream"), 3);
}

#[test]
fn counts_and_latencies_of_many_upstreams_read_back_equal_although_they_take_turns() {
    const UPSTREAMS: usize = 64;
    let mut publisher = begun(UPSTREAMS);
    for second in 1..=20 {
        publisher.interval(Some(&counted(UPSTREAMS, 2)), None, None, at(second));
    }
    let model = read(&publisher.sink().entries, |_| false);
    assert_eq!(model.current().unwrap().upstreams().len(), UPSTREAMS, "all had their turn");
    publisher.stop(RunRecord::default(), Some(&ProxyDelta::default()), None, None, at(21));
    for _ in 0..100 {
        publisher.retry();
    }
    let model = read(&publisher.sink().entries, |_| false);
    let run = model.current().unwrap();
    for upstream in run.upstreams().iter() {
        assert_eq!(upstream.totals()[UpstreamCounter::Exchanges], 40, "{}", upstream.name());
        assert_eq!(upstream.series().whole()[UpstreamLatency::FirstByte].count(), 40);
        assert!(upstream.record().last);
    }
}
