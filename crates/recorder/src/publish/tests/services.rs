//! Parts of a run: each service has records of its own.

use records::delta::{Delta as _, ServiceDelta};
use records::ids::RUN_PARTS_MAX;

use super::*;

const WHOLE: RunId = RunId::from_bits(0xab << 8);

fn begun(records_per_second: u32) -> Publisher<MemorySink> {
    let mut publisher = Publisher::new(WHOLE, MemorySink::default(), records_per_second, at(0));
    publisher.start(RunRecord::default(), at(0));
    publisher
}

/// What these services did in a second, and their sum.
fn delta(second: u64, names: &[&str]) -> ProxyDelta {
    let mut sum = ProxyDelta::default();
    for name in names {
        let counted = proxy_delta(second);
        sum.add(&counted);
        sum.services.push(ServiceDelta { name: (*name).into(), counted });
    }
    sum
}

fn model_of(publisher: &Publisher<MemorySink>) -> Model {
    let mut model = Model::new(1_000);
    publisher.records().into_iter().for_each(|record| model.apply(record, None));
    model
}

fn accepted(model: &Model, id: RunId) -> u64 {
    let run = model.run(id).unwrap();
    assert_eq!((run.reading().lost(), run.reading().gaps_total()), (0, 0), "{}", run.service());
    run.proxy().unwrap().totals()[ProxyCounter::Accepted]
}

#[test]
fn services_are_parts_that_add_up_to_the_run() {
    let mut publisher = begun(60);
    publisher.interval(Some(&delta(1, &["a"])), None, None, at(1));
    publisher.interval(Some(&delta(2, &["a", "b"])), None, None, at(2));
    publisher.interval(Some(&delta(3, &["b"])), None, None, at(3));
    publisher.stop(RunRecord::default(), Some(&delta(4, &["a"])), None, None, at(4));
    assert_eq!(publisher.pending(), 0);
    let model = model_of(&publisher);
    let whole: Vec<RunId> = model.runs().map(model::runs::Run::id).collect();
    let parts: Vec<(RunId, &str)> = model.services(WHOLE).map(|run| (run.id(), run.service())).collect();
    assert_eq!((whole, &*parts), (vec![WHOLE], &[(WHOLE.part(1), "a"), (WHOLE.part(2), "b")][..]));
    let [a, b] = [1, 2].map(|number| accepted(&model, WHOLE.part(number)));
    let each = |seconds: &[u64]| -> u64 {
        seconds.iter().map(|second| proxy_delta(*second).counters[ProxyCounter::Accepted]).sum()
    };
    assert_eq!((a, b), (each(&[1, 2, 4]), each(&[2, 3])));
    assert_eq!(accepted(&model, WHOLE), a + b);
    // Each begins with its first interval, and ends with the run.
    let run = |number| model.run(WHOLE.part(number)).unwrap();
    assert_eq!((run(1).duration_us(), run(2).duration_us()), (4_000_000, 3_000_000));
    assert!(run(1).stopped().is_some() && run(2).stopped().is_some());
}

#[test]
fn what_the_journal_refuses_of_a_service_comes_later() {
    let mut publisher = begun(60);
    publisher.interval(Some(&delta(1, &["a", "b"])), None, None, at(1));
    publisher.sink().room = 0;
    publisher.interval(Some(&delta(2, &["a", "b"])), None, None, at(2));
    assert!(publisher.pending() > 0);
    publisher.sink().room = usize::MAX;
    publisher.interval(Some(&delta(3, &["a"])), None, None, at(3));
    publisher.stop(RunRecord::default(), None, None, None, at(4));
    assert_eq!(publisher.pending(), 0);
    let model = model_of(&publisher);
    let parts = accepted(&model, WHOLE.part(1)) + accepted(&model, WHOLE.part(2));
    assert_eq!(accepted(&model, WHOLE), parts);
}

#[test]
fn services_beyond_the_bound_count_in_the_whole_run_only() {
    let names: Vec<String> = (0..u64::from(RUN_PARTS_MAX) + 20).map(|n| n.to_string()).collect();
    let names: Vec<&str> = names.iter().map(|name| &**name).collect();
    let mut publisher = begun(60);
    let mut written = 0;
    for second in 1..=10 {
        publisher.interval(Some(&delta(second, &names)), None, None, at(second));
        written = publisher.records().len();
    }
    // Half for the whole, and six records a second for each part, with the first of each.
    assert!(written <= 11 * (30 + 6 * usize::from(RUN_PARTS_MAX)), "{written}");
    let model = model_of(&publisher);
    assert!(model.services(WHOLE).all(|run| run.clients().len() > 1), "clients are recorded while it runs");
    assert_eq!(model.services(WHOLE).count(), usize::from(RUN_PARTS_MAX));
    let each = proxy_delta(1).counters[ProxyCounter::Accepted];
    assert!(accepted(&model, WHOLE) > each * 10 * u64::from(RUN_PARTS_MAX));
}

#[test]
fn a_recording_that_begins_later_has_all_parts() {
    let mut publisher = begun(60);
    publisher.interval(Some(&delta(1, &["a"])), None, None, at(1));
    let (baselines, before) = (publisher.baselines(), publisher.records().len());
    publisher.interval(Some(&delta(2, &["a", "b"])), None, None, at(2));
    publisher.stop(RunRecord::default(), None, None, None, at(3));
    let mut slice = records::slice::RunSlice::following(baselines);
    let mut recorded = Vec::new();
    for record in publisher.records().drain(before..) {
        slice.take(&codec::Writer::default(), record, &mut recorded);
    }
    let mut model = Model::new(1_000);
    for record in recorded {
        model.apply(record, None);
    }
    let mut names: Vec<&str> = model.services(WHOLE).map(model::runs::Run::service).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b"]);
    let second = proxy_delta(2).counters[ProxyCounter::Accepted];
    let counted = [WHOLE, WHOLE.part(1), WHOLE.part(2)].map(|id| accepted(&model, id));
    assert_eq!(counted, [2 * second, second, second]);
}
