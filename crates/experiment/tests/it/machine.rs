//! A whole experiment on a clock that the test turns.

use std::time::Duration;

use crate::common::{Noise, ORDINARY, SimulatedSystem};
use experiment::{ExperimentPlan, ExperimentRun, Observation, SideInterval, Step};
use records::delta::{Delta, LoadDelta, ProxyDelta};
use records::kinds::{Arm, ExperimentOutcome, ExperimentStep, Stage};
use records::metrics::{Counters, CpuGroup, LoadCounter, ProxyCounter, ProxyLatency};
use records::setting::{Applies, Setting, Value};

const SECOND_US: u64 = 1_000_000;
const START_US: u64 = 7 * SECOND_US;
const QUIET: Noise =
    Noise { level_sd: 0.005, carried: 0.5, drift: 0.0, neighbour: 0.0, spread: 0.2, rate: 50 };

fn begun(words: &str, seed: u64) -> ExperimentRun {
    let workers = Setting {
        name: "proxy.workers".into(),
        value: Value::Number(3.0),
        unit: String::new(),
        applies: Applies::Live,
        range: Some((1.0, 256.0)),
    };
    let plan: ExperimentPlan = words.parse().unwrap();
    let change = plan.resolve(&[workers], &[], Duration::from_secs(1)).unwrap();
    ExperimentRun::new(plan, change, seed)
}

/// What happened, and when.
type Course = Vec<(u64, Step)>;

/// Plays a system in which 2 workers make latencies `effect` times those of 1, until the experiment is over or `until_us`.
/// `with` may change what is seen of a second, which it gets with the time since the beginning.
fn play(
    experiment: &mut ExperimentRun,
    noise: Noise,
    effect: f64,
    mut with: impl FnMut(u64, &mut MachineInterval, &mut ExperimentRun),
) -> Course {
    let mut system = SimulatedSystem::new(noise, experiment.seed() ^ 0x5eed);
    let mut now_us = START_US;
    let mut course: Course = experiment.begin(now_us).into_iter().map(|step| (now_us, step)).collect();
    let mut factor = 1.0;
    let mut seen = MachineInterval::default();
    while !experiment.is_over() {
        for (_, step) in course.iter().filter(|(at_us, _)| *at_us == now_us) {
            if let Step::Switch { value, .. } = step {
                factor = if *value == Value::Number(2.0) { effect } else { 1.0 };
            }
        }
        seen.clear();
        system.second(factor, |ns| seen.proxy.latencies[ProxyLatency::Exchange].record_ns(ns));
        seen.proxy.counters[ProxyCounter::Exchanges] = noise.rate.into();
        with(now_us - START_US, &mut seen, experiment);
        // Ticks wander a little.
        let end_us = now_us + SECOND_US;
        let observation = Observation {
            start_us: now_us,
            end_us,
            is_whole: seen.is_whole,
            proxy: Some(SideInterval { counters: &seen.proxy.counters, latencies: &seen.proxy.latencies }),
            tls: None,
            http: None,
            load: Some(SideInterval { counters: &seen.load.counters, latencies: &seen.load.latencies }),
            cpu: seen.cpu,
        };
        experiment.observe(&observation, 1);
        now_us = end_us;
        course.extend(experiment.advance(now_us).into_iter().map(|step| (now_us, step)));
    }
    course
}

#[derive(Default)]
struct MachineInterval {
    proxy: ProxyDelta,
    load: LoadDelta,
    cpu: Counters<CpuGroup>,
    is_whole: bool,
}

impl MachineInterval {
    fn clear(&mut self) {
        self.proxy.clear();
        self.load.clear();
        (self.cpu, self.is_whole) = (Counters::default(), true);
    }
}

fn nothing(_: u64, _: &mut MachineInterval, _: &mut ExperimentRun) {}

fn verdicts(course: &Course) -> Vec<(Stage, ExperimentOutcome, String)> {
    let verdict = |(_, step): &(u64, Step)| match step {
        Step::Verdict { stage, judgements } => {
            Some((*stage, judgements[0].outcome, judgements[0].reason.clone()))
        }
        _ => None,
    };
    course.iter().filter_map(verdict).collect()
}

