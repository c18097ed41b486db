//! Several recordings taken together, and stretches of one.

use std::path::Path;
use std::process::Output;

use crate::common::{run, stderr};
use serde_json::Value;

/// A run of so long, with ten intervals a second.
fn recorded(folder: &Path, name: &str, duration: &str) -> String {
    let at = folder.join(name).display().to_string();
    let place = format!("file:{at}");
    let args = ["demo", "--headless", "--duration", duration, "--interval", "100ms", "--journal", &place];
    let output = run(folder, &[&args[..], &["--load", "rate=200,connections=4"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    at
}

fn report(folder: &Path, args: &[&str]) -> Output {
    run(folder, &[&["report", "--json", "-"], args].concat())
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn ok(report: &Value) -> u64 {
    report["summary"]["load"]["requests"]["ok"].as_u64().unwrap()
}

#[test]
fn recordings_of_several_hosts_become_one_report_and_one_check() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (a, b) = (recorded(folder, "a.journal", "2s"), recorded(folder, "b.journal", "2s"));
    let (of_a, of_b) = (json(&report(folder, &[&a])), json(&report(folder, &[&b])));
    let both = json(&report(folder, &[&a, &b]));
    assert_eq!(ok(&both), ok(&of_a) + ok(&of_b));
    let n = |report: &Value| report["summary"]["proxy"]["latency_us"]["exchange"]["n"].as_u64().unwrap();
    assert_eq!(n(&both), n(&of_a) + n(&of_b));
    let of_intervals: u64 = both["load_intervals"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|interval| interval["counters"]["ok"].as_u64())
        .sum();
    assert_eq!(of_intervals, ok(&both));

    let md = run(folder, &["report", &a, &b]);
    let md = String::from_utf8(md.stdout).unwrap();
    let clocks = "How far these clocks differ is not known";
    for part in ["2 runs are merged", clocks, of_a["summary"]["run"].as_str().unwrap(), "from 0.000 s to"] {
        assert!(md.contains(part), "{part} in {md}");
    }
    let wanted = format!("requests.ok == {}", ok(&both));
    let checked = run(folder, &["check", &a, &b, "--assert", &wanted, "--assert", "lost == 0"]);
    assert!(checked.status.success(), "{}", stderr(&checked));

    let twice = report(folder, &[&a, &a]);
    assert_eq!(twice.status.code(), Some(2));
    assert!(stderr(&twice).contains("would count twice"), "{}", stderr(&twice));
}

#[test]
fn stretches_of_a_run_add_up_to_it_and_can_be_compared() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let a = recorded(folder, "a.journal", "6s");
    let whole = json(&report(folder, &[&a]));
    let stretch = |window: &str| json(&report(folder, &[&format!("{a}@{window}")]));
    let (first, second) = (stretch("..2s"), stretch("2s.."));
    assert!(ok(&first) > 0 && ok(&second) > 0);
    assert_eq!(ok(&first) + ok(&second), ok(&whole));
    let exchanges =
        |report: &Value| report["summary"]["proxy"]["latency_us"]["exchange"]["n"].as_u64().unwrap();
    assert_eq!(exchanges(&first) + exchanges(&second), exchanges(&whole));
    // The cut is the end of the last whole interval: on a busy machine, well before 2 s.
    let cut_s = (whole["load_intervals"].as_array().unwrap().iter())
        .filter_map(|interval| interval["end_s"].as_f64())
        .rfind(|&end_s| end_s <= 2.0)
        .unwrap();
    let durations_s =
        [&first, &second, &whole].map(|report| report["summary"]["duration_s"].as_f64().unwrap());
    assert!((durations_s[0] - cut_s).abs() < 1e-3, "{durations_s:?}, cut at {cut_s}");
    assert!((durations_s[1] + cut_s - durations_s[2]).abs() < 1e-3, "{durations_s:?}, cut at {cut_s}");
    assert_eq!(second["summary"]["journal"]["lost"], 0);

    let windows = [format!("{a}@1s..3500ms"), format!("{a}@3500ms..6s")];
    let args = ["compare", &*windows[0], &*windows[1], "--block", "200ms", "--discard", "1ms", "--metric"];
    let compared = run(folder, &[&args[..], &["exchange.p50", "--format", "json"]].concat());
    let compared = json(&compared);
    // A p-value needs four whole blocks of each side. A very busy machine may record fewer.
    let has_enough = ["a", "b"].iter().all(|side| compared[side]["blocks"].as_u64().unwrap() >= 4);
    assert_eq!(compared["metrics"][0]["estimate"]["p"].is_f64(), has_enough, "{compared}");
}

#[test]
fn the_clock_cuts_too() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let a = recorded(folder, "a.journal", "2s");
    assert_eq!(ok(&json(&report(folder, &[&a, "--since", "-1h"]))), ok(&json(&report(folder, &[&a]))));
    let gone = report(folder, &[&a, "--until", "-1h"]);
    assert_eq!(gone.status.code(), Some(1));
    let said = "holds no records of a run of tlsdash: in the time of --since and --until";
    assert!(stderr(&gone).contains(said), "{}", stderr(&gone));
}

#[test]
fn a_malformed_time_range_is_one_line_and_exit_code_2() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let a = recorded(folder, "a.journal", "1s");
    let cases: [(&[&str], &str); 8] = [
        (&[&format!("{a}@5s")], "5s is a moment, expected a range: @5s.. from then on, or @..5s up to then"),
        (&[&format!("{a}@1h..2h")], "@1h..2h: this is not within the run, which lasted 1."),
        (&[&format!("{a}@..2001-01-01T00:00:00Z")], "expected a range such as @0s..2s"),
        (&[&format!("{a}@soon..")], "\"soon\" is no time"),
        (&[&format!("{a}@mark:9..")], "has no mark 9"),
        (&[&format!("{a}@1s..1s")], "ends before it begins"),
        (&[&a, "--since", "mark:1"], "expected a time by the clock"),
        (&[&a, "--since", "-1h", "--until", "-2h"], "--until is not later than --since"),
    ];
    for (args, expected) in cases {
        let output = report(folder, args);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(expected), "{said}");
    }
}
