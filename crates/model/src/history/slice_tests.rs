//! A recorded run, its slices, and recordings of it.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::*;
use crate::runs::Model;
use crate::testing::finished;
use recorder::publish::Publisher;
use records::codec::Writer;
use records::delta::{ClientDelta, FinishedRequest, HttpDelta, LoadDelta, LoadState, ProxyDelta};
use records::histogram::Sketch;
use records::ids::RunId;
use records::kinds::{Body, HostRecord, NoticeRecord, Record, RunRecord, SettingRecord, Timestamps};
use records::metrics::{
    ClientCounter, Counters, CpuGroup, HttpCounter, HttpLatency, LoadCounter, LoadLatency, ProxyCounter,
    ProxyLatency, RouteCounter, RouteLatency,
};
use records::setting::{Applies, Setting, Value};
use records::slice::{RunSlice, TimeRange};
use records::values::{LoadEvent, LogFigure};

const BEGAN_S: u64 = 1_700_000_000;

fn at(second: u64) -> Timestamps {
    Timestamps { realtime_us: (BEGAN_S + second) * 1_000_000, monotonic_us: (50 + second) * 1_000_000 }
}

/// So many requests of as many milliseconds, in even seconds those of the second route.
fn requests(second: u64) -> HttpDelta {
    let mut http = HttpDelta::default();
    for _ in 0..second {
        let (route, duration) = (Some(1 - second as usize % 2), Duration::from_millis(second));
        http.finish(&FinishedRequest { route, duration: Some(duration), ..finished() });
    }
    http.gauges.upstream_open = 1;
    http
}

fn workers(n: f64) -> Setting {
    Setting {
        name: "proxy.workers".to_owned(),
        value: Value::Number(n),
        unit: String::new(),
        applies: Applies::Live,
        range: None,
    }
}

/// A run of so many seconds: in the n-th there are n requests, all of n milliseconds; in the fifth the workers change.
pub(crate) fn recorded(seconds: u64) -> Vec<Record> {
    recorded_and_watched(seconds, |_, _| {})
}

/// Records such a run; `watch` sees the publisher after each second.
fn recorded_and_watched(
    seconds: u64,
    mut watch: impl FnMut(u64, &mut Publisher<Vec<Record>>),
) -> Vec<Record> {
    let mut publisher = Publisher::new(RunId::from_bits(1), Vec::new(), 60, at(0));
    publisher.name_routes(["/", "/even"].map(str::to_owned).to_vec());
    publisher.start(RunRecord { settings: vec![workers(1.0)], ..RunRecord::default() }, at(0));
    for second in 1..=seconds {
        let (mut proxy, mut load) = (ProxyDelta::default(), LoadDelta::default());
        let mut exchange = Sketch::default();
        for _ in 0..second {
            exchange.record(Duration::from_secs(second) / 1_000);
            proxy.latencies[ProxyLatency::Exchange].record_ns(second * 1_000_000);
            load.latencies[LoadLatency::Response].record_ns(second * 1_000_000);
            load.events.count(LoadEvent::Status(200), String::new);
        }
        proxy.counters[ProxyCounter::Exchanges] = second;
        load.counters[LoadCounter::Ok] = second;
        proxy.http = Some(Box::new(requests(second)));
        let mut counters = Counters::default();
        counters[ClientCounter::Exchanges] = second;
        let client = IpAddr::from(Ipv4Addr::LOCALHOST).into();
        proxy.clients.push(ClientDelta { client, open_change: 0, counters, rtt_us: 0, exchange });
        let mut host = HostRecord::default();
        host.cpu[CpuGroup::Proxy] = second * 1_000;
        let state = LoadState { measured_us: second * 1_000_000, ..LoadState::default() };
        publisher.interval(Some(&proxy), Some((&load, state)), Some(host), at(second));
        if second == 5 {
            let after = Some(workers(2.0));
            publisher.setting(
                SettingRecord {
                    name: "proxy.workers".to_owned(),
                    before: "1".to_owned(),
                    after,
                    ..SettingRecord::default()
                },
                at(second),
            );
        }
        watch(second, &mut publisher);
    }
    publisher.stop(RunRecord::default(), None, None, None, at(seconds));
    publisher.into_sink()
}

fn model(records: Vec<Record>, from_s: u64, until_s: u64) -> Model {
    let range = TimeRange { from_us: at(from_s).realtime_us, until_us: at(until_s).realtime_us };
    let mut slice = RunSlice::new(range);
    let mut model = Model::new(1_000);
    model.apply_batch(Batch { records, ..Batch::default() }.within(&mut slice));
    model
}

