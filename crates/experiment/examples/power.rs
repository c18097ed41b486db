#![allow(clippy::print_stdout, reason = "it prints a table")]

//! How often a difference is found, by how large it is and how noisy the system: the table of docs/experiments.md.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{Noise, ORDINARY, System};
use experiment::{Method, estimate, judge};
use telemetry::experiment::{Outcome, Stage};

const EXPERIMENTS: u64 = 500;
const ALPHA: f64 = 0.05;

fn main() {
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

fn found(noise: Noise, pairs: u32, effect: f64) -> usize {
    let metric = "exchange.p50".parse().unwrap_or_else(|error| panic!("{error}"));
    let is_found = |seed: &u64| {
        let made = System::new(noise, *seed).pairs(pairs, effect);
        let made: Vec<_> = made.iter().map(|(a, b)| (a, b)).collect();
        let method = Method { alpha: ALPHA, draws: 2_000, pairs_planned: pairs, seed: *seed };
        let estimate = estimate(&metric, &made, &method);
        let outcome = judge(&metric, Stage::Comparison, estimate, ALPHA, None).outcome;
        matches!(outcome, Outcome::Better | Outcome::Worse)
    };
    (1..=EXPERIMENTS).filter(is_found).count()
}
