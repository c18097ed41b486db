//! What [`Downsampler`] gives, read by a model.

use std::time::Duration;

use proptest::prelude::*;
use records::codec::Writer;
use records::downsample::Downsampler;
use records::kinds::{Body, Record};

use crate::history::Batch;
use crate::history::slice_tests::recorded as simulated;
use crate::runs::Model;
use records::metrics::{ClientCounter, LoadLatency, Metric, ProxyCounter, ProxyLatency};

fn thinned(records: Vec<Record>) -> Vec<Record> {
    let mut thinner = Downsampler::new(Duration::from_secs(10));
    let mut out = Vec::new();
    for record in records {
        thinner.take(&Writer::default(), record, &mut out);
    }
    thinner.finish(&Writer::default(), &mut out);
    out
}

fn model(records: Vec<Record>) -> Model {
    let mut model = Model::new(10_000);
    model.apply_batch(Batch { records, ..Batch::default() });
    model
}

/// All that must be the same afterwards.
fn figures(model: &Model) -> serde_json::Value {
    let run = model.current().unwrap();
    let (proxy, load) = (run.proxy().unwrap(), run.load().unwrap());
    let proxy = ProxyLatency::ALL.iter().map(|&class| proxy.whole()[class].to_sparse());
    let load = LoadLatency::ALL.iter().map(|&class| load.whole()[class].to_sparse());
    let whole: Vec<String> = proxy.chain(load).map(|histogram| format!("{histogram:?}")).collect();
    let mut summary = serde_json::to_value(model.summary(run, Some("x"))).unwrap();
    let journal = summary["journal"].as_object_mut().unwrap();
    journal.remove("made");
    journal.remove("read");
    serde_json::json!([summary, whole])
}

#[test]
fn a_tenth_of_the_records_says_the_same() {
    let records = simulated(100);
    let thin = thinned(records.clone());
    let requests = thin.iter().filter(|record| matches!(record.body, Body::Request(_))).count();
    assert!((1..=11 * 8).contains(&requests), "the slowest of each period: {requests}");
    assert!(thin.len() * 5 < records.len(), "{} of {}", thin.len(), records.len());
    let (before, after) = (model(records), model(thin));
    assert_eq!(figures(&before), figures(&after));
    let series = after.current().unwrap().proxy().unwrap();
    let lengths: Vec<u64> = series.intervals().map(|interval| interval.length_us() / 1_000_000).collect();
    // A setting was changed in the fifth second.
    assert_eq!(lengths[..4], [5, 5, 10, 10]);
    assert!(series.intervals().all(|interval| !interval.after_loss));
    let client = after.current().unwrap().clients().iter().next().unwrap();
    assert_eq!(client.totals()[ClientCounter::Exchanges], 5_050);
    assert_eq!(client.exchange().count(), 5_050);
    assert_eq!(client.exchange(), before.current().unwrap().clients().iter().next().unwrap().exchange());
}

#[test]
fn time_in_which_the_process_did_not_run_stays_a_gap() {
    let mut records = simulated(30);
    // It stood still for three seconds, and the record after them covers the last second only.
    for record in records.iter_mut().filter(|record| record.stamp.mono_us > 65_000_000) {
        record.stamp.mono_us += 3_000_000;
        record.stamp.realtime_us += 3_000_000;
    }
    let gaps = |model: &Model| {
        let run = model.current().unwrap();
        let lengths = |after_loss| {
            let series = run.proxy().unwrap();
            let of = series.intervals().filter(move |interval| interval.after_loss == after_loss);
            of.map(|interval| interval.length_us() / 1_000_000).collect::<Vec<_>>()
        };
        (run.reading().gaps_total(), lengths(true), lengths(false).iter().sum::<u64>())
    };
    assert_eq!(gaps(&model(records.clone())), (1, vec![4], 29));
    assert_eq!(gaps(&model(thinned(records))), (1, vec![4], 29));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_was_lost_before_totals_latencies_and_losses_stay(
        lost in prop::collection::vec(0_usize..200, 0..20),
        seconds in 1_u64..60,
    ) {
        let mut at = 0;
        let mut records = simulated(seconds);
        // The beginning is there, or nothing before it is known.
        records.retain(|_| { at += 1; at == 1 || !lost.contains(&at) });
        let thin = thinned(records.clone());
        prop_assert!(thin.len() <= records.len());
        let (before, after) = (model(records), model(thin));
        let (a, b) = (before.current().unwrap(), after.current().unwrap());
        prop_assert_eq!(a.reading().lost(), b.reading().lost());
        prop_assert_eq!(a.stopped().is_some(), b.stopped().is_some());
        let of = |run: &crate::runs::Run| run.proxy().map(|series| {
            let whole = series.whole()[ProxyLatency::Exchange].to_sparse();
            (series.totals()[ProxyCounter::Exchanges], whole, series.samples_total(ProxyLatency::Exchange))
        });
        prop_assert_eq!(of(a), of(b));
        let counted = |run: &crate::runs::Run| run.proxy().map_or(0, |series| {
            series.intervals().map(|interval| interval.counters[ProxyCounter::Exchanges]).sum::<u64>()
        });
        prop_assert_eq!(counted(a), counted(b));
    }
}
