//! Changing and recording a running service from `tlsdash watch`, by keys.

use crate::terminal;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{TlsdashProcess, journal, journalctl, outside, proxy, run, stderr, until, upstream};
use crate::terminal::TestTerminal;
use serde_json::Value;

const LOAD: [&str; 2] = ["--load", "rate=100,connections=2"];

/// A service with a load and a control socket.
fn service(folder: &Path) -> (TlsdashProcess, PathBuf) {
    let (app, socket) = (upstream(folder, b"hello"), folder.join("control.sock"));
    let mut running = proxy(folder, &app, &[&LOAD[..], &["--control", socket.to_str().unwrap()]].concat());
    running.line_with("control socket ");
    (running, socket)
}

fn watch(folder: &Path) -> TestTerminal {
    let terminal = TestTerminal::start(folder, &["watch", journal(folder).to_str().unwrap()]);
    terminal.shows("LIVE");
    terminal
}

/// Who changed a setting, by each record.
fn changed_by(folder: &Path, name: &str) -> Vec<String> {
    let changes = journalctl(&journal(folder), &[&format!("TLSDASH_SETTING={name}")]);
    changes.iter().map(|change| change["TLSDASH_SETTING_BY"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn two_watchers_tune_a_service_and_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (running, socket) = service(folder);
    let (mut anna, mut ben) = (watch(folder), watch(folder));
    let started = &journalctl(&journal(folder), &["TLSDASH_KIND=run"])[0];
    assert_eq!(started["TLSDASH_CONTROL_SOCKET"].as_str(), socket.to_str());
    anna.shows("t tune");
    anna.press("]");
    anna.shows("from 100 to 110");
    ben.shows("from 100 to 110");
    ben.press("]");
    anna.shows("from 110 to 120");
    let by = changed_by(folder, "load.rate");
    assert!(by.len() == 2 && by[0] != by[1] && by.iter().all(|by| by.contains("pid ")), "{by:?}");
    anna.press("l");
    ben.shows("STOPPED");
    ben.press("l");
    anna.shows("from off to on");
    anna.press("m");
    ben.shows("vs mark 1");
    let ab = ["ctl", "--control", socket.to_str().unwrap(), "ab", "load.rate=100..120,pairs=6,aa=0,block=5s"];
    assert!(run(folder, &ab).status.success());
    until("the experiment runs", || {
        !journalctl(&journal(folder), &["TLSDASH_EXPERIMENT_STEP=switch"]).is_empty()
    });
    ben.press("]");
    ben.shows("load.rate is locked");
    ben.press("a");
    ben.shows("A/B 1");
    ben.press("x");
    until("a person ended it", || {
        let notices = journalctl(&journal(folder), &["TLSDASH_NOTICE_TOPIC=control"]);
        notices.iter().any(|notice| notice["MESSAGE"].as_str().unwrap().starts_with("end the experiment"))
    });
    for terminal in [&mut anna, &mut ben] {
        terminal.press("q");
        assert_eq!(terminal.ended(), 0);
    }
    assert_eq!(running.end().0, 0, "who only watched ended nothing");
}

#[test]
fn a_watcher_records_a_service_from_its_journal() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let app = upstream(folder, b"hello");
    let mut running = proxy(folder, &app, &LOAD);
    running.address();
    let mut terminal = watch(folder);
    terminal.press("R");
    terminal.shows("record into: tlsdash-");
    terminal.press("\r");
    terminal.shows("[REC");
    let recorded = || {
        let files = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        files.into_iter().find(|path| path.file_name().unwrap().to_string_lossy().starts_with("tlsdash-"))
    };
    until("a file is begun", || recorded().is_some());
    let file = recorded().unwrap();
    until("records are in it", || journalctl(&file, &["TLSDASH_KIND=load"]).len() > 2);
    terminal.press("R");
    terminal.shows("recorded ");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    let output = run(folder, &["watch", "--headless", "--format", "json", file.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let part: Value = serde_json::from_slice(&output.stdout).unwrap();
    let whole: Value = serde_json::from_str(&running.end().1).unwrap();
    assert_eq!(part["run"], whole["run"]);
    let answered = |summary: &Value| summary["load"]["requests"]["ok"].as_u64().unwrap();
    assert!(0 < answered(&part) && answered(&part) < answered(&whole), "{part}\n{whole}");
}

#[test]
fn a_recording_ends_with_its_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (running, _) = service(folder);
    let mut terminal = watch(folder);
    terminal.press("R");
    terminal.shows("record into: tlsdash-");
    terminal.press("\r");
    terminal.shows("[REC");
    assert_eq!(running.end().0, 0);
    terminal.shows("recorded ");
    terminal.press("m");
    terminal.shows("the run has ended");
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
}

#[test]
fn keys_say_that_the_socket_has_gone_or_is_another_runs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (running, socket) = service(folder);
    let mut terminal = watch(folder);
    terminal.shows("t tune");
    fs::remove_file(&socket).unwrap();
    terminal.press("m");
    terminal.shows("there is no control socket");
    until("the footer names no key that changes anything", || !terminal.contents().contains("t tune"));
    // Another service takes the path; its run is in another journal.
    let elsewhere = folder.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let (other, path) = service(&elsewhere);
    fs::rename(path, &socket).unwrap();
    terminal.press("m");
    terminal.shows("another run");
    assert!(journalctl(&journal(&elsewhere), &["TLSDASH_KIND=mark"]).is_empty());
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    drop((running, other));
}

#[test]
fn another_user_can_only_watch_and_sees_why() {
    if !rustix::process::geteuid().is_root() {
        return crate::common::not_run::say_not_run(
            "another_user_can_only_watch_and_sees_why",
            "it needs root",
        );
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).unwrap();
    let (running, _) = service(folder);
    let mut command: Command = outside("setpriv", "util-linux");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(env!("CARGO_BIN_EXE_tlsdash"));
    fs::set_permissions(journal(folder), fs::Permissions::from_mode(0o644)).unwrap();
    command.arg("watch").arg(journal(folder)).arg("--any-user");
    let mut terminal = TestTerminal::of(terminal::NOTHING, folder, &command);
    terminal.shows("LIVE");
    until("the footer names no key that changes anything", || !terminal.contents().contains("t tune"));
    terminal.press("m");
    terminal.shows("permission denied");
    assert!(journalctl(&journal(folder), &["TLSDASH_KIND=mark"]).is_empty());
    terminal.press("q");
    assert_eq!(terminal.ended(), 0);
    assert_eq!(running.end().0, 0);
}
