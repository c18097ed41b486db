//! Alerts of a run: on standard error, in the journal, in the summary and in reports.

use std::fs;

use crate::common::{journal, journalctl, run, stderr};
use serde_json::Value;

const FIRES: &str = "service.p50 > 1us for 1s over 1s";

fn json(output: &std::process::Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(output)))
}

#[test]
fn a_firing_alert_is_logged_recorded_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let args = ["demo", "--headless", "--duration", "6s", "--format", "json", "--load", "rate=300"];
    let alerts = ["--alert", FIRES, "--alert", "exchange.p50 > 1h", "--alert", "response.p999 > 1h over 1s"];
    let file = journal(at);
    let place = format!("file:{}", file.display());
    let output = run(at, &[&args[..], &alerts, &["--journal", &place]].concat());
    let said = stderr(&output);
    assert!(output.status.success(), "alerts do not change the exit code: {said}");
    let told: Vec<&str> = said.lines().filter(|line| line.contains("alert: ")).collect();
    assert_eq!(told.len(), 1, "{said}");
    assert!(
        told[0].contains("alert: service.p50 is ") && told[0].ends_with(" > 0.001 ms for 1 s (over 1 s)")
    );
    assert!(said.contains("alert response.p999 > 1h over 1s is not evaluated: "), "{said}");
    let summary = json(&output);
    let [alert] = &summary["alerts"].as_array().unwrap()[..] else { panic!("{}", summary["alerts"]) };
    assert_eq!(
        (&alert["number"], &alert["condition"], &alert["state"]),
        (&1.into(), &FIRES.into(), &"fired".into())
    );
    assert!(alert["fired_s"].as_f64().unwrap() >= 2.0 && alert["worst"].as_f64().unwrap() > 1.0, "{alert}");
    let [record] = &journalctl(&file, &["TLSDASH_KIND=alert"])[..] else { panic!("not one record") };
    assert_eq!((&record["TLSDASH_ALERT_STATE"], &record["PRIORITY"]), (&"fired".into(), &"4".into()));
    assert_eq!(record["TLSDASH_ALERT_FIGURE"], "load.service.p50");
    assert!(record["MESSAGE"].as_str().unwrap().starts_with("alert: service.p50 is "), "{record}");
    // `watch` and reports only show what was recorded.
    let name = file.to_str().unwrap();
    let watched = json(&run(at, &["watch", name, "--headless", "--format", "json"]));
    assert_eq!(watched["alerts"], summary["alerts"]);
    let markdown = at.join("report.md");
    let output = run(at, &["report", name, "--md", markdown.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(markdown).unwrap();
    assert!(text.contains("## Alerts") && text.contains("still firing at the end"), "{text}");
}

#[test]
fn alerts_of_the_configuration_file_need_no_journal() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let socket = at.join("none.sock");
    let text = format!(
        "upstream = \"unix:{}\"\nlisten = [\"127.0.0.1:0\"]\nheadless = true\njournal = \"off\"\nduration = \"4s\"\n\
         interval = \"200ms\"\nalert = \"cpu.journal < 1h over 500ms\"\n",
        socket.display()
    );
    let file = at.join("tlsdash.toml");
    fs::write(&file, text).unwrap();
    let output = run(at, &["--config", file.to_str().unwrap(), "--format", "json"]);
    let said = stderr(&output);
    assert!(said.contains("alert: cpu.journal is ") && said.contains("< 3600 s (over 0.5 s)"), "{said}");
    assert_eq!(json(&output)["alerts"][0]["figure"], "cpu.journal");
}

#[test]
fn a_malformed_alert_is_refused_before_the_run_begins() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let file = at.join("tlsdash.toml");
    fs::write(&file, "headless = true\nalert = [\"errors > 0\", \"errors > 5ms\"]\n").unwrap();
    let config = file.to_str().unwrap();
    let many = vec!["--alert=errors > 0"; 33];
    for (args, part) in [
        (vec!["demo", "--headless", "--alert", "respose.p99 > 5ms"], "did you mean response.p99?"),
        (vec!["demo", "--headless", "--alert", "response.p99 5ms"], "!= at character 14"),
        (vec!["demo", "--headless", "--alert", "response.p99 > 5"], "write 'response.p99 > 5ms'"),
        (vec!["demo", "--headless", "--alert", "observed.cpu_s > 5s"], "the run has no observed process"),
        ([&["demo", "--headless"], &many[..]].concat(), "33 alerts; a run has at most 32"),
        (vec!["--config", config], "line 2: alert: errors > 5ms: errors is a number"),
    ] {
        let output = run(at, &args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        assert!(said.contains(part), "{args:?}: {said}");
    }
}
