//! What the outputs say of cells whose figures are known; `comparison.rs` has the figures.

use crate::common::{scenario, six_rounds};
use bench::compare::{BenchComparison, CaseComparison};
use bench::output::{self, CaseAnswer, CaseRemark};
use bench::results::{CellResult, Doubt, DoubtScope};
use bench::scenario::{BenchAssertion, PublishedFigure, Question};
use records::kinds::ExperimentOutcome;

fn comparison() -> (BenchComparison, Vec<CellResult>) {
    let mut scenario = scenario(
        &["base", "lean", "same"],
        &[("small", Question::Cost), ("streams=1,body=10", Question::Load)],
    );
    scenario.notes = vec!["the published experiment used nginx 1.10 and RSA-2048 with TLS 1.2".to_owned()];
    scenario.published = vec![PublishedFigure {
        target: "base".to_owned(),
        case: "small".to_owned(),
        figure: "response.p99".to_owned(),
        value: 1_678.0,
    }];
    scenario.assertions = vec![BenchAssertion {
        line: 50,
        target: "lean".to_owned(),
        case: Some("small".to_owned()),
        condition: "ratio < 0.8".to_owned(),
    }];
    let mut cells = six_rounds("small");
    cells.extend(six_rounds("streams=1,body=10"));
    for cell in cells.iter_mut().filter(|cell| cell.case != "small") {
        cell.rate = None;
        if cell.target == "same" {
            let reason = "the generator was busy for 97 % of its core, above 90 %".to_owned();
            cell.doubts.push(Doubt { spoils: DoubtScope::RateAndLatency, reason });
        }
    }
    cells[4].doubts.push(Doubt { spoils: DoubtScope::All, reason: "3 of 1,000 requests failed".to_owned() });
    (BenchComparison::of(&scenario, &cells), cells)
}

#[test]
fn the_text_fits_eighty_columns() {
    let text = output::text(&comparison().0);
    insta::assert_snapshot!("text", text);
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn markdown_has_a_table_for_each_case() {
    insta::assert_snapshot!("markdown", output::markdown(&comparison().0));
}

/// A comparison of one case after `change` of its cells.
fn one_case(change: impl Fn(&mut CellResult)) -> BenchComparison {
    let mut cells = six_rounds("small");
    cells.iter_mut().for_each(change);
    BenchComparison::of(&scenario(&["base", "lean", "same"], &[("small", Question::Cost)]), &cells)
}

fn doubt(spoils: DoubtScope, reason: impl Into<String>) -> Doubt {
    Doubt { spoils, reason: reason.into() }
}

#[test]
fn a_case_without_a_usable_round_says_why_instead_of_an_empty_table() {
    let doubtful = one_case(|cell| {
        let reason = format!("the target used {} ms of CPU time, too little to measure", 20 + cell.round);
        cell.doubts.push(doubt(DoubtScope::Usage, reason));
    });
    let reason = "no usable round: base, lean, same: every round: the target used 21–26 ms of CPU time, too little to measure";
    let text = output::text(&doubtful);
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(reason), "{text}");
    assert!(!text.contains("verdict\n") && text.contains("base     (135)"), "{text}");
    let markdown = output::markdown(&doubtful);
    assert!(markdown.contains(&format!("**{reason}**")), "{markdown}");
    assert!(
        !markdown.contains("| verdict |") && markdown.contains("| CPU a request µs | (135) |"),
        "{markdown}"
    );
    assert_eq!(CaseAnswer::of(&doubtful.cases[0], "base").headline, "No usable round");

    let failed = one_case(|cell| {
        let CellResult { round, target, case, .. } = std::mem::take(cell);
        let failure = Some("connection refused".to_owned());
        *cell = CellResult { round, target, case, failure, ..CellResult::default() };
    });
    let text = output::text(&failed);
    assert!(text.contains("no usable round: base, lean, same: every round: connection refused"), "{text}");
    assert!(!text.contains("target  ") && !text.contains("brackets"), "{text}");
    assert!(!output::markdown(&failed).contains("|---"), "{}", output::markdown(&failed));
}

