//! `tlsdash wire` over captures, and what it refuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::common::{stderr, tlsdash};

fn capture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/captures").join(name)
}

fn wire(folder: &Path, args: &[&str]) -> Output {
    tlsdash(folder).arg("wire").args(args).args(["--headless", "--format", "json"]).output().unwrap()
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_capture_becomes_a_run_in_its_own_time_that_is_recorded_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (path, run) = (capture("tls13.pcap"), folder.path().join("run.journal"));
    let run = run.to_str().unwrap();
    let output = wire(folder.path(), &["--file", path.to_str().unwrap(), "--record", run]);
    assert!(stderr(&output).contains("12 connections, 0 handshakes not judged"), "{}", stderr(&output));
    let summary = json(&output);
    let handshakes = &summary["proxy"]["handshakes"];
    assert_eq!((&handshakes["full"], &handshakes["resumed"]), (&7.into(), &5.into()), "{handshakes}");
    assert_eq!(summary["log"]["packets"]["unjudged"], 0);
    assert!(summary["proxy"]["tls"]["wall_time_us"]["full"]["server"]["n"] == 7);
    let check = |condition: &str| {
        let args = ["check", run, "--assert", condition];
        tlsdash(folder.path()).args(args).output().unwrap().status.code()
    };
    assert_eq!(check("handshakes.full.refused >= 1"), Some(0));
    assert_eq!(check("handshakes.unjudged > 0"), Some(99));
}

#[test]
fn a_report_on_packets_has_failed_handshakes_by_service() {
    let folder = tempfile::tempdir().unwrap();
    let (path, run) = (capture("failed.pcap"), folder.path().join("run.journal"));
    let output = wire(folder.path(), &["--file", path.to_str().unwrap(), "--record", run.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = tlsdash(folder.path()).arg("report").arg(&run).args(["--md", "-"]).output().unwrap();
    let text = String::from_utf8_lossy(&report.stdout);
    let (_, by_service) = text.split_once("by service").unwrap_or_else(|| panic!("{text}"));
    let rows = by_service.lines().filter(|line| line.starts_with("| :"));
    let failed = rows.map(|row| row.split('|').nth(5).and_then(|cell| cell.trim().parse::<u64>().ok()));
    assert_eq!(failed.sum::<Option<u64>>(), Some(7), "{by_service}");
}

#[test]
fn each_service_of_a_recording_can_be_read_alone() {
    let folder = tempfile::tempdir().unwrap();
    let (path, run) = (capture("tls13.pcap"), folder.path().join("run.journal"));
    let output = wire(folder.path(), &["--file", path.to_str().unwrap(), "--record", run.to_str().unwrap()]);
    assert!(output.status.success(), "{}", stderr(&output));
    let report = |service: &[&str]| {
        let args = ["report", run.to_str().unwrap(), "--json", "-"];
        tlsdash(folder.path()).args(args).args(service).output().unwrap()
    };
    let full = |output: &Output| json(output)["summary"]["proxy"]["handshakes"]["full"].as_u64().unwrap();
    let services = [":24431", ":24432", ":24433"].map(|service| report(&["--service", service]));
    assert_eq!(services.each_ref().map(full).iter().sum::<u64>(), full(&report(&[])));
    assert!(services.iter().all(|service| full(service) > 0));
    let unknown = report(&["--service", "nginx"]);
    assert_eq!(unknown.status.code(), Some(1));
    let said = stderr(&unknown);
    assert!(said.contains("no service") && said.contains(":24431") && said.lines().count() == 1, "{said}");
    // A recording is copied with its parts.
    let copy = folder.path().join("copy.journal");
    let compact = ["compact", run.to_str().unwrap(), copy.to_str().unwrap()];
    let output = tlsdash(folder.path()).args(compact).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let args = ["check", copy.to_str().unwrap(), "--service", ":24431", "--assert", "handshakes.full > 0"];
    assert_eq!(tlsdash(folder.path()).args(args).output().unwrap().status.code(), Some(0));
}

#[test]
fn a_capture_may_come_through_a_pipe_compressed_and_without_names() {
    let folder = tempfile::tempdir().unwrap();
    let script = format!("gzip -c '{}'", capture("tls12.pcap").display());
    let mut gzip = Command::new("sh").args(["-c", &script]).stdout(Stdio::piped()).spawn().unwrap();
    let mut command = tlsdash(folder.path());
    command.args(["wire", "--file", "-", "--log-names", "off", "--headless", "--format", "json"]);
    let output = command.stdin(gzip.stdout.take().unwrap()).output().unwrap();
    assert!(gzip.wait().unwrap().success());
    let summary = json(&output);
    let names = summary["proxy"]["tls"]["usage"]["name"].as_array().unwrap();
    assert!(names.iter().all(|usage| usage["value"] == "none"), "{names:?}");
}

#[test]
fn what_is_no_capture_or_has_no_tls_is_refused_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let whole = std::fs::read(capture("tls12.pcap")).unwrap();
    for (file, words) in [
        (path("text", b"GET / HTTP/1.1\r\n\r\n and so on and on"), "not a capture"),
        (path("empty", b""), "the capture is empty"),
        (path("header", &whole[..24]), "none of its 0 packets is of a TLS connection"),
        (path("cut", &whole[..100]), "the capture ends in the middle of a packet"),
        ("missing.pcap".to_owned(), "cannot read --file missing.pcap"),
    ] {
        let output = wire(folder.path(), &["--file", &file]);
        assert_eq!(output.status.code(), Some(1), "{file}: {}", stderr(&output));
        assert!(stderr(&output).contains(words), "{file}: {}", stderr(&output));
        assert_eq!(stderr(&output).lines().count(), 1, "{file}: {}", stderr(&output));
    }
    let whole = capture("tls12.pcap");
    for option in
        [&["--duration", "1s"][..], &["--interface", "lo"], &["--process", "nginx"], &["--alert", "a > 1"]]
    {
        let args = [&["--file", whole.to_str().unwrap()], option].concat();
        assert_eq!(wire(folder.path(), &args).status.code(), Some(2), "{option:?}");
    }
    let output = wire(folder.path(), &["--file", whole.to_str().unwrap(), "--port", "1"]);
    assert!(stderr(&output).contains("is of a TLS connection"), "{}", stderr(&output));
}

#[test]
fn without_privileges_one_line_says_what_packets_need() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = crate::service::without_root(folder.path());
    let output = command.args(["wire", "--headless", "--journal", "off"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("setcap cap_net_raw+ep"), "{}", stderr(&output));
    assert_eq!(stderr(&output).lines().count(), 1, "{}", stderr(&output));
}
