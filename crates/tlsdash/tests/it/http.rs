//! HTTP mode as its users meet it: curl, openssl, our own load, restarts of an upstream, and the end of the program.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{
    TlsdashProcess, journal, journalctl, last_of_each_client, number, outside, proxy, run, stderr, tlsdash,
};
use loadgen::{DemoUpstream, UpstreamAddr};
use proxy_core::{Certificate, Proxy, ProxyConfig, Tls};
use proxy_http::{HttpConfig, HttpLimits};
use records::delta::ProxyDelta;
use serde_json::Value;

/// A demo upstream on a unix socket.
struct UpstreamApp {
    upstream: Option<DemoUpstream>,
    path: PathBuf,
}

impl UpstreamApp {
    fn start(folder: &Path) -> Self {
        let path = folder.join("app.sock");
        Self { upstream: Some(Self::upstream(&path)), path }
    }

    fn upstream(path: &Path) -> DemoUpstream {
        DemoUpstream::start(UpstreamAddr::Unix(path.to_owned())).unwrap()
    }

    /// Ends every connection, and comes back at once.
    fn restart(&mut self) {
        drop(self.upstream.take());
        self.upstream = Some(Self::upstream(&self.path));
    }
}

/// A proxy in HTTP mode, with a route and a default route to the demo upstream.
fn serving(folder: &Path, app: &Path, args: &[&str]) -> (TlsdashProcess, SocketAddr) {
    let route = format!("/api=unix:{}", app.display());
    let args = [&["--mode", "http", "--route", &route], args].concat();
    let mut running = proxy(folder, app, &args);
    let address = running.address();
    (running, address)
}

