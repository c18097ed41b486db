//! `tlsdash selftest`: whether tlsdash works here, and what the machine lacks.

use std::path::Path;
use std::process::Output;

use crate::common::{TlsdashProcess, stderr, tlsdash};
use rustix::process::Signal;
use serde_json::Value;

/// The checks that must work, in their order.
const MUST_WORK: [&str; 4] = ["TCP mode", "HTTP mode", "journal file", "report"];

/// Runs it with a folder for its temporary files.
fn selftest(folder: &Path, args: &[&str]) -> Output {
    tlsdash(folder).env("TMPDIR", folder).args(["selftest", "--duration", "2s"]).args(args).output().unwrap()
}

fn is_empty(folder: &Path) -> bool {
    folder.read_dir().unwrap().next().is_none()
}

#[test]
fn the_selftest_works_and_says_what_helps_where_something_is_lacking() {
    let folder = tempfile::tempdir().unwrap();
    let output = selftest(folder.path(), &["--json"]);
    assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), stderr(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["version"], env!("CARGO_PKG_VERSION"));
    assert!(report["kernel"].as_str().unwrap().contains('.'), "{report}");
    let checks = report["checks"].as_array().unwrap();
    let names: Vec<_> = checks.iter().map(|check| check["name"].as_str().unwrap()).collect();
    assert!(names.ends_with(&MUST_WORK) && names.contains(&"packets"), "{names:?}");
    for check in checks {
        let (status, has_remedy) = (check["status"].as_str().unwrap(), check["remedy"].is_string());
        assert!(matches!((status, has_remedy), ("ok", false) | ("lacks", true)), "{check}");
        assert!(!check["detail"].as_str().unwrap().is_empty(), "{check}");
    }
    assert!(is_empty(folder.path()), "its files are removed");
}

#[test]
fn a_failed_check_is_a_line_and_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    // The runs cannot make the sockets of their upstreams: the path of one has at most 107 bytes.
    let deep = folder.path().join("d".repeat(100));
    std::fs::create_dir(&deep).unwrap();
    let output = selftest(&deep, &[]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout.clone()).unwrap();
    let failed: Vec<_> = text.lines().filter(|line| line.starts_with("FAILED  ")).collect();
    assert_eq!(failed.len(), 2, "{text}");
    assert!(failed[0].starts_with("FAILED  TCP mode         demo ended with exit status: 1: "), "{text}");
    assert!(text.lines().last().unwrap().starts_with("tlsdash does NOT work here: "), "{text}");
    assert!(stderr(&output).contains("`tlsdash selftest --json`"), "{}", stderr(&output));
    assert!(is_empty(&deep), "its files are removed");
}

#[test]
fn an_interrupted_selftest_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = tlsdash(folder.path());
    command.env("TMPDIR", folder.path()).args(["selftest", "--json", "--duration", "1h"]);
    let running = TlsdashProcess::start(command);
    crate::common::until("it makes a folder", || !is_empty(folder.path()));
    running.signal(Signal::TERM);
    let (code, printed, said) = running.wait_and_tell();
    assert_eq!((code, &*printed), (1, ""), "{said}");
    assert!(said.contains("interrupted"), "{said}");
    assert!(is_empty(folder.path()));
}
