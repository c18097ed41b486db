//! Tests with a journal that refuses records for a while, or always.

use super::super::events::EVENTS_MAX;
use records::values::WorkerCounts;

use super::super::*;
use super::{MemorySink, assert_totals, at, begun, count_of, proxy_delta, read, true_totals, written};

#[test]
fn refused_counts_go_into_a_later_record() {
    let publisher = written(20, (10..17).collect());
    assert!(publisher.health().refused_total > 0);
    let model = read(&publisher.into_sink().entries, |_| false);
    assert_totals(&model, 20);
    let run = model.current().unwrap();
    assert_eq!(run.reading().lost(), 0);
    assert!(run.health().merged_total > 0);
    assert_eq!(run.health().error, "no space left");
    // WindowHistogram intervals are no gap: one record covers them all, histograms included.
    assert!(run.proxy().unwrap().intervals().all(|interval| !interval.after_loss));
}

#[test]
fn events_wait_with_their_stamps_and_go_first_in_order() {
    let mut publisher = begun(60);
    publisher.sink().room = 0;
    publisher.interval(Some(&proxy_delta(1)), None, None, at(1));
    publisher.mark("a", at(1));
    publisher.setting(SettingRecord { name: "load.rate".into(), ..SettingRecord::default() }, at(2));
    publisher.interval(Some(&proxy_delta(2)), None, None, at(3));
    publisher.mark("b", at(4));
    assert_eq!(publisher.kinds(), ["run"]);
    publisher.give_room(2);
    assert_eq!(publisher.kinds(), ["run", "mark", "setting"]);
    publisher.give_room(100);
    assert_eq!(publisher.kinds()[..5], ["run", "mark", "setting", "mark", "health"]);
    assert_eq!(publisher.pending(), 0);
    let records = publisher.records();
    let made: Vec<_> = records[..4].iter().map(|record| record.stamp.mono_us).collect();
    assert_eq!(made, [at(0), at(1), at(2), at(4)].map(|at| at.monotonic_us));
    assert!(records.iter().map(|record| record.stamp.seq).eq(1..=records.len() as u64));
}

#[test]
fn a_journal_that_is_busy_for_moments_gets_every_record_in_its_interval() {
    let mut publisher = begun(60);
    publisher.sink().room = 0;
    for second in 1..=5 {
        publisher.interval(Some(&proxy_delta(second)), None, Some(HostRecord::default()), at(second));
        while publisher.pending() > 0 {
            publisher.give_room(2);
        }
    }
    let HealthRecord { waits_total, refused_total, merged_total, .. } = *publisher.health();
    assert_eq!((waits_total, refused_total, merged_total), (20, 0, 0));
    assert_eq!(count_of(&publisher, "health"), 0, "to wait a moment is no news");
    assert_eq!(publisher.made(), 1 + 5 * (1 + 1 + 1 + 4));
}

#[test]
fn a_record_that_the_journal_never_takes_holds_up_no_other() {
    for kind in ["mark", "proxy", "client", "host"] {
        let mut publisher = begun(60);
        publisher.sink().never = kind;
        publisher.mark("a", at(0));
        for second in 1..=3 {
            publisher.interval(Some(&proxy_delta(second)), None, Some(HostRecord::default()), at(second));
            assert_eq!(publisher.pending(), 0);
        }
        let dropped = publisher.health().dropped_total;
        let expected = if kind == "mark" { 1 } else { 3 * if kind == "client" { 4 } else { 1 } };
        assert_eq!((dropped, &*publisher.health().error), (expected, "too large"), "{kind}");
        publisher.stop(RunRecord::default(), None, None, None, at(4));
        let model = read(&publisher.sink().entries, |_| false);
        let run = model.current().unwrap();
        assert_eq!(run.proxy().unwrap().totals()[ProxyCounter::Accepted], 12, "{kind}");
        assert!(run.reading().lost() == 0 && run.health().dropped_total >= dropped);
    }
}

