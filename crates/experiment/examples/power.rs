#![allow(clippy::print_stdout, reason = "it prints a table")]

//! How often a difference is found, by how large it is and how noisy the system: the tables of docs/measurements.md, also of
//! two runs that were not switched in turn.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{BESIDE_A_NEIGHBOUR, Noise, ORDINARY, SimulatedSystem};
use experiment::{ComparableFigure, CompareOutcome, EstimateOptions, alpha_of, compare, estimate, judge};
use records::kinds::{ExperimentOutcome, Stage};

const EXPERIMENTS: u64 = 500;
const ALPHA: f64 = 0.05;

/// `power runs` plays pairs of runs, `power` experiments.
fn main() {
    if std::env::args().nth(1).is_some_and(|word| word == "runs") {
        return runs();
    }
    println!("of {EXPERIMENTS} experiments each, by exchange.p50; none: no difference, but one was found");
    println!("| noise of a second | pairs | none | 2 % | 5 % | 10 % |");
    println!("|---|---|---|---|---|---|");
    for level_sd in [0.02, 0.04, 0.08] {
        for pairs in [6, 12, 24] {
            let found = [1.0, 0.98, 0.95, 0.9].map(|effect| {
                let noise = Noise { level_sd, ..ORDINARY };
                format!("{:.1} %", found(noise, pairs, effect) as f64 * 100.0 / EXPERIMENTS as f64)
            });
            println!("| {:.0} % | {pairs} | {} |", level_sd * 100.0, found.join(" | "));
        }
    }
}

const RUNS: u64 = 200;
/// What is compared of two runs.
const FIGURES: [&str; 6] =
    ["exchange.p25", "exchange.p50", "exchange.p75", "exchange.p90", "exchange.p95", "exchange.p99"];

fn runs() {
    println!("of {RUNS} pairs of runs each, in blocks of 3 s, any of {} figures:", FIGURES.len());
    println!("| noise | run | none | 5 % | 10 % | 20 % | 30 % |");
    println!("|---|---|---|---|---|---|---|");
    let steady = Noise { drift: 0.0, ..ORDINARY };
    for (name, noise) in [
        ("seconds that depend on each other", steady),
        ("… with a neighbour now and then", BESIDE_A_NEIGHBOUR),
        ("… with a drift of seven minutes", ORDINARY),
    ] {
        for minutes in [1, 2, 5] {
            let found = [1.0, 0.95, 0.9, 0.8, 0.7].map(|factor| {
                format!("{:.1} %", differ(noise, minutes * 20, factor) as f64 * 100.0 / RUNS as f64)
            });
            println!("| {name} | {minutes} min | {} |", found.join(" | "));
        }
    }
}

fn differ(noise: Noise, blocks: u32, factor: f64) -> usize {
    let metrics: Vec<ComparableFigure> = FIGURES.iter().filter_map(|name| name.parse().ok()).collect();
    let differs = |seed: &u64| {
        let a = SimulatedSystem::new(noise, *seed).blocks(blocks, 1.0, metrics.len());
        let b = SimulatedSystem::new(noise, seed + 10_000).blocks(blocks, factor, metrics.len());
        let found = |(at, metric)| {
            compare(metric, at, &a, &b, alpha_of(metrics.len())).finding == CompareOutcome::Differs
        };
        metrics.iter().enumerate().any(found)
    };
    (1..=RUNS).filter(differs).count()
}

fn found(noise: Noise, pairs: u32, effect: f64) -> usize {
    let metric = "exchange.p50".parse().unwrap_or_else(|error| panic!("{error}"));
    let is_found = |seed: &u64| {
        let made = SimulatedSystem::new(noise, *seed).pairs(pairs, effect);
        let made: Vec<_> = made.iter().map(|(a, b)| (a, b)).collect();
        let options = EstimateOptions { alpha: ALPHA, draws: 2_000, pairs_planned: pairs, seed: *seed };
        let estimate = estimate(&metric, &made, &options);
        let outcome = judge(&metric, Stage::Comparison, estimate, ALPHA, None).outcome;
        matches!(outcome, ExperimentOutcome::Better | ExperimentOutcome::Worse)
    };
    (1..=EXPERIMENTS).filter(is_found).count()
}
