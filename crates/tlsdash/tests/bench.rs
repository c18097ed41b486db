//! `tlsdash bench` from the outside: a whole run with real programs, and what goes wrong.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::Output;

use common::{Running, run, stderr, tlsdash, until};
use rustix::process::Signal;
use serde_json::Value;
use tempfile::TempDir;

/// The case of these tests: half a second of load at a low rate, which every machine sustains.
const CASE: &str = r#"
[[case]]
name = "small"
path = "/bytes/13"
connections = 2
rate = 100
duration = "700ms"
warmup = "200ms"
"#;

/// A target that this program serves.
const TLSDASH: &str = "[[target]]\nname = \"good\"\ntemplate = \"tlsdash-tcp\"\n";

/// A folder with a scenario of these targets and [`CASE`].
fn scenario(rounds: u32, targets: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let text = format!("title = \"a test\"\nrounds = {rounds}\n{targets}{CASE}");
    fs::write(folder.path().join("scenario.toml"), text).unwrap();
    folder
}

/// Runs the scenario of a folder; `args` are one string.
fn bench(folder: &Path, args: &str) -> Output {
    let args = args.split(' ').filter(|arg| !arg.is_empty());
    tlsdash(folder).current_dir(folder).args(["bench", "scenario.toml"]).args(args).output().unwrap()
}

/// A target that a shell runs. It is the program that the supervisor starts, so that it gets the signals.
fn shell_target(name: &str, script: &str) -> String {
    format!(
        "[[target]]\nname = \"{name}\"\ntls = false\nupstream = \"tcp\"\ncommand = [\"sh\", \"-c\", '''{script}''']\n"
    )
}