#[test]
fn workers_have_totals_and_the_longest_delay_since_the_last_record() {
    let mut publisher = begun(60);
    publisher.sink().room = 0;
    for (second, delay_us) in [(1, 900), (2, 100), (3, 50)] {
        let mut delta = proxy_delta(second);
        for number in [1, 0] {
            delta.workers.push(WorkerCounts {
                number,
                accepted: 10,
                loop_delay_us_max: delay_us,
                ..WorkerCounts::default()
            });
        }
        publisher.interval(Some(&delta), None, Some(HostRecord::default()), at(second));
        publisher.give_room(if second == 1 { 0 } else { 100 });
    }
    let hosts = publisher.records().into_iter().filter_map(|record| match record.body {
        Body::Host(host) => Some(host.workers),
        _ => None,
    });
    let workers = |list: &WorkerList| {
        let figures = list.iter().map(|worker| (worker.number, worker.accepted, worker.loop_delay_us_max));
        figures.collect::<Vec<_>>()
    };
    let lists: Vec<_> = hosts.map(|list| workers(&list)).collect();
    assert_eq!(lists, [[(0, 20, 900), (1, 20, 900)], [(0, 30, 50), (1, 30, 50)]]);
}

#[test]
fn events_beyond_the_queue_are_counted_and_logged() {
    let mut publisher = begun(60);
    publisher.sink().room = 0;
    (0..100).for_each(|_| publisher.mark("", at(1)));
    assert_eq!((publisher.pending(), publisher.health().dropped_total), (EVENTS_MAX, 36));
    publisher.give_room(usize::MAX);
    publisher.sink().room = usize::MAX;
    publisher.interval(None, None, None, at(2));
    let model = read(&publisher.sink().entries, |_| false);
    assert_eq!(model.current().unwrap().health().dropped_total, 36);
    assert_eq!(model.current().unwrap().reading().lost(), 0);
}

#[test]
fn the_end_of_a_run_waits_for_the_journal_and_stays_the_end() {
    let mut publisher = begun(60);
    publisher.interval(Some(&proxy_delta(1)), None, None, at(1));
    publisher.sink().room = 0;
    publisher.interval(Some(&proxy_delta(2)), None, None, at(2));
    publisher.mark("last", at(2));
    publisher.stop(RunRecord::default(), Some(&proxy_delta(3)), None, None, at(3));
    let mut moments = 0;
    while publisher.pending() > 0 {
        publisher.give_room(1);
        moments += 1;
        assert!(moments < 100);
    }
    let kinds = publisher.kinds();
    let last = ["mark", "proxy", "tls", "client", "client", "client", "client", "health", "run"];
    assert_eq!(kinds[kinds.len() - last.len()..], last);
    let model = read(&publisher.sink().entries, |_| false);
    let run = model.current().unwrap();
    let (totals, samples) = true_totals(3);
    assert_eq!(*run.proxy().unwrap().totals(), totals);
    assert_eq!(run.proxy().unwrap().whole()[ProxyLatency::Exchange].count(), samples);
    assert!(run.stopped().is_some() && run.reading().lost() == 0);
}

#[test]
fn records_dropped_by_journald_are_logged() {
    let mut publisher = begun(60);
    publisher.set_suppressed(7);
    publisher.interval(None, None, None, at(1));
    publisher.set_suppressed(7);
    publisher.interval(None, None, None, at(2));
    assert_eq!(count_of(&publisher, "health"), 1);
    let model = read(&publisher.sink().entries, |_| false);
    assert_eq!(model.current().unwrap().health().suppressed_total, 7);
}

#[test]
fn a_journal_that_cannot_be_brought_up_to_date_has_refused_nothing() {
    let paper = MemorySink { cannot_flush: true, ..MemorySink::default() };
    let mut publisher = Publisher::new(RunId::from_bits(1), paper, 60, at(0));
    publisher.start(RunRecord::default(), at(0));
    (1..10).for_each(|second| publisher.interval(Some(&proxy_delta(second)), None, None, at(second)));
    assert_eq!((publisher.health().refused_total, &*publisher.health().error), (0, "no space left"));
    assert_eq!(count_of(&publisher, "health"), 1);
}
