//! What the method finds where the truth is known. The counts are in docs/measurements.md; `cargo run --release -p
//! experiment --example power` makes the table there.

use crate::common::{BESIDE_A_NEIGHBOUR, Noise, ORDINARY, SimulatedSystem};
use experiment::{
    BlockValue, ComparableFigure, CompareOutcome, EstimateOptions, alpha_of, compare, estimate, judge,
};
use records::kinds::{ExperimentOutcome, Stage};

const ALPHA: f64 = 0.05;
const PAIRS: u32 = 12;

/// What each figure's verdict is in each of the experiments.
fn verdicts<const N: usize>(
    metrics: [&str; N],
    effect: f64,
    experiments: u64,
) -> [Vec<ExperimentOutcome>; N] {
    let metrics = metrics.map(|metric| metric.parse::<ComparableFigure>().unwrap());
    let mut all = [const { Vec::new() }; N];
    for seed in 1..=experiments {
        let pairs = SimulatedSystem::new(ORDINARY, seed).pairs(PAIRS, effect);
        let pairs: Vec<_> = pairs.iter().map(|(a, b)| (a, b)).collect();
        let options = EstimateOptions { alpha: ALPHA, draws: 1_000, pairs_planned: PAIRS, seed };
        for (metric, outcomes) in metrics.iter().zip(&mut all) {
            let estimate = estimate(metric, &pairs, &options);
            outcomes.push(judge(metric, Stage::Comparison, estimate, ALPHA, None).outcome);
        }
    }
    all
}

fn count(outcomes: &[ExperimentOutcome], wanted: &[ExperimentOutcome]) -> usize {
    outcomes.iter().filter(|outcome| wanted.contains(outcome)).count()
}

#[test]
fn no_difference_is_found_different_more_often_than_alpha() {
    // Of 1,000 at 5 %: more than 71 would come up once in a thousand times.
    let metrics = ["exchange.p50", "exchange.p95"];
    for (metric, outcomes) in metrics.iter().zip(verdicts(metrics, 1.0, 1_000)) {
        let wrong = count(&outcomes, &[ExperimentOutcome::Better, ExperimentOutcome::Worse]);
        assert!(wrong <= 71, "{metric}: {wrong} of 1,000");
        assert!(wrong >= 10, "{metric}: {wrong} of 1,000, so the test finds too little to be of use");
        assert_eq!(wrong + count(&outcomes, &[ExperimentOutcome::NoDifference]), 1_000);
    }
}

#[test]
fn seconds_taken_for_independent_would_fail_the_same_check() {
    let wrong = (1..=300).filter(|&seed| {
        let mut system = SimulatedSystem::new(ORDINARY, seed);
        let (a, b) = (system.medians(100, 1.0), system.medians(100, 1.0));
        welch(&a, &b).abs() > 1.96
    });
    // The same limit, for 300.
    let wrong = wrong.count();
    assert!(wrong > 27, "{wrong} of 300");
}

/// Runs of two minutes, in blocks of three seconds.
const BLOCKS: u32 = 40;
/// What is compared of them, as many figures as a comparison usually has.
const FIGURES: [&str; 6] =
    ["exchange.p50", "exchange.p75", "exchange.p90", "exchange.p95", "exchange.p99", "exchange.p25"];

/// Of so many pairs of runs, how many are found to differ in any of the figures; the latencies of the second run are
/// `factor` of the first's.
fn differ(figures: &[&str], noise: Noise, blocks: u32, factor: f64, runs: u64) -> usize {
    let metrics: Vec<ComparableFigure> = figures.iter().map(|name| name.parse().unwrap()).collect();
    let differs = |seed: &u64| {
        let a = SimulatedSystem::new(noise, *seed).blocks(blocks, 1.0, metrics.len());
        let b = SimulatedSystem::new(noise, seed + 10_000).blocks(blocks, factor, metrics.len());
        let alpha = alpha_of(metrics.len());
        let found = |(at, metric)| compare(metric, at, &a, &b, alpha).finding == CompareOutcome::Differs;
        metrics.iter().enumerate().any(found)
    };
    (1..=runs).filter(differs).count()
}

