//! Journals to which others write runs too: whose are shown, and what is said of the rest.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use crate::common::host::{FORGER, HostRun, ROOT, RunWriter, TestHost, UNIT, create};
use crate::common::not_run::say_not_run;
use crate::common::{outside, send, stderr, until};
use rustix::process::Signal;
use serde_json::Value;

const HONEST: HostRun = HostRun { run: 0xa, late_s: 0, accepted: 5 };
const FORGED: HostRun = HostRun { run: 0xf, late_s: 600, accepted: 666_666 };
const WATCH: &[&str] = &["--headless", "--format", "json"];

/// A run of root, and a later one of somebody else.
fn with_a_forged_run() -> TestHost {
    let host = TestHost::new();
    HONEST.write(&mut host.file("system.journal"), ROOT);
    FORGED.write(&mut host.file("user-1000.journal"), FORGER);
    host
}

fn summary(host: &TestHost, args: &[&str]) -> Value {
    let output = host.run(&[&["watch"], args, WATCH].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The one run that is shown.
fn shown(host: &TestHost, args: &[&str]) -> String {
    summary(host, args)["run"].as_str().unwrap().to_owned()
}

fn refused(output: &Output, code: i32) -> String {
    let said = stderr(output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(code), 1), "{said}");
    said
}

fn printed(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

const IGNORED: &str = "1 run of uid 1000 ignored: --uid 1000 or --any-user shows it";

#[test]
fn runs_written_by_another_user_are_ignored() {
    let host = with_a_forged_run();
    let watched = host.run(&["watch", "system", "--headless"]);
    assert!(printed(&watched).contains("of uid 0, session-1.scope"), "{}", printed(&watched));
    assert_eq!(stderr(&watched), format!("tlsdash: {IGNORED}\n"));
    let all = summary(&host, &["system"]);
    assert_eq!((&all["uid"], &all["unit"]), (&Value::from(0), &Value::from("session-1.scope")));
    assert_eq!(all["proxy"]["connections"]["accepted"], 5);

    let checked = host.run(&["check", "system", "--assert", "connections.accepted < 100"]);
    assert!(checked.status.success() && stderr(&checked).contains(IGNORED), "{}", stderr(&checked));
    let reported = host.run(&["report", "system", "--md", "-"]);
    assert!(printed(&reported).contains("\n\nrun 0000000a of uid 0, "), "{}", printed(&reported));
    assert!(stderr(&reported).contains(IGNORED), "{}", stderr(&reported));
    let compared = refused(&host.run(&["compare", "system", "system", "--any-user"]), 2);
    assert!(compared.contains(&FORGED.id()), "{compared}");
    let compared = host.run(&["compare", "system", "system"]);
    assert!(stderr(&compared).contains(&format!("both are run {}", HONEST.id())), "{}", stderr(&compared));

    let copy = host.root.path().join("copy.journal");
    let compacted = host.run(&["compact", "system", copy.to_str().unwrap()]);
    assert!(compacted.status.success() && stderr(&compacted).contains(IGNORED), "{}", stderr(&compacted));
    assert!(
        stderr(&compacted).contains("with the same totals and latencies of 1 run"),
        "{}",
        stderr(&compacted)
    );
    assert_eq!(shown(&host, &[copy.to_str().unwrap(), "--any-user"]), HONEST.id());
}

#[test]
fn who_asks_for_a_user_a_unit_or_all_gets_their_runs() {
    let host = with_a_forged_run();
    let (unit, other) = (HostRun { run: 1, late_s: 10, ..HONEST }, HostRun { run: 2, late_s: 20, ..HONEST });
    unit.write(&mut host.file("user-998.journal"), UNIT);
    other.write(&mut host.file("user-64321.journal"), RunWriter::of(64_321, "edge.service"));
    for (args, told) in [
        (&[][..], unit),
        (&["--any-user"], FORGED),
        (&["--uid", "1000"], FORGED),
        (&["--uid", "root"], HONEST),
        (&["--uid", "0", "--unit", "session-1.scope"], HONEST),
        (&["--unit", "edge"], other),
        (&["--unit", "edge.service"], other),
        (&["--unit", "tlsdash.service"], unit),
    ] {
        assert_eq!(shown(&host, &[&["system"], args].concat()), told.id(), "{args:?}");
    }
    let said = stderr(&host.run(&["watch", "system", "--headless"]));
    let edge =
        "1 run of edge.service (uid 64321) ignored: --unit edge.service, --uid 64321 or --any-user shows it";
    assert!(said.contains(IGNORED) && said.contains(edge) && said.lines().count() == 2, "{said}");
    // Who was asked for by name is answered without a word about others.
    assert_eq!(stderr(&host.run(&["watch", "system", "--headless", "--uid", "0"])), "");

    for (args, part) in [
        (&["--uid", "nobody-is-called-so"][..], "there is no user of this name"),
        (&["--uid", "1", "--any-user"], "cannot be used with"),
    ] {
        let said = refused(&host.run(&[&["watch", "system", "--headless"], args].concat()), 2);
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn the_error_names_the_writers_and_the_option_to_read_them() {
    let (host, folder) = (TestHost::new(), tempfile::tempdir().unwrap());
    let never_made = folder.path().join("never-made.journal").display().to_string();
    FORGED.write(&mut host.file("user-1000.journal"), FORGER);
    HostRun { run: 3, ..FORGED }
        .write(&mut host.file("user-1001.journal"), RunWriter::of(1_001, "session-2.scope"));
    for args in [
        &["watch", "system", "--headless"][..],
        &["report", "system", "--md", "-"],
        &["check", "system", "--assert", "lost == 0"],
        &["compact", "system", &never_made],
        &["watch", "system", "--headless", "--run", "0000000"],
    ] {
        let said = refused(&host.run(args), 1);
        assert!(said.contains("no run of root or of tlsdash.service: "), "{said}");
        assert!(said.contains(IGNORED) && said.contains("--uid 1001 or --any-user shows it"), "{said}");
    }
    let said = refused(&host.run(&["watch", "system", "--headless", "--unit", "edge"]), 1);
    assert!(said.contains("system holds no run of edge: ") && said.contains(IGNORED), "{said}");
    // Only what is asked for counts.
    let said = refused(&host.run(&["watch", "system", "--headless", "--run", "00000003"]), 1);
    assert!(said.contains("uid 1001") && !said.contains("uid 1000"), "{said}");
    let said = refused(&host.run(&["report", "system", "--since", "-1h", "--md", "-"]), 1);
    assert!(said.contains("holds no records of a run of tlsdash"), "{said}");
}

#[test]
fn recordings_are_read_whoever_wrote_them() {
    let host = with_a_forged_run();
    let folder = host.folder().file_name().unwrap().to_str().unwrap().to_owned();
    for place in ["/var/log/journal".to_owned(), format!("/var/log/journal/{folder}")] {
        assert_eq!(shown(&host, &[&place]), HONEST.id(), "{place}");
    }
    let file = format!("/var/log/journal/{folder}/user-1000.journal");
    let said = refused(&host.run(&["watch", &file, "--headless"]), 1);
    assert!(said.contains(IGNORED), "{said}");

    // The same entries in a file of one's own, whatever users it holds.
    let own = host.root.path().join("own.journal");
    let mut writer = create(&own);
    HONEST.write(&mut writer, ROOT);
    FORGED.write(&mut writer, FORGER);
    writer.close().unwrap();
    let own = own.to_str().unwrap();
    assert_eq!(shown(&host, &[own]), FORGED.id());
    assert_eq!(stderr(&host.run(&["watch", own, "--headless"])), "");
    assert_eq!(shown(&host, &[own, "--uid", "0"]), HONEST.id());
}

#[test]
fn runs_of_other_hosts_are_told_apart_by_host_and_unit() {
    let host = TestHost::new();
    let folder = host.root.path().join("var-log-journal/remote");
    fs::create_dir(&folder).unwrap();
    let (edge_1, edge_2) = ("11111111111111111111111111111111", "22222222222222222222222222222222");
    let mut writer = create(&folder.join("remote-10.0.0.1.journal"));
    // Two services, of which one is begun twice, and a later run of a user there.
    HONEST.write(&mut writer, UNIT.at("edge-1", edge_1));
    HostRun { run: 0xc, late_s: 50, accepted: 11 }
        .write(&mut writer, RunWriter::of(997, "edge.service").at("edge-1", edge_1));
    // And a host on which only a user has runs.
    HostRun { run: 0xd, late_s: 60, accepted: 13 }.write(&mut writer, FORGER.at("edge-2", edge_2));
    HostRun { run: 0xb, late_s: 100, accepted: 7 }.write(&mut writer, UNIT.at("edge-1", edge_1));
    FORGED.write(&mut writer, FORGER.at("edge-1", edge_1));
    writer.close().unwrap();
    let remote = "/var/log/journal/remote";
    let reported = host.run(&["report", remote, "--json", "-"]);
    assert_eq!(stderr(&reported), "");
    let report: Value = serde_json::from_slice(&reported.stdout).unwrap();
    assert_eq!(report["summary"]["proxy"]["connections"]["accepted"], 7 + 11 + 13, "{report}");
    let text = printed(&host.run(&["report", remote, "--md", "-"]));
    for part in [
        format!("edge-1 tlsdash.service: run {} of tlsdash.service", HostRun { run: 0xb, ..HONEST }.id()),
        "edge-1 edge.service: run".to_owned(),
        "edge-2: run".to_owned(),
    ] {
        assert!(text.contains(&part), "{part} in {text}");
    }
    assert!(!text.contains(&FORGED.id()), "{text}");
    assert_eq!(shown(&host, &[remote]), HostRun { run: 0xb, ..HONEST }.id());
    assert_eq!(shown(&host, &[remote, "--any-user", "--run", &FORGED.id()]), FORGED.id());
}

#[test]
fn where_auto_has_written_is_not_for_others_to_say() {
    let host = TestHost::new();
    FORGED.write(&mut host.file("user-1000.journal"), FORGER);
    let state = host.root.path().join("state");
    fs::create_dir(&state).unwrap();
    let own = state.join("tlsdash.journal");
    HONEST.write(&mut create(&own), ROOT);
    // Not one that may still be written: then it would be taken at once.
    let earlier = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::open(&own).unwrap().set_modified(earlier).unwrap();
    assert_eq!(shown(&host, &[]), HONEST.id());
}

#[test]
fn watch_stays_with_the_shown_account() {
    let host = TestHost::new();
    let mut system = host.file("system.journal");
    HONEST.begin(&mut system, UNIT);
    let mut command = host.tlsdash(&["watch", "system", "--plain"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (told, lines) = std::sync::mpsc::channel();
    let reader = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || reader.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
    let mut said = Vec::new();
    let mut says = |text: &str| {
        until(text, || {
            said.extend(lines.try_iter());
            said.iter().any(|line: &String| line.contains(text))
        });
        said.clone()
    };
    says("of tlsdash.service, over");
    let mut user = host.file("user-1000.journal");
    FORGED.begin(&mut user, FORGER);
    says("1 run of uid 1000 ignored: --uid 1000 or --any-user shows it");
    HostRun { run: 0xe, late_s: 700, accepted: 1 }.begin(&mut user, FORGER);
    HostRun { run: 0xb, late_s: 800, accepted: 1 }.begin(&mut system, ROOT);
    let said_then = says("run 0000000b of uid 0 began");
    assert!(!said_then.iter().any(|line| line.contains("a new run is shown")), "{said_then:?}");
    assert_eq!(said_then.iter().filter(|line| line.contains("uid 1000")).count(), 1, "{said_then:?}");
    HostRun { run: 0xc, late_s: 900, accepted: 1 }.begin(&mut system, UNIT);
    let said_last = says("a new run is shown: 0000000c");
    assert!(!said_last.iter().any(|line| line.contains("shown: 0000000b")), "{said_last:?}");
    send(Signal::TERM, child.id());
    child.wait().unwrap();
}

#[test]
fn a_user_sees_own_runs_and_those_of_root_and_the_unit() {
    if !rustix::process::geteuid().is_root() {
        let test = "a_user_sees_own_runs_and_those_of_root_and_the_unit";
        return say_not_run(test, "only root can become another user");
    }
    let host = with_a_forged_run();
    let own = HostRun { run: 1, late_s: 10, ..HONEST };
    let mut writer = host.file("user-4242.journal");
    own.write(&mut writer, RunWriter::of(4_242, "user@4242.service"));
    writer.close().unwrap();
    HostRun { run: 2, late_s: 5, ..HONEST }.write(&mut host.file("user-998.journal"), UNIT);
    // The program lies where only its owner may look, and what journald would let a group read here all may.
    let program = host.root.path().join("tlsdash");
    let copied = outside("cp", "coreutils").arg(env!("CARGO_BIN_EXE_tlsdash")).arg(&program).status();
    let opened = outside("chmod", "coreutils").args(["-R", "a+rX"]).arg(host.root.path()).status();
    assert!(copied.unwrap().success() && opened.unwrap().success());
    let as_user = |args: &[&str]| {
        let plain = host.tlsdash(args);
        let mut command = std::process::Command::new(plain.get_program());
        // What was to be run there is run by another user.
        let all: Vec<_> = plain.get_args().collect();
        let at = all.iter().position(|arg| *arg == env!("CARGO_BIN_EXE_tlsdash")).unwrap();
        command.args(&all[..at]).args(["setpriv", "--reuid=4242", "--regid=4242", "--clear-groups"]);
        command.arg(&program).args(&all[at + 1..]).output().unwrap()
    };
    let watched = as_user(&[&["watch", "system"], WATCH].concat());
    let summary: Value =
        serde_json::from_slice(&watched.stdout).unwrap_or_else(|_| panic!("{}", stderr(&watched)));
    assert_eq!((summary["run"].as_str(), summary["uid"].as_u64()), (Some(&*own.id()), Some(4_242)));
    assert_eq!(stderr(&watched), format!("tlsdash: {IGNORED}\n"));
    for run in ["0000000a", "00000002"] {
        assert!(as_user(&["watch", "system", "--headless", "--run", run]).status.success(), "{run}");
    }
    let said = refused(&as_user(&["watch", "system", "--headless", "--run", "0000000f"]), 1);
    assert!(said.contains("no run of root, of uid 4242 or of tlsdash.service"), "{said}");
}
