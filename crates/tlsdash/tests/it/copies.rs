//! Copies of a journal beside it, as `systemd-journal-remote` makes them: each record is read once.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{TlsdashProcess, outside, run, stderr, tlsdash};
use serde_json::Value;

/// The entries of a run of the demo, in the export format.
pub(crate) fn record(folder: &Path) -> (PathBuf, Vec<u8>) {
    let path = folder.join("own.journal");
    let mut command = tlsdash(folder);
    command.args(["demo", "--headless", "--duration", "4s", "--interval", "250ms"]);
    command.args(["--load", "rate=200,connections=4,source-addresses=8", "--journal"]);
    command.arg(format!("file:{}", path.display()));
    assert_eq!(TlsdashProcess::start(command).wait().0, 0);
    let file = format!("--file={}", path.display());
    let exported = outside("journalctl", "systemd").args([&file, "-o", "export", "--all"]).output().unwrap();
    assert!(exported.status.success());
    (path, exported.stdout)
}

/// Feeds a receiver of its own with entries.
fn receive(file: &Path, exported: &[u8]) {
    let mut receiver = Command::new("/lib/systemd/systemd-journal-remote")
        .arg(format!("--output={}", file.display()))
        .arg("-")
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this test needs Debian's package systemd-journal-remote (.ci/setup installs it)");
    receiver.stdin.take().unwrap().write_all(exported).unwrap();
    assert!(receiver.wait().unwrap().success());
}

/// The first half of the entries, cut between two.
fn first_half(exported: &[u8]) -> &[u8] {
    let half = exported.len() / 2;
    let end = exported[half..].windows(2).position(|pair| pair == b"\n\n").unwrap();
    &exported[..half + end + 2]
}

fn json(state: &Path, args: &[&str]) -> Value {
    let output = run(state, args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// All that commands say of a journal, without its name.
pub(crate) fn all_figures(state: &Path, source: &str) -> Vec<Value> {
    let range = format!("{source}@1s..3s");
    let mut all = vec![
        json(state, &["report", source, "--json", "-"]),
        json(state, &["report", &range, "--json", "-"]),
        json(state, &["runs", source, "--format", "json"]),
        json(state, &["explain", source, "--format", "json"]),
        json(state, &["watch", source, "--headless", "--format", "json"]),
    ];
    for value in &mut all {
        strip_source(value, source);
    }
    all
}

fn strip_source(value: &mut Value, source: &str) {
    match value {
        Value::Object(map) => map.values_mut().for_each(|value| strip_source(value, source)),
        Value::Array(items) => items.iter_mut().for_each(|value| strip_source(value, source)),
        Value::String(text) if text.contains(source) => *text = text.replace(source, "").replace("file:", ""),
        _ => {}
    }
}

#[test]
fn copies_beside_a_journal_change_no_figure() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state");
    let all = folder.path().join("all");
    for path in [&state, &all] {
        fs::create_dir(path).unwrap();
    }
    let (own, exported) = record(folder.path());
    let expected = all_figures(&state, own.to_str().unwrap());
    let journal = &expected[4]["journal"];
    assert!(journal["read"].as_u64() > Some(50) && journal["lost"] == 0, "{journal}");

    fs::copy(&own, all.join("own.journal")).unwrap();
    // One sender was stopped half way, one started again from the beginning, and then again.
    receive(&all.join("remote-a.journal"), first_half(&exported));
    receive(&all.join("remote-b.journal"), &exported);
    receive(&all.join("remote-b.journal"), &exported);
    receive(&all.join("remote-c.journal"), &[first_half(&exported), &exported].concat());
    let source = all.to_str().unwrap();
    assert_eq!(all_figures(&state, source), expected);

    let compact = folder.path().join("compact.journal");
    let output = run(&state, &["compact", source, compact.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let copied = json(&state, &["watch", compact.to_str().unwrap(), "--headless", "--format", "json"]);
    assert_eq!(copied["proxy"], expected[4]["proxy"]);
    let compared = run(&state, &["compare", source, source]);
    assert!(stderr(&compared).contains("both are run"), "{}", stderr(&compared));
}