/// What curl prints with these arguments.
fn curl(args: &[&str]) -> String {
    let output = outside("curl", "curl").args(["-sSk", "--max-time", "60"]).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The load generator in a process of its own.
fn load(folder: &Path, address: SocketAddr, path: &str, args: &[&str]) -> Command {
    let mut command = tlsdash(folder);
    command
        .args(["load", &format!("https://{address}{path}"), "--insecure", "--headless", "--journal", "off"])
        .args(["--format", "json"])
        .args(args)
        .stdout(Stdio::piped());
    command
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn n(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// Every failure of a load by its kind, those of these kinds left out.
fn failures_but(load: &Value, kinds: &[&str]) -> Vec<String> {
    let failures = load["failures"].as_object().unwrap().iter();
    let others = failures.filter(|(kind, count)| !kinds.contains(&kind.as_str()) && n(count) > 0);
    others.map(|(kind, count)| format!("{kind}: {count}")).collect()
}

#[test]
fn curl_gets_every_method_over_both_protocols() {
    const WHAT: &str = "%{http_version} %{http_code} %{size_download}\n";
    let folder = tempfile::tempdir().unwrap();
    let app = UpstreamApp::start(folder.path());
    let (running, address) = serving(folder.path(), &app.path, &[]);
    let url = |path: &str| format!("https://{address}{path}");
    let body = folder.path().join("body");
    std::fs::write(&body, vec![b'x'; 300_000]).unwrap();
    let body = body.to_str().unwrap();
    let sent = format!("@{body}");
    for (protocol, version) in [("--http2", "2"), ("--http1.1", "1.1")] {
        let ask = |path: &str, args: &[&str]| {
            let url = url(path);
            curl(&[&[protocol, "-o", "/dev/null", "-w", WHAT, &url], args].concat())
        };
        assert_eq!(ask("/bytes/3000000", &[]), format!("{version} 200 3000000\n"));
        assert_eq!(ask("/api/bytes/10", &[]), format!("{version} 200 10\n"));
        assert_eq!(ask("/api/bytes/10", &["--head"]), format!("{version} 200 0\n"));
        assert_eq!(ask("/echo", &["-T", body]), format!("{version} 200 300000\n"), "PUT");
        let posted = ask("/echo", &["--data-binary", &sent]);
        assert_eq!(posted, format!("{version} 200 300000\n"), "POST, with 100-continue");
        let chunked = ["-X", "POST", "-H", "Transfer-Encoding: chunked", "--data-binary", &sent];
        if protocol == "--http1.1" {
            assert_eq!(ask("/echo", &chunked), format!("{version} 200 300000\n"), "chunked");
        }
        let head = curl(&[protocol, "--head", &url("/api/bytes/10")]);
        assert!(head.to_ascii_lowercase().contains("content-length: 10\r\n"), "{head}");
        let many = url("/bytes/1000?[1-200]");
        let many =
            curl(&[protocol, "--parallel", "--parallel-max", "200", "-o", "/dev/null", "-w", WHAT, &many]);
        assert_eq!(many, format!("{version} 200 1000\n").repeat(200));
    }
    let (code, printed) = running.end();
    let summary = json(&printed);
    assert_eq!(code, 0);
    assert_eq!(n(&summary["proxy"]["connections"]["failed"]), 0, "{summary}");
}

#[test]
fn openssl_reads_the_bytes_of_an_http1_answer() {
    let folder = tempfile::tempdir().unwrap();
    let app = UpstreamApp::start(folder.path());
    let (_running, address) = serving(folder.path(), &app.path, &[]);
    let ask = |request: &str| {
        let script = format!(
            "printf '{request}' | timeout 20 openssl s_client -quiet -ign_eof -alpn http/1.1 -connect {address}"
        );
        let output = outside("openssl", "openssl").arg("version").output().unwrap();
        assert!(output.status.success());
        let output = Command::new("sh").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let answer = ask("GET /api/bytes/5 HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.ends_with("\r\n\r\nabcde"), "{answer}");
    let old = ask("GET /bytes/5 HTTP/1.0\\r\\n\\r\\n");
    assert!(old.contains(" 200 OK\r\n") && old.ends_with("\r\n\r\nabcde"), "{old}");
    let none = ask("GET /nowhere HTTP/1.1\\r\\nHost: localhost\\r\\nConnection: close\\r\\n\\r\\n");
    assert!(none.starts_with("HTTP/1.1 404 Not Found\r\n"), "{none}");
}

#[test]
fn a_request_that_no_route_serves_is_not_found() {
    let folder = tempfile::tempdir().unwrap();
    let app = UpstreamApp::start(folder.path());
    let route = format!("localhost/api=unix:{}", app.path.display());
    let mut command = tlsdash(folder.path());
    command.args([
        "--headless",
        "--journal",
        "off",
        "--listen",
        "127.0.0.1:0",
        "--mode",
        "http",
        "--route",
        &route,
    ]);
    let mut running = TlsdashProcess::start(command);
    let port = running.address().port();
    let status = |host: &str, path: &str| {
        let host = format!("Host: {host}");
        let url = format!("https://127.0.0.1:{port}{path}");
        curl(&["-o", "/dev/null", "-w", "%{http_code}", "-H", &host, &url])
    };
    assert_eq!(status("localhost", "/api/bytes/1"), "200");
    assert_eq!(status("LOCALHOST:1", "/api/bytes/1"), "200");
    assert_eq!(status("elsewhere", "/api/bytes/1"), "404");
    assert_eq!(status("localhost", "/bytes/1"), "404");
}

fn demo(folder: &Path, words: &str) -> Value {
    let at = format!("file:{}", journal(folder).display());
    let args =
        ["demo", "--mode", "http", "--headless", "--duration", "3s", "--format", "json", "--journal", &at];
    let output = run(folder, &[&args[..], &["--load", words]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    json(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn load_proxy_and_clients_agree_to_the_last_request() {
    for words in ["rate=200,streams=8", "rate=200,http2=off"] {
        let folder = tempfile::tempdir().unwrap();
        let summary = demo(folder.path(), words);
        let (proxy, load) = (&summary["proxy"], &summary["load"]);
        assert_eq!(load["requests"]["scheduled"], load["requests"]["ok"], "{words}: {load}");
        assert_eq!(proxy["bytes"], load["bytes"], "{words}");
        assert_eq!(proxy["connections"]["accepted"], load["connections"], "{words}");
        for kind in ["full", "resumed"] {
            assert_eq!(proxy["handshakes"][kind], load["handshakes"][kind], "{words}: {kind}");
        }
        let http = &proxy["http"];
        let requests = &http["requests"];
        assert_eq!(requests["total"], load["requests"]["ok"], "{words}: {http}");
        let (one, two) = (n(&requests["http1"]), n(&requests["http2"]));
        assert_eq!((one == 0, two == 0), (!words.contains("off"), words.contains("off")), "{http}");
        assert_eq!(http["statuses"], serde_json::json!({ "200": requests["total"] }), "{http}");
        assert_eq!(n(&requests["failed"]), 0, "{http}");
        let routes = http["routes"].as_array().unwrap();
        let names: Vec<_> = routes.iter().map(|route| route["route"].as_str().unwrap()).collect();
        assert_eq!(names, ["/api", "/files"], "the one with the most requests first");
        let of_routes: u64 = routes.iter().map(|route| n(&route["requests"])).sum();
        assert_eq!(of_routes, n(&requests["total"]));
        for class in ["upstream", "first_byte", "request"] {
            assert_eq!(http["latency_us"][class]["n"], requests["total"], "{class}: {http}");
        }
        assert_eq!(proxy["latency_us"]["exchange"]["n"], requests["total"]);
        // As in TCP mode, plain journalctl answers who got how much.
        let last = last_of_each_client(&journal(folder.path()));
        assert_eq!(last.len(), 16, "{words}");
        let sum = |field: &str| last.iter().map(|entry| number(entry, field)).sum::<u64>();
        assert_eq!(sum("TLSDASH_CLIENT_BYTES_OUT_TOTAL"), n(&load["bytes"]["out"]), "{words}");
        assert_eq!(sum("TLSDASH_CLIENT_BYTES_IN_TOTAL"), n(&load["bytes"]["in"]), "{words}");
    }
}

#[test]
fn a_stop_under_load_loses_no_request() {
    for args in [&["--http2", "-m", "8"][..], &[]] {
        let folder = tempfile::tempdir().unwrap();
        let app = UpstreamApp::start(folder.path());
        let (running, address) = serving(folder.path(), &app.path, &[]);
        let args = [&["-c", "8", "-d", "4s"], args].concat();
        let load = load(folder.path(), address, "/api/bytes/20000", &args).spawn().unwrap();
        // In the midst of it.
        std::thread::sleep(Duration::from_millis(1_500));
        let (code, printed) = running.end();
        assert_eq!(code, 0);
        let load = load.wait_with_output().unwrap();
        let load = &json(&String::from_utf8(load.stdout).unwrap())["load"];
        assert!(n(&load["requests"]["ok"]) > 0, "{load}");
        // Once nobody listens, connections are refused.
        assert_eq!(failures_but(load, &["connect"]), [""; 0], "{args:?}: {load}");
        let http = &json(&printed)["proxy"]["http"];
        assert_eq!(http["requests"]["total"], load["requests"]["ok"], "{args:?}: {http}");
        assert_eq!(n(&http["requests"]["failed"]), 0, "{args:?}: {http}");
    }
}

#[test]
fn an_upstream_that_restarts_fails_only_what_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut app = UpstreamApp::start(folder.path());
    let (running, address) = serving(folder.path(), &app.path, &[]);
    let args = ["--http2", "-m", "8", "-c", "8", "-r", "500", "-d", "5s"];
    let load = load(folder.path(), address, "/api/bytes/1000", &args).spawn().unwrap();
    let has_ended = AtomicBool::new(false);
    let output = std::thread::scope(|scope| {
        scope.spawn(|| {
            while !has_ended.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_secs(1));
                app.restart();
            }
        });
        let output = load.wait_with_output().unwrap();
        has_ended.store(true, Ordering::Relaxed);
        output
    });
    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let load = &json(&String::from_utf8(output.stdout).unwrap())["load"];
    let summary = json(&printed);
    assert_eq!(
        n(&load["requests"]["scheduled"]),
        n(&load["requests"]["ok"]) + n(&load["requests"]["failed"])
    );
    assert!(n(&load["requests"]["failed"]) < 250, "{load}");
    assert_eq!(failures_but(load, &["status", "reset", "short", "protocol"]), [""; 0], "{load}");
    let http = &summary["proxy"]["http"];
    assert_eq!(http["requests"]["total"], load["requests"]["scheduled"], "{http}");
    assert_eq!(http["requests"]["failed"], load["requests"]["failed"], "{http} {load}");
    let causes = http["failures"].as_object().unwrap();
    let expected = ["connect", "upstream-closed", "upstream-cut"];
    let others: Vec<_> =
        causes.iter().filter(|(cause, count)| !expected.contains(&cause.as_str()) && n(count) > 0).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// A proxy of this process, in HTTP mode with one worker.
fn in_process(upstream: &Path, limits: HttpLimits) -> Proxy {
    let mut tls = Tls::new(Certificate::generate(&["localhost".to_owned()]).unwrap());
    tls.settings.alpn = vec!["h2".to_owned(), "http/1.1".to_owned()];
    let upstream = format!("unix:{}", upstream.display()).parse().unwrap();
    let config = ProxyConfig::new(vec!["127.0.0.1:0".parse().unwrap()], upstream, tls);
    let config = ProxyConfig { workers: NonZeroUsize::MIN, ..config };
    let http = HttpConfig { limits, ..HttpConfig::default() };
    proxy_http::bind(config, http, proxy_core::ListenerSource::Bind).unwrap().start().unwrap()
}

#[test]
fn a_limit_that_changes_live_holds_for_the_next_request() {
    let folder = tempfile::tempdir().unwrap();
    let app = UpstreamApp::start(folder.path());
    let proxy = in_process(&app.path, HttpLimits::default());
    let body = folder.path().join("body");
    std::fs::write(&body, vec![b'x'; 2 << 20]).unwrap();
    let (body, url) = (body.to_str().unwrap(), format!("https://{}/echo", proxy.local_addrs()[0]));
    // Over HTTP/2 some versions of curl miss an answer that comes before they have sent everything.
    let put = || curl(&["--http1.1", "-T", body, "-o", "/dev/null", "-w", "%{http_code}", &url]);
    assert_eq!(put(), "200");
    proxy.set("proxy.body-max", &records::setting::Value::Number(1.0)).unwrap();
    assert_eq!(put(), "413");
    proxy.set("proxy.body-max", &records::setting::Value::Number(2.0)).unwrap();
    assert_eq!(put(), "200");
}

/// Answers every request after a while; keeps the most requests that it has had at once, each over a connection of its own.
/// Connections that the proxy has closed may not have been noticed yet.
fn slow_upstream(path: &Path) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(path).unwrap();
    let most = Arc::new(AtomicUsize::new(0));
    let (in_flight, told) = (Arc::new(AtomicUsize::new(0)), Arc::clone(&most));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (in_flight, told) = (Arc::clone(&in_flight), Arc::clone(&told));
            std::thread::spawn(move || {
                // One request at a time comes over a connection, in one piece.
                while stream.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {
                    told.fetch_max(in_flight.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                    std::thread::sleep(Duration::from_millis(20));
                    in_flight.fetch_sub(1, Ordering::SeqCst);
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
                }
            });
        }
    });
    most
}

#[test]
fn workers_that_are_added_share_the_same_pool() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("slow.sock");
    let most = slow_upstream(&path);
    let mut proxy = in_process(&path, HttpLimits { upstream_connections_max: 4, ..HttpLimits::default() });
    proxy.set("proxy.workers", &records::setting::Value::Number(4.0)).unwrap();
    // A worker that answers has read its share.
    proxy.collect(&mut ProxyDelta::default(), Duration::from_secs(20));
    let url = format!("https://{}/?[1-200]", proxy.local_addrs()[0]);
    let args =
        ["--http1.1", "--parallel", "--parallel-max", "50", "-o", "/dev/null", "-w", "%{http_code} ", &url];
    assert_eq!(curl(&args), "200 ".repeat(200));
    assert!((2..=4).contains(&most.load(Ordering::SeqCst)), "{most:?}");
}

#[test]
fn an_experiment_can_switch_a_limit_of_http_mode() {
    let folder = tempfile::tempdir().unwrap();
    let at = format!("file:{}", journal(folder.path()).display());
    let words = "streams-max=4..8,metric=requests.rate,pairs=6,aa=0,block=400ms,discard=200ms";
    let args = ["demo", "--mode", "http", "--headless", "--interval", "100ms", "--format", "json"];
    let output =
        run(folder.path(), &[&args[..], &["--journal", &at, "--ab", words, "--load", "rate=50"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let summary = json(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(summary["experiments"][0]["setting"], "proxy.streams-max");
    let changes = journalctl(&journal(folder.path()), &["TLSDASH_KIND=setting"]);
    assert!(changes.len() > 6, "{}", changes.len());
}
