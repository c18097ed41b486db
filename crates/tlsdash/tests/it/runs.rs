//! `tlsdash runs`: the runs in a journal, in a line each.

use std::path::Path;

use crate::common::host::{HostRun, ROOT, create};
use crate::common::{journalctl, run, stderr};
use serde_json::Value;

fn recorded(folder: &Path, name: &str, mode: &str) -> Value {
    let place = format!("file:{}", folder.join(name).display());
    let args =
        ["demo", "--headless", "--duration", "2s", "--format", "json", "--mode", mode, "--journal", &place];
    let output = run(folder, &args);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The names and values of a run's records, as journalctl has them: without what the journal adds.
fn bytes_of_records(folder: &Path, run: &Value) -> u64 {
    let of_run = format!("TLSDASH_RUN={}", run["run"].as_str().unwrap());
    let entries =
        ["a.journal", "b.journal"].iter().flat_map(|file| journalctl(&folder.join(file), &[&of_run]));
    let bytes = |(name, value): (&String, &Value)| (name.len() + value.as_str().unwrap().len()) as u64;
    let of_entry = |entry: Value| -> u64 {
        let fields = entry.as_object().unwrap().iter();
        fields.filter(|(name, _)| !name.starts_with('_')).map(bytes).sum()
    };
    entries.map(of_entry).sum()
}

#[test]
fn each_run_of_a_folder_is_listed_with_its_own_figures() {
    let folder = tempfile::tempdir().unwrap();
    let journals = folder.path().join("journals");
    std::fs::create_dir(&journals).unwrap();
    let summaries = [recorded(&journals, "a.journal", "tcp"), recorded(&journals, "b.journal", "http")];
    let place = journals.to_str().unwrap();
    let output = run(folder.path(), &["runs", place, "--format", "json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let list: Value = serde_json::from_slice(&output.stdout).unwrap();
    let runs = list["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2, "{list}");
    for ((listed, summary), class) in runs.iter().zip(&summaries).zip(["exchange", "request"]) {
        assert_eq!(listed["run"], summary["run"], "the oldest is first");
        assert_eq!(listed["connections"], summary["proxy"]["connections"]["accepted"]);
        let counts = &summary["proxy"]["handshakes"];
        let (full, resumed) = (counts["full"].as_f64().unwrap(), counts["resumed"].as_f64().unwrap());
        assert!((listed["resumed"].as_f64().unwrap() - resumed / (full + resumed)).abs() < 1e-9);
        assert_eq!((&listed["ended"], &listed["lost"]), (&true.into(), &0.into()));
        let (bytes, written) =
            (listed["record_bytes"].as_u64().unwrap(), bytes_of_records(&journals, listed));
        // Long texts are cut when they are read.
        assert!(bytes <= written && bytes > written - written / 100, "{bytes} of {written}");
        assert!(listed["p99_us"]["class"].as_str().unwrap().ends_with(class), "{listed}");
    }
    let table = String::from_utf8(run(folder.path(), &["runs", place]).stdout).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert_eq!(lines.len(), 3, "{table}");
    assert!(
        lines[0].starts_with("run ") && lines[1].starts_with(&summaries[0]["run"].as_str().unwrap()[..8]),
        "{table}"
    );
}

#[test]
fn runs_beyond_those_that_are_listed_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.journal");
    let mut writer = create(&path);
    let listed = |source: &str| {
        let output = run(folder.path(), &["runs", source]);
        assert!(output.status.success(), "{}", stderr(&output));
        (str::from_utf8(&output.stdout).unwrap().lines().count() - 1, stderr(&output))
    };
    for number in 1..=1_026 {
        HostRun { run: number, late_s: 10 * number as u64, accepted: 1 }.write(&mut writer, ROOT);
        if number == 1_024 {
            assert_eq!(listed(path.to_str().unwrap()), (1_024, String::new()));
        }
    }
    let (lines, told) = listed(path.to_str().unwrap());
    assert_eq!(lines, 1_024);
    assert!(told.contains("has more than 1024 runs: those with the latest records are listed"), "{told}");
}

#[test]
fn a_journal_without_a_run_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &["runs", folder.path().join("none.journal").to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("no such file"), "{}", stderr(&output));
}
