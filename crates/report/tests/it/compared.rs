//! Every form of a comparison.

use std::time::Duration;

use crate::common::{HOSTILE, SyntheticRun, assert_harmless, model};
use model::runs::Model;
use report::{CompareOptions, Report, comparison};
use serde_json::Value;

struct Forms {
    text: String,
    markdown: String,
    json: Value,
    html: String,
}

fn forms(with_loss: bool) -> Forms {
    forms_of_blocks(Duration::from_secs(1), with_loss)
}

/// The synthetic run compared with the same run whose exchanges take half a millisecond, with losses if asked for.
fn forms_of_blocks(block: Duration, with_loss: bool) -> Forms {
    let (model_a, run_a) = model(&SyntheticRun::default());
    let (model_b, run_b) =
        model(&SyntheticRun { id: 0xb, exchange_ns: 500_000, with_loss, ..SyntheticRun::default() });
    let [a, b] = [(&model_a, run_a), (&model_b, run_b)].map(|(model, run)| {
        Report::new(model, model.run(run).unwrap(), &format!("file:{HOSTILE}"), String::new())
    });
    let metrics = ["exchange.p50", "handshake_full.p50", "resumed.ratio", "exchange.p99.99"];
    let how = CompareOptions {
        metrics: metrics.map(|name| name.parse().unwrap()).to_vec(),
        block: Some(block),
        discard: Some(Duration::ZERO),
        force: false,
    };
    let found = comparison(&a, &b, &how, HOSTILE).unwrap();
    let json = serde_json::from_str(&found.json().unwrap()).unwrap();
    Forms { text: found.text(), markdown: found.markdown(), json, html: found.html() }
}

#[test]
fn all_forms_say_the_same() {
    let Forms { text, markdown, json, html } = forms(false);
    let verdict = json["verdict"].as_str().unwrap();
    assert_eq!(
        verdict,
        "These runs differ: exchange.p50 by +25.02 % (+25.02 to +25.02 within the runs). No difference is shown in \
         handshake_full.p50, resumed.ratio. Nothing can be said of exchange.p99.99 (too few samples: fewer than ten lie above \
         exchange.p99.99). One run of each cannot tell a setting from the hour: which setting is better takes alternation \
         (--ab)."
    );
    assert!(text.starts_with(verdict), "{text}");
    for form in [&text, &markdown, &html] {
        assert!(form.contains(verdict), "{form}");
        for judging in [" better in", " worse", "BETTER", "WORSE"] {
            assert!(!form.contains(judging), "{judging}: {form}");
        }
    }
    let rows = json["metrics"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let outcome = row["outcome"].as_str().unwrap().to_uppercase();
        // People read times in milliseconds, programs in microseconds.
        let unit = row["unit"].as_str().unwrap().replace("µs", "ms");
        let name = format!("{} {unit}", row["metric"].as_str().unwrap());
        let effect = format!("{:+.2}", row["estimate"]["effect_percent"].as_f64().unwrap());
        for form in [&text, &markdown] {
            let line =
                form.lines().find(|line| line.trim_start_matches("| ").starts_with(name.trim())).unwrap();
            assert!(line.contains(&outcome) && line.contains(&effect), "{name}: {line}");
        }
        let (_, after) = html.split_once(&format!("<td>{}</td>", name.trim())).unwrap();
        let line = after.split("</tr>").next().unwrap();
        assert!(line.contains(&outcome) && line.contains(&effect), "{name}: {line}");
    }
}

#[test]
fn hostile_names_stay_text_in_the_page() {
    let Forms { markdown, html, .. } = forms(false);
    assert_harmless(&html);
    assert!(!markdown.contains('<'), "{markdown}");
}

#[test]
fn both_runs_are_drawn_over_each_other_with_their_figures_behind() {
    let html = forms(false).html;
    for title in [
        "B against A: the difference of each figure, with its interval within the runs",
        "exchange, by percentile",
        "full handshake, by percentile",
        "Load: response (CO-corrected), p50",
        "Proxy: exchange, p99",
        "Proxy: exchange, A",
        "Proxy: exchange, B",
        "Load: requests answered well",
    ] {
        assert!(html.contains(&format!("<figcaption>{title}</figcaption>")), "{title}");
    }
    let figures: Vec<&str> = html.split("<figure>").skip(1).collect();
    for figure in &figures[1..] {
        let figure = figure.split("</figure>").next().unwrap();
        assert!(figure.contains("<details>") && figure.contains("<td"), "{figure}");
        let is_map = figure.contains("class=\"heat\"");
        assert!(is_map || (figure.contains("class=\"line s0\"") && figure.contains("class=\"line s1\"")));
    }
    assert!(html.contains("A: file:") && html.contains("B: file:") && html.contains("Made by"));
}

