//! The page of a comparison of targets. `crates/bench` tests the figures.

use crate::common::{HOSTILE, assert_harmless};
use crate::made_up::{scenario, six_rounds};
use bench::compare::BenchComparison;
use bench::results::CellResult;
use bench::scenario::{BenchAssertion, Question};
use report::targets_page;

fn comparison() -> BenchComparison {
    let mut scenario = scenario(&["base", "lean", "same"], &[("small", Question::Cost)]);
    scenario.assertions = vec![BenchAssertion {
        line: 50,
        target: "lean".to_owned(),
        case: None,
        condition: "ratio < 0.8".to_owned(),
    }];
    BenchComparison::of(&scenario, &six_rounds("small"))
}

fn page() -> String {
    targets_page(&comparison(), &[("seed".to_owned(), "17".to_owned())], "tlsdash bench proxies.toml")
}

#[test]
fn a_breached_condition_is_a_failure_for_ci() {
    let xml = report::junit("proxies", 1_500_000, &comparison().assertions);
    assert!(xml.contains("tests=\"1\" failures=\"1\""), "{xml}");
    assert!(xml.contains("name=\"ratio &lt; 0.8 of lean in small\""), "{xml}");
    assert!(xml.contains("message=\"it is 0.900, 95 % interval 0.892 to 0.908, "), "{xml}");
}

#[test]
fn the_first_screenful_says_which_is_cheapest_by_how_much_and_how_sure() {
    let page = page();
    let at = |text: &str| page.find(text).unwrap_or_else(|| panic!("{text:?} is not in the page"));
    let forest = at("<h2>Ratios to base</h2>");
    assert!(at("<strong>lean: 10.0\u{a0}% less CPU time</strong>") < forest);
    assert!(
        at("Beside base: ratio 0.900, 95 % interval 0.892 to 0.908, 6 rounds; shown, p below 0.001.")
            < forest
    );
    assert!(at("✗ FAIL: ratio &lt; 0.8 of lean in small: it is 0.900") < forest);
    assert!(at("0.900 (0.892 to 0.908), better") < at("1.000 (0.977 to 1.023), no difference shown"));
}

#[test]
fn a_verdict_fills_the_dot_and_no_difference_leaves_it_hollow() {
    let page = page();
    assert_eq!(page.matches("<circle class=\"dot\"").count(), 1);
    assert_eq!(page.matches("<circle class=\"dot hollow\"").count(), 1);
    assert_eq!(
        page.matches("class=\"line s2\" d=\"M").count(),
        2,
        "a latency curve of each target, and its key"
    );
}

#[test]
fn without_a_usable_round_the_page_says_why_and_has_no_empty_plot_or_table() {
    let cells: Vec<CellResult> = six_rounds("small")
        .into_iter()
        .map(|CellResult { round, target, case, .. }| {
            let failure = Some("connection refused".to_owned());
            CellResult { round, target, case, failure, ..CellResult::default() }
        })
        .collect();
    let scenario = scenario(&["base", "lean", "same"], &[("small", Question::Cost)]);
    let page = targets_page(&BenchComparison::of(&scenario, &cells), &[], "tlsdash bench proxies.toml");
    assert!(page.contains("<strong>No usable round</strong>"), "{page}");
    assert!(page.contains("base, lean, same: every round: connection refused"), "{page}");
    assert!(!page.contains("Ratios to base") && !page.contains("median of the rounds"), "{page}");
}

#[test]
fn names_are_escaped() {
    let mut scenario = scenario(&["base", HOSTILE], &[(HOSTILE, Question::Cost)]);
    HOSTILE.clone_into(&mut scenario.title);
    scenario.notes = vec![HOSTILE.to_owned()];
    let mut cells = six_rounds(HOSTILE);
    for cell in &mut cells {
        if cell.target == "lean" {
            HOSTILE.clone_into(&mut cell.target);
            cell.failure = Some(HOSTILE.to_owned());
        }
    }
    let comparison = BenchComparison::of(&scenario, &cells);
    assert_harmless(&targets_page(&comparison, &[(HOSTILE.to_owned(), HOSTILE.to_owned())], HOSTILE));
}

#[test]
fn a_line_of_cost_against_rate_is_of_one_target() {
    let cases = [("small rate=200", Question::Cost), ("small rate=400", Question::Cost)];
    let mut scenario = scenario(&["base", "lean", "same"], &cases);
    scenario.cases[0].only = ["base", "same"].map(str::to_owned).to_vec();
    let mut cells: Vec<_> = six_rounds(cases[0].0).into_iter().filter(|cell| cell.target != "lean").collect();
    let mut faster = six_rounds(cases[1].0);
    for cell in &mut faster {
        cell.figures.insert("rate.achieved".to_owned(), 400.0);
    }
    cells.extend(faster);
    let page = targets_page(&BenchComparison::of(&scenario, &cells), &[], "tlsdash bench proxies.toml");
    let (_, section) = page.split_once("<h2>Cost against rate</h2>").unwrap();
    let named = |name: &str| section.matches(&format!(">{name}<")).count();
    assert!(named("lean") > 0, "{section}");
    assert_eq!([named("base"), named("same")], [named("lean"); 2], "{section}");
}
