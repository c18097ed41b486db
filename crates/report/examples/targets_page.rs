//! Prints the page of a comparison that was made up and has all that such a page can show: `.ci/axe` looks at it.

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "it prints a page")]

#[path = "../../bench/tests/common/mod.rs"]
mod made_up;

use bench::compare::BenchComparison;
use bench::results::{CellResult, Doubt, DoubtScope};
use bench::scenario::{BenchAssertion, PublishedFigure, Question};
use made_up::{cell, scenario};

const CASES: [(&str, Question); 4] = [
    ("full-handshake", Question::Cost),
    ("kept rate=500", Question::Load),
    ("kept rate=2000", Question::Load),
    ("capacity", Question::Capacity),
];
/// The targets with their CPU time beside the first one's.
const TARGETS: [(&str, f64); 6] = [
    ("nginx-stream", 1.0),
    ("tlsdash-tcp", 0.41),
    ("haproxy-tcp", 1.05),
    ("hitch", 0.99),
    ("stunnel", 2.6),
    ("go-proxy", 1.3),
];

fn main() {
    let mut scenario = scenario(&TARGETS.map(|(name, _)| name), &CASES);
    "TLS terminators before one upstream".clone_into(&mut scenario.title);
    scenario.notes = vec!["the published experiment used nginx 1.10, TLS 1.2 and RSA-2048".to_owned()];
    scenario.published = vec![PublishedFigure {
        target: "nginx-stream".to_owned(),
        case: CASES[0].0.to_owned(),
        figure: "response.p99".to_owned(),
        value: 1_678.0,
    }];
    let assertion = |condition: &str| BenchAssertion {
        line: 50,
        target: "tlsdash-tcp".to_owned(),
        case: Some(CASES[0].0.to_owned()),
        condition: condition.to_owned(),
    };
    scenario.assertions = vec![assertion("ratio < 0.8"), assertion("response.p99 < 1ms")];
    let conditions = [("seed", "17"), ("cores", "2"), ("kernel", "6.1"), ("started", "2026-11-23 09:00 UTC")];
    let conditions = conditions.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let comparison = BenchComparison::of(&scenario, &cells());
    println!(
        "{}",
        report::targets_page(&comparison, &conditions, "tlsdash bench terminators.toml --html page.html")
    );
}

/// Eight rounds, whose noise is 3 % wide; one target failed, and one had a saturated generator.
fn cells() -> Vec<CellResult> {
    let mut cells = Vec::new();
    for round in 1..=8_u32 {
        for (at, (target, cost)) in TARGETS.iter().enumerate() {
            for (case, question) in CASES {
                let noise = f64::from((round * (at as u32 + 3) + at as u32) % 11) / 11.0 * 0.03;
                let mut cell = cell(round, target, case, 260.0 * cost * (1.0 + noise), 4_000.0 * cost.sqrt());
                let rate = match question {
                    Question::Capacity => 3_000.0 / cost * (1.0 + noise),
                    _ if case.ends_with("2000") => 2_000.0,
                    _ => 500.0,
                };
                cell.rate = Some(rate);
                cell.figures.insert("rate.achieved".to_owned(), rate);
                cell.response_curve = (0..40)
                    .map(|step| {
                        let nines = f64::from(step) / 10.0;
                        let us = 900.0 * cost.sqrt() * (1.0 + nines).powf(1.6 + 0.1 * at as f64);
                        ((1.0 - 10_f64.powf(-nines)) * 100.0, us as u64)
                    })
                    .collect();
                spoil(&mut cell);
                cells.push(cell);
            }
        }
    }
    cells
}

fn spoil(cell: &mut CellResult) {
    match (&*cell.target, &*cell.case, cell.round) {
        ("go-proxy", "capacity", _) => {
            *cell = CellResult {
                failure: Some(
                    "it ended at once with exit status 1: listen tcp: address already in use".to_owned(),
                ),
                round: cell.round,
                target: cell.target.clone(),
                case: cell.case.clone(),
                ..CellResult::default()
            };
        }
        ("stunnel", "kept rate=2000", _) => cell.doubts.push(Doubt {
            spoils: DoubtScope::RateAndLatency,
            reason: "the generator was busy for 97 % of its core, above 90 %".to_owned(),
        }),
        ("hitch", _, 3) => {
            cell.doubts
                .push(Doubt { spoils: DoubtScope::All, reason: "3 of 1,000 requests failed".to_owned() });
        }
        _ => {}
    }
}