#[test]
fn what_is_not_comparable_says_why_and_has_no_difference() {
    let Forms { text, markdown, json, html } = forms(true);
    let row = &json["metrics"][0];
    assert_eq!((&row["outcome"], &row["estimate"]), (&Value::from("not comparable"), &Value::Null));
    let reason = row["reason"].as_str().unwrap();
    assert!(reason.starts_with("losses: ") && reason.ends_with(" % of the second run's records"), "{reason}");
    for form in [&text, &markdown] {
        assert!(form.contains(&format!("NOT COMPARABLE: {reason}")), "{form}");
    }
    assert!(html.contains(reason) && html.contains("Some figures are not comparable"), "{html}");
    assert!(json["b"]["quality"][0].as_str().unwrap().contains(" lost."), "{json}");
}

#[test]
fn runs_that_are_too_short_say_what_would_be_enough() {
    let of = |seconds| forms_of_blocks(Duration::from_secs(seconds), false);
    let Forms { text, markdown, json, html } = of(5);
    let advice = "runs of 20 s would have enough blocks, and so would these with --block 2s";
    assert_eq!(json["notes"][1], advice);
    for form in [text, markdown, html] {
        assert!(form.contains(advice) && form.contains("too few blocks: 2 of the 4"), "{form}");
    }
    let followed = of(2).json;
    assert_eq!(followed["metrics"][0]["outcome"], "differs");
    let quarters = followed["notes"][1].as_str().unwrap();
    assert!(quarters.starts_with("a quarter of a run is 2.5 s long"), "{quarters}");
    assert!(quarters.ends_with("runs of 120 s or more tell better"), "{quarters}");
}

/// What is compared by default, of runs of ten seconds.
fn short(force: bool) -> CompareOptions {
    CompareOptions { metrics: vec!["exchange.p50".parse().unwrap()], block: None, discard: None, force }
}

#[test]
fn short_runs_show_their_values_and_what_a_verdict_takes() {
    let (model_a, run_a) = model(&SyntheticRun::default());
    let (model_b, run_b) = model(&SyntheticRun { id: 0xb, exchange_ns: 500_000, ..SyntheticRun::default() });
    let of = |model, run| Report::new(model, Model::run(model, run).unwrap(), "file:x", String::new());
    let (a, b) = (of(&model_a, run_a), of(&model_b, run_b));
    let found = comparison(&a, &b, &short(false), "").unwrap();
    let json: Value = serde_json::from_str(&found.json().unwrap()).unwrap();
    assert_eq!((&json["block_s"], &json["a"]["blocks"]), (&Value::from(1.0), &Value::from(8)), "{json}");
    let row = &json["metrics"][0];
    assert_eq!(row["outcome"], "inconclusive");
    assert_eq!(row["reason"], "too short: a verdict takes runs of 45 s");
    assert!(row["a"].as_f64().unwrap() < row["b"].as_f64().unwrap(), "{row}");
    assert!(row["estimate"]["low_percent"].is_f64(), "{row}");
    assert!(json["notes"][1].as_str().unwrap().contains("--block 1s gives one of these"), "{json}");
    let html = found.html();
    let (_, multiples) = html.split_once("<ul class=\"multiples\">").unwrap();
    let plot = multiples.split("</li>").next().unwrap();
    assert!(plot.contains("exchange.p50") && plot.contains("class=\"line s1\""), "{plot}");
}

#[test]
fn figures_that_are_not_comparable_are_compared_if_that_is_forced() {
    let (model_a, run_a) = model(&SyntheticRun::default());
    let (model_b, run_b) = model(&SyntheticRun { id: 0xb, with_loss: true, ..SyntheticRun::default() });
    let of = |model, run| Report::new(model, Model::run(model, run).unwrap(), "file:x", String::new());
    let (a, b) = (of(&model_a, run_a), of(&model_b, run_b));
    for (force, outcome) in [(false, "not comparable"), (true, "inconclusive")] {
        let found = comparison(&a, &b, &short(force), "").unwrap();
        let json: Value = serde_json::from_str(&found.json().unwrap()).unwrap();
        let row = &json["metrics"][0];
        assert_eq!(row["outcome"], outcome);
        assert!(row["reason"].as_str().unwrap().starts_with("losses: "), "{row}");
        assert!(row["a"].is_f64() && row["b"].is_f64(), "{row}");
    }
}

#[test]
fn a_run_whose_settings_are_not_known_is_compared_with_itself_only() {
    let (whole, run) = model(&SyntheticRun::default());
    let (other, other_run) = model(&SyntheticRun { id: 0xb, ..SyntheticRun::default() });
    let (headless, _) = model(&SyntheticRun { without_header: true, ..SyntheticRun::default() });
    let how = CompareOptions {
        metrics: vec!["exchange.p50".parse().unwrap()],
        block: Some(Duration::from_secs(1)),
        discard: Some(Duration::ZERO),
        force: false,
    };
    let of = |model, run| Report::new(model, Model::run(model, run).unwrap(), "file:x", String::new());
    let (a, headless, other) = (of(&whole, run), of(&headless, run), of(&other, other_run));
    assert!(comparison(&headless, &headless, &how, "").is_ok());
    let refused = comparison(&headless, &other, &how, "").unwrap_err().to_string();
    assert!(refused.contains("the settings of the first run are not known"), "{refused}");
    assert!(comparison(&a, &other, &how, "").is_ok());
}
