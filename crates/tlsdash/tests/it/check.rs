//! Conditions on a recorded run.

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::common::{journal, run, stderr};

/// A run of two seconds, recorded.
fn recorded(folder: &Path) -> String {
    let at = journal(folder).display().to_string();
    let place = format!("file:{at}");
    let args = ["demo", "--headless", "--duration", "2s", "--journal", &place, "--load", "rate=300"];
    let output = run(folder, &args);
    assert!(output.status.success(), "{}", stderr(&output));
    at
}

fn check(folder: &Path, source: &str, extra: &[&str]) -> Output {
    run(folder, &[&["check", source], extra].concat())
}

#[track_caller]
fn assert_ends(output: &Output, code: i32, parts: &[&str]) {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{said}");
    assert_eq!(said.lines().count(), 1, "one line: {said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is not in {said:?}");
    }
}

#[test]
fn a_failed_condition_says_by_how_much() {
    let folder = tempfile::tempdir().unwrap();
    let source = recorded(folder.path());
    let file = folder.path().join("conditions");
    fs::write(&file, "# what CI wants\n\nerrors == 0\n  lost == 0\n").unwrap();
    let file = file.to_str().unwrap();
    let good = check(
        folder.path(),
        &source,
        &[
            "--assert",
            "proxy.handshake_full.p50 < 10s",
            "--assert",
            "resumed.ratio > 10%",
            "--assert-file",
            file,
        ],
    );
    assert!(good.status.success(), "{}", stderr(&good));
    let told = String::from_utf8(good.stdout).unwrap();
    let lines: Vec<_> = told.lines().map(str::trim_end).collect();
    assert_eq!(
        lines,
        [
            "holds   proxy.handshake_full.p50 < 10s",
            "holds   resumed.ratio > 10%",
            "holds   errors == 0",
            "holds   lost == 0"
        ]
    );

    let xml = folder.path().join("out.xml");
    let bad = check(
        folder.path(),
        &source,
        &["--assert", "response.p50 < 1ns", "--assert", "errors == 0", "--junit", xml.to_str().unwrap()],
    );
    assert_ends(&bad, 99, &["assertion does not hold: response.p50 < 1ns: it is ", " % above"]);
    assert!(String::from_utf8(bad.stdout).unwrap().contains("holds   errors == 0"));
    let xml = fs::read_to_string(xml).unwrap();
    assert!(
        xml.contains("tests=\"2\" failures=\"1\"") && xml.contains("name=\"response.p50 &lt; 1ns\""),
        "{xml}"
    );
}

#[test]
fn too_few_samples_are_a_breach_and_unknown_figures_a_mistake() {
    let folder = tempfile::tempdir().unwrap();
    let source = recorded(folder.path());
    let thin = check(folder.path(), &source, &["--assert", "response.p99999 < 10s"]);
    assert_ends(&thin, 99, &["too few samples", "of the 1000000 that it takes"]);
    let unknown = check(folder.path(), &source, &["--assert", "speed > 5"]);
    assert_ends(&unknown, 2, &["speed > 5: there is no figure speed", "resumed.ratio", "exchange"]);
    for (condition, instead) in [
        ("response.p99 < 5", "response.p99 is a time; write 'response.p99 < 5ms'"),
        ("resumed.ratio > 90", "resumed.ratio is a share, from 0 to 1; write 'resumed.ratio > 90%'"),
    ] {
        let junit = folder.path().join("none.xml");
        let args = ["--assert", condition, "--junit", junit.to_str().unwrap()];
        assert_ends(&check(folder.path(), &source, &args), 2, &[condition, instead]);
        assert!(!junit.exists());
    }
    let load =
        ["load", "http://127.0.0.1:1/", "--headless", "--journal", "off", "--assert", "response.p99 < 5"];
    assert_ends(&run(folder.path(), &load), 2, &["write 'response.p99 < 5ms'"]);
    let long = check(
        folder.path(),
        &source,
        &["--assert", "lifetime.max < 1h", "--assert", "cpu.per_exchange < 1m"],
    );
    assert!(long.status.success(), "{}", stderr(&long));
    let nothing = check(folder.path(), &source, &[]);
    assert_ends(&nothing, 2, &["there is nothing to check"]);
    let absent = check(folder.path(), &source, &["--assert-file", "/nowhere/conditions"]);
    assert_ends(&absent, 2, &["cannot read --assert-file /nowhere/conditions"]);
    let file = folder.path().join("conditions");
    fs::write(&file, "errors == 0\nerrors = 0\n").unwrap();
    let wrong = check(folder.path(), &source, &["--assert-file", file.to_str().unwrap()]);
    assert_ends(&wrong, 2, &["line 2", "\"errors = 0\" is no assertion"]);
}

#[test]
fn a_file_that_is_no_recording_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("text.journal"), "not a journal").unwrap();
    fs::write(at("empty.journal"), "").unwrap();
    for source in [at("absent.journal"), at("text.journal"), at("empty.journal")] {
        let output = check(folder.path(), &source, &["--assert", "errors == 0"]);
        assert_ends(&output, 1, &[&source]);
    }
}
