//! Whole runs: figures, files, exit codes, what the documents show.

use std::fs;

use serde_json::Value;

use super::{CASE, TLSDASH, bench, cells, scenario, shell_target};
use crate::common::{self, run, stderr};

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
        assert_eq!(cell["negotiated"]["cipher"], "TLS_AES_128_GCM_SHA256", "{cell}");
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
fn a_missing_program_is_named_with_its_package() {
    let missing =
        "[[target]]\nname = \"absent\"\ncommand = [\"no-such-program\"]\npackage = \"no-such-package\"\n";
    let folder = scenario(1, &format!("{TLSDASH}{missing}"));
    let words = "absent: there is no program no-such-program; Debian's package no-such-package has it";
    let output = bench(folder.path(), "");
    let text = String::from_utf8_lossy(&output.stdout).replace("\n  ", " ");
    assert!(output.status.success() && text.contains(words), "{text}{}", stderr(&output));
    let shown =
        ["tlsdash: good: {tlsdash} --headless --listen {listen}", "tlsdash: absent: no-such-program\n"];
    assert!(shown.iter().all(|command| stderr(&output).contains(command)), "{}", stderr(&output));
    let output = bench(folder.path(), "--require-all");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains(words), "{}", stderr(&output));
}

#[test]
fn a_variable_that_names_no_file_leaves_a_target_out() {
    let template = "[[target]]\nname = \"gateway\"\ntemplate = \"spring-gateway\"\n";
    let folder = scenario(1, &format!("{TLSDASH}{template}"));
    let mut command = super::bench_command(folder.path(), "");
    let output = command.env("SPRING_GATEWAY_JAR", folder.path().join("none.jar")).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).replace("\n  ", " ");
    let words = "gateway: the variable SPRING_GATEWAY_JAR names no file; set it to the path of one";
    assert!(output.status.success() && text.contains(words), "{text}{}", stderr(&output));
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
    assert!(text.contains("  good (baseline)\n    {tlsdash} --headless --listen {listen}"), "{text}");
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

#[test]
fn scenarios_of_the_documents_can_be_run() {
    let folder = tempfile::tempdir().unwrap();
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/scenarios");
    let mut count = 0;
    for entry in fs::read_dir(scenarios).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            continue;
        }
        let dry = run(folder.path(), &["bench", path.to_str().unwrap(), "--dry-run"]);
        assert!(dry.status.success(), "{}: {}", path.display(), stderr(&dry));
        count += 1;
    }
    assert!(count >= 6, "{count}");
}

#[test]
fn memory_of_idle_connections_is_measured() {
    let case = "[[case]]\nname = \"idle\"\nmeasure = \"load\"\npath = \"/bytes/13\"\n";
    let folder = scenario(1, TLSDASH);
    let path = folder.path().join("scenario.toml");
    let text = fs::read_to_string(&path).unwrap()
        + case
        + "connections = 200\nrate = \"400/500ms+10/1500ms\"\n"
        + &case.replace("idle", "closed")
        + "connections = 2\nkeep-alive = \"off\"\nrequests = 50\n";
    fs::write(&path, text).unwrap();
    let output = bench(folder.path(), "--save saved --json out.json");
    assert!(output.status.success(), "{}", stderr(&output));
    let kept = |case: &str| {
        let cells = cells(&folder.path().join("saved"));
        cells.iter().find(|cell| cell["case"] == case).unwrap()["connections_kept"].clone()
    };
    assert_eq!((kept("idle"), kept("closed")), (200.into(), Value::Null));
    let json = fs::read_to_string(folder.path().join("out.json")).unwrap();
    let json: Value = serde_json::from_str(&json).unwrap();
    let case = json["cases"].as_array().unwrap().iter().find(|case| case["name"] == "idle").unwrap();
    let figures = case["targets"][0]["figures"].as_array().unwrap();
    let figure = figures.iter().find(|figure| figure["name"] == "target.memory.rss_per_connection").unwrap();
    // A TLS session with its buffers takes several kB; what the first connection brings is spread over only 200.
    let bytes = figure["median"].as_f64().unwrap();
    assert!((2_000.0..200_000.0).contains(&bytes), "{bytes}");
}
