//! A log that is replayed gives the same log.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use rustix::process::Signal;
use serde_json::Value;

use super::test_bed::ObserveTestBed;
use crate::common::{outside, stderr, tlsdash};

/// What the log says of each request, by the values of these fields.
fn counts(log: &[Value], fields: &[&str]) -> BTreeMap<Vec<String>, u64> {
    let mut counts = BTreeMap::new();
    for line in log {
        *counts.entry(fields.iter().map(|field| line[field].to_string()).collect()).or_default() += 1;
    }
    counts
}

/// How many requests each value of a field has, whatever the value.
fn shape(log: &[Value], field: &str) -> Vec<u64> {
    let mut shape: Vec<_> = counts(log, &[field]).into_values().collect();
    shape.sort_unstable();
    shape
}

fn resumed_connections(log: &[Value]) -> usize {
    log.iter().filter(|line| line["number"] == "1" && line["reused"] == "r").count()
}

/// The bytes of each request with a body, in order.
fn sizes_of_uploads(log: &[Value]) -> Vec<u64> {
    let size = |line: &Value| line["in"].as_str().unwrap().parse().unwrap();
    let mut sizes: Vec<u64> = log.iter().filter(|line| line["path"] == "/echo").map(size).collect();
    sizes.sort_unstable();
    sizes
}

/// When requests began, in seconds and in order: nginx has their end, and how long they took.
fn begins(log: &[Value]) -> Vec<f64> {
    let seconds = |line: &Value, field: &str| line[field].as_str().unwrap().parse::<f64>().unwrap();
    let mut begins: Vec<_> = log.iter().map(|line| seconds(line, "time") - seconds(line, "took")).collect();
    begins.sort_unstable_by(f64::total_cmp);
    begins
}

fn lines(log: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines()
        .filter(|line| line.starts_with('{'))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// How many requests the log has, in tens.
fn requests() -> u64 {
    std::env::var("TLSDASH_REPLAY").map_or(600, |text| text.parse().expect("a number of requests"))
}

/// Replays a log twice as fast.
fn replay(site: &ObserveTestBed, log: &Path) -> Output {
    let mut load = tlsdash(site.folder.path());
    let url = format!("https://localhost:{}/", site.listen.port());
    load.args(["load", &url]).args("--headless --journal off --format json --insecure --speed 2".split(' '));
    let ended = load.arg("--replay").arg(log).output().unwrap();
    assert!(ended.status.success(), "{}", stderr(&ended));
    ended
}

#[test]
fn a_replayed_log_of_nginx_is_the_same_again() {
    let site = ObserveTestBed::new();
    let server =
        format!("location / {{ proxy_pass http://{}; }}\nlocation /gone {{ return 410; }}", site.upstream());
    let targets = site.path("targets");
    std::fs::write(
        &targets,
        "5 GET /bytes/100\n2 GET /bytes/5000?a=b\n2 POST /echo\n@3000\n1 PUT /echo\n@70\n",
    )
    .unwrap();
    let [first, second] = ["first.log", "second.log"].map(|name| site.path(name));
    let nginx = site.start_nginx("http", &site.nginx_lines("nginx", &first), &server);
    // 1,000 a second of many.
    let (requests, rate) = (requests(), if requests() > 10_000 { "1000" } else { "400" });
    let n = requests.to_string();
    let plan = ["--targets", targets.to_str().unwrap(), "-n", &n, "-r", rate];
    let clients = "-c 6 -k 7 --resume 50% --source-addresses 3".split(' ');
    site.load(&plan.into_iter().chain(clients).collect::<Vec<_>>());
    let mut curl = outside("curl", "curl");
    let url = format!("https://localhost:{}/gone", site.listen.port());
    assert!(
        curl.args(["-sk", "-o", "/dev/null", "--interface", "127.0.0.9", &url]).status().unwrap().success()
    );
    nginx.finish(Signal::QUIT);

    let nginx = site.start_nginx("http", &site.nginx_lines("nginx", &second), &server);
    let ended = replay(&site, &first);
    nginx.finish(Signal::QUIT);

    let [first, second] = [&first, &second].map(|log| lines(log));
    assert_eq!(first.len() as u64, requests + 1);
    let all = ["method", "path", "status"];
    assert_eq!(counts(&second, &all), counts(&first, &all));
    for field in ["client", "connection"] {
        assert_eq!(shape(&second, field), shape(&first, field), "{field}");
    }
    // Twice as fast, a connection may begin before its client has a session.
    let [resumed, again] = [&first, &second].map(|log| resumed_connections(log));
    assert!(resumed > 30 && resumed.abs_diff(again) <= 4 + resumed / 100, "{resumed} and {again}");
    // Heads are not in the log: a request with a body has as many bytes in all, and the last one of a connection says so.
    let [before, again] = [&first, &second].map(|log| sizes_of_uploads(log));
    let differ =
        before.iter().zip(&again).filter(|(a, b)| a.abs_diff(**b) > "Connection: close\r\n".len() as u64);
    assert_eq!((before.len() as u64, differ.count()), (requests * 3 / 10, 0));
    let [begun, again] = [&first, &second].map(|log| begins(log));
    let mut shifts: Vec<_> = begun.iter().zip(&again).map(|(a, b)| b * 2.0 - a).collect();
    shifts.sort_unstable_by(f64::total_cmp);
    let mut off: Vec<_> = shifts.iter().map(|shift| (shift - shifts[shifts.len() / 2]).abs()).collect();
    off.sort_unstable_by(f64::total_cmp);
    let of = |share: f64| off[((off.len() - 1) as f64 * share) as usize] * 1e3;
    println!("{requests} requests: begin off by {:.1} ms at p50, {:.1} at p99", of(0.5), of(0.99));
    let summary: Value = serde_json::from_slice(&ended.stdout).unwrap();
    assert_eq!(
        (&summary["load"]["requests"]["ok"], &summary["load"]["requests"]["failed"]),
        (&(requests + 1).into(), &0.into())
    );
    let said = stderr(&ended);
    assert!(said.contains(" requests of 4 clients in ") && said.contains("no queries"), "{said}");
}

#[test]
fn requests_of_haproxys_log_begin_after_the_pause_before_them() {
    let site = ObserveTestBed::new();
    let backend =
        format!("default_backend up\nbackend up\n    mode http\n    server a {}\n", site.upstream());
    let haproxy = site.start_logging_haproxy(&backend);
    // Over 2.3 s: 1.5 s with the first pause left out.
    site.load(&["-n", "4", "-r", "1.3", "-c", "1"]);
    haproxy.finish(Signal::USR1);
    let log = site.path("first.log");
    std::fs::rename(site.output(), &log).unwrap();

    let haproxy = site.start_logging_haproxy(&backend);
    let mut load = tlsdash(site.folder.path());
    let url = format!("https://localhost:{}/", site.listen.port());
    load.args(["load", &url]).args("--headless --journal off --insecure --replay".split(' ')).arg(&log);
    let ended = load.output().unwrap();
    haproxy.finish(Signal::USR1);
    let said = stderr(&ended);
    assert!(ended.status.success() && said.contains("4 requests of 1 client in 00:02"), "{said}");
}
