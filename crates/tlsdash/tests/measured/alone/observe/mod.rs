//! `tlsdash observe` over real terminators.
//!
//! | module | purpose |
//! |---|---|
//! | `counts` | what it counts of their logs is what the generator counted, and what is lost is known |
//! | `causes` | failures that the test causes are counted by their cause |
//! | `replays` | a log that is replayed gives the same log |
//! | `test_bed` | terminators that run for a test |

mod causes;
mod counts;
mod replays;
pub(super) mod test_bed;

use std::os::unix::net::UnixDatagram;
use std::process::Command;

use crate::common::{TlsdashProcess, outside, run, stderr, tlsdash, until};
use rustix::process::Signal;
use serde_json::Value;
use test_bed::ObserveTestBed;

#[test]
fn a_terminator_that_logs_too_little_is_refused_with_another_way() {
    let folder = tempfile::tempdir().unwrap();
    for (terminator, word) in [("hitch", "exactly"), ("tlsdash", "tlsdash watch")] {
        let refused = run(folder.path(), &["observe", terminator, "--file", "-"]);
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(word), "{}", stderr(&refused));
    }
}

#[test]
fn options_of_a_running_terminator_are_refused_for_a_whole_log() {
    let folder = tempfile::tempdir().unwrap();
    for option in
        [&["--journal", "file:out.journal"][..], &["--append"], &["--pid", "1"], &["--keep-running"]]
    {
        let refused =
            run(folder.path(), &[&["observe", "nginx", "--headless", "--file", "log"], option].concat());
        assert_eq!(refused.status.code(), Some(2), "{option:?}");
        assert!(
            stderr(&refused).contains(&format!("{} goes with --syslog", option[0])),
            "{}",
            stderr(&refused)
        );
    }
}

/// Six connections in HAProxy's log, a second apart.
fn haproxy_log() -> String {
    let line = r#"{"kind":"tcp","time":"1700000001.000","log":"t","line":"1","client":"10.0.0.1","version":"TLSv1.3","cipher":"TLS_AES_128_GCM_SHA256","resumed":"0","name":"a.example","alpn":"","handshake":"0","state":"--","in":"5","out":"7","took":"20","connect":"3"}"#;
    (1..7).map(|second| line.replace("00001.", &format!("0000{second}.")) + "\n").collect()
}

#[test]
fn a_named_pipe_is_opened_once() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut observe = tlsdash(folder.path());
    observe.args(["observe", "haproxy", "--headless", "--file"]).arg(&pipe);
    let observing = TlsdashProcess::start(observe);
    // Waits for whoever reads it.
    let writing = std::thread::spawn(move || std::fs::write(pipe, haproxy_log()));
    let (code, _, said) = observing.wait_and_tell();
    assert!(code == 0 && said.contains("6 lines of "), "{said}");
    writing.join().unwrap().unwrap();
}

#[test]
fn times_of_a_log_are_bounds_in_a_report_and_what_it_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("log"), haproxy_log()).unwrap();
    let args = ["observe", "haproxy", "--headless", "--file", "log", "--record", "run.journal"];
    let mut observe = tlsdash(folder.path());
    assert!(observe.args(args).current_dir(folder.path()).status().unwrap().success());
    let mut again = tlsdash(folder.path());
    again.args(["observe", "haproxy", "--headless", "--file", "log", "--record", "other.journal"]);
    assert!(again.current_dir(folder.path()).status().unwrap().success());
    let report = |form: &str| {
        let mut report = tlsdash(folder.path());
        let made =
            report.args(["report", "run.journal", form, "-"]).current_dir(folder.path()).output().unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        String::from_utf8(made.stdout).unwrap()
    };
    for form in ["--md", "--html"] {
        let text = report(form);
        assert!(text.contains("≤ 1") && !text.contains("3.000"), "{form}: {text}");
        assert!(text.contains("What the log does not say") && text.contains("handshake CPU time"), "{form}");
        assert!(!text.contains("Why handshakes were full"), "{form}: no log says that");
    }
    let json: Value = serde_json::from_str(&report("--json")).unwrap();
    assert_eq!(json["summary"]["log"]["resolution_us"], 1_000);
    let bound = &json["summary"]["proxy"]["latency_us"]["handshake_full"]["max"];
    assert_eq!(bound, &serde_json::json!({"at_most": 1_000.0}));
    let recording = folder.path().join("run.journal").display().to_string();
    let check = |condition: &str| run(folder.path(), &["check", &recording, "--assert", condition]);
    assert_eq!(check("handshake_full.max < 5ms").status.code(), Some(0));
    let unknown = check("handshake_full.max < 0.5ms");
    assert_eq!(unknown.status.code(), Some(99));
    assert!(stderr(&unknown).contains("cannot be judged: it is at most 1 ms"), "{}", stderr(&unknown));
    let metrics = "handshake_full.p50+connect.p50";
    let mut compare = tlsdash(folder.path());
    let compared = compare
        .args(["compare", "run.journal", "other.journal", "--block", "1s", "--discard", "0s"])
        .args(["--metric", metrics, "--html", "page.html"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&compared.stdout);
    let note = "A was counted from a log of haproxy with times to 1 ms";
    assert!(text.contains(note), "{text}{}", stderr(&compared));
    let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap().to_owned();
    assert_eq!(row("handshake_full.p50").matches("≤ 1 ").count(), 2, "{text}");
    assert!(row("handshake_full.p50").ends_with("NOT COMPARABLE: at the log's resolution"), "{text}");
    assert!(row("connect.p50").split_whitespace().filter(|cell| *cell == "3").count() == 2, "{text}");
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    for shown in [r#"<td class="n">≤ 1</td><td class="n">≤ 1</td>"#, "≤ 1 → ≤ 1"] {
        assert!(page.contains(shown), "{shown}");
    }
}

