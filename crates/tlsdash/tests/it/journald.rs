//! Records that go through a real journald, which each test starts for itself in mounts of its own.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use crate::common::journald::TestJournald;
use crate::common::not_run::say_not_run;
use crate::common::{TlsdashProcess, number, outside, stderr, tlsdash, until, upstream};
use journal::{EntryBuf, FileOptions, FileWriter, Sender};
use rustix::process::Signal;
use serde_json::Value;

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stderr(output)))
}

const DEMO: &[&str] = &["demo", "--headless", "--duration", "3s", "--format", "json"];

#[test]
fn every_record_comes_back_from_journald_and_a_namespace() {
    for (journald, place) in
        [(TestJournald::system(""), "system"), (TestJournald::start("test", ""), "namespace:test")]
    {
        let summary = json(&journald.tlsdash(DEMO).args(["--journal", place]).output().unwrap());
        let journal = &summary["journal"];
        assert_eq!(
            (journal["source"].as_str(), journal["lost"].as_u64()),
            (Some(place), Some(0)),
            "{summary}"
        );
        assert_eq!(journal["made"], journal["read"], "{summary}");
        let proxy = &summary["proxy"];
        assert!(proxy["handshakes"]["full"].as_u64() > Some(0), "{summary}");

        let watched =
            json(&journald.tlsdash(&["watch", place, "--headless", "--format", "json"]).output().unwrap());
        assert_eq!(&watched["proxy"], proxy, "{place}");
        assert_eq!(watched["load"], summary["load"], "{place}");

        let run = summary["run"].as_str().unwrap();
        let entries = journald.entries(&["_COMM=tlsdash", &format!("TLSDASH_RUN={run}")]);
        assert_eq!(Some(entries.len() as u64), journal["made"].as_u64(), "{place}");
        let last = entries.last().unwrap();
        assert_eq!(last["TLSDASH_KIND"], "run", "{last}");
    }
}

#[test]
fn auto_takes_a_file_and_says_why_if_journald_cannot_be_read_back() {
    let journald = TestJournald::system("");
    let summary = json(&journald.tlsdash(DEMO).output().unwrap());
    assert_eq!(summary["journal"]["source"], "system", "{summary}");
    // Where `auto` has written is where `watch` looks.
    let watched = json(&journald.tlsdash(&["watch", "--headless", "--format", "json"]).output().unwrap());
    assert_eq!(watched["run"], summary["run"]);

    // One stores nothing, the other no figures.
    for settings in ["Storage=none", "MaxLevelStore=info"] {
        let forgetful = TestJournald::system(settings);
        let output = forgetful.tlsdash(DEMO).output().unwrap();
        let source = json(&output)["journal"]["source"].clone();
        assert!(source.as_str().unwrap().starts_with("file:"), "{settings}: {source}");
        assert!(stderr(&output).contains("cannot be read back"), "{settings}: {}", stderr(&output));
    }
}

#[test]
fn a_journald_that_stores_nothing_is_refused_when_it_is_asked_for_by_name() {
    let journald = TestJournald::system("Storage=none");
    let output = journald.tlsdash(DEMO).args(["--journal", "system"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("--journal system"), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot be read back"), "{}", stderr(&output));
}

#[test]
fn a_user_who_may_not_read_the_journal_hears_which_group_may() {
    if !rustix::process::geteuid().is_root() {
        let test = "a_user_who_may_not_read_the_journal_hears_which_group_may";
        return say_not_run(test, "only root can become a user who may not read the journal");
    }
    let journald = TestJournald::system("");
    // As systemd-tmpfiles has it on a host.
    let group = ["-R", "systemd-journal"];
    let owned =
        outside("chgrp", "coreutils").args(group).arg(journald.root.path().join("run-log/journal")).output();
    let owned = owned.unwrap();
    assert!(
        owned.status.success(),
        "this test needs the group systemd-journal of Debian's package systemd: {}",
        stderr(&owned)
    );
    // The program lies where only its owner may look. Another process copies it: a program that a child of another test
    // still has open for writing, if only until it executes its own, cannot be executed ("text file busy").
    let copy = journald.root.path().join("tlsdash");
    let copied = outside("cp", "coreutils").arg(env!("CARGO_BIN_EXE_tlsdash")).arg(&copy).status();
    assert!(copied.unwrap().success());
    fs::set_permissions(journald.root.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let refused = |args: &[&str]| {
        let mut setpriv = journald.command("setpriv");
        setpriv.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&copy).args(args);
        let output = setpriv.output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("permission denied") && said.contains("group systemd-journal"), "{said}");
        said
    };
    for args in [
        &["watch", "system", "--headless"][..],
        &["demo", "--headless", "--duration", "1s", "--journal", "system"],
    ] {
        let said = refused(args);
        assert_eq!(said.lines().count(), 1, "{said}");
    }

    // Where users may read what they have logged themselves, as is usual.
    let mut folders = fs::read_dir(journald.root.path().join("run-log/journal")).unwrap();
    let folder = folders.next().unwrap().unwrap().path();
    fs::set_permissions(folder.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
    let own = folder.join("user-65534.journal");
    FileWriter::create(&own, FileOptions::default()).unwrap().close().unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o644)).unwrap();
    let said = refused(&["watch", "system", "--headless"]);
    assert!(said.contains("system.journal"), "{said}");
}

