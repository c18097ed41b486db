//! A recording in fewer records.

use std::fs;

use crate::common::{journalctl, run, stderr};
use serde_json::Value;

#[test]
fn a_compacted_recording_is_smaller_and_has_the_same_figures() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let place = format!("file:{}", at("a.journal"));
    let args = ["demo", "--headless", "--duration", "4s", "--interval", "100ms", "--journal", &place];
    let made = run(folder.path(), &[&args[..], &["--load", "rate=200,connections=4"]].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    let before = fs::read(at("a.journal")).unwrap();
    let compacted = run(folder.path(), &["compact", &at("a.journal"), &at("b.journal")]);
    assert!(compacted.status.success(), "{}", stderr(&compacted));
    assert!(stderr(&compacted).contains("with the same totals and latencies of 1 run"));
    assert_eq!(fs::read(at("a.journal")).unwrap(), before, "the original stays as it is");

    let summary = |name: &str| -> Value {
        let output = run(folder.path(), &["watch", &at(name), "--headless", "--format", "json"]);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (of_a, of_b) = (summary("a.journal"), summary("b.journal"));
    for part in ["run", "duration_s", "ended", "proxy", "load", "clients", "cpu_s"] {
        assert_eq!(of_a[part], of_b[part], "{part}");
    }
    assert_eq!(of_b["journal"]["lost"], 0);
    let (a, b) = (folder.path().join("a.journal"), folder.path().join("b.journal"));
    let count = |file, kind: &str| journalctl(file, &[kind]).len();
    assert!(count(&b, "TLSDASH_KIND=proxy") * 5 < count(&a, "TLSDASH_KIND=proxy"));
    for field in ["_HOSTNAME", "_BOOT_ID", "_PID"] {
        assert_eq!(journalctl(&a, &[])[0][field], journalctl(&b, &[])[0][field], "{field}");
    }
}

#[test]
fn compact_overwrites_nothing_and_keeps_damaged_files() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let place = format!("file:{}", at("a.journal"));
    let args = ["demo", "--headless", "--duration", "2s", "--journal", &place, "--load", "rate=100"];
    let made = run(folder.path(), &args);
    assert!(made.status.success(), "{}", stderr(&made));
    fs::write(at("there.journal"), "kept").unwrap();
    fs::write(at("old@1.journal"), "kept").unwrap();
    let mut damaged = fs::read(at("a.journal")).unwrap();
    let end = damaged.len();
    damaged[end - 60_000..end - 50_000].fill(0xff);
    fs::write(at("damaged.journal"), damaged).unwrap();
    for (source, out, code, expected) in [
        ("a.journal", "there.journal", 2, "it exists"),
        ("a.journal", "old.journal", 2, "name another file"),
        ("a.journal", "name", 2, "must end in .journal"),
        ("damaged.journal", "new.journal", 1, "is damaged"),
        ("absent.journal", "new.journal", 1, "absent.journal"),
        ("a.journal@0s..1s", "new.journal", 2, "compact copies whole runs"),
    ] {
        let output = run(folder.path(), &["compact", &at(source), &at(out)]);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "{said}");
        assert!(said.contains(expected), "{said}");
        assert!(!folder.path().join("new.journal").exists(), "what was begun is gone");
    }
    assert_eq!(fs::read(at("there.journal")).unwrap(), b"kept");
}