/// A line of HAProxy in TCP mode: a handshake, or a failed one with OpenSSL's words.
fn logged(n: u64, client: &str, handshake: Result<(&str, u8), &str>) -> String {
    let head = format!(r#""time":"17000000{:02}.000","log":"t","line":"{n}","client":"{client}""#, n / 20);
    match handshake {
        Ok((version, resumed)) => {
            format!(
                r#"{{"kind":"tcp",{head},"version":"{version}","cipher":"","resumed":"{resumed}","handshake":"1","state":"--","in":"1","out":"1","took":"2","connect":"1"}}"#
            ) + "\n"
        }
        Err(words) => format!(r#"{{"kind":"error",{head},"code":"7","error":"{words}"}}"#) + "\n",
    }
}

#[test]
fn findings_name_old_versions_clients_that_never_resume_and_causes() {
    let folder = tempfile::tempdir().unwrap();
    let old = (0..150).map(|n| logged(n, "10.0.0.1", Ok(("TLSv1.2", 0))));
    let new = (150..250).map(|n| logged(n, "10.0.0.2", Ok(("TLSv1.3", u8::from(n > 150)))));
    let failed =
        (250..270).map(|n| logged(n, "10.0.0.3", Err("error:0A000102:SSL routines::unsupported protocol")));
    let log: String = old.chain(new).chain(failed).collect();
    std::fs::write(folder.path().join("log"), log).unwrap();
    let run_in = |args: &[&str]| {
        let mut command = tlsdash(folder.path());
        let ended = command.args(args).current_dir(folder.path()).output().unwrap();
        assert!(ended.status.success(), "{}", stderr(&ended));
        ended.stdout
    };
    run_in(&["observe", "haproxy", "--headless", "--file", "log", "--record", "run.journal"]);
    let found: Value =
        serde_json::from_slice(&run_in(&["explain", "run.journal", "--format", "json"])).unwrap();
    let of = |id: &str| {
        let findings = found["findings"].as_array().unwrap();
        findings.iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("no {id}: {found:#}"))
    };
    assert_eq!(of("never-resumes")["whom"], serde_json::json!(["10.0.0.1: 150 full handshakes"]));
    assert_eq!(of("old-versions")["whom"], serde_json::json!(["10.0.0.1: 150 of 150 handshakes"]));
    assert_eq!(of("old-versions")["title"], "TLS 1.3 only would refuse 1 client, with 60 % of handshakes");
    let refused = of("handshakes-refused")["whom"].to_string();
    assert!(refused.contains("unsupported protocol"), "{refused}");
}

#[test]
fn lost_lines_are_in_every_total_and_so_is_not_knowing_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let run_in =
        |args: &[&str]| tlsdash(folder.path()).args(args).current_dir(folder.path()).output().unwrap();
    let count = |log: String, name: &str| {
        std::fs::write(folder.path().join("log"), log).unwrap();
        let counted = run_in(&[
            "observe",
            "haproxy",
            "--headless",
            "--format",
            "json",
            "--file",
            "log",
            "--record",
            name,
        ]);
        assert!(counted.status.success(), "{}", stderr(&counted));
        serde_json::from_slice::<Value>(&counted.stdout).unwrap()["log"]["lines"].take()
    };
    let numbered = (0..40).filter(|n| n / 10 != 2).map(|n| logged(n, "10.0.0.1", Ok(("TLSv1.3", 0))));
    let lines = count(numbered.collect(), "numbered.journal");
    assert_eq!(lines, serde_json::json!({"read": 30, "unreadable": 0, "out_of_order": 0, "lost": 10}));
    let said = |args: &[&str]| {
        let ended = run_in(args);
        format!("{}{}", String::from_utf8_lossy(&ended.stdout), stderr(&ended))
    };
    assert!(said(&["report", "numbered.journal", "--md", "-"]).contains("10 lines of the log were lost"));
    assert!(said(&["explain", "numbered.journal"]).contains("of the log's lines were lost"));
    let check = |name| said(&["check", name, "--assert", "lost == 0"]);
    assert!(check("numbered.journal").contains("lost == 0: it is 10"), "{}", check("numbered.journal"));
    let own = r#"Nov  6 12:14:14 web haproxy[1]: 10.0.1.2:1 [06/Nov/2023:12:14:14.655] in be/s1 1/0/3/6/9 200 1 - - ---- 1/1/1/1/0 0/0 "GET / HTTP/1.1""#;
    assert_eq!(count(format!("{own}\n"), "own.journal")["lost"], Value::Null);
    assert!(check("own.journal").contains("lost == 0: the log does not say: the lines have no numbers"));
    assert!(said(&["watch", "own.journal", "--headless"]).contains("how many were lost is not known"));
}

