//! `tlsdash load` from the outside: what it prints, writes and ends with.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{TlsdashProcess, journalctl, run, stderr, tlsdash};
use loadgen::{DemoUpstream, UpstreamAddr};
use rustix::process::Signal;
use serde_json::Value;

/// Loads the demo's server on a unix socket; `args` are one string.
fn load(folder: &Path, args: &str) -> Output {
    load_at(folder, "/bytes/13", args)
}

fn load_at(folder: &Path, path: &str, args: &str) -> Output {
    let socket = folder.join("app.sock");
    let _upstream = DemoUpstream::start(UpstreamAddr::Unix(socket.clone())).unwrap();
    let (socket, url) = (socket.display().to_string(), format!("http://localhost{path}"));
    let all = ["load", &url, "--headless", "--unix-socket", &socket];
    tlsdash(folder).current_dir(folder).args(all).args(args.split(' ')).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", stderr(output));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn every_style_has_the_figures_of_its_model() {
    let folder = tempfile::tempdir().unwrap();
    for (style, parts) in [
        (
            "vegeta",
            &["Requests      [total, rate, throughput]         100, 500.00,", "200:100", "100.00%"][..],
        ),
        ("h2load", &["requests: 100 total, 100 started, 100 done, 100 succeeded, 0 failed", "100 2xx"]),
        ("ab", &["Complete requests:      100", "HTML transferred:       1300 bytes", "longest request"]),
        ("wrk", &["  1 threads and 2 connections", "100 requests in", "Requests/sec:"]),
        ("jmeter", &["# Samples", "Std. Dev.", "Throughput"]),
    ] {
        let text = stdout(&load(folder.path(), &format!("-n 100 -r 500 -c 2 --style {style}")));
        for part in parts {
            assert!(text.contains(part), "{style}: {part:?} is not in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}

#[test]
fn the_json_says_how_it_was_measured() {
    let folder = tempfile::tempdir().unwrap();
    let text = stdout(&load(folder.path(), "-n 200 -c 4 -k 10 --format json"));
    let summary: Value = serde_json::from_str(&text).unwrap();
    let load = &summary["load"];
    let connections = load["connections"].as_u64().unwrap();
    // The four end with up to nine requests to go.
    assert!(load["requests"]["ok"] == 200 && (20..=23).contains(&connections), "{load}");
    assert_eq!(load["events"][0]["of"], 200, "{load}");
    assert_eq!(load["latency_us"]["connect"]["n"], connections);
    assert_eq!(load["latency_us"]["first_byte"]["n"], 200);
    assert!(load["notes"][0].as_str().unwrap().starts_with("closed loop"), "{load}");
    assert!(load["spans_s"]["measured"].as_f64().unwrap() > 0.0);
}

#[test]
fn an_assertion_that_does_not_hold_ends_with_99() {
    let folder = tempfile::tempdir().unwrap();
    let good = load(folder.path(), "-n 100 -c 2 --assert errors==0 --assert service.p50<60s");
    assert_eq!(good.status.code(), Some(0), "{}", stderr(&good));
    let bad = load(folder.path(), "-n 100 -c 2 --assert requests.ok>100 --assert service.p99<60s");
    assert_eq!(bad.status.code(), Some(99));
    let said = stderr(&bad);
    assert!(
        said.contains("requests.ok>100: it is 100; service.p99<60s: too few samples: 100 of the 1000"),
        "{said}"
    );
    assert!(!bad.stdout.is_empty(), "the summary is printed all the same");
}

/// A server on threads that answers so many requests and then nothing, until the test ends.
fn freezing_server(answers: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let left = Arc::new(AtomicUsize::new(answers));
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let left = Arc::clone(&left);
            std::thread::spawn(move || answer_while_any_is_left(stream, &left));
        }
    });
    address
}

fn answer_while_any_is_left(mut stream: TcpStream, left: &AtomicUsize) {
    let mut request = [0; 1_000];
    while stream.read(&mut request).is_ok_and(|len| len > 0) {
        let is_left =
            left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if is_left && stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").is_err() {
            return;
        }
    }
}

#[test]
fn a_frozen_server_does_not_achieve_the_rate_that_it_had_before() {
    let folder = tempfile::tempdir().unwrap();
    let load = |args: &str| {
        let all = format!("load http://{}/ --headless {args}", freezing_server(100));
        run(folder.path(), &all.split(' ').collect::<Vec<_>>())
    };
    // Whether time or a number of requests ends the schedule.
    for ends in ["-d 1s -c 4", "-n 500 -c 500 --timeout 2s"] {
        let output = load(&format!("-r 500 {ends} --assert rate.achieved>=495"));
        assert_eq!(output.status.code(), Some(99), "{}", stderr(&output));
        let (text, said) = (String::from_utf8_lossy(&output.stdout), stderr(&output));
        assert!(said.contains("rate.achieved>=495: it is 100, 79.8 % below"), "{said}");
        assert!(text.contains("100.0/s answered of 500.0/s wanted over 1.00 s"), "{text}");
        assert!(text.contains("rate not achieved: 500.0/s were wanted and 100.0/s answered"), "{text}");
    }
    let output = load("-r 500 -d 1s -c 4 --format json");
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let load = &summary["load"];
    assert_eq!((&load["requests"]["answered"], &load["requests"]["throttled"]), (&100.into(), &0.into()));
    assert_eq!((&load["spans_s"]["due"], &load["spans_s"]["measured"]), (&1.0.into(), &1.0.into()), "{load}");
    assert_eq!(load["rate_per_s"]["is_achieved"], false, "{load}");
}