/// The cells in a folder of results.
fn cells(saved: &Path) -> Vec<Value> {
    let text = fs::read_to_string(saved.join("cells.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Processes whose command line names the folder; those of a bench name files in its temporary folders.
fn processes_of(folder: &Path) -> Vec<String> {
    let name = folder.display().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let command = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).replace('\0', " ");
        if command.contains(&name) {
            found.push(command);
        }
    }
    found
}

#[test]
fn a_run_gives_figures_files_and_exit_codes() {
    common::outside("nginx", "nginx");
    common::outside("haproxy", "haproxy");
    let targets = format!(
        "{TLSDASH}[[target]]\nname = \"nginx\"\ntemplate = \"nginx-stream\"\n\
         [[target]]\nname = \"haproxy\"\ntemplate = \"haproxy-tcp\"\n"
    );
    let folder = scenario(1, &targets);
    let output = bench(
        folder.path(),
        "--save saved --seed 7 --json out.json --csv out.csv --md out.md --junit out.xml --html out.html",
    );
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", stderr(&output));
    assert!(["good", "nginx", "haproxy"].iter().all(|name| text.contains(name)), "{text}");
    let saved = folder.path().join("saved");
    let cells = cells(&saved);
    assert_eq!(cells.len(), 3);
    for cell in &cells {
        assert_eq!(cell["failure"], Value::Null, "{cell}");
        assert_eq!(cell["negotiated"]["cipher"], "TLS13_AES_128_GCM_SHA256", "{cell}");
        // 100 requests per second for half a second.
        let answered = cell["figures"]["requests.answered"].as_f64().unwrap();
        assert!((20.0..=60.0).contains(&answered), "{cell}");
        let used = ["user_us", "system_us"].map(|part| cell["target_usage"][part].as_u64().unwrap());
        assert!(used.iter().sum::<u64>() > 0, "{cell}");
        assert!(cell["target_usage"]["rss_peak"].as_u64().unwrap() > 1_000_000, "{cell}");
        assert!(saved.join(cell["journal"].as_str().unwrap()).exists());
    }
    for file in ["out.json", "out.csv", "out.md", "out.xml", "out.html", "saved/bench.json"] {
        assert!(fs::metadata(folder.path().join(file)).unwrap().len() > 100, "{file}");
    }
    // Its journals are those of a load.
    let journal = saved.join(cells[0]["journal"].as_str().unwrap());
    let checked = run(folder.path(), &["check", journal.to_str().unwrap(), "--assert", "ended == 1"]);
    assert!(checked.status.success(), "{}", stderr(&checked));
}

#[test]
fn a_killed_run_goes_on_where_it_was() {
    let folder = scenario(3, &format!("{TLSDASH}[[target]]\nname = \"same\"\ntemplate = \"tlsdash-tcp\"\n"));
    let saved = folder.path().join("saved");
    let mut command = tlsdash(folder.path());
    // Who is killed leaves temporary files.
    command.env("TMPDIR", folder.path());
    command.current_dir(folder.path()).args(["bench", "scenario.toml", "--save", "saved"]);
    let running = Running::start(command);
    until("two cells are measured", || {
        fs::read_to_string(saved.join("cells.jsonl")).is_ok_and(|text| text.lines().count() >= 2)
    });
    running.signal(Signal::KILL);
    drop(running);
    until("all of it has ended", || processes_of(&saved).is_empty());
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
    assert!((2..6).contains(&before) && cells(&saved).len() == 6);
    let more = resume(&["--rounds", "4"]);
    assert!(more.status.success(), "{}", stderr(&more));
    let cells = cells(&saved);
    assert_eq!(cells.len(), 8);
    assert!(cells.iter().all(|cell| cell["failure"].is_null()), "{cells:?}");
    let text = String::from_utf8_lossy(&more.stdout);
    assert!(text.contains("note: rounds were added when there were results, 4 instead of 3"), "{text}");
}

#[test]
fn targets_that_are_prepared_differently_share_no_files() {
    // Each says which files it finds, and ends.
    let target = |name: &str, file: &str| {
        let prepare = format!("prepare = [\"sh\", \"-c\", \"echo made >> {{build}}/{file}\"]\n");
        shell_target(name, "cd {build} && grep -c made * /dev/null; exit 1") + &prepare
    };
    let targets = target("one", "first") + &target("other", "second") + &target("same", "first");
    let folder = scenario(2, &targets);
    let output = bench(folder.path(), "--save saved");
    let cells = cells(&folder.path().join("saved"));
    assert_eq!(cells.len(), 6, "{}", stderr(&output));
    for cell in cells {
        let (file, foreign) =
            if cell["target"] == "other" { ("second", "first") } else { ("first", "second") };
        let failure = cell["failure"].as_str().unwrap();
        // Made once, by whichever target and round came first.
        assert!(failure.contains(&format!("{file}:1")) && !failure.contains(foreign), "{failure}");
    }
}

#[test]
fn ctrl_c_prints_what_there_is_and_says_how_to_go_on() {
    let folder = scenario(500, TLSDASH);
    let mut command = tlsdash(folder.path());
    command.current_dir(folder.path()).args(["bench", "scenario.toml", "--save", "saved"]);
    let running = Running::start(command);
    let saved = folder.path().join("saved");
    until("a cell is measured", || {
        fs::read_to_string(saved.join("cells.jsonl")).is_ok_and(|text| text.lines().count() >= 1)
    });
    running.signal(Signal::INT);
    let (code, text, said) = running.wait_and_tell();
    assert_eq!(code, 0, "{said}");
    assert!(text.contains("good"), "{text}");
    assert!(said.contains("go on with: tlsdash bench --resume "), "{said}");
    assert_eq!(processes_of(&saved), Vec::<String>::new());
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
        let running = Running::start(command);
        until("the target is started", || folder.path().join("begun").exists());
        running.signal(Signal::INT);
        let (_, _, said) = running.wait_and_tell();
        assert!(said.contains("go on with: tlsdash bench --resume "), "{said}");
        // It is not given up, which takes 20 s: it was interrupted.
        assert_eq!(cells(&folder.path().join("saved")), Vec::<Value>::new());
        assert_eq!(processes_of(folder.path()), Vec::<String>::new());
    }
}

#[test]
fn mistakes_in_a_scenario_name_its_line() {
    let folder = scenario(1, TLSDASH);
    let text = format!("{TLSDASH}{}", CASE.replace("connections", "conections"));
    fs::write(folder.path().join("scenario.toml"), text).unwrap();
    let output = bench(folder.path(), "");
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("scenario.toml line 8: ") && said.contains("connections"), "{said}");
    // What `load` refuses.
    let text = format!("{TLSDASH}{}", CASE.replace("connections = 2", "connections = 0"));
    fs::write(folder.path().join("scenario.toml"), text).unwrap();
    let said = stderr(&bench(folder.path(), ""));
    assert!(said.contains("scenario.toml line 8: ") && said.contains("--connections"), "{said}");
}

