//! A recording that cannot go on, or did not end: the proxy serves, it is said, and what is there is read.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{
    TlsdashProcess, inside, journal, on_small_disk, outside, run, stderr, tlsdash, until, upstream,
};
use crate::terminal::{NOTHING, TestTerminal};
use rustix::process::Signal;
use serde_json::Value;

/// Room for the beginning of a recording, and for a second or two.
const DISK_KIB: u32 = 2_600;

/// Adds what makes a proxy under load record into `file`, ten intervals a second.
fn recording(command: &mut Command, folder: &Path, file: &Path) {
    let socket = upstream(folder, b"x");
    command
        .args(["--headless", "--listen", "127.0.0.1:0", "--interval", "100ms", "--format", "json"])
        .arg("--upstream")
        .arg(format!("unix:{}", socket.display()))
        .arg("--journal")
        .arg(format!("file:{}", journal(folder).display()))
        .arg("--record")
        .arg(file)
        .args(["--load", "rate=300,source-addresses=20,connections=20,keep-alive=off"]);
}

fn served(url: &str) -> Vec<u8> {
    outside("curl", "curl").args(["-sk", url]).output().unwrap().stdout
}

/// The requests of the load that a file has.
fn recorded(folder: &Path, file: &Path) -> u64 {
    let args = ["watch", file.to_str().unwrap(), "--headless", "--format", "json"];
    let summary: Option<Value> = serde_json::from_slice(&run(folder, &args).stdout).ok();
    summary.and_then(|summary| summary["load"]["requests"]["ok"].as_u64()).unwrap_or(0)
}

/// Every command reads it, and says that the run has no end; gives the summary.
fn assert_reads_without_an_end(folder: &Path, file: &Path) -> Value {
    let file = file.to_str().unwrap();
    let watched = run(folder, &["watch", file, "--headless", "--format", "json"]);
    assert!(watched.status.success(), "{}", stderr(&watched));
    let summary: Value = serde_json::from_slice(&watched.stdout).unwrap();
    assert_eq!((&summary["ended"], &summary["journal"]["lost"]), (&false.into(), &0.into()), "{summary}");
    assert!(summary["load"]["requests"]["ok"].as_u64().unwrap() > 0, "{summary}");
    let reported = run(folder, &["report", file, "--md", "-"]);
    let page = String::from_utf8(reported.stdout.clone()).unwrap();
    assert!(reported.status.success(), "{}", stderr(&reported));
    assert!(page.contains("The run's last record was not read: it still ran, or was killed"), "{page}");
    let checked = run(folder, &["check", file, "--assert", "lost == 0"]);
    assert!(checked.status.success(), "{}", stderr(&checked));
    assert!(stderr(&checked).contains("was not read: it still runs, or was killed"), "{}", stderr(&checked));
    let checked = run(folder, &["check", file, "--assert", "ended == 1"]);
    assert_eq!(checked.status.code(), Some(99), "{}", stderr(&checked));
    summary
}

#[test]
fn a_disk_that_fills_up_ends_the_recording_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let file = disk.join("r.journal");
    let mut command = on_small_disk(&disk, DISK_KIB, 0);
    recording(&mut command, folder.path(), &file);
    let mut running = TlsdashProcess::start(command);
    let url = format!("https://{}/", running.address());
    assert!(running.line_with("not recording: ").contains("No space left"));
    assert_eq!(served(&url), b"x", "it serves on");
    let copy = folder.path().join("copy.journal");
    fs::copy(inside(running.pid(), &file), &copy).unwrap();
    let (code, printed, said) = running.end_and_tell();
    assert_eq!(code, 1, "the recording is not whole");
    assert_eq!(said.matches("not recording: ").count(), 1, "it is said once: {said}");
    assert!(
        said.contains("records are not in it: cannot write") && !said.contains("recording again"),
        "{said}"
    );
    let summary: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&summary["ended"], &summary["journal"]["lost"]), (&true.into(), &0.into()), "{summary}");
    assert_reads_without_an_end(folder.path(), &copy);
}