#[test]
fn requests_not_sent_to_throttled_connections_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    // It takes the connection that tries it out, and no other.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || drop(listener.accept().unwrap()));
    let args = ["load", &url, "--headless", "-r", "500", "-d", "1s", "-c", "2", "--format", "json"];
    let output = run(folder.path(), &args);
    server.join().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let load = &summary["load"];
    let throttled = load["requests"]["throttled"].as_u64().unwrap();
    let never_sent = load["requests"]["never_sent"].as_u64().unwrap();
    assert!(throttled > 100 && (throttled..=500).contains(&never_sent), "{load}");
    assert_eq!((&load["requests"]["answered"], &load["rate_per_s"]["achieved"]), (&0.into(), &0.0.into()));
    let journal = folder.path().join("tlsdash.journal");
    let watched = run(folder.path(), &["watch", journal.to_str().unwrap(), "--headless"]);
    let text = String::from_utf8(watched.stdout).unwrap();
    let note = format!("throttled: {throttled} requests were not sent");
    assert!(text.contains(&format!("{throttled} of these throttled")) && text.contains(&note), "{text}");
}

#[test]
fn repeated_runs_and_sizes_are_told_with_their_spread() {
    let folder = tempfile::tempdir().unwrap();
    let text =
        stdout(&load_at(folder.path(), "/echo", "-n 50 -c 2 --repeat 3 --body-bytes 10,1000 --style wrk"));
    for size in ["10 bytes", "1000 bytes"] {
        let row = text.lines().find(|line| line.starts_with(size) && line.contains("service.p50, ms"));
        assert!(row.unwrap().trim_end().ends_with('3'), "{text}");
    }
    let csv = stdout(&load(folder.path(), "-n 50 -c 2 --repeat 2 --csv"));
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len(), 3, "{csv}");
    let at = lines[0].iter().position(|name| *name == "requests.ok").unwrap();
    assert_eq!((lines[1][at], lines[2][at]), ("50", "50"));
}

#[test]
fn files_of_hdrhistogram_hold_every_sample() {
    let folder = tempfile::tempdir().unwrap();
    let (hgrm, hlog) = (folder.path().join("out.hgrm"), folder.path().join("out.hlog"));
    stdout(&load(folder.path(), "-d 1s -r 200 -c 2 --interval 100ms --hgrm out.hgrm --hlog out.hlog"));
    let percentiles = fs::read_to_string(hgrm).unwrap();
    assert!(percentiles.contains("Total count    =          200]"), "{percentiles}");
    let log = fs::read_to_string(hlog).unwrap();
    // On a busy machine, intervals last longer than asked for, and there are fewer.
    assert!(log.lines().filter(|line| line.starts_with("Tag=response,")).count() > 1, "{log}");
    let bad = load(folder.path(), "-n 1 --hgrm /no/such/folder/out.hgrm");
    assert_eq!(bad.status.code(), Some(1));
    assert!(stderr(&bad).contains("cannot write --hgrm /no/such/folder/out.hgrm"), "{}", stderr(&bad));
}

#[test]
fn a_targets_file_defines_the_requests() {
    let folder = tempfile::tempdir().unwrap();
    let targets = folder.path().join("targets");
    fs::write(&targets, "3 GET /bytes/13\nAccept: text/html\n= 13\n\nGET /bytes/14\n= 12\n").unwrap();
    let loaded = load(folder.path(), "-n 40 -c 2 --targets targets --format json");
    let summary: Value = serde_json::from_str(&stdout(&loaded)).unwrap();
    assert_eq!(summary["load"]["requests"]["ok"], 30, "{summary}");
    assert_eq!(summary["load"]["failures"]["body"], 10, "another length was expected");
    fs::write(&targets, "GET /\nnonsense\n").unwrap();
    let bad = load(folder.path(), "-n 1 --targets targets");
    assert_eq!(bad.status.code(), Some(2));
    assert!(stderr(&bad).contains("targets line 2: expected a header field"), "{}", stderr(&bad));
}

#[test]
fn ctrl_c_gives_the_summary_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("app.sock");
    let _upstream = DemoUpstream::start(UpstreamAddr::Unix(socket.clone())).unwrap();
    let mut command = tlsdash(folder.path());
    command.args([
        "load",
        "http://localhost/bytes/1",
        "-r",
        "100",
        "-d",
        "10m",
        "--repeat",
        "5",
        "--headless",
    ]);
    command.args(["--style", "vegeta", "--interval", "100ms", "--unix-socket"]).arg(socket);
    let running = TlsdashProcess::start(command);
    let journal = folder.path().join("tlsdash.journal");
    crate::common::until("something was measured", || {
        journal.exists() && journalctl(&journal, &["TLSDASH_KIND=load"]).len() >= 3
    });
    running.signal(Signal::INT);
    let (code, printed) = running.wait();
    assert_eq!(code, 0, "{printed}");
    assert_eq!(printed.matches("Requests ").count(), 1, "no further run begins: {printed}");
    assert!(printed.contains("100.00%"), "{printed}");
}