#[test]
fn the_certificate_of_a_terminator_is_recorded_and_its_end_is_found() {
    let start = |site: &ObserveTestBed| {
        let (listen, upstream, pem) = (site.listen, site.upstream(), site.path("both.pem"));
        let configuration = format!(
            "defaults\n    mode tcp\n    timeout connect 10s\n    timeout client 60s\n    timeout server 60s\n\
             frontend clients\n    bind {listen} ssl crt {}\n    default_backend upstream\n\
             backend upstream\n    server upstream {upstream}\n",
            pem.display()
        );
        std::fs::write(site.path("haproxy.cfg"), configuration).unwrap();
        let mut haproxy = outside("haproxy", "haproxy");
        haproxy.args(["-W", "-db", "-f"]).arg(site.path("haproxy.cfg"));
        site.start(haproxy, "haproxy")
    };
    let [site, later] = [ObserveTestBed::new(), ObserveTestBed::new()];
    let haproxy = start(&site);
    let mut command = tlsdash(site.folder.path());
    let pid = haproxy.0.id().to_string();
    let [certificate, late] = [site.listen, later.listen].map(|listen| format!("localhost@{listen}"));
    command.args(["observe", "haproxy", "--syslog", "unix:made/log", "--headless", "--format", "json"]);
    command.args(["--pid", &pid, "--certificate-of", &certificate, "--journal", "file:run.journal"]);
    command.args(["--certificate-of", &late]);
    command.current_dir(site.folder.path());
    let mut observing = TlsdashProcess::start(command);
    let line = observing.line_with("certificate of");
    assert!(line.contains("ECDSA P-256 for localhost until") && line.contains("(no chain)"), "{line}");
    let warning = observing.line_with("warning");
    let expected =
        format!("cannot ask --certificate-of {} for its certificate: Connection refused", later.listen);
    assert!(warning.contains(&expected) && warning.ends_with("; trying again"), "{warning}");
    observing.line_with("observing haproxy");
    let later_haproxy = start(&later);
    let line = observing.line_with("proxy.certificate.2");
    assert!(line.contains("ECDSA P-256 for localhost until"), "{line}");
    later_haproxy.finish(Signal::TERM);
    // The folder was made as well.
    let socket = UnixDatagram::unbound().unwrap();
    socket.send_to(logged(1, "10.0.0.1", Ok(("TLSv1.3", 0))).as_bytes(), site.path("made/log")).unwrap();
    until("a reading with the line", || {
        let mut explain = tlsdash(site.folder.path());
        let explained =
            explain.args(["explain", "run.journal"]).current_dir(site.folder.path()).output().unwrap();
        String::from_utf8_lossy(&explained.stdout).contains("certificate expires")
    });
    let (code, printed, said) = observing.end_and_tell();
    assert_eq!(code, 0, "{said}");
    let printed: Value = serde_json::from_str(&printed).unwrap();
    let observed = &printed["observed"];
    assert!(observed["listeners"].as_u64() >= Some(1), "{observed}");
    assert!(observed["descriptors"].as_u64() > Some(3), "{observed}");
    let processes = observed["processes"].as_array().unwrap();
    let named = |process: &Value| process["name"] == "haproxy" && process["cpu_s"].as_f64().is_some();
    assert!(processes.len() == 2 && processes.iter().all(named), "a master and a worker: {observed}");
    assert_eq!(processes[0]["pid"], observed["pid"]);
    haproxy.finish(Signal::TERM);
}
