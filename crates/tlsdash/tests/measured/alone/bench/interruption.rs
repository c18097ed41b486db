//! Ctrl-C, SIGKILL, and going on.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Signal;
use serde_json::Value;

use super::{TLSDASH, bench, cells, processes_of, scenario, shell_target};
use crate::common::{TlsdashProcess, stderr, tlsdash, until};

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let folder = scenario(3, &format!("{TLSDASH}[[target]]\nname = \"same\"\ntemplate = \"tlsdash-tcp\"\n"));
    let saved = folder.path().join("saved");
    let mut command = tlsdash(folder.path());
    // Who is killed leaves temporary files.
    command.env("TMPDIR", folder.path());
    command.current_dir(folder.path()).args(["bench", "scenario.toml", "--save", "saved"]);
    let running = TlsdashProcess::start(command);
    until("two cells are measured", || {
        fs::read_to_string(saved.join("cells.jsonl")).is_ok_and(|text| text.lines().count() >= 2)
    });
    running.signal(Signal::KILL);
    drop(running);
    until("all of it has ended", || processes_of(folder.path()).is_empty());
    // As if it had been killed while it wrote.
    let mut text = fs::read_to_string(saved.join("cells.jsonl")).unwrap();
    let before = text.lines().count();
    text.push_str("{\"round\":");
    fs::write(saved.join("cells.jsonl"), text).unwrap();
    let resume = |more: &[&str]| {
        // The path is relative: the generator runs in another folder.
        let args = [&["bench", "--resume", "saved"], more].concat();
        tlsdash(folder.path()).current_dir(folder.path()).args(args).output().unwrap()
    };
    let output = resume(&[]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("the last line was cut off"), "{}", stderr(&output));
    assert!((2..6).contains(&before));
    // A round that was cut in two is measured again.
    assert_eq!(distinct(&cells(&saved)), 6);
    let more = resume(&["--rounds", "4"]);
    assert!(more.status.success(), "{}", stderr(&more));
    let cells = cells(&saved);
    assert_eq!(distinct(&cells), 8);
    assert!(cells.iter().all(|cell| cell["failure"].is_null()), "{cells:?}");
    let text = String::from_utf8_lossy(&more.stdout);
    assert!(text.contains("note: rounds were added when there were results, 4 instead of 3"), "{text}");
}

/// A round without turns whose last target has no result, as if it had been installed later.
#[test]
fn an_interrupted_round_that_is_measured_again_keeps_its_earlier_results() {
    let folder = scenario(1, &format!("{TLSDASH}[[target]]\nname = \"later\"\ntemplate = \"tlsdash-tcp\"\n"));
    let path = folder.path().join("scenario.toml");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("duration = \"700ms\"", "duration = \"3s\"\nturns = \"off\"")).unwrap();
    let first = bench(folder.path(), "--save saved");
    assert!(first.status.success(), "{}", stderr(&first));
    let saved = folder.path().join("saved");
    let lines = saved.join("cells.jsonl");
    let is_kept = |line: &&str| line.contains("\"target\":\"good\"");
    let all = fs::read_to_string(&lines).unwrap();
    let kept: String = all.split_inclusive('\n').filter(is_kept).collect();
    fs::write(&lines, &kept).unwrap();
    let resume = || {
        let mut command = tlsdash(folder.path());
        command.current_dir(folder.path()).args(["bench", "--resume", "saved"]);
        command
    };
    let running = TlsdashProcess::start(resume());
    until("the second target is under load", || {
        let names = fs::read_dir(saved.join("cells")).unwrap().map(|entry| entry.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().starts_with("new-001-001-0")).count() == 2
    });
    running.signal(Signal::INT);
    let (_, _, said) = running.wait_and_tell();
    assert!(said.contains("cells that are measured again, beside targets that had no result: 1"), "{said}");
    assert_eq!(fs::read_to_string(&lines).unwrap(), kept, "neither result is added alone");
    let last = resume().output().unwrap();
    assert!(last.status.success(), "{}", stderr(&last));
    let cells = cells(&saved);
    assert_eq!((cells.len(), distinct(&cells)), (3, 2), "both were measured again");
}

/// How many cells there are besides those that were measured again.
fn distinct(cells: &[Value]) -> usize {
    let places = cells.iter().map(|cell| format!("{} {} {}", cell["round"], cell["case"], cell["target"]));
    places.collect::<BTreeSet<_>>().len()
}

#[test]
fn ctrl_c_prints_partial_results_and_how_to_resume() {
    let folder = scenario(500, TLSDASH);
    let mut command = tlsdash(folder.path());
    command.current_dir(folder.path()).args(["bench", "scenario.toml", "--save", "saved"]);
    let running = TlsdashProcess::start(command);
    let saved = folder.path().join("saved");
    until("a cell is measured", || {
        fs::read_to_string(saved.join("cells.jsonl")).is_ok_and(|text| text.lines().count() >= 1)
    });
    running.signal(Signal::INT);
    let (code, text, said) = running.wait_and_tell();
    assert_eq!(code, 0, "{said}");
    assert!(text.contains("good"), "{text}");
    assert!(said.contains("go on with: tlsdash bench --resume "), "{said}");
    assert_eq!(processes_of(folder.path()), Vec::<String>::new());
}

#[test]
fn ctrl_c_does_not_wait_for_a_target_that_never_listens() {
    for prepare in ["", "prepare = [\"sh\", \"-c\", \"echo > {dir}/../../begun; exec sleep 600\"]\n"] {
        let folder = scenario(1, "");
        let path = folder.path().join("scenario.toml");
        let target = shell_target("mute", "echo > {dir}/../../begun; exec sleep 600") + prepare;
        fs::write(&path, fs::read_to_string(&path).unwrap() + &target).unwrap();
        let mut command = tlsdash(folder.path());
        command.env("TMPDIR", folder.path());
        command.current_dir(folder.path()).args(["bench", "scenario.toml", "--save", "saved"]);
        let running = TlsdashProcess::start(command);
        until("the target is started", || folder.path().join("begun").exists());
        running.signal(Signal::INT);
        let (_, _, said) = running.wait_and_tell();
        assert!(said.contains("go on with: tlsdash bench --resume "), "{said}");
        // It is not given up, which takes 20 s: it was interrupted.
        assert_eq!(cells(&folder.path().join("saved")), Vec::<Value>::new());
        assert_eq!(processes_of(folder.path()), Vec::<String>::new());
    }
}