#[test]
fn all_requests_due_while_the_generator_stood_still_are_late() {
    const STOPPED: Duration = Duration::from_secs(1);
    let folder = tempfile::tempdir().unwrap();
    let url = format!("http://{}/", freezing_server(usize::MAX));
    let mut command = tlsdash(folder.path());
    command.args(["load", &url, "--headless", "--interval", "100ms", "--format", "json"]);
    command.args("-r 200 -n 800 -c 2 -t 1".split(' '));
    let running = TlsdashProcess::start(command);
    let journal = folder.path().join("tlsdash.journal");
    crate::common::until("something was measured", || {
        journal.exists() && !journalctl(&journal, &["TLSDASH_KIND=load"]).is_empty()
    });
    running.signal(Signal::STOP);
    // What is tested is the time itself.
    std::thread::sleep(STOPPED);
    running.signal(Signal::CONT);
    let (code, printed) = running.wait();
    let summary: Value = serde_json::from_str(&printed).unwrap();
    let requests = &summary["load"]["requests"];
    assert_eq!((code, &requests["answered"]), (0, &800.into()), "{requests}");
    assert!(requests["late"].as_u64().unwrap() >= 198, "{requests}");
}

#[test]
fn another_process_is_observed_beside_the_latencies() {
    let folder = tempfile::tempdir().unwrap();
    let mut busy = Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let text = load(folder.path(), &format!("-d 1s -r 100 -c 1 --format json --observe-pid {}", busy.id()));
    busy.kill().unwrap();
    busy.wait().unwrap();
    let summary: Value = serde_json::from_str(&stdout(&text)).unwrap();
    let observed = &summary["observed"];
    assert_eq!(observed["pid"], busy.id());
    assert!(observed["cpu_s"].as_f64().unwrap() > 0.05, "{observed}");
    assert!(observed["memory_max_bytes"].as_u64().unwrap() > 100_000, "{observed}");
    let two = format!("-n 1 --format json --observe-pid {me} --observe-pid 1", me = std::process::id());
    let summary: Value = serde_json::from_str(&stdout(&load(folder.path(), &two))).unwrap();
    assert_eq!(summary["observed"]["pid"], std::process::id(), "the first names them");
    let gone = load(folder.path(), &format!("-n 1 --observe-pid {}", u32::MAX - 1));
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr(&gone).contains("cannot observe process"), "{}", stderr(&gone));
}

#[test]
fn a_generator_keeps_to_its_cores_and_records_them() {
    let folder = tempfile::tempdir().unwrap();
    let allowed = rustix::thread::sched_getaffinity(None).unwrap();
    let core = (0..rustix::thread::CpuSet::MAX_CPU).find(|&core| allowed.is_set(core)).unwrap();
    stdout(&load(folder.path(), &format!("-n 10 --cpus {core}")));
    let runs = journalctl(&folder.path().join("tlsdash.journal"), &["TLSDASH_KIND=run"]);
    let settings = runs[0]["TLSDASH_SETTINGS"].as_str().unwrap();
    assert!(settings.contains(&format!(r#""name":"load.cpus","value":"{core}""#)), "{settings}");
    assert_eq!(crate::common::number(&runs[0], "TLSDASH_CORES"), 1, "all threads keep to it");
    let refused = load(folder.path(), "-n 10 --cpus 1023");
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--cpus 1023: core 1023 does not exist"), "{}", stderr(&refused));
}

#[test]
fn new_and_kept_connections_are_shown_side_by_side() {
    let folder = tempfile::tempdir().unwrap();
    let ab = stdout(&load(folder.path(), "-n 100 -c 1 -k 4 --style ab"));
    let row =
        |name: &str| ab.lines().find(|line| line.starts_with(name)).map(|line| line.trim_end().to_owned());
    assert!(row("#  new, plain:").unwrap().ends_with(" 25"), "{ab}");
    assert!(row("#  kept alive:").unwrap().ends_with(" 75"), "{ab}");
    assert_eq!(row("#  resumed:"), None, "{ab}");
    let text = stdout(&load(folder.path(), "-n 100 -c 1 -k 4 -D 20"));
    assert!(text.contains("  new, without TLS ") && text.contains("  kept alive "), "{text}");
}

#[test]
fn a_rate_beyond_the_server_is_said_to_be_not_achieved() {
    let folder = tempfile::tempdir().unwrap();
    // A connection for each request, and one at a time: far below the rate that is asked for.
    let args = "-R 1000000 -d 1 -c 1 -k off --style vegeta";
    let text = stdout(&load(folder.path(), args));
    assert!(text.contains("# rate not achieved: "), "{text}");
}
