//! More runs than are kept whole.

use std::sync::LazyLock;
use std::time::Duration;

use super::client_record;
use crate::history::Batch;
use crate::history::slice_tests::recorded as simulated;
use crate::runs::{Model, RUNS_KNOWN_MAX, RUNS_MAX, Run, RunMember, UNCHECKED_BYTES_MAX};
use records::codec::{Origin, Writer};
use records::histogram::{Histogram, Sketch};
use records::ids::RunId;
use records::kinds::{Body, CertificateRecord, ProxyRecord, Record, Stamp};
use records::metrics::{Metric, ProxyCounter, ProxyLatency};
use records::values::Latency;

/// The records of one run, several times, each a minute after the previous.
fn records(run: u128) -> Vec<Record> {
    static SIMULATED: LazyLock<Vec<Record>> = LazyLock::new(|| simulated(8));
    let mut records = SIMULATED.clone();
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
fn abridged_runs_keep_totals_and_the_last_ten_seconds() {
    let model = read(1..=40);
    let whole = model.runs_and_parts().iter().filter(|run| !run.is_brief()).count();
    assert_eq!((model.runs_and_parts().len(), whole), (40, RUNS_MAX));
    let (brief, kept) = (model.run(RunId::from_bits(1)).unwrap(), model.run(RunId::from_bits(40)).unwrap());
    assert!(brief.is_brief() && !kept.is_brief());
    assert_eq!((seen(kept), seen(brief)), ((36, 8_000_000, 36, 1, 1), (36, 8_000_000, 0, 0, 0)));
    assert_eq!(brief.proxy().unwrap().intervals().len(), 9);
    assert!(brief.stopped().is_some() && brief.setting("proxy.workers").is_some());
}

#[test]
fn abridged_runs_keep_their_certificates() {
    let mut model = Model::default();
    let mut given = |run: u128, not_after| {
        let mut record = records(run)[0].clone();
        record.stamp.seq += not_after;
        let certificate = CertificateRecord { not_after, ..CertificateRecord::default() };
        record.body = Body::Certificate(Box::new(certificate));
        model.apply(record, None);
    };
    (1..=40).for_each(|run| given(run, 1));
    given(1, 2);
    let brief = model.run(RunId::from_bits(1)).unwrap();
    assert!(brief.is_brief());
    assert_eq!(brief.certificates().served().map(|record| record.not_after).collect::<Vec<_>>(), [2]);
}

/// Reads 40 runs of ten minutes side by side, to merge them.
fn read_to_merge(bytes_max: usize) -> Model {
    let mut model = Model { bytes_max, ..Model::for_merging(1_000_000) };
    for record in simulated(600) {
        for run in 1..=40_u32 {
            let mut record = record.clone();
            record.stamp.run = RunId::from_bits(run.into());
            let origin = Origin { machine: Some(run.into()), ..Origin::default() };
            let writer = Writer { origin, hostname: format!("edge-{run}"), ..Writer::default() };
            model.apply_from(&writer, record, None);
        }
    }
    model
}

#[test]
fn runs_to_be_merged_are_condensed_and_keep_their_figures() {
    let whole = read_to_merge(usize::MAX);
    let bytes_max = bytes(&whole) / 4;
    let condensed = read_to_merge(bytes_max);
    assert!(bytes(&condensed) <= bytes_max + 2 * UNCHECKED_BYTES_MAX);
    assert!(condensed.runs().all(|run| !run.is_brief()));
    let [whole, condensed] = [whole, condensed].map(|model| {
        let members: Vec<_> =
            model.runs().map(|run| RunMember { name: run.hostname(), run, model: &model }).collect();
        assert_eq!(members.len(), 40);
        Model::merged(&members)
    });
    let figures = |model: &Model| {
        let run = model.current().unwrap();
        let mut summary = serde_json::to_value(run.summary()).unwrap();
        summary.as_object_mut().unwrap().remove("run");
        let proxy = run.proxy().unwrap();
        let latencies = [0.5, 0.99, 0.999, 1.0].map(|q| proxy.whole()[ProxyLatency::Exchange].quantile_ns(q));
        let in_plot: u64 = proxy.timeline().map(|interval| interval.counters[ProxyCounter::Exchanges]).sum();
        (summary, latencies, in_plot, seen(run).3, run.reading().lost())
    };
    assert_eq!(figures(&condensed), figures(&whole));
    let highest = |model: &Model| {
        let run = model.current().unwrap();
        let rates =
            run.proxy().unwrap().timeline().filter_map(|interval| interval.rate(ProxyCounter::Exchanges));
        (run.proxy().unwrap().timeline().count(), rates.fold(0.0, f64::max))
    };
    let (all, fewer) = (highest(&whole), highest(&condensed));
    assert!(fewer.0 * 10 < all.0 && fewer.0 > 10, "{fewer:?} {all:?}");
    assert!(
        fewer.1 <= all.1 && fewer.1 > 0.9 * all.1,
        "no plot has a rate that never was: {fewer:?} {all:?}"
    );
}

#[test]
fn of_more_runs_than_are_known_the_replaced_ones_are_forgotten_to_merge_the_others() {
    // No run's id is that of another one's part.
    let id = |run: u128| RunId::from_bits(run << 64);
    let last = RUNS_KNOWN_MAX as u128 + 200;
    let read = |hosts: u128| {
        let mut model = Model::for_merging(1);
        for run in 1..=last {
            let origin = Origin { machine: Some(run % hosts), ..Origin::default() };
            let mut record = records(run).remove(0);
            record.stamp.run = id(run);
            model.apply_from(&Writer { origin, ..Writer::default() }, record, None);
        }
        model
    };
    let model = read(900);
    assert_eq!(model.forgotten(), 0);
    assert!((last - 899..=last).all(|run| model.run(id(run)).is_some_and(|run| !run.is_brief())));
    assert!(model.runs().filter(|run| model.runs().any(|other| run.is_replaced_by(other))).count() < 200);
    assert!(read(last).forgotten() > 0, "of each host one");
}

#[test]
fn an_abridged_run_goes_on_with_its_last_ten_seconds() {
    let mut model = Model::default();
    let long = simulated(30);
    let (first, rest) = long.split_at(5);
    first.iter().cloned().for_each(|record| model.apply(record, None));
    (1_000_000..1_000_000 + RUNS_MAX as u128).flat_map(records).for_each(|record| model.apply(record, None));
    rest.iter().cloned().for_each(|record| model.apply(record, None));
    let run = model.run(long[0].stamp.run).unwrap();
    assert!(run.is_brief());
    let intervals = run.proxy().unwrap().intervals();
    assert_eq!((intervals.len(), seen(run).1), (11, 30_000_000));
    assert!(run.host().is_none() || run.cpu(records::metrics::CpuGroup::Proxy, 10_000_000).is_some());
}

#[test]
fn stamps_of_the_future_do_not_displace_runs_that_are_live() {
    let mut model = Model::default();
    let live = |model: &mut Model, record: &Record| {
        let batch = Batch {
            records: vec![record.clone()],
            read_realtime_us: Some(1_700_000_000_000_000),
            ..Batch::default()
        };
        model.apply_batch(batch);
    };
    let honest = simulated(8);
    for record in &honest {
        live(&mut model, record);
    }
    for run in 1..=2 * RUNS_KNOWN_MAX as u128 {
        let mut record = honest[0].clone();
        record.stamp.run = RunId::from_bits(run);
        record.stamp.realtime_us = u64::MAX / 2 + run as u64;
        live(&mut model, &record);
    }
    assert_eq!(model.runs_and_parts().len(), RUNS_KNOWN_MAX);
    assert_eq!(model.run(honest[0].stamp.run).map(|run| seen(run).0), Some(36));
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
    assert_eq!(model.runs_and_parts().len(), 20);
    for run in model.runs_and_parts() {
        assert_eq!((seen(run).0, run.reading().lost()), (36, 0), "{}", run.id());
    }
}

#[test]
fn a_reread_run_is_complete_unless_the_latest_records_are_missing() {
    let mut model = read(1..=40);
    let id = RunId::from_bits(3);
    let mut early = Model::default();
    records(3).into_iter().take(9).for_each(|record| early.apply(record, None));
    let early = model.restore(id, Box::new(early)).unwrap_err();
    assert!(early.run(id).is_some() && model.run(id).unwrap().is_brief());
    model.hold(Some(id));
    model.restore(id, Box::new(read(3..=3))).unwrap();
    assert_eq!(seen(model.run(id).unwrap()), seen(read(3..=3).run(id).unwrap()));
    (41..=80).flat_map(records).for_each(|record| model.apply(record, None));
    assert!(!model.run(id).unwrap().is_brief(), "it is held");
    let whole = model.runs_and_parts().iter().filter(|run| !run.is_brief()).count();
    assert_eq!(whole, RUNS_MAX);
    assert!(model.restore(RunId::from_bits(999), Box::default()).is_err());
}

#[test]
fn the_memory_for_runs_is_bounded() {
    let mut model = Model::new(1);
    let first = |run: u128| records(run).into_iter().take(1);
    (1..=RUNS_KNOWN_MAX as u128 + 50).flat_map(first).for_each(|record| model.apply(record, None));
    assert_eq!(model.runs_and_parts().len(), RUNS_KNOWN_MAX);
    assert!(model.run(RunId::from_bits(50)).is_none() && model.run(RunId::from_bits(51)).is_some());
}

/// The records of a run with so many clients, each with the largest histories and texts there can be.
fn flood(run: u128, clients: u32, rounds: u64) -> impl Iterator<Item = Record> {
    let mut exchange = Sketch::default();
    (0..27).for_each(|power| {
        (0..8).for_each(|part| exchange.record(Duration::from_micros((8 + part) << power)));
    });
    let seqs = std::iter::successors(Some(1_u64), |seq| Some(seq + 1));
    let rounds = (1..=rounds).flat_map(move |round| (0..clients).map(move |client| (round, client)));
    rounds.zip(seqs).map(move |((round, client), seq)| {
        let stamp = Stamp {
            run: RunId::from_bits(run),
            seq,
            mono_us: round * 1_000_000,
            // One run after the other, as in a journal that is read from its beginning.
            realtime_us: run as u64 * 1_000_000_000 + round * 1_000_000,
            interval_us: 1_000_000,
        };
        let client = std::net::IpAddr::from(client.to_be_bytes()).into();
        let mut record = client_record(client, 1, 10 * round);
        record.exchange = exchange.clone();
        Record { stamp, body: Body::Client(record) }
    })
}

fn bytes(model: &Model) -> usize {
    model.runs_and_parts().iter().map(Run::bytes).sum()
}

/// A model that keeps so little that a flood is soon too much.
fn small() -> Model {
    Model { bytes_max: 32 << 20, ..Model::default() }
}

fn assert_bounded(model: &Model) {
    let bytes = bytes(model);
    assert!(
        bytes <= (32 << 20) + 2 * UNCHECKED_BYTES_MAX,
        "{bytes} bytes of {} runs",
        model.runs_and_parts().len()
    );
}

#[test]
fn floods_of_runs_with_clients_are_bounded_together() {
    let mut model = small();
    for run in 1..=20 {
        flood(run, 1_000, 2).for_each(|record| model.apply(record, None));
        assert_bounded(&model);
    }
    let last = model.run(RunId::from_bits(20)).unwrap();
    assert!(!last.is_brief() && last.clients().len() == 1_000, "the newest is whole");
    let first = model.run(RunId::from_bits(1)).unwrap();
    assert!(
        first.is_brief() && first.reading().read() == 2_000,
        "of the oldest it is known that it was there"
    );
    let whole = model.runs_and_parts().iter().filter(|run| !run.is_brief()).count();
    assert!((2..RUNS_MAX).contains(&whole), "{whole} are whole");
}

#[test]
fn a_flood_of_runs_that_hold_much_without_clients_is_bounded_too() {
    let mut histogram = Histogram::new();
    (0..60_000).for_each(|ms| histogram.record_ns(ms * 1_000_000));
    let mut proxy = ProxyRecord::default();
    for &class in ProxyLatency::ALL {
        proxy.latencies[class] = Latency { samples_total: 1, interval: histogram.to_sparse() };
    }
    let mut model = small();
    // The shown run stays, however long it is silent.
    let first = records(1).remove(0);
    model.apply(first.clone(), None);
    model.hold(Some(RunId::from_bits(1)));
    for run in 2..=200 {
        let stamp =
            Stamp { run: RunId::from_bits(run), realtime_us: u64::MAX / 2 + run as u64, ..first.stamp };
        model.apply(Record { stamp, body: Body::Proxy(Box::new(proxy.clone())) }, None);
        assert_bounded(&model);
    }
    assert!(model.run(RunId::from_bits(1)).is_some() && model.run(RunId::from_bits(2)).is_none());
    assert!(model.run(RunId::from_bits(200)).is_some());
}
