//! An experiment from the command line to the journal and the summary.

use std::path::Path;

use crate::common::{journal, journalctl, run, stderr};
use serde_json::Value;

/// Twice the rate is twice the requests, whatever the machine does meanwhile.
const WORDS: &str = "load.rate=50..100,metric=requests.rate,pairs=6,aa=0,block=600ms,discard=200ms";

fn text<'a>(record: &'a Value, field: &str) -> &'a str {
    record[format!("TLSDASH_{field}")].as_str().unwrap_or_default()
}

#[test]
fn an_experiment_switches_as_recorded_and_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let at = format!("file:{}", journal(folder.path()).display());
    let args =
        ["demo", "--headless", "--interval", "100ms", "--format", "json", "--journal", &at, "--ab", WORDS];
    let output = run(folder.path(), &[&args[..], &["--load", "rate=70,connections=4"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let experiment = &summary["experiments"][0];
    assert_eq!((&experiment["setting"], &experiment["a"]), (&Value::from("load.rate"), &Value::from("50")));
    let verdict = &experiment["metrics"][0]["verdict"];
    let (outcome, reason) = (verdict["outcome"].as_str().unwrap(), verdict["reason"].as_str().unwrap());
    // A machine that has no time for the generator says so.
    let is_starved = reason.starts_with("generator-bound") || reason.starts_with("losses");
    assert!(outcome == "better" || (outcome == "inconclusive" && is_starved), "{verdict}");
    if outcome == "better" {
        assert!(verdict["estimate"]["low_percent"].as_f64().unwrap() > 20.0, "{verdict}");
    }

    let records = journalctl(&journal(folder.path()), &["TLSDASH_KIND=experiment"]);
    let step =
        |wanted: &str| records.iter().filter(|record| text(record, "EXPERIMENT_STEP") == wanted).count();
    assert_eq!(["begin", "switch", "pair", "verdict"].map(step), [1, 12, 6, 1]);
    let arms: Vec<_> = records
        .iter()
        .filter(|record| text(record, "EXPERIMENT_STEP") == "switch")
        .map(|record| text(record, "EXPERIMENT_ARM"))
        .collect();
    assert!(arms.chunks(2).all(|pair| pair[0] != pair[1]), "{arms:?}");
    let changes = journalctl(&journal(folder.path()), &["TLSDASH_KIND=setting"]);
    let after: Value = serde_json::from_str(text(changes.last().unwrap(), "SETTING_AFTER")).unwrap();
    assert_eq!(after["value"], 70.0, "it is given back what it was before");
    compare_shows(folder.path(), outcome);
}

/// `compare` of the one run has what the experiment came to, in every form.
fn compare_shows(folder: &Path, outcome: &str) {
    let (at, html) = (journal(folder).display().to_string(), folder.join("ab.html"));
    let output = run(folder, &["compare", &at, "--format", "json", "--html", html.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    let experiment = &found["experiments"][0];
    assert_eq!((&experiment["setting"], &experiment["b"]), (&Value::from("load.rate"), &Value::from("100")));
    assert_eq!(experiment["metrics"][0]["outcome"], outcome, "{found}");
    let text = String::from_utf8(run(folder, &["compare", &at]).stdout).unwrap();
    let html = std::fs::read_to_string(html).unwrap();
    for form in [&text, &html] {
        assert!(form.contains("load.rate 50 (A) against 100 (B)"), "{form}");
        assert!(form.contains(&outcome.to_uppercase()), "{form}");
    }
    assert!(html.contains("<ul class=\"multiples\">") && html.contains("A, load.rate 50"), "{html}");
}

#[test]
fn an_experiment_that_a_signal_cuts_short_is_inconclusive() {
    let folder = tempfile::tempdir().unwrap();
    let at = format!("file:{}", journal(folder.path()).display());
    let words = "workers=1..2,aa=0";
    let args =
        ["demo", "--headless", "--duration", "241s", "--journal", &at, "--ab", words, "--format", "json"];
    let mut command = crate::common::tlsdash(folder.path());
    command.args(args);
    let running = crate::common::TlsdashProcess::start(command);
    crate::common::until("the experiment begins", || {
        journal(folder.path()).exists()
            && !journalctl(&journal(folder.path()), &["TLSDASH_KIND=experiment"]).is_empty()
    });
    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let summary: Value = serde_json::from_str(&printed).unwrap();
    let verdict = &summary["experiments"][0]["metrics"][0]["verdict"];
    assert_eq!(verdict["outcome"], "inconclusive");
    assert_eq!(verdict["reason"], "ended early, after 0 of 12 pairs");
}

#[test]
fn incomparable_values_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (words, expected) in [
        ("workers", "expected SETTING=A..B"),
        ("workers=1..2,metric=speed", "there is no figure speed"),
        ("workers=1..2,pairs=3", "6 pairs are the fewest"),
        ("proxy.listen=:1..:2", "there is no setting proxy.listen"),
        ("workers=1..1000", "a whole number from 1 to 256"),
        ("load.keep-alive=1..off", "load.keep-alive 1 and off: both values are the same"),
        ("workers=1..2,pairs=6,aa=0,block=1s,discard=500ms", "less than two intervals"),
    ] {
        let output = run(folder.path(), &["demo", "--headless", "--journal", "off", "--ab", words]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{words}: {said}");
        assert!(said.lines().count() == 1 && said.contains(expected), "{words}: {said}");
    }
    let args = ["demo", "--headless", "--duration", "10s", "--ab", "workers=1..2"];
    let said = stderr(&run(folder.path(), &args));
    assert!(said.contains("it takes 360s"), "{said}");
}
