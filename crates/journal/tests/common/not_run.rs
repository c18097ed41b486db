//! Reports tests that cannot run on this machine.

use std::io::Write;

/// Reports that a test cannot run here. It writes past the test harness, which hides the output of a passing
/// test, and into the log that `.ci/test` prints at its end.
pub(crate) fn say_not_run(test: &str, why: &str) {
    let line = format!("NOT RUN: {test}: {why}\n");
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    if let Some(log) = std::env::var_os("NOT_RUN_LOG") {
        let log = std::fs::OpenOptions::new().append(true).open(log);
        log.and_then(|mut log| log.write_all(line.as_bytes())).unwrap();
    }
}