#[test]
fn every_pair_has_a_block_of_each_value_in_random_order() {
    let mut experiment = begun("workers=1..2,metric=exchange.p50,pairs=40,aa=6", 3);
    let course = play(&mut experiment, QUIET, 0.9, nothing);
    let switches: Vec<_> = course
        .iter()
        .filter_map(|(at_us, step)| match step {
            Step::Switch { stage, pair, arm, value, flush } => {
                Some((*at_us, *stage, *pair, *arm, value.clone(), *flush))
            }
            _ => None,
        })
        .collect();
    assert_eq!(switches.len(), 2 * 46);
    for (n, (at_us, ..)) in switches.iter().enumerate() {
        assert_eq!(*at_us, START_US + n as u64 * 10 * SECOND_US, "a block takes ten seconds");
    }
    for pair in switches.chunks(2) {
        let [(_, stage, number, first, ..), (_, other_stage, other_number, second, ..)] = pair else {
            panic!()
        };
        assert_eq!((stage, number), (other_stage, other_number));
        assert_ne!(first, second);
    }
    for (_, stage, _, arm, value, flush) in &switches {
        let b_is_on = *stage == Stage::Comparison && *arm == Arm::B;
        assert_eq!((value, *flush), (&Value::Number(if b_is_on { 2.0 } else { 1.0 }), false));
    }
    let b_first = switches[12..].chunks(2).filter(|pair| pair[0].3 == Arm::B).count();
    assert!((8..=32).contains(&b_first), "{b_first} of 40: no coin gives that but once in 10,000 times");
    let (_, end) = course.last().unwrap();
    assert_eq!(*end, Step::End { value: Value::Number(3.0), flush: false }, "as it was before");
}

#[test]
fn a_difference_is_found_after_an_a_a_run_that_finds_none() {
    let mut experiment = begun("workers=1..2,metric=exchange.p50", 5);
    let course = play(&mut experiment, ORDINARY, 0.93, nothing);
    let told: Vec<_> = verdicts(&course).into_iter().map(|(stage, outcome, _)| (stage, outcome)).collect();
    assert_eq!(
        told,
        [
            (Stage::Calibration, ExperimentOutcome::NoDifference),
            (Stage::Comparison, ExperimentOutcome::Better)
        ]
    );
    let Some((_, Step::Verdict { judgements, .. })) = course.iter().rev().nth(1) else { panic!() };
    let estimate = judgements[0].estimate.unwrap();
    assert!((estimate.low..estimate.high).contains(&-7.0) && estimate.pairs_used == 12, "{estimate:?}");
}

#[test]
fn the_same_seed_gives_the_same_experiment() {
    let play_with =
        |seed| play(&mut begun("workers=1..2,metric=exchange.p50,aa=0", seed), QUIET, 0.95, nothing);
    assert_eq!(play_with(11), play_with(11));
    assert_ne!(play_with(11), play_with(12));
}

#[test]
fn intervals_right_after_a_switch_are_discarded() {
    // In the two seconds after each switch everything takes ten times as long under the second value.
    let mut experiment = begun("workers=1..2,metric=exchange.p95,aa=0", 1);
    let course = play(&mut experiment, QUIET, 1.0, |since_us, seen, _| {
        if since_us / SECOND_US % 10 < 2 {
            (0..500).for_each(|_| seen.proxy.latencies[ProxyLatency::Exchange].record_ns(1_000_000_000));
        }
    });
    let Some((_, Step::Verdict { judgements, .. })) = course.iter().rev().nth(1) else { panic!() };
    let estimate = judgements[0].estimate.unwrap();
    assert!(estimate.a < 2_000.0 && estimate.b < 2_000.0, "{estimate:?}");
}

#[test]
fn an_a_a_run_that_finds_a_difference_ends_the_experiment() {
    // Something else makes the blocks of the second arm slower, although both have the same value.
    let mut experiment = begun("workers=1..2,metric=exchange.p50", 2);
    let mut arms = Vec::new();
    let course = play(&mut experiment, QUIET, 1.0, |_, seen, experiment| {
        arms.push(experiment.stage());
        if experiment.arm() == Arm::B {
            seen.proxy.latencies[ProxyLatency::Exchange].clear();
            (0..50).for_each(|_| seen.proxy.latencies[ProxyLatency::Exchange].record_ns(1_500_000));
        }
    });
    let told = verdicts(&course);
    assert_eq!((told.len(), told[0].0, told[0].1), (1, Stage::Calibration, ExperimentOutcome::Inconclusive));
    assert!(told[0].2.contains("where there is none"), "{told:?}");
    assert!(arms.iter().all(|stage| *stage == Stage::Calibration));
}

#[track_caller]
fn assert_inconclusive(
    words: &str,
    because: &str,
    with: impl FnMut(u64, &mut MachineInterval, &mut ExperimentRun),
) {
    let course = play(&mut begun(words, 1), QUIET, 0.5, with);
    let (_, outcome, reason) = verdicts(&course).pop().unwrap();
    assert_eq!(outcome, ExperimentOutcome::Inconclusive, "{reason}");
    assert!(reason.contains(because), "{reason}");
}

const WORDS: &str = "workers=1..2,metric=exchange.p50,pairs=8,aa=0";

/// As of a load at its limit: busy, or late.
fn busy(_: u64, seen: &mut MachineInterval, _: &mut ExperimentRun) {
    seen.cpu[CpuGroup::Load] = 960_000;
    seen.load.counters[LoadCounter::Ok] = 100;
}

fn late(_: u64, seen: &mut MachineInterval, _: &mut ExperimentRun) {
    seen.load.counters[LoadCounter::Scheduled] = 100;
    seen.load.counters[LoadCounter::Late] = 2;
}