#[test]
fn a_stretch_has_the_totals_and_latencies_of_its_own_time_only() {
    let model = model(recorded(20), 6, 10);
    let run = model.current().unwrap();
    let sum = 7 + 8 + 9 + 10;
    let (proxy, load) = (run.proxy().unwrap(), run.load().unwrap());
    assert_eq!((proxy.totals()[ProxyCounter::Exchanges], load.totals()[LoadCounter::Ok]), (sum, sum));
    let whole = &proxy.whole()[ProxyLatency::Exchange];
    assert_eq!((whole.count(), whole.max_ns()), (sum, 10_000_000));
    assert_eq!(whole.min_ns().unwrap().div_ceil(1_000_000), 7);
    assert_eq!(proxy.samples_total(ProxyLatency::Exchange), sum);
    assert_eq!(run.clients().iter().next().unwrap().totals()[ClientCounter::Exchanges], sum);
    let http = run.http().unwrap();
    assert_eq!(
        (http.totals()[HttpCounter::Requests], run.http_record().unwrap().statuses.of(200)),
        (sum, sum)
    );
    assert_eq!(http.whole()[HttpLatency::Request].count(), sum);
    for (name, requests) in [("/", 7 + 9), ("/even", 8 + 10)] {
        let route = run.routes().get(name).unwrap();
        assert_eq!(route.totals()[RouteCounter::Requests], requests);
        assert_eq!(route.series().whole()[RouteLatency::Request].count(), requests);
        assert_eq!(route.series().timeline().filter(|interval| interval.after_loss).count(), 0);
    }
    assert_eq!(run.host().unwrap().cpu[CpuGroup::Proxy], 4_000);
    let record = run.load_record().unwrap();
    assert_eq!((record.events.of(LoadEvent::Status(200)), record.measured_us), (sum, 4_000_000));
    assert_eq!((run.duration_us(), run.reading().lost(), run.reading().before()), (4_000_000, 0, 0));
    assert!(run.stopped().is_some(), "what comes later is left out, not missing");
    assert_eq!(run.setting("proxy.workers").unwrap().value, Value::Number(2.0));
    let rates: Vec<_> =
        proxy.intervals().map(|it| (it.rate(ProxyCounter::Exchanges), it.after_loss)).collect();
    assert_eq!(rates, [7.0, 8.0, 9.0, 10.0].map(|rate| (Some(rate), false)));
}

#[test]
fn stretches_that_follow_each_other_add_up_to_the_whole() {
    let whole = model(recorded(20), 0, 1_000);
    let of = |model: &Model| {
        let run = model.current().unwrap();
        let series = run.proxy().unwrap();
        (series.totals()[ProxyCounter::Exchanges], series.whole()[ProxyLatency::Exchange].sum_ns())
    };
    for border in [1, 3, 10, 19] {
        let (a, b) = (of(&model(recorded(20), 0, border)), of(&model(recorded(20), border, 1_000)));
        assert_eq!((a.0 + b.0, a.1 + b.1), of(&whole), "{border}");
    }
}

#[test]
fn what_a_log_turns_out_to_lack_is_absent_from_then_on() {
    let mut records = recorded_and_watched(20, |second, publisher| {
        if second == 4 {
            let absent = "lost lines: not numbered".into();
            publisher.notice(NoticeRecord { absent, ..NoticeRecord::default() }, at(second));
        }
    });
    for record in &mut records {
        if let Body::Run(run) = &mut record.body {
            run.log = "nginx".to_owned();
        }
    }
    let reason = |from, to| {
        let model = model(records.clone(), from, to);
        model.current().unwrap().absent(LogFigure::LostLines).map(str::to_owned)
    };
    assert_eq!(reason(0, 3), None);
    for (from, to) in [(0, 1_000), (6, 10)] {
        assert_eq!(reason(from, to).as_deref(), Some("not numbered"), "{from} to {to}");
    }
}

#[test]
fn a_loss_within_a_stretch_is_one_and_a_loss_before_it_is_not() {
    let lossy = |second| {
        let mut records = recorded(20);
        records.retain(|record| record.stamp.mono_us != at(second).monotonic_us);
        model(records, 6, 10)
    };
    let (before, within) = (lossy(3), lossy(8));
    assert_eq!(before.current().unwrap().reading().lost(), 0);
    assert!(within.current().unwrap().reading().lost() > 0);
    assert_eq!(within.current().unwrap().proxy().unwrap().totals()[ProxyCounter::Exchanges], 34);
}

#[test]
fn a_stretch_without_records_holds_no_run() {
    assert!(model(recorded(5), 100, 200).current().is_none());
}

/// The contents of a recording of the seconds after the tenth, up to the fifteenth.
fn recording() -> (Model, Vec<Record>) {
    let (mut began, mut ended) = (None, 0);
    let records = recorded_and_watched(20, |second, publisher| match second {
        10 => began = Some((publisher.baselines(), publisher.sink().len())),
        15 => ended = publisher.sink().len(),
        _ => {}
    });
    let (baseline, began_at) = began.unwrap();
    let mut recording = RunSlice::following(baseline);
    let mut out = Vec::new();
    for record in &records[began_at..ended] {
        recording.take(&Writer::default(), record.clone(), &mut out);
    }
    recording.close(&mut out);
    let mut model = Model::new(100);
    model.apply_batch(Batch { records: out.clone(), ..Batch::default() });
    (model, out)
}

#[test]
fn a_recording_is_a_run_of_its_own() {
    let (model, _) = recording();
    let run = model.current().unwrap();
    assert_eq!(run.proxy().unwrap().totals()[ProxyCounter::Exchanges], 11 + 12 + 13 + 14 + 15);
    assert_eq!(
        run.clients().iter().next().unwrap().totals()[ClientCounter::Exchanges],
        11 + 12 + 13 + 14 + 15
    );
    assert_eq!((run.duration_us(), run.reading().lost()), (5_000_000, 0));
    assert!(run.stopped().is_some());
    assert_eq!(run.setting("proxy.workers").unwrap().value, Value::Number(2.0));
}

#[test]
fn a_recording_knows_that_the_run_began_before_and_went_on() {
    let (model, _) = recording();
    let run = model.current().unwrap();
    assert_eq!((run.before_us(), run.duration_us()), (10_000_000, 5_000_000));
    let texts: Vec<&str> = run.log().map(|line| &*line.text).collect();
    assert_eq!(texts, ["recording begins 10.0 s after tlsdash  started", "recording ends, tlsdash  runs on"]);
}

#[test]
fn a_recording_holds_what_a_slice_of_the_journal_holds() {
    let (_, out) = recording();
    let range = TimeRange { from_us: at(10).realtime_us, until_us: at(15).realtime_us };
    let slice = Batch { records: recorded(20), ..Batch::default() }.within(&mut RunSlice::new(range));
    assert_eq!(out, slice.records);
}
