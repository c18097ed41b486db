//! Tests that cannot run here.

use std::io::Write;

/// Says that a test cannot run here: past the test harness, which keeps the output of a test that passes to itself, and
/// where `.ci/test` says it again at its end.
pub(crate) fn say_not_run(test: &str, why: &str) {
    let line = format!("NOT RUN: {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    if let Some(log) = std::env::var_os("NOT_RUN_LOG") {
        let log = std::fs::OpenOptions::new().append(true).open(log);
        log.and_then(|mut log| log.write_all(line.as_bytes())).unwrap();
    }
}
