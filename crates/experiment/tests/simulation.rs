//! What the method finds where the truth is known. The counts stand in docs/experiments.md; `cargo run --release -p
//! experiment --example power` makes the table there.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use common::{Noise, ORDINARY, System};
use experiment::{Method, Metric, compare, estimate, judge};
use telemetry::experiment::{Outcome, Stage};

const ALPHA: f64 = 0.05;
const PAIRS: u32 = 12;

/// What each figure's verdict is in each of the experiments.
fn verdicts<const N: usize>(metrics: [&str; N], effect: f64, experiments: u64) -> [Vec<Outcome>; N] {
    let metrics = metrics.map(|metric| metric.parse::<Metric>().unwrap());
    let mut all = [const { Vec::new() }; N];
    for seed in 1..=experiments {
        let pairs = System::new(ORDINARY, seed).pairs(PAIRS, effect);
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a, b)).collect();
        let method = Method { alpha: ALPHA, draws: 1_000, pairs_planned: PAIRS, seed };
        for (metric, outcomes) in metrics.iter().zip(&mut all) {
            let estimate = estimate(metric, &pairs, &method);
            outcomes.push(judge(metric, Stage::Comparison, estimate, ALPHA, None).outcome);
        }
    }
    all
}

fn count(outcomes: &[Outcome], wanted: &[Outcome]) -> usize {
    outcomes.iter().filter(|outcome| wanted.contains(outcome)).count()
}

#[test]
fn where_there_is_no_difference_one_is_found_no_more_often_than_the_error_rate() {
    // Of 1,000 at 5 %: more than 71 would come up once in a thousand times.
    let metrics = ["exchange.p50", "exchange.p95"];
    for (metric, outcomes) in metrics.iter().zip(verdicts(metrics, 1.0, 1_000)) {
        let wrong = count(&outcomes, &[Outcome::Better, Outcome::Worse]);
        assert!(wrong <= 71, "{metric}: {wrong} of 1,000");
        assert!(wrong >= 10, "{metric}: {wrong} of 1,000, so the test finds too little to be of use");
        assert_eq!(wrong + count(&outcomes, &[Outcome::NoDifference]), 1_000);
    }
}

#[test]
fn seconds_taken_for_independent_would_fail_the_same_check() {
    let wrong = (1..=300).filter(|&seed| {
        let mut system = System::new(ORDINARY, seed);
        let (a, b) = (system.medians(100, 1.0), system.medians(100, 1.0));
        welch(&a, &b).abs() > 1.96
    });
    // The same limit, for 300.
    let wrong = wrong.count();
    assert!(wrong > 27, "{wrong} of 300");
}

#[test]
fn two_runs_of_the_same_system_differ_far_more_often_than_the_error_rate() {
    let metric = "exchange.p50".parse().unwrap();
    let differs = (1..=200).filter(|&seed| {
        let [a, b] = [seed, seed + 1_000].map(|seed| System::new(ORDINARY, seed).blocks(12));
        let method = Method { alpha: ALPHA, draws: 1_000, pairs_planned: PAIRS, seed };
        let outcome = compare(&metric, 0, &a, &b, &method).outcome;
        matches!(outcome, Outcome::Better | Outcome::Worse)
    });
    // Which is why a comparison of runs says that it is one, and that experiments are to be preferred.
    let differs = differs.count();
    assert!(differs > 40, "{differs} of 200");
}

#[test]
fn two_runs_of_a_system_that_does_not_drift_differ_no_more_often_than_the_error_rate() {
    let metric = "exchange.p50".parse().unwrap();
    let steady = Noise { drift: 0.0, carried: 0.0, ..ORDINARY };
    let differs = (1..=400).filter(|&seed| {
        let [a, b] = [seed, seed + 1_000].map(|seed| System::new(steady, seed).blocks(12));
        let method = Method { alpha: ALPHA, draws: 1_000, pairs_planned: PAIRS, seed };
        let outcome = compare(&metric, 0, &a, &b, &method).outcome;
        matches!(outcome, Outcome::Better | Outcome::Worse)
    });
    // Of 400 at 5 %: more than 34 would come up once in a thousand times.
    let differs = differs.count();
    assert!(differs <= 34, "{differs} of 400");
}

/// Difference of the means in standard errors.
fn welch(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let error = |values: &[f64]| {
        let sum: f64 = values.iter().map(|value| (value - mean(values)).powi(2)).sum();
        sum / (values.len() as f64 - 1.0) / values.len() as f64
    };
    (mean(a) - mean(b)) / (error(a) + error(b)).sqrt()
}

#[test]
fn a_difference_of_five_percent_is_found_four_times_in_five() {
    for (effect, outcome) in [(0.95, Outcome::Better), (1.05, Outcome::Worse)] {
        let [outcomes] = verdicts(["exchange.p50"], effect, 200);
        let found = count(&outcomes, &[outcome]);
        assert!(found >= 160, "{outcome}: {found} of 200");
        let opposite = if outcome == Outcome::Better { Outcome::Worse } else { Outcome::Better };
        assert_eq!(count(&outcomes, &[opposite]), 0);
    }
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    let metric = "exchange.p50".parse().unwrap();
    for pairs in [6, 12] {
        let holds = (1..=400).filter(|&seed| {
            let made = System::new(ORDINARY, seed).pairs(pairs, 0.95);
            let made: Vec<_> = made.iter().map(|(a, b)| (a, b)).collect();
            let method = Method { alpha: ALPHA, draws: 4_000, pairs_planned: pairs, seed };
            let found = estimate(&metric, &made, &method).unwrap();
            (found.low..=found.high).contains(&-5.0)
        });
        // Of 400 at 95 %: fewer than 366 would come up once in a thousand times.
        let holds = holds.count();
        assert!(holds >= 366, "{pairs} pairs: {holds} of 400");
    }
}
