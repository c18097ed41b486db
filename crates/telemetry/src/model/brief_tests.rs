//! More runs than are kept whole.

use super::{Model, RUNS_KNOWN_MAX, RUNS_MAX, Run};
use crate::excerpt::simulated;
use crate::families::{ProxyCounter, ProxyLatency};
use crate::ids::RunId;
use crate::record::Record;

/// The same run so many times, each a minute after the one before.
fn records(run: u128) -> Vec<Record> {
    let mut records = simulated(8);
    for record in &mut records {
        record.stamp.run = RunId::from_bits(run);
        record.stamp.realtime_us += run as u64 * 60_000_000;
    }
    records
}

fn read(runs: std::ops::RangeInclusive<u128>) -> Model {
    let mut model = Model::default();
    runs.flat_map(records).for_each(|record| model.apply(record, None));
    model
}

fn seen(run: &Run) -> (u64, u64, u64, usize, usize) {
    let proxy = run.proxy().unwrap();
    (
        proxy.totals()[ProxyCounter::Exchanges],
        run.duration_us(),
        proxy.whole()[ProxyLatency::Exchange].count(),
        run.clients().len(),
        run.markers().len(),
    )
}

#[test]
fn of_runs_beyond_those_kept_whole_totals_and_the_last_interval_are_known() {
    let model = read(1..=40);
    let whole = model.runs().iter().filter(|run| !run.is_brief()).count();
    assert_eq!((model.runs().len(), whole), (40, RUNS_MAX));
    let (brief, kept) = (model.run(RunId::from_bits(1)).unwrap(), model.run(RunId::from_bits(40)).unwrap());
    assert!(brief.is_brief() && !kept.is_brief());
    assert_eq!((seen(kept), seen(brief)), ((36, 8_000_000, 36, 1, 1), (36, 8_000_000, 0, 0, 0)));
    assert_eq!(brief.proxy().unwrap().intervals().len(), 1);
    assert!(brief.stopped().is_some() && brief.setting("proxy.workers").is_some());
}

#[test]
fn runs_that_go_on_side_by_side_stay_what_they_are() {
    let mut model = Model::default();
    let mut all: Vec<Vec<Record>> = (1..=20).map(records).collect();
    while !all[0].is_empty() {
        for records in &mut all {
            model.apply(records.remove(0), None);
        }
    }
    assert_eq!(model.runs().len(), 20);
    for run in model.runs() {
        assert_eq!((seen(run).0, run.reading().lost()), (36, 0), "{}", run.id());
    }
}

#[test]
fn what_was_read_again_is_whole_unless_it_lacks_the_latest_records() {
    let mut model = read(1..=40);
    let id = RunId::from_bits(3);
    let mut early = Model::default();
    records(3).into_iter().take(9).for_each(|record| early.apply(record, None));
    let early = model.restore(id, early).unwrap_err();
    assert!(early.run(id).is_some() && model.run(id).unwrap().is_brief());
    model.hold(Some(id));
    model.restore(id, read(3..=3)).unwrap();
    assert_eq!(seen(model.run(id).unwrap()), seen(read(3..=3).run(id).unwrap()));
    (41..=80).flat_map(records).for_each(|record| model.apply(record, None));
    assert!(!model.run(id).unwrap().is_brief(), "it is held");
    let whole = model.runs().iter().filter(|run| !run.is_brief()).count();
    assert_eq!(whole, RUNS_MAX);
    assert!(model.restore(RunId::from_bits(999), Model::default()).is_err());
}

#[test]
fn what_is_known_of_runs_has_an_end() {
    let mut model = Model::new(1);
    let first = |run: u128| records(run).into_iter().take(1);
    (1..=RUNS_KNOWN_MAX as u128 + 50).flat_map(first).for_each(|record| model.apply(record, None));
    assert_eq!(model.runs().len(), RUNS_KNOWN_MAX);
    assert!(model.run(RunId::from_bits(50)).is_none() && model.run(RunId::from_bits(51)).is_some());
}
