//! Looking back: windows that slide, and the kept parts of a long run.

use crate::runs::{HISTORY, Model, Run, Window};
use records::histogram::Histograms;
use records::ids::RunId;
use records::kinds::{Body, MarkRecord, Phase, ProxyRecord, Record, RunRecord, SettingRecord, Stamp};
use records::metrics::{Counters, ProxyCounter, ProxyLatency};
use records::setting::{Applies, Setting, Value};
use records::values::Latencies;

const SECOND_US: u64 = 1_000_000;

/// Kinds of seconds, which take turns.
const KINDS: usize = 7;

/// A run whose seconds differ by their slowest sample.
struct SteppedRun {
    model: Model,
    seq: u64,
    second: u64,
    /// Latencies of each kind of second.
    latencies: Vec<Latencies<ProxyLatency>>,
}

impl SteppedRun {
    fn new(history: usize) -> Self {
        let latencies = (0..KINDS).map(|kind| {
            let mut latencies = Histograms::default();
            for sample_us in [200, 400, 1_000 + 700 * kind as u64] {
                latencies[ProxyLatency::Exchange].record_ns(sample_us * 1_000);
            }
            Latencies::new(&latencies, &Counters::default())
        });
        let latencies = latencies.collect();
        let mut run = Self { model: Model::new(history), seq: 0, second: 0, latencies };
        let start = RunRecord { phase: Phase::Start, settings: vec![rate(100.0)], ..RunRecord::default() };
        run.write(Body::Run(Box::new(start)), 0);
        run
    }

    fn write(&mut self, body: Body, interval_us: u64) {
        self.seq += 1;
        let us = self.second * SECOND_US;
        let stamp = Stamp {
            run: RunId::from_bits(1),
            seq: self.seq,
            mono_us: 50 * SECOND_US + us,
            realtime_us: 1_700_000_000 * SECOND_US + us,
            interval_us,
        };
        self.model.apply(Record { stamp, body }, None);
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second += 1;
            let mut proxy = ProxyRecord::default();
            proxy.counters[ProxyCounter::Accepted] = 10 * self.second;
            proxy.latencies = self.latencies[self.second as usize % KINDS].clone();
            self.write(Body::Proxy(Box::new(proxy)), SECOND_US);
        }
    }

    fn run(&self) -> &Run {
        self.model.current().unwrap()
    }
}

fn rate(value: f64) -> Setting {
    Setting {
        name: "load.rate".into(),
        value: Value::Number(value),
        unit: "1/s".into(),
        applies: Applies::Live,
        range: None,
    }
}

#[test]
fn a_slid_window_equals_a_new_one() {
    let mut stepped = SteppedRun::new(HISTORY);
    let mut slid = Window::default();
    for (step, span_s) in
        [(1, 10), (1, 10), (3, 10), (1, 60), (40, 60), (1, 5), (0, 900), (950, 900), (30, 2)]
    {
        stepped.pass(step);
        let series = stepped.run().proxy().unwrap();
        for back_s in [0, 1, 7, 400, 5] {
            let end_us = series.last_us().saturating_sub(back_s * SECOND_US);
            slid.slide(series, end_us, span_s * SECOND_US);
            let anew = series.window_until(end_us, span_s * SECOND_US);
            assert_eq!((slid.span_us, slid.intervals()), (anew.span_us, anew.intervals()));
            assert_eq!(slid.counters, anew.counters);
            let [a, b] = [&slid, &anew].map(|window| {
                let latency = window.latency(ProxyLatency::Exchange);
                (latency.count(), latency.max_ns(), [0.1, 0.5, 0.99].map(|q| latency.quantile_ns(q)))
            });
            assert_eq!(a, b, "after {step} s, {span_s} s up to {back_s} s ago");
        }
    }
}

#[test]
fn six_hours_of_a_day_fit_in_bounded_memory() {
    let mut stepped = SteppedRun::new(HISTORY);
    stepped.pass(86_400);
    let series = stepped.run().proxy().unwrap();
    assert_eq!(series.intervals().len(), HISTORY);
    assert!(series.timeline().count() <= HISTORY + 2_160);
    let oldest_us = series.timeline().next().unwrap().start_us;
    let kept_s = (series.last_us() - oldest_us) / SECOND_US;
    assert!((6 * 3_600..7 * 3_600).contains(&kept_s), "{kept_s} s");
    assert!(series.timeline().is_sorted_by(|a, b| a.end_us == b.start_us), "without a hole");
    let five_hours_ago = series.last_us() - 5 * 3_600 * SECOND_US;
    let window = series.window_until(five_hours_ago, 60 * SECOND_US);
    assert_eq!(window.counters[ProxyCounter::Accepted], 10 * window.span_us / SECOND_US);
    assert_eq!(window.latency(ProxyLatency::Exchange).count(), 3 * window.span_us / SECOND_US);
    assert_eq!(series.totals_at(five_hours_ago)[ProxyCounter::Accepted] / 100, (86_400 - 5 * 3_600) / 10);
}

#[test]
fn without_a_screen_no_history_is_kept() {
    let mut stepped = SteppedRun::new(1);
    stepped.pass(100);
    assert_eq!(stepped.run().proxy().unwrap().timeline().count(), 1);
}

#[test]
fn a_loss_stays_a_stretch_of_its_own() {
    let mut stepped = SteppedRun::new(HISTORY);
    stepped.pass(14);
    stepped.second += 30;
    stepped.pass(2_000);
    let series = stepped.run().proxy().unwrap();
    let lost: Vec<u64> =
        series.timeline().filter(|i| i.after_loss).map(|i| i.length_us() / SECOND_US).collect();
    assert_eq!(lost, [31]);
}

#[test]
fn settings_and_marks_are_found_at_their_moments() {
    let mut stepped = SteppedRun::new(HISTORY);
    stepped.pass(10);
    let change = SettingRecord {
        name: "load.rate".into(),
        before: "100".into(),
        after: Some(rate(200.0)),
        ..SettingRecord::default()
    };
    stepped.write(Body::Setting(change), 0);
    stepped.pass(10);
    stepped.write(Body::Mark(MarkRecord { number: 1, text: "here".into() }), 0);
    let run = stepped.run();
    let at = |second: u64| run.setting_at((50 + second) * SECOND_US, "load.rate").unwrap();
    assert_eq!([at(0), at(9), at(10), at(20)], ["100", "100", "200", "200"]);
    assert_eq!(run.setting_at(0, "load.unknown"), None);
    let deeds: Vec<String> = run.markers().map(|marker| marker.event.to_string()).collect();
    assert_eq!(deeds, ["load.rate 100 > 200", "mark 1 here"]);
    assert_eq!(run.realtime_at(60 * SECOND_US), 1_700_000_010 * SECOND_US);
}