#[test]
fn a_saturated_generator_makes_its_figures_inconclusive() {
    let words = "workers=1..2,metric=requests.rate,pairs=8,aa=0";
    assert_inconclusive(words, "generator-bound: its threads were busy 96 %", busy);
    assert_inconclusive(words, "generator-bound: it took on 2.0 %", late);
}

#[test]
fn figures_of_the_proxy_ignore_a_saturated_generator() {
    let course = play(&mut begun(WORDS, 1), QUIET, 0.5, late);
    assert_eq!(verdicts(&course)[0].1, ExperimentOutcome::Better);
}

#[test]
fn losses_make_it_inconclusive_only_when_they_are_many() {
    assert_inconclusive(WORDS, "losses: 8 of 8 pairs lack figures", |since_us, seen, _| {
        seen.is_whole = since_us / SECOND_US % 10 != 5;
    });
    let mut experiment = begun(WORDS, 1);
    let course = play(&mut experiment, QUIET, 0.5, |since_us, seen, _| {
        seen.is_whole = since_us != 25 * SECOND_US;
    });
    let Some((_, Step::Verdict { judgements, .. })) = course.iter().rev().nth(1) else { panic!() };
    assert_eq!(
        (judgements[0].outcome, judgements[0].estimate.unwrap().pairs_used),
        (ExperimentOutcome::Better, 7)
    );
}

#[test]
fn too_few_samples_make_it_inconclusive() {
    assert_inconclusive("workers=1..2,metric=exchange.p9999,pairs=8,aa=0", "too few samples", nothing);
    assert_inconclusive("workers=1..2,metric=handshake_full.p50,pairs=8,aa=0", "too few pairs", nothing);
}

#[test]
fn a_setting_changed_by_hand_makes_it_inconclusive() {
    assert_inconclusive(WORDS, "disturbed: load.rate changed", |since_us, _, experiment| {
        if since_us == 33 * SECOND_US {
            experiment.disturb("load.rate changed");
        }
    });
}

#[test]
fn an_experiment_that_is_stopped_early_has_no_verdict() {
    let mut experiment = begun("workers=1..2,metric=exchange.p50,pairs=20,aa=0", 1);
    let mut told = Vec::new();
    play(&mut experiment, QUIET, 0.5, |since_us, _, experiment| {
        if since_us == 300 * SECOND_US {
            told = experiment.stop();
        }
    });
    let [Step::Verdict { judgements, .. }, Step::End { value, .. }] = &told[..] else { panic!("{told:?}") };
    assert_eq!((judgements[0].outcome, value), (ExperimentOutcome::Inconclusive, &Value::Number(3.0)));
    assert_eq!(judgements[0].reason, "ended early, after 15 of 20 pairs");
    assert!(experiment.stop().is_empty());
}

#[test]
fn the_records_hold_plan_switches_pairs_and_verdict() {
    let words = "workers=1..2,metric=exchange.p50+exchange.mean,pairs=7,aa=7";
    let mut experiment = begun(words, 9);
    let opening = experiment.records(4, &Step::Begin);
    let plan = |n: usize| (opening[n].step, &*opening[n].metric, opening[n].is_primary, opening[n].block_us);
    assert_eq!(plan(0), (ExperimentStep::Begin, "exchange.p50", true, 10 * SECOND_US));
    assert_eq!(plan(1), (ExperimentStep::Begin, "exchange.mean", false, 10 * SECOND_US));
    let course = play(&mut experiment, QUIET, 0.9, nothing);
    assert_eq!(course[0].1, Step::Begin);
    let records: Vec<_> = course.iter().skip(1).flat_map(|(_, step)| experiment.records(4, step)).collect();
    let count = |step| records.iter().filter(|record| record.step == step).count();
    // Of two metrics, for 7 pairs of each stage.
    assert_eq!((count(ExperimentStep::Switch), count(ExperimentStep::Pair)), (28, 28));
    let pairs = records.iter().filter(|record| record.step == ExperimentStep::Pair);
    let compared = pairs.filter(|record| record.stage == Stage::Comparison);
    let effects: Vec<f64> = compared.filter_map(|record| record.pair_effect).collect();
    assert!(effects.len() == 14 && effects.iter().all(|effect| (-20.0..0.0).contains(effect)), "{effects:?}");
    let last = records.last().unwrap();
    assert_eq!(
        (last.step, last.outcome, &*last.metric),
        (ExperimentStep::Verdict, ExperimentOutcome::Better, "exchange.mean")
    );
    let estimate = last.estimate.unwrap();
    assert!((estimate.confidence_percent - 97.5).abs() < 1e-9 && estimate.pairs_used == 7, "{estimate:?}");
    assert!(records.iter().all(|record| (record.number, record.seed, &*record.b) == (4, 9, "2")));
}