#[test]
fn a_target_that_fails_is_quoted_and_the_others_run() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = port.local_addr().unwrap().port();
    let listen = "python3 -m http.server --bind 127.0.0.1";
    let targets = [
        TLSDASH.to_owned(),
        shell_target("dies", "echo my last words >&2; exit 3"),
        shell_target("taken", &format!("exec {listen} {taken} # {{port}}")),
    ];
    let folder = scenario(1, &targets.concat());
    let output = bench(folder.path(), "--save saved");
    assert!(output.status.success(), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("scenario.toml line 6: target dies: it ended with exit code 3"), "{said}");
    assert!(said.contains("my last words"), "{said}");
    assert!(said.contains("target taken: ") && said.contains("is in use by another process"), "{said}");
    let cells = cells(&folder.path().join("saved"));
    let failed: Vec<&str> = cells
        .iter()
        .filter(|cell| !cell["failure"].is_null())
        .map(|cell| cell["target"].as_str().unwrap())
        .collect();
    assert!(failed.len() == 2 && !failed.contains(&"good"), "{failed:?}");
}

#[test]
fn a_process_that_had_to_be_killed_is_a_remark() {
    let script =
        r#"(trap "" TERM; exec sleep 1000) & exec {tlsdash} bench-upstream --unix sock --tcp {port}"#;
    let folder = scenario(1, &shell_target("stubborn", script));
    let output = bench(folder.path(), "--save saved --md tables.md");
    assert!(output.status.success(), "{}", stderr(&output));
    let words = "when the target was stopped, 1 process did not end at SIGTERM and had to be killed";
    assert_eq!(cells(&folder.path().join("saved"))[0]["remarks"], serde_json::json!([words]));
    let tables = fs::read_to_string(folder.path().join("tables.md")).unwrap();
    assert!(tables.contains(words), "{tables}");
}

#[test]
fn a_target_that_answers_502_is_told() {
    common::outside("nginx", "nginx");
    // Nothing stands behind it.
    let bad_gateway = r#"
[[target]]
name = "bad-gateway"
tls = false
upstream = "none"
command = ["nginx", "-e", "stderr", "-c", "{dir}/nginx.conf"]
[target.files]
"nginx.conf" = '''
daemon off; pid {dir}/pid; error_log stderr error;
events { }
http { access_log off; server { listen {listen}; location / { proxy_pass http://127.0.0.1:1; } } }
'''
"#;
    let folder = scenario(1, bad_gateway);
    let output = bench(folder.path(), "");
    let said = stderr(&output);
    assert!(said.contains("/echo is not answered as it should be: status 502"), "{said}");
    assert_eq!(output.status.code(), Some(1), "no cell has figures: {said}");
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let missing =
        "[[target]]\nname = \"absent\"\ncommand = [\"no-such-program\"]\npackage = \"no-such-package\"\n";
    let folder = scenario(1, &format!("{TLSDASH}{missing}"));
    let words = "absent: there is no program no-such-program; Debian's package no-such-package has it";
    let output = bench(folder.path(), "");
    let text = String::from_utf8_lossy(&output.stdout).replace("\n  ", " ");
    assert!(output.status.success() && text.contains(words), "{text}{}", stderr(&output));
    let output = bench(folder.path(), "--require-all");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
}

#[test]
fn an_assertion_that_does_not_hold_ends_with_99() {
    let assertion = "[[assert]]\ntarget = \"good\"\ncondition = \"rate.achieved > 1000000\"\n";
    let folder = scenario(1, &format!("{TLSDASH}{assertion}"));
    let output = bench(folder.path(), "");
    assert_eq!(output.status.code(), Some(99), "{}", stderr(&output));
    assert!(
        stderr(&output).contains("scenario.toml line 6: rate.achieved > 1000000 of good"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn a_dry_run_starts_nothing() {
    let folder = scenario(3, TLSDASH);
    let output = bench(folder.path(), "--dry-run --scale 2 --case s*");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(text.contains("--duration=1400ms") && text.contains("3 cells in 3 rounds"), "{text}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let none = bench(folder.path(), "--dry-run --case x*");
    assert!(stderr(&none).contains("no case is left to run; there are small"), "{}", stderr(&none));
}

#[test]
fn templates_are_printed_to_copy() {
    let folder = tempfile::tempdir().unwrap();
    let list = run(folder.path(), &["bench", "templates"]);
    let list = String::from_utf8_lossy(&list.stdout).into_owned();
    assert!(list.lines().count() > 10 && list.lines().any(|name| name == "nginx-stream"), "{list}");
    for name in list.lines() {
        let printed = run(folder.path(), &["bench", "templates", name]);
        let text = format!("{}{CASE}", String::from_utf8_lossy(&printed.stdout));
        fs::write(folder.path().join("scenario.toml"), text).unwrap();
        let dry = bench(folder.path(), "--dry-run");
        assert!(dry.status.success(), "{name}: {}", stderr(&dry));
    }
    let unknown = run(folder.path(), &["bench", "templates", "ngnix"]);
    assert_eq!(unknown.status.code(), Some(2));
}
