//! Ratios, verdicts and conditions of cells whose figures are known.

use crate::common::{cell, scenario, six_rounds};
use bench::compare::{BenchAssertionOutcome, BenchComparison, BenchCondition, TargetComparison};
use bench::results::{CellResult, Doubt, DoubtScope};
use bench::scenario::{BenchAssertion, PublishedFigure, Question, Scenario};
use records::kinds::ExperimentOutcome;

const TARGETS: [&str; 3] = ["base", "lean", "same"];
const CPU: &str = "target.cpu.per_request";

fn one_case() -> Scenario {
    scenario(&TARGETS, &[("small", Question::Cost)])
}

fn target<'a>(comparison: &'a BenchComparison, name: &str) -> &'a TargetComparison {
    comparison.cases[0].target(name).unwrap()
}

fn outcome(comparison: &BenchComparison, name: &str) -> ExperimentOutcome {
    target(comparison, name).verdict.as_ref().unwrap().outcome
}

fn reason(comparison: &BenchComparison, name: &str) -> String {
    target(comparison, name).verdict.as_ref().unwrap().reason.clone()
}

fn doubt(cell: &mut CellResult, spoils: DoubtScope, reason: &str) {
    cell.doubts.push(Doubt { spoils, reason: reason.to_owned() });
}

#[test]
fn ten_percent_less_is_better_and_a_coin_toss_is_no_difference() {
    let comparison = BenchComparison::of(&one_case(), &six_rounds("small"));
    assert_eq!(comparison.primary_comparisons, 2);
    assert_eq!(outcome(&comparison, "lean"), ExperimentOutcome::Better);
    assert_eq!(outcome(&comparison, "same"), ExperimentOutcome::NoDifference);
    assert!(target(&comparison, "base").verdict.is_none());
    // The rounds' ratios are 0.9 · (1.01, 0.99, 1.0), each twice: their geometric mean is 0.9 · ∛0.9999.
    let lean = target(&comparison, "lean").figure(CPU).unwrap();
    let ratio = lean.ratio.unwrap();
    assert!((ratio.mean - 0.9 * 0.9999_f64.cbrt()).abs() < 1e-6, "{ratio:?}");
    // Logarithms 0.00995, -0.01005, 0 twice each around -0.00003: s² = 4.0/5 · 10⁻⁴, t 2.5706.
    let half = 2.570_6 * (0.8_f64 * 1e-4 / 6.0).sqrt();
    assert!(((ratio.high / ratio.mean).ln() - half).abs() < 1e-5, "{ratio:?}, expected ± {half}");
    // All six have one sign: 2 of 64 assignments.
    assert!((target(&comparison, "lean").p_sign_flip - 1.0 / 32.0).abs() < 1e-12);
    // Of 0.9 times 110, 120, … 160 with their noise, those of 130 and 140 are in the middle.
    let middle = f64::midpoint(130.0 * 0.9 * 1.01, 140.0 * 0.9 * 0.99);
    assert!((lean.median - middle).abs() < 1e-3, "{}", lean.median);
}

#[test]
fn a_doubt_about_rates_leaves_the_cost() {
    let mut cells = six_rounds("small");
    for cell in cells.iter_mut().filter(|cell| cell.target == "lean") {
        doubt(cell, DoubtScope::RateAndLatency, "the generator was at its limit");
    }
    let comparison = BenchComparison::of(&one_case(), &cells);
    assert_eq!(outcome(&comparison, "lean"), ExperimentOutcome::Better);
    let lean = target(&comparison, "lean");
    let p99 = lean.figure("response.p99").unwrap();
    assert!(p99.is_doubtful && p99.ratio.is_none());
    assert_eq!(p99.withheld.as_deref(), Some("lean: the generator was at its limit"));
    assert_eq!(lean.remarks[0].rounds, [1, 2, 3, 4, 5, 6]);
    assert!(lean.response_curve.is_empty());
}

#[test]
fn a_doubt_about_usage_leaves_rates_and_latencies() {
    let mut cells = six_rounds("small");
    for cell in cells.iter_mut().filter(|cell| cell.target == "lean") {
        doubt(cell, DoubtScope::Usage, "too little CPU time");
    }
    let comparison = BenchComparison::of(&one_case(), &cells);
    assert_eq!(outcome(&comparison, "lean"), ExperimentOutcome::Inconclusive);
    let lean = target(&comparison, "lean");
    assert_eq!(lean.figure(CPU).unwrap().withheld.as_deref(), Some("lean: too little CPU time"));
    for name in ["response.p99", "rate.achieved"] {
        assert!(lean.figure(name).unwrap().ratio.is_some(), "{name}");
    }
}

