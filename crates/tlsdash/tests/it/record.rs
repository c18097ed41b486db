//! A recording holds the run whole, and takes no other's place.

use std::path::Path;
use std::process::Output;

use crate::common::{journal, journalctl, outside, run, stderr};
use serde_json::Value;

const LOAD: [&str; 2] = ["--load", "rate=200,connections=4"];

fn record(folder: &Path, journal: &str, file: &Path) -> Output {
    let args =
        ["demo", "--headless", "--duration", "2s", "--format", "json", "--journal", journal, "--record"];
    run(folder, &[&args[..], &[file.to_str().unwrap()], &LOAD].concat())
}

fn summary(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_recording_has_the_figures_of_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.journal");
    let made = summary(&record(folder.path(), &format!("file:{}", journal(folder.path()).display()), &file));
    let watched = run(folder.path(), &["watch", file.to_str().unwrap(), "--headless", "--format", "json"]);
    let watched = summary(&watched);
    for part in ["run", "proxy", "load", "clients", "cpu_s"] {
        assert_eq!(made[part], watched[part], "{part}");
    }
    assert_eq!(watched["journal"]["lost"], 0);
    assert_eq!(made["journal"]["made"], watched["journal"]["made"]);
    assert_eq!(journalctl(&file, &[]).len() as u64, made["journal"]["made"].as_u64().unwrap());
    let began = &journalctl(&file, &["TLSDASH_KIND=run"])[0];
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(began["TLSDASH_KERNEL"], kernel.trim(), "it says what the run was on");
    let verified =
        outside("journalctl", "systemd").arg("--verify").arg(format!("--file={}", file.display())).output();
    let verified = verified.unwrap();
    assert!(verified.status.success(), "{}", stderr(&verified));
}

#[test]
fn a_recording_needs_no_other_journal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.journal");
    let made = summary(&record(folder.path(), "off", &file));
    let watched = run(folder.path(), &["watch", file.to_str().unwrap(), "--headless", "--format", "json"]);
    assert_eq!(summary(&watched)["proxy"], made["proxy"]);
}

#[test]
fn a_recording_that_exists_or_cannot_be_made_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().join("there.journal");
    std::fs::write(&there, "kept").unwrap();
    for (file, code, expected) in [
        (there.clone(), 2, "it exists"),
        (folder.path().join("name"), 2, "must end in .journal"),
        (folder.path().join("absent/x.journal"), 1, "absent/x.journal"),
    ] {
        let output = record(folder.path(), "off", &file);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{said}");
        assert!(said.lines().last().unwrap().contains(expected), "{said}");
    }
    assert_eq!(std::fs::read(&there).unwrap(), b"kept");
}

#[test]
fn a_recording_into_the_journal_itself_is_refused_before_anything_starts() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("one.journal");
    for journal in [file.display().to_string(), format!("{}/./one.journal", folder.path().display())] {
        let output = record(folder.path(), &format!("file:{journal}"), &file);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("is the same file") && said.lines().count() == 1, "{said}");
        assert!(!file.exists(), "nothing is begun");
    }
    let own = folder.path().join("tlsdash.journal");
    let output = record(folder.path(), "auto", &own);
    assert!(stderr(&output).contains("--journal auto is the same file"), "{}", stderr(&output));
    assert!(output.status.code() == Some(2) && !own.exists());
}

#[test]
fn a_recording_of_what_makes_no_records_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let reading = |command: &'static str| vec![command, "--record", "y.journal"];
    let of_ctl = vec!["ctl", "status", "--record", "y.journal"];
    for args in ["watch", "report", "runs", "bench"].map(reading).into_iter().chain([of_ctl]) {
        let output = run(folder.path(), &args);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains("only tlsdash, demo, load, observe and wire make records"), "{said}");
    }
    let url = "http://127.0.0.1:1/";
    let output =
        run(folder.path(), &["load", url, "--like", "x.journal", "--print-plan", "--record", "y.journal"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("'--print-plan' cannot be used with '--record"), "{}", stderr(&output));
}

#[test]
fn a_recording_goes_on_beside_what_is_there_however_that_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("session.journal");
    let path = file.to_str().unwrap();
    let go_on = || {
        let args =
            ["demo", "--headless", "--duration", "1s", "--format", "json", "--journal", "off", "--append"];
        summary(&run(folder.path(), &[&args[..], &["--record", path], &LOAD].concat()))
    };
    let first = go_on();
    let second = go_on();
    // What was killed in mid-word, or is damaged, is kept as it is too. The index behind the last entry may take kilobytes.
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 30_000]).unwrap();
    let third = go_on();
    let recorded = |run_id: &Value| {
        let args = ["watch", path, "--run", run_id.as_str().unwrap(), "--headless", "--format", "json"];
        summary(&run(folder.path(), &args))
    };
    for made in [&first, &third] {
        let recorded = recorded(&made["run"]);
        for part in ["run", "proxy", "load", "clients"] {
            assert_eq!(made[part], recorded[part], "{part}");
        }
        assert_eq!((&recorded["ended"], &recorded["journal"]["lost"]), (&true.into(), &0.into()));
    }
    assert_eq!(recorded(&second["run"])["ended"], false, "its end is gone");
    let newest = summary(&run(folder.path(), &["watch", path, "--headless", "--format", "json"]));
    assert_eq!(newest["run"], third["run"]);
    let archives = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let archives = archives.filter(|name| name.to_string_lossy().starts_with("session@"));
    assert_eq!(archives.count(), 2);
}