#[test]
fn three_remarks_are_shown_and_those_that_void_the_figure_first() {
    let comparison = one_case(|cell| match &*cell.target {
        "base" => cell.remarks.push("it had to be killed".to_owned()),
        "lean" => {
            let shares = ["11 %", "12 %", "9 %"];
            let reason =
                format!("other processes used {} of the cores' time", shares[cell.round as usize % 3]);
            cell.doubts.push(doubt(DoubtScope::RateAndLatency, reason));
            cell.doubts.push(doubt(DoubtScope::RateAndLatency, "the upstream was busy 95 % of the time"));
        }
        _ if cell.round == 4 => cell.doubts.push(doubt(DoubtScope::All, "3 requests failed")),
        _ => {}
    });
    let all: Vec<String> = CaseRemark::all(&comparison.cases[0]).iter().map(ToString::to_string).collect();
    assert_eq!(
        all,
        [
            "same: round 4: 3 requests failed",
            "lean: every round: other processes used 9–12 % of the cores' time",
            "lean: every round: the upstream was busy 95 % of the time",
            "base: every round: it had to be killed",
            "same: inconclusive: 5 of the 6 rounds that a verdict takes",
        ]
    );
    for out in [output::text(&comparison), output::markdown(&comparison)] {
        assert!(out.contains(&all[2]) && !out.contains(&all[3]), "{out}");
        assert!(out.contains("and 2 more: see the JSON"), "{out}");
    }
    let json = output::json(&comparison).unwrap();
    assert!(json.contains("it had to be killed") && !json.contains("weight"), "{json}");
}

#[test]
fn json_has_a_version_and_every_figure() {
    let (comparison, _) = comparison();
    let json: serde_json::Value = serde_json::from_str(&output::json(&comparison).unwrap()).unwrap();
    assert_eq!(json["version"], output::JSON_VERSION);
    let lean = &json["cases"][0]["targets"][1];
    assert_eq!(lean["name"], "lean");
    assert_eq!(lean["verdict"]["outcome"], "inconclusive");
    let figure = |name: &str| {
        lean["figures"].as_array().unwrap().iter().find(|figure| figure["name"] == name).unwrap().clone()
    };
    assert_eq!(figure("target.cpu.per_request")["unit"], "µs");
    assert_eq!(figure("target.cpu.per_request")["ratio"]["pairs"], 5);
    assert_eq!(figure("errors")["unit"], serde_json::Value::Null);
    assert_eq!(json["assertions"][0]["outcome"]["result"], "breached");
}

#[test]
fn the_headline_names_a_winner_only_if_a_difference_was_shown() {
    let (mut comparison, _) = comparison();
    let headline = |case: &CaseComparison| CaseAnswer::of(case, "base").headline;
    assert_eq!(headline(&comparison.cases[0]), "No difference shown", "lean is inconclusive");
    let case = &mut comparison.cases[1];
    assert_eq!(headline(case), "lean: 10.0\u{a0}% less CPU time");
    // The baseline is the best only if every other target is shown to be worse.
    for (same, expected) in [
        (ExperimentOutcome::Worse, "base: least CPU time"),
        (ExperimentOutcome::NoDifference, "Worse: lean; no difference shown for others"),
    ] {
        for (target, outcome) in case.targets[1..].iter_mut().zip([ExperimentOutcome::Worse, same]) {
            target.verdict.as_mut().unwrap().outcome = outcome;
        }
        assert_eq!(headline(case), expected);
    }
    for (outcome, expected) in [
        (ExperimentOutcome::NoDifference, "No difference shown"),
        (ExperimentOutcome::Inconclusive, "Inconclusive"),
    ] {
        case.targets[1..].iter_mut().for_each(|target| target.verdict.as_mut().unwrap().outcome = outcome);
        assert_eq!(headline(case), expected);
    }
    case.targets.iter_mut().for_each(|target| target.verdict = None);
    case.primary = false;
    let answer = CaseAnswer::of(case, "base");
    assert_eq!(answer.headline, "No verdict asked");
    assert!(answer.sentence.ends_with("no verdict was asked."), "{}", answer.sentence);
}

#[test]
fn the_headline_is_not_about_targets_without_a_decision() {
    let mut case = comparison().0.cases.remove(1);
    let [_, lean, same] = &mut case.targets[..] else { panic!("{case:?}") };
    lean.verdict.as_mut().unwrap().outcome = ExperimentOutcome::Worse;
    same.verdict.as_mut().unwrap().outcome = ExperimentOutcome::Inconclusive;
    assert_eq!(CaseAnswer::of(&case, "base").headline, "base: least CPU time", "same has too few rounds");
    case.targets[2].figures.iter_mut().for_each(|figure| figure.ratio = None);
    let answer = CaseAnswer::of(&case, "base");
    assert_eq!(answer.headline, "base: least CPU time");
    assert!(answer.sentence.ends_with(" Not decided: same."), "{}", answer.sentence);
}

#[test]
fn csv_has_a_row_for_each_cell() {
    let (_, cells) = comparison();
    let rows = output::cells_csv(&cells);
    let rows: Vec<&str> = rows.lines().collect();
    assert_eq!(rows.len(), 1 + 36);
    assert!(rows[0].starts_with("case,target,round,position,began_us,rate,failure,target.cpu.per_request,"));
    assert!(rows[1].starts_with("small,base,1,1,1700000060000000,200,,110,77,33,"), "{}", rows[1]);
    assert!(rows[19].starts_with("\"streams=1,body=10\",base,1,"), "{}", rows[19]);
}