#[test]
fn an_unsound_round_of_either_drops_out_and_five_are_too_few() {
    for of in ["base", "lean"] {
        let mut cells = six_rounds("small");
        let spoilt = cells.iter_mut().find(|cell| cell.round == 3 && cell.target == of).unwrap();
        doubt(spoilt, DoubtScope::All, "12 requests failed");
        let comparison = BenchComparison::of(&one_case(), &cells);
        assert_eq!(outcome(&comparison, "lean"), ExperimentOutcome::Inconclusive, "{of}");
        assert_eq!(reason(&comparison, "lean"), "5 of the 6 rounds that a verdict takes");
        let lean = target(&comparison, "lean");
        assert_eq!((lean.rounds_used, lean.rounds_run), (5, 6));
    }
}

#[test]
fn a_target_that_failed_or_was_not_measured_says_so() {
    let mut cells = six_rounds("small");
    cells.retain(|cell| cell.target != "same");
    for cell in cells.iter_mut().filter(|cell| cell.target == "lean") {
        cell.failure = Some("it never listened".to_owned());
        cell.figures.clear();
        cell.target_usage = None;
    }
    let comparison = BenchComparison::of(&one_case(), &cells);
    assert_eq!(reason(&comparison, "lean"), "it never listened");
    assert_eq!(reason(&comparison, "same"), "it was not measured");
    assert_eq!(comparison.primary_comparisons, 2, "what failed still counts");
}

#[test]
fn latency_is_compared_at_the_same_rate_only() {
    let mut cells = six_rounds("small");
    let comparison = BenchComparison::of(&one_case(), &cells);
    let ratio = |comparison: &BenchComparison, figure: &str| {
        target(comparison, "lean").figure(figure).unwrap().ratio.map(|ratio| ratio.mean)
    };
    assert!((ratio(&comparison, "response.p99").unwrap() - 0.75).abs() < 1e-9);
    assert_eq!(ratio(&comparison, "service.p99"), None, "it is not corrected");
    for cell in cells.iter_mut().filter(|cell| cell.target == "lean") {
        cell.figures.insert("rate.achieved".to_owned(), 195.0);
    }
    let comparison = BenchComparison::of(&one_case(), &cells);
    assert_eq!(ratio(&comparison, "response.p99"), None);
    let withheld = target(&comparison, "lean").figure("response.p99").unwrap().withheld.clone().unwrap();
    assert_eq!(withheld, "the achieved rates differ: 200/s and 195/s");
    assert!((ratio(&comparison, "rate.achieved").unwrap() - 0.975).abs() < 1e-9);
    for cell in &mut cells {
        cell.rate = None;
    }
    let withheld = BenchComparison::of(&one_case(), &cells);
    let withheld = target(&withheld, "lean").figure("handshake_full.p50").unwrap().withheld.clone();
    assert_eq!(withheld.as_deref(), Some("in a closed loop each target sets its own rate"));
}

#[test]
fn more_requests_within_the_bound_are_better() {
    let capacity = scenario(&TARGETS[..2], &[("most", Question::Capacity)]);
    let mut cells = six_rounds("most");
    for cell in cells.iter_mut().filter(|cell| cell.target == "lean") {
        cell.figures.insert("rate.achieved".to_owned(), 200.0 + f64::from(cell.round));
    }
    let comparison = BenchComparison::of(&capacity, &cells);
    assert_eq!(outcome(&comparison, "lean"), ExperimentOutcome::Better);
    assert_eq!(comparison.cases[0].figure, "rate.achieved");
    // Less CPU time a request is the same as more requests per CPU-second.
    let per_cpu_second = target(&comparison, "lean").figure("target.requests.per_cpu_second").unwrap();
    assert!((per_cpu_second.ratio.unwrap().mean * 0.9 * 0.9999_f64.cbrt() - 1.0).abs() < 1e-6);
}

#[test]
fn a_difference_may_be_too_weak_for_as_many_comparisons() {
    // 1.5 % in six rounds that vary by 1 %: p of the t-test is about 0.02, too much for a fourth of 5 %.
    let noise = [1.022, 1.001, 1.018, 1.003, 1.028, 1.016];
    let cells = |cases: &[&str]| -> Vec<CellResult> {
        let of = |case: &str| -> Vec<CellResult> {
            let cells = noise.iter().zip(1..).flat_map(|(noise, round)| {
                [cell(round, "base", case, 100.0, 4e3), cell(round, "lean", case, 100.0 * noise, 4e3)]
            });
            cells.collect()
        };
        cases.iter().flat_map(|case| of(case)).collect()
    };
    let alone = scenario(&TARGETS[..2], &[("a", Question::Cost)]);
    assert_eq!(outcome(&BenchComparison::of(&alone, &cells(&["a"])), "lean"), ExperimentOutcome::Worse);
    let four = ["a", "b", "c", "d"].map(|name| (name, Question::Cost));
    let four = scenario(&TARGETS[..2], &four);
    let comparison = BenchComparison::of(&four, &cells(&["a"]));
    let verdict = target(&comparison, "lean").verdict.clone().unwrap();
    assert_eq!(verdict.outcome, ExperimentOutcome::NoDifference);
    assert!(verdict.p_adjusted > 0.05 && verdict.p_adjusted < 0.2, "{verdict:?}");
    assert!(verdict.reason.ends_with(" % could be shown in 6 rounds"), "{verdict:?}");
}