#[test]
fn where_no_journald_is_one_line_says_so_once() {
    let folder = tempfile::tempdir().unwrap();
    for args in [
        &["demo", "--headless", "--duration", "1s", "--journal", "namespace:tlsdash-none"][..],
        &["watch", "namespace:tlsdash-none", "--headless"],
    ] {
        let output = tlsdash(folder.path()).args(args).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("namespace:tlsdash-none"), "{said}");
        assert!(said.matches("os error").count() <= 1, "{said}");
    }
}

/// A proxy that writes to this journald.
fn proxy(journald: &TestJournald, place: &str) -> TlsdashProcess {
    let app = upstream(journald.root.path(), b"hello");
    let mut command =
        journald.tlsdash(&["--headless", "--listen", "127.0.0.1:0", "--format", "json", "--journal", place]);
    command.args(["--interval", "200ms", "--upstream"]).arg(format!("unix:{}", app.display()));
    TlsdashProcess::start(command)
}

fn request(address: std::net::SocketAddr) {
    let got =
        outside("curl", "curl").args(["-sk", "--http1.0", &format!("https://{address}/")]).output().unwrap();
    assert_eq!(got.stdout, b"hello", "{}", stderr(&got));
}

#[test]
fn totals_are_exact_though_journald_stood_still_and_was_killed_in_between() {
    let mut journald = TestJournald::start("test", "");
    let mut running = proxy(&journald, "namespace:test");
    let address = running.address();
    let counted = |journald: &TestJournald| {
        journald
            .entries(&["TLSDASH_KIND=proxy"])
            .last()
            .map_or(0, |entry| number(entry, "TLSDASH_CONNECTIONS_ACCEPTED_TOTAL"))
    };
    request(address);
    until("a record of the request", || counted(&journald) == 1);

    journald.signal(Signal::STOP);
    for _ in 0..20 {
        request(address);
    }
    std::thread::sleep(std::time::Duration::from_secs(5));
    journald.signal(Signal::CONT);
    until("a record of all requests", || counted(&journald) == 21);

    journald.kill_and_start();
    request(address);
    until("a record after the restart", || counted(&journald) == 22);
    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let summary: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(summary["proxy"]["connections"]["accepted"], 22, "{summary}");
    assert_eq!(summary["proxy"]["handshakes"]["full"], 22, "{summary}");
}

#[test]
fn records_forged_under_a_runs_id_do_not_change_it() {
    let journald = TestJournald::start("test", "");
    let mut running = proxy(&journald, "namespace:test");
    let address = running.address();
    request(address);
    let records = |kind: &str| journald.entries(&[&format!("TLSDASH_KIND={kind}")]);
    until("a record of the request", || {
        records("proxy").last().is_some_and(|entry| number(entry, "TLSDASH_CONNECTIONS_ACCEPTED_TOTAL") == 1)
    });
    let mut forger = Sender::open_at(&journald.root.path().join("run-systemd/journal.test/socket")).unwrap();
    let genuine = ["proxy", "client", "run"].map(|kind| records(kind).pop().unwrap());
    for seq in [1_000, u64::MAX] {
        for record in &genuine {
            let mut entry = EntryBuf::new();
            for (name, value) in record.as_object().unwrap().iter().filter(|(name, _)| !name.starts_with('_'))
            {
                let value = value.as_str().unwrap();
                match name.as_str() {
                    "TLSDASH_SEQ" => entry.push_display(name, seq),
                    "TLSDASH_PHASE" => entry.push(name, b"stop"),
                    name if name.ends_with("_TOTAL") => entry.push(name, b"999999"),
                    name => entry.push(name, value.as_bytes()),
                }
            }
            forger.send(&entry).unwrap();
        }
    }
    request(address);
    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let summary: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(summary["proxy"]["connections"]["accepted"], 2, "{summary}");
    assert_eq!(summary["clients"][0]["connections"], 2, "{summary}");
    let journal = &summary["journal"];
    assert_eq!((journal["lost"].as_u64(), journal["foreign"].as_u64()), (Some(0), Some(6)), "{summary}");
}

#[test]
fn a_run_whose_end_does_not_come_back_says_so() {
    let journald = TestJournald::start("test", "");
    let mut running = proxy(&journald, "namespace:test");
    request(running.address());
    let is_recorded = || {
        journald
            .entries(&["TLSDASH_KIND=proxy"])
            .last()
            .is_some_and(|entry| number(entry, "TLSDASH_CONNECTIONS_ACCEPTED_TOTAL") == 1)
    };
    until("a record of the request", is_recorded);
    // Whether its queue takes the last records or not: nothing is read any more.
    journald.signal(Signal::STOP);
    let (code, printed) = running.end();
    journald.signal(Signal::CONT);
    assert_eq!(code, 1, "the record of the run is not whole");
    let summary: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!(summary["ended"], false, "{summary}");
}
