//! What the method finds where the truth is known, with the noise of a real machine. The counts are in
//! `docs/measurements.md`.

use crate::common::scenario;
use bench::compare::{BenchComparison, CaseComparison};
use bench::results::{CellResult, ResourceUsage};
use bench::scenario::{Question, Scenario};
use records::kinds::ExperimentOutcome;

/// Logarithms of ratios of CPU time per request, of the 240 rounds of `just bench-aa` on a quiet machine with two cores:
/// tlsdash against itself, 1 s of 4,000 kept requests a second each, in turns.
#[rustfmt::skip]
const NOISE: [f64; 240] = [
    0.061, -0.076, 0.018, -0.003, 0.087, -0.032, 0.066, 0.023, -0.009, -0.176, -0.016, -0.168, -0.047, -0.066, -0.061, -0.073, -0.017, 0.062, -0.109, 0.013,
    -0.104, 0.050, 0.032, -0.032, 0.032, -0.246, 0.157, 0.041, -0.003, -0.105, 0.035, -0.034, -0.027, 0.009, -0.023, -0.043, 0.044, -0.094, -0.082, -0.034,
    -0.080, 0.091, 0.030, 0.012, -0.148, 0.025, -0.030, 0.017, 0.272, 0.014, 0.023, 0.044, 0.033, -0.068, 0.240, 0.140, -0.131, 0.013, 0.021, 0.037,
    0.031, -0.041, -0.045, 0.008, -0.086, 0.038, 0.063, -0.139, -0.213, 0.101, -0.043, 0.013, -0.055, 0.065, 0.001, -0.009, -0.012, -0.025, -0.026, 0.024,
    -0.030, 0.008, -0.132, 0.038, -0.019, 0.006, -0.051, -0.005, 0.104, -0.051, -0.067, -0.005, 0.024, 0.045, -0.142, 0.024, 0.000, 0.010, 0.086, 0.009,
    0.082, -0.050, -0.092, -0.066, 0.134, -0.017, 0.050, -0.032, 0.018, 0.102, -0.087, 0.029, 0.029, 0.123, -0.180, -0.037, 0.021, -0.092, -0.037, -0.013,
    -0.022, 0.032, -0.154, 0.120, -0.144, 0.008, -0.024, 0.022, 0.038, 0.006, 0.039, 0.142, 0.089, 0.088, -0.063, 0.019, -0.011, 0.293, 0.088, -0.179,
    -0.029, 0.017, -0.006, 0.041, 0.072, 0.105, -0.008, 0.024, 0.078, 0.116, 0.117, -0.029, -0.026, -0.042, -0.038, 0.010, -0.094, -0.014, -0.103, -0.160,
    0.113, -0.018, 0.095, -0.067, 0.142, -0.030, 0.121, -0.059, 0.065, -0.064, -0.162, 0.009, 0.019, 0.034, -0.057, -0.008, -0.016, -0.056, 0.053, 0.202,
    0.098, -0.122, 0.096, -0.114, -0.069, -0.080, -0.057, -0.058, 0.103, -0.073, 0.022, 0.045, -0.108, 0.090, -0.110, -0.104, 0.123, -0.036, 0.101, -0.013,
    0.132, -0.069, -0.010, 0.050, -0.072, 0.044, -0.013, -0.042, 0.059, 0.133, -0.045, -0.053, 0.096, -0.065, -0.046, 0.068, 0.002, 0.084, 0.087, 0.087,
    0.038, -0.077, 0.075, -0.030, -0.032, -0.064, -0.035, 0.018, 0.035, 0.104, 0.165, 0.068, -0.006, -0.047, 0.075, 0.008, -0.067, -0.042, 0.008, 0.037,
];
/// How far rounds lie from each other: the standard deviation of the level that the cells of a round share.
const LEVEL_SD: f64 = 0.09;
/// Rounds of `just bench-power`, which take four minutes. Its rounds of 2 s have less noise than these.
const POWER_ROUNDS: u32 = 40;
const COST_US: f64 = 250.0;

struct Machine(fastrand::Rng);

impl Machine {
    /// The noise of a cell, of which two make that of a ratio, with either sign.
    fn noise(&mut self) -> f64 {
        let noise = NOISE[self.0.usize(..NOISE.len())] / 2_f64.sqrt();
        if self.0.bool() { noise } else { -noise }
    }

    /// The cells of so many rounds; the second target costs `factor` times as much, the others the same.
    fn cells(&mut self, scenario: &Scenario, rounds: u32, factor: f64) -> Vec<CellResult> {
        let mut cells = Vec::new();
        for round in 1..=rounds {
            for case in &scenario.cases {
                // The sum of twelve uniform numbers is about normal, with a variance of 1.
                let level = LEVEL_SD * ((0..12).map(|_| self.0.f64()).sum::<f64>() - 6.0);
                for (at, target) in scenario.targets.iter().enumerate() {
                    let truth = if at == 1 { COST_US * factor } else { COST_US };
                    let cost_us = truth * (level + self.noise()).exp();
                    cells.push(cell(round, &target.name, &case.name, cost_us));
                }
            }
        }
        cells
    }
}