#[test]
fn identical_runs_beside_a_neighbour_rarely_differ() {
    for noise in [BESIDE_A_NEIGHBOUR, Noise { drift: 0.0, ..ORDINARY }] {
        let wrong = differ(&FIGURES, noise, BLOCKS, 1.0, 200);
        assert!(wrong <= 10, "{wrong} of 200");
    }
}

#[test]
fn blocks_taken_for_independent_would_fail_the_same_check() {
    let medians = |seed| -> Vec<f64> {
        let blocks = SimulatedSystem::new(BESIDE_A_NEIGHBOUR, seed).blocks(BLOCKS, 1.0, 1);
        let median = |values: &Vec<BlockValue>| match &values[0] {
            BlockValue::Latencies(latencies) => latencies.quantile_ns(0.5).unwrap() as f64,
            BlockValue::Quotient { .. } => unreachable!("these are latencies"),
        };
        blocks.iter().map(median).collect()
    };
    let wrong = (1..=100).filter(|&seed| welch(&medians(seed), &medians(seed + 10_000)).abs() > 1.99).count();
    assert!(wrong > 30, "{wrong} of 100");
}

#[test]
fn a_disturbance_over_a_quarter_of_a_run_counts_as_a_difference() {
    // Which is why runs are said to differ, and never to be better.
    let in_a_minute = differ(&FIGURES[..1], ORDINARY, BLOCKS / 2, 1.0, 200);
    assert!((20..=50).contains(&in_a_minute), "{in_a_minute} of 200");
    let in_ten_minutes = differ(&FIGURES[..1], ORDINARY, 5 * BLOCKS, 1.0, 40);
    assert!(in_ten_minutes <= 2, "{in_ten_minutes} of 40");
}

#[test]
fn runs_that_differ_by_a_fifth_are_found_to() {
    let quiet = differ(&FIGURES, Noise { drift: 0.0, ..ORDINARY }, BLOCKS, 0.8, 100);
    let beside_a_neighbour = differ(&FIGURES, BESIDE_A_NEIGHBOUR, BLOCKS, 0.8, 100);
    assert!(quiet >= 95 && beside_a_neighbour >= 45, "{quiet}, {beside_a_neighbour} of 100");
}

#[test]
fn the_interval_within_the_runs_holds_the_truth_as_often_as_it_says() {
    let metric: ComparableFigure = "exchange.p50".parse().unwrap();
    let holds = |seed: &u64| {
        let a = SimulatedSystem::new(BESIDE_A_NEIGHBOUR, *seed).blocks(BLOCKS, 1.0, 1);
        let b = SimulatedSystem::new(BESIDE_A_NEIGHBOUR, seed + 10_000).blocks(BLOCKS, 0.8, 1);
        let found = compare(&metric, 0, &a, &b, alpha_of(1)).estimate.unwrap();
        (found.low..=found.high).contains(&-20.0)
    };
    // Of 200 at 99 %: fewer than 192 would come up once in a thousand times.
    let holds = (1..=200).filter(holds).count();
    assert!(holds >= 192, "{holds} of 200");
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
    for (effect, outcome) in [(0.95, ExperimentOutcome::Better), (1.05, ExperimentOutcome::Worse)] {
        let [outcomes] = verdicts(["exchange.p50"], effect, 200);
        let found = count(&outcomes, &[outcome]);
        assert!(found >= 160, "{outcome}: {found} of 200");
        let opposite = if outcome == ExperimentOutcome::Better {
            ExperimentOutcome::Worse
        } else {
            ExperimentOutcome::Better
        };
        assert_eq!(count(&outcomes, &[opposite]), 0);
    }
}

#[test]
fn the_interval_holds_the_truth_as_often_as_it_says() {
    let metric = "exchange.p50".parse().unwrap();
    for pairs in [6, 12] {
        let holds = (1..=400).filter(|&seed| {
            let made = SimulatedSystem::new(ORDINARY, seed).pairs(pairs, 0.95);
            let made: Vec<_> = made.iter().map(|(a, b)| (a, b)).collect();
            let options = EstimateOptions { alpha: ALPHA, draws: 4_000, pairs_planned: pairs, seed };
            let found = estimate(&metric, &made, &options).unwrap().estimate;
            (found.low..=found.high).contains(&-5.0)
        });
        // Of 400 at 95 %: fewer than 366 would come up once in a thousand times.
        let holds = holds.count();
        assert!(holds >= 366, "{pairs} pairs: {holds} of 400");
    }
}