#[test]
fn a_cell_that_was_measured_again_replaces_the_former_one() {
    let mut cells = six_rounds("small");
    cells.push(cell(6, "lean", "small", 1e6, 4e3));
    let comparison = BenchComparison::of(&one_case(), &cells);
    let lean = target(&comparison, "lean");
    assert_eq!(lean.rounds_run, 6);
    assert!((lean.figure(CPU).unwrap().max - 1e6).abs() < 1e-6);
}

#[test]
fn a_published_figure_stands_beside_the_measured_one() {
    let mut one_case = one_case();
    let published = |target: &str, figure: &str, value| PublishedFigure {
        target: target.to_owned(),
        case: "small".to_owned(),
        figure: figure.to_owned(),
        value,
    };
    one_case.published =
        vec![published("base", "load.response.p99", 2_000.0), published("gone", "response.p50", 500.0)];
    let comparison = BenchComparison::of(&one_case, &six_rounds("small"));
    let [there, gone] = &comparison.published[..] else { panic!("there are two") };
    assert_eq!((there.measured, there.ratio, &*there.figure), (Some(4_000.0), Some(2.0), "response.p99"));
    assert_eq!((gone.measured, gone.ratio), (None, None));
}

#[test]
fn an_assertion_on_a_ratio_needs_the_whole_interval() {
    let mut one_case = one_case();
    let assertion = |target: &str, condition: &str| BenchAssertion {
        line: 50,
        target: target.to_owned(),
        case: None,
        condition: condition.to_owned(),
    };
    one_case.assertions = vec![
        assertion("lean", "ratio < 0.92"),
        assertion("lean", "ratio < 0.905"),
        assertion("lean", "ratio > 0.8"),
        assertion("lean", "response.p99 < 5ms"),
        assertion("lean", "response.p99 < 2ms"),
        assertion("lean", "errors == 0"),
        assertion("lean", "target.memory.pss_peak < 30MB"),
        assertion("base", "ratio < 2"),
        assertion("lean", "response.p50 < 5ms"),
        assertion("gone", "ratio < 2"),
    ];
    let results = BenchComparison::of(&one_case, &six_rounds("small")).assertions;
    let holds: Vec<bool> =
        results.iter().map(|result| matches!(result.outcome, BenchAssertionOutcome::Holds(_))).collect();
    assert_eq!(holds, [true, false, true, true, false, true, true, false, true, false]);
    let breached: Vec<&str> = results
        .iter()
        .filter_map(|result| match &result.outcome {
            BenchAssertionOutcome::Holds(_) => None,
            BenchAssertionOutcome::Breached(reason) => Some(&**reason),
        })
        .collect();
    assert_eq!(
        breached,
        [
            "it is 0.900, 95 % interval 0.892 to 0.908, 0.4 % above",
            "its median is 3 ms, 50.0 % above",
            "base is the baseline",
            "there is no target gone",
        ]
    );
}

#[test]
fn an_assertion_without_a_case_is_about_the_cases_that_its_target_has() {
    let mut two_cases = scenario(&TARGETS, &[("small", Question::Cost), ("large", Question::Cost)]);
    two_cases.cases[1].only = vec!["base".to_owned()];
    two_cases.assertions = vec![BenchAssertion {
        line: 50,
        target: "lean".to_owned(),
        case: None,
        condition: "ratio < 0.92".to_owned(),
    }];
    let results = BenchComparison::of(&two_cases, &six_rounds("small")).assertions;
    assert_eq!(results.iter().map(|result| &*result.case).collect::<Vec<_>>(), ["small"]);
    assert!(matches!(results[0].outcome, BenchAssertionOutcome::Holds(_)));
}

#[test]
fn a_condition_that_cannot_be_understood_says_what_to_write() {
    for (text, expected) in [
        ("ratio == 1", "ratio == 1: a ratio is compared with <, <=, > or >="),
        ("ratio", "\"ratio\" has no operator"),
        ("ratio < 5ms", "ratio < 5ms: ratio is a number; write 'ratio < 5'"),
        ("respnse.p99 < 5ms", "did you mean response.p99"),
        ("exchange.p99 < 5ms", "exchange.p99 is no figure of a load"),
        ("target.cpu.per_requests < 5us", "there are target.cpu.per_request, "),
    ] {
        let error = text.parse::<BenchCondition>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
    assert_eq!(
        "target.cpu.per_request < 300us".parse::<BenchCondition>().unwrap().to_string(),
        "target.cpu.per_request < 300us"
    );
    assert!("body.out < 3MB".parse::<BenchCondition>().is_ok());
}