#[test]
fn a_recording_goes_on_when_there_is_room_again() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let mut command = on_small_disk(&disk, DISK_KIB + 8_000, 8_000);
    recording(&mut command, folder.path(), &disk.join("r.journal"));
    let mut running = TlsdashProcess::start(command);
    running.line_with("not recording: ");
    fs::remove_file(inside(running.pid(), &disk.join("ballast"))).unwrap();
    running.line_with("recording again into");
    let (code, _, said) = running.end_and_tell();
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("r.journal; nothing is missing"), "{said}");
}

#[test]
fn the_dashboard_says_at_once_that_it_does_not_record() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let mut command = on_small_disk(&disk, DISK_KIB, 0);
    command.args(["demo", "--interval", "100ms", "--journal"]);
    command
        .arg(format!("file:{}", journal(folder.path()).display()))
        .arg("--record")
        .arg(disk.join("r.journal"));
    let mut terminal = TestTerminal::of(NOTHING, folder.path(), &command);
    terminal.shows("NOT RECORDING");
    terminal.shows("LIVE");
    terminal.press("q");
    terminal.shows("quit again");
    terminal.press("q");
    assert_eq!(terminal.ended(), 1);
}

#[test]
fn a_limit_on_the_size_of_files_is_like_a_full_disk() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    // In units of 512 bytes.
    command.args(["-c", "ulimit -f 5200; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_tlsdash")]);
    command.args(["demo", "--headless", "--interval", "100ms", "--journal", "off", "--record"]);
    let file = folder.path().join("r.journal");
    command.arg(&file).env("STATE_DIRECTORY", folder.path());
    let mut running = TlsdashProcess::start(command);
    assert!(running.line_with("not recording: ").contains("File too large"));
    assert_eq!(running.end().0, 1);
    assert_reads_without_an_end(folder.path(), &file);
}

#[test]
fn a_recording_that_was_killed_has_all_that_was_written_before() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.journal");
    let mut command = tlsdash(folder.path());
    recording(&mut command, folder.path(), &file);
    let mut running = TlsdashProcess::start(command);
    running.address();
    let mut before = 0;
    until("some of the load is recorded", || {
        before = recorded(folder.path(), &file);
        before > 100
    });
    running.signal(Signal::KILL);
    assert_eq!(running.wait().0, -1, "killed");
    let summary = assert_reads_without_an_end(folder.path(), &file);
    assert!(summary["load"]["requests"]["ok"].as_u64().unwrap() >= before, "{summary}");
}

#[test]
fn a_journal_and_a_recording_that_are_removed_go_on_and_count_what_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("r.journal");
    let mut command = tlsdash(folder.path());
    recording(&mut command, folder.path(), &file);
    let mut running = TlsdashProcess::start(command);
    let url = format!("https://{}/", running.address());
    until("some of the load is recorded", || recorded(folder.path(), &file) > 0);
    for path in [&journal(folder.path()), &file] {
        fs::remove_file(path).unwrap();
    }
    for goes_on in ["the journal goes on in a new file", "the recording goes on in a new file"] {
        let line = running.line_with(goes_on);
        assert!(line.contains("was removed while it was written; its "), "{line}");
    }
    assert_eq!(served(&url), b"x");
    let (code, printed, said) = running.end_and_tell();
    assert_eq!(code, 1, "the recording is not whole: {said}");
    assert!(said.contains("r.journal: ") && said.contains(" records are not in it"), "{said}");
    let summary: Value = serde_json::from_str(&printed).unwrap();
    assert!(summary["journal"]["dropped"].as_u64().unwrap() > 0, "{summary}");
    for path in [&journal(folder.path()), &file] {
        let read = run(folder.path(), &["watch", path.to_str().unwrap(), "--headless", "--format", "json"]);
        let read: Value = serde_json::from_slice(&read.stdout).unwrap();
        assert_eq!((&read["ended"], &read["journal"]["lost"]), (&true.into(), &0.into()), "{read}");
        assert_eq!(read["load"]["requests"]["ok"], summary["load"]["requests"]["ok"], "totals are whole");
    }
}
