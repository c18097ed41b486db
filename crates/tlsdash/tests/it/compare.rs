//! Two recorded runs compared.

use std::path::Path;
use std::process::Output;

use crate::common::{run, stderr};
use serde_json::Value;

/// A closed loop that asks for as much as `connections` can carry, for nine seconds; 10 intervals a second.
fn recorded(folder: &Path, name: &str, extra: &[&str]) -> String {
    let at = folder.join(name).display().to_string();
    let place = format!("file:{at}");
    let args = ["demo", "--headless", "--duration", "9s", "--interval", "100ms", "--journal", &place];
    let output = run(folder, &[&args[..], extra].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    at
}

/// A block is one interval, so that an interval lost on a busy machine costs no other.
fn compare(folder: &Path, args: &[&str]) -> Output {
    run(folder, &[&["compare", "--block", "100ms", "--discard", "500ms"], args].concat())
}

#[test]
fn runs_of_the_same_load_are_compared_and_runs_of_another_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let load = ["--load", "rate=300,connections=8"];
    let a = recorded(folder, "a.journal", &load);
    let b = recorded(folder, "b.journal", &[&load[..], &["--workers", "2"]].concat());
    let metrics = "exchange.p50+resumed.ratio+cpu.per_exchange";
    let output = compare(folder, &[&a, &b, "--metric", metrics, "--format", "json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(found["a"]["blocks"].as_u64().unwrap() >= 4, "{found}");
    let rows = found["metrics"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        let figures = &row["estimate"];
        let [low, effect, high] =
            ["low_percent", "effect_percent", "high_percent"].map(|name| figures[name].as_f64().unwrap());
        assert!(low <= effect && effect <= high, "{row}");
        assert!(figures["a"].as_f64().unwrap() > 0.0, "{row}");
    }
    let file = |name: &str| folder.join(name).display().to_string();
    let (md, html) = (file("out.md"), file("out.html"));
    let output = compare(folder, &[&a, &b, "--md", &md, "--html", &html]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("differs: proxy.workers 1 and 2") && text.contains("one run of each"), "{text}");
    let judges = |word: &str| text.to_lowercase().replace("which setting is better", "").contains(word);
    assert!(!judges("better in") && !judges("worse"), "{text}");
    let verdict = text.lines().next().unwrap();
    for file in [md, html] {
        assert!(std::fs::read_to_string(&file).unwrap().contains(verdict), "{file}: {verdict}");
    }
    let printed = compare(folder, &[&a, &b, "--json", "-"]);
    let json: Value = serde_json::from_slice(&printed.stdout).unwrap();
    assert_eq!(json["verdict"], verdict);
    assert!(json["command"].as_str().unwrap().starts_with("tlsdash compare --block 100ms"), "{json}");

    let other = recorded(folder, "c.journal", &["--load", "rate=200,connections=8"]);
    let refused = compare(folder, &[&a, &other]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(said.contains("not comparable: the load differed: load.rate 300 and 200; --force"), "{said}");
    let forced = compare(folder, &[&a, &other, "--force"]);
    let text = String::from_utf8(forced.stdout).unwrap();
    let first = "Not comparable, and compared because of --force: the load differed: load.rate 300 and 200.";
    assert!(text.starts_with(first), "{text}");
}

#[test]
fn incomparable_runs_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let a = recorded(folder, "a.journal", &["--load", "rate=50,connections=2"]);
    for (args, code, expected) in [
        (vec![&*a, &*a], 2, "both are run"),
        (vec![&*a], 2, "1 run without an A/B experiment: compare needs two, such as"),
        (vec![&*a, "/nowhere/x.journal"], 1, "/nowhere/x.journal"),
        (vec![&*a, &*a, "--metric", "speed"], 2, "there is no figure speed"),
        (vec![&*a, &*a, "--html"], 2, "--html"),
    ] {
        let output = compare(folder, &args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
