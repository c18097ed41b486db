//! Times of a log are no finer than the log: what is at its resolution is a bound in every form.

use std::time::Duration;

use crate::common::{SyntheticRun, model};
use report::{Assertion, AssertionOutcome, CompareOptions, Figures, MetricsFormat, Report, comparison};
use serde_json::{Value, json};

/// The run of a log with times to a millisecond, whose exchanges take so long.
fn of_log(id: u16, exchange_ms: u64) -> SyntheticRun {
    SyntheticRun {
        id,
        exchange_ns: exchange_ms * 1_000_000,
        log_resolution_us: 1_000,
        ..SyntheticRun::default()
    }
}

/// The forms of a comparison of exchanges: JSON of the row, text, Markdown and the page.
fn compared(a: &SyntheticRun, b: &SyntheticRun, force: bool) -> (Value, [String; 3]) {
    let (model_a, run_a) = model(a);
    let (model_b, run_b) = model(b);
    let [a, b] = [(&model_a, run_a), (&model_b, run_b)]
        .map(|(model, run)| Report::new(model, model.run(run).unwrap(), "file:x", String::new()));
    let how = CompareOptions {
        metrics: vec!["exchange.p50".parse().unwrap()],
        block: Some(Duration::from_secs(1)),
        discard: Some(Duration::ZERO),
        force,
    };
    let found = comparison(&a, &b, &how, "tlsdash").unwrap();
    let json: Value = serde_json::from_str(&found.json().unwrap()).unwrap();
    (json["metrics"][0].clone(), [found.text(), found.markdown(), found.html()])
}

#[test]
fn two_bounds_are_not_comparable_even_if_that_is_forced() {
    for force in [false, true] {
        let (row, forms) = compared(&of_log(0xa, 1), &of_log(0xb, 1), force);
        let bound = json!({"at_most": 1_000.0});
        assert_eq!((&row["a"], &row["b"]), (&bound, &bound), "no reader takes a bound for a number");
        assert_eq!(
            (&row["outcome"], &row["reason"]),
            (&json!("not comparable"), &json!("at the log's resolution"))
        );
        assert_eq!(row["estimate"], Value::Null);
        for form in &forms {
            assert!(form.contains("≤ 1") && form.contains("at the log"), "{form}");
        }
        let [text, markdown, _] = forms;
        assert!(!text.contains("1.000 ") && !markdown.contains("1.000 "), "{text}{markdown}");
    }
}

#[test]
fn a_difference_up_to_the_resolution_is_not_comparable() {
    let (row, _) = compared(&of_log(0xa, 12), &of_log(0xb, 13), false);
    assert_eq!((&row["a"], &row["b"]), (&json!(12_000.0), &json!(13_000.0)));
    assert_eq!((&row["outcome"], &row["estimate"]), (&json!("not comparable"), &Value::Null));
    let (row, _) = compared(&of_log(0xa, 12), &of_log(0xb, 20), false);
    assert_eq!(row["outcome"], "differs");
    assert!((row["estimate"]["effect_percent"].as_f64().unwrap() - 66.7).abs() < 0.5, "{row}");
    // A run of our own has times that are finer than those of the log.
    let ours = SyntheticRun { exchange_ns: 200_000, ..SyntheticRun::default() };
    let (row, _) = compared(&ours, &of_log(0xb, 1), false);
    assert_eq!(row["outcome"], "not comparable");
    assert!(row["a"].is_f64() && row["b"].is_object(), "{row}");
}

#[test]
fn of_a_difference_from_a_bound_a_bound_is_told() {
    let (row, forms) = compared(&of_log(0xa, 1), &of_log(0xb, 12), false);
    assert_eq!((&row["outcome"], &row["estimate"]), (&json!("differs"), &Value::Null));
    for form in forms {
        assert!(form.contains("11 ms or more, as A is at the log"), "{form}");
    }
}

#[test]
fn a_condition_on_a_bound_holds_fails_or_cannot_be_judged() {
    let (model, run) = model(&of_log(0xa, 1));
    let check = |text: &str| {
        let assertion: Assertion = text.parse().unwrap();
        match assertion.check(&Figures::of(&model, model.run(run).unwrap(), None)) {
            AssertionOutcome::Holds => "holds".to_owned(),
            AssertionOutcome::Breached(reason) => reason,
        }
    };
    for (text, expected) in [
        ("exchange.p50 < 5ms", "holds"),
        ("exchange.p50 <= 1ms", "holds"),
        ("exchange.p50 < 0.5ms", "cannot be judged: it is at most 1 ms, at the log's resolution"),
        ("exchange.p50 > 0.5ms", "cannot be judged: it is at most 1 ms, at the log's resolution"),
        ("exchange.p50 > 5ms", "it is at most 1 ms, at the log's resolution"),
        ("exchange.n > 0", "holds"),
    ] {
        assert_eq!(check(text), expected, "{text}");
    }
    let (model, run) = crate::common::model(&of_log(0xa, 3));
    let exactly: Assertion = "exchange.p50 <= 3ms".parse().unwrap();
    let found = exactly.check(&Figures::of(&model, model.run(run).unwrap(), None));
    assert_eq!(
        found,
        AssertionOutcome::Holds,
        "a whole number of milliseconds has no digits of the histogram"
    );
}

#[test]
fn json_csv_and_metrics_of_a_log_have_bounds() {
    let (model, run) = model(&of_log(0xa, 1));
    let report = Report::new(&model, model.run(run).unwrap(), "file:x", String::new());
    let json: Value = serde_json::from_str(&report.json().unwrap()).unwrap();
    let bound = json!({"at_most": 1_000.0});
    assert_eq!(json["summary"]["proxy"]["latency_us"]["exchange"]["p50"], bound);
    let with_samples = |interval: &&Value| interval["latency_us"]["exchange"]["n"].as_u64() > Some(0);
    let interval = json["proxy_intervals"].as_array().unwrap().iter().find(with_samples).unwrap();
    assert_eq!(interval["latency_us"]["exchange"]["p50"], bound);
    assert!(
        report.csv().contains(",exchange,") && report.csv().contains(",<=1000,<=1000,"),
        "{}",
        report.csv()
    );
    let metrics = report::open_metrics(model.run(run).unwrap(), "0", 0, MetricsFormat::OpenMetrics);
    let metrics = String::from_utf8(metrics).unwrap();
    assert!(metrics.contains("tlsdash_exchange_seconds_bucket{le=\"0.001\"}"), "{metrics}");
    assert!(
        !metrics.contains("tlsdash_exchange_seconds_bucket{le=\"0.0005\"}"),
        "no bucket is finer than the log"
    );
}
