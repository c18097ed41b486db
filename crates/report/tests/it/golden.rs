//! The formats that programs read, letter by letter: a change of one shows here, and is for CHANGELOG.md.

use std::time::Duration;

use crate::common::{SyntheticRun, model};
use insta::assert_snapshot;
use report::{Assertion, AssertionResult, CompareOptions, Figures, Report, comparison};

#[test]
fn files_of_a_report() {
    let (model, run) = model(&SyntheticRun { with_loss: true, ..SyntheticRun::default() });
    let run = model.run(run).unwrap();
    let report = Report::new(&model, run, "file:x.journal", "tlsdash report x.journal".to_owned());
    assert_snapshot!("json", report.json().unwrap());
    assert_snapshot!("csv", report.csv());
    assert_snapshot!("markdown", report.markdown());
    assert_snapshot!("hgrm", report::percentile_file(run).unwrap());
    assert_snapshot!("hlog", report::interval_log(run).unwrap().0);
}

#[test]
fn files_of_a_comparison() {
    let (model_a, run_a) = model(&SyntheticRun::default());
    let (model_b, run_b) = model(&SyntheticRun { id: 0xb, exchange_ns: 500_000, ..SyntheticRun::default() });
    let [a, b] = [(&model_a, run_a, "file:a.journal"), (&model_b, run_b, "file:b.journal")]
        .map(|(model, run, source)| Report::new(model, model.run(run).unwrap(), source, String::new()));
    let block = Duration::from_secs(1);
    let metrics = vec!["exchange.p50".parse().unwrap(), "handshake_full.p50".parse().unwrap()];
    let how = CompareOptions { metrics, block: Some(block), discard: Some(Duration::ZERO), force: false };
    let found = comparison(&a, &b, &how, "tlsdash compare a.journal b.journal").unwrap();
    assert_snapshot!("comparison_json", found.json().unwrap());
    assert_snapshot!("comparison_markdown", found.markdown());
    assert_snapshot!("comparison_text", found.text());
}

#[test]
fn file_of_a_check() {
    let (model, run) = model(&SyntheticRun::default());
    let figures = Figures::of(&model, model.run(run).unwrap(), Some("file:x.journal"));
    let checked =
        ["exchange.p90 < 1ms", "lost == 0", "ended == 1", "proxy.handshakes.full < 1000"].map(|text| {
            let assertion: Assertion = text.parse().unwrap();
            let verdict = assertion.check(&figures);
            AssertionResult { assertion, verdict }
        });
    assert_snapshot!("junit", report::junit("file:x.journal", 11_000_000, &checked));
}