fn cell(round: u32, target: &str, case: &str, cost_us: f64) -> CellResult {
    CellResult {
        round,
        target: target.to_owned(),
        case: case.to_owned(),
        figures: [("requests.answered".to_owned(), 10_000.0)].into(),
        target_usage: Some(ResourceUsage {
            user_us: (cost_us * 10_000.0) as u64,
            ..ResourceUsage::default()
        }),
        ..CellResult::default()
    }
}

/// Of so many comparisons, in how many the method finds any difference.
fn found(
    scenario: &Scenario,
    rounds: u32,
    factor: f64,
    comparisons: u64,
    method: impl Fn(&BenchComparison, &[CellResult]) -> bool,
) -> usize {
    let finds = |seed: &u64| {
        let cells = Machine(fastrand::Rng::with_seed(*seed)).cells(scenario, rounds, factor);
        method(&BenchComparison::of(scenario, &cells), &cells)
    };
    (1..=comparisons).filter(finds).count()
}

/// The method: whether any verdict is a difference.
fn by_verdict(comparison: &BenchComparison, _: &[CellResult]) -> bool {
    let is_shown = |case: &CaseComparison| {
        let verdicts = case.targets.iter().filter_map(|target| target.verdict.as_ref());
        verdicts
            .into_iter()
            .any(|verdict| matches!(verdict.outcome, ExperimentOutcome::Better | ExperimentOutcome::Worse))
    };
    comparison.cases.iter().any(is_shown)
}

/// A mutation: an interval that excludes 1 is taken for a difference, however many there are.
fn by_interval(comparison: &BenchComparison, _: &[CellResult]) -> bool {
    let excludes = |case: &CaseComparison| {
        let ratios = case.targets.iter().filter_map(|target| target.figure(&case.figure)?.ratio);
        ratios.into_iter().any(|ratio| ratio.low > 1.0 || ratio.high < 1.0)
    };
    comparison.cases.iter().any(excludes)
}

/// A mutation: Student's t on the means of the two targets, as if their cells were not of the same rounds.
fn by_means(_: &BenchComparison, cells: &[CellResult]) -> bool {
    let costs = |target: &str| -> Vec<f64> {
        let of_target = cells.iter().filter(|cell| cell.target == target);
        of_target.map(|cell| cell.target_usage.unwrap().user_us as f64).collect()
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let squared_error = |values: &[f64]| {
        let sum: f64 = values.iter().map(|value| (value - mean(values)).powi(2)).sum();
        sum / (values.len() as f64 - 1.0) / values.len() as f64
    };
    let (a, b) = (costs("a"), costs("b"));
    // With 40 rounds each, t of 95 % is 1.99.
    (mean(&b) - mean(&a)).abs() > 1.99 * (squared_error(&a) + squared_error(&b)).sqrt()
}

fn pair() -> Scenario {
    scenario(&["a", "b"], &[("cost", Question::Cost)])
}

/// Eight comparisons: four targets beside the baseline, in two cases.
fn family() -> Scenario {
    scenario(&["a", "b", "c", "d", "e"], &[("one", Question::Cost), ("two", Question::Cost)])
}

#[test]
fn identical_targets_are_called_different_in_at_most_six_of_a_hundred_comparisons() {
    for rounds in [6, 12] {
        let wrong = found(&pair(), rounds, 1.0, 1_000, by_verdict);
        assert!(wrong <= 60, "{rounds} rounds: {wrong} of 1,000");
        assert!(wrong >= 10, "{rounds} rounds: {wrong} of 1,000, so that it finds too little to be of use");
    }
    let wrong = found(&family(), 6, 1.0, 1_000, by_verdict);
    assert!(wrong <= 60, "eight comparisons: {wrong} of 1,000");
}

#[test]
fn eight_intervals_taken_for_verdicts_would_fail_the_same_check() {
    let wrong = found(&family(), 6, 1.0, 200, by_interval);
    assert!(wrong > 12, "{wrong} of 200");
}

#[test]
fn five_percent_more_cpu_time_is_found_in_five_minutes_four_times_in_five() {
    let right = found(&pair(), POWER_ROUNDS, 1.05, 100, by_verdict);
    assert!(right >= 80, "{right} of 100");
}

#[test]
fn means_of_targets_that_are_not_paired_would_fail_the_same_check() {
    let right = found(&pair(), POWER_ROUNDS, 1.05, 100, by_means);
    assert!(right < 80, "{right} of 100");
}
