//! A recording played on a terminal.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::until;
use crate::terminal::TestTerminal;

/// A run of some seconds, recorded.
fn recording(folder: &Path) -> PathBuf {
    let path = folder.join("run.journal");
    let journal = format!("file:{}", folder.join("own.journal").display());
    let args = ["demo", "--headless", "--duration", "8s", "--journal", &journal, "--record"];
    let mut demo = Command::new(env!("CARGO_BIN_EXE_tlsdash"));
    let ended = demo.args(args).arg(&path).env("STATE_DIRECTORY", folder).output().unwrap();
    assert!(ended.status.success(), "{ended:?}");
    path
}

/// The line of what is played, without its bar.
fn line(terminal: &TestTerminal) -> String {
    let contents = terminal.contents();
    let is_it = |line: &&str| ["▶ ", "⏸ ", "■ "].iter().any(|sign| line.starts_with(sign));
    contents.lines().find(is_it).unwrap_or_default().to_owned()
}

#[test]
fn a_recording_is_played_paused_sought_and_played_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path()).display().to_string();
    let mut terminal = TestTerminal::start(folder.path(), &["watch", &path, "--play=1/4", "--from", "3s"]);
    until("it plays", || line(&terminal).starts_with("▶ 1/4×"));
    terminal.press(" ");
    until("it pauses", || line(&terminal).starts_with("⏸ ") && terminal.contents().contains("PAUSED"));
    let seen = terminal.contents();
    terminal.press("0");
    until("it is at the beginning", || line(&terminal).contains("00:00 / "));
    terminal.press("@4s\r");
    until("it is where it was told to go", || line(&terminal).contains("00:04 / "));
    terminal.shows("full handshake");
    assert!(!seen.contains("ENDED"), "{seen}");
    terminal.press("]]]]]]]]p");
    until("it plays to its end and stops there", || line(&terminal).starts_with("■ 64×"));
    terminal.press("\x1b");
    until("its end is shown as ever", || line(&terminal).is_empty() && terminal.contents().contains("ENDED"));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn a_stretch_of_a_recording_is_a_run_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = recording(folder.path()).display().to_string();
    let mut terminal =
        TestTerminal::start(folder.path(), &["watch", &format!("{path}@2s..5s"), "--from", "0s"]);
    // Three seconds have two or three records, between which may be just less than two seconds.
    let begins = ["00:00 / 00:01", "00:00 / 00:02", "00:00 / 00:03"];
    until("it pauses at its beginning", || begins.iter().any(|begin| line(&terminal).contains(begin)));
    terminal.press("p]]]]]]");
    until("it ends", || line(&terminal).starts_with("■ "));
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn runs_that_cannot_be_played_are_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    for (words, why) in [
        (&["--play=3"][..], "expected a speed: 1/4, 1/2, 1, 2, 4, 8, 16, 32 or 64"),
        (&["--from", "tea"], "is no time"),
        (&["--play", "--headless"], "cannot be used with"),
        (&["--play", "--plain"], "--play and --from need the dashboard"),
    ] {
        let mut watch = Command::new(env!("CARGO_BIN_EXE_tlsdash"));
        let ended = watch.arg("watch").args(words).env("STATE_DIRECTORY", folder.path()).output().unwrap();
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.contains(why) && said.lines().count() == 1, "{said}");
    }
}
