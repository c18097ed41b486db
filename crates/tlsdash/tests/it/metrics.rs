//! The endpoint of `--metrics`: figures for Prometheus, and whether the service is alive and ready.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Stdio};

use crate::common::{PATIENCE, TlsdashProcess, is_there, outside, proxy, run, stderr, until, upstream};
use crate::prometheus_program::Prometheus;
use rustix::process::Signal;
use serde_json::Value;

/// Requests of the load: each with a connection of its own, so that half of the handshakes are resumed.
const REQUESTS: u64 = 200;

fn metrics_address(running: &mut TlsdashProcess) -> SocketAddr {
    let line = running.line_with("metrics on http://");
    line.split("http://").nth(1).unwrap().trim_end_matches("/metrics").parse().unwrap()
}

/// The status line and the rest of an answer.
fn get(address: SocketAddr, path: &str) -> (String, String) {
    let text = ask(address, path).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

fn ask(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(text)
}

/// The samples of `/metrics` by their names with labels.
fn samples(address: SocketAddr) -> BTreeMap<String, f64> {
    let (status, text) = get(address, "/metrics");
    assert_eq!(status, "HTTP/1.1 200 OK", "{text}");
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            line.rsplit_once(' ').map(|(name, value)| (name.to_owned(), value.parse().unwrap())).unwrap()
        })
        .collect()
}

/// Serves a load of [`REQUESTS`], and waits until the figures have it.
fn loaded(folder: &Path, args: &[&str]) -> (TlsdashProcess, SocketAddr) {
    let socket = upstream(folder, b"hello");
    let mut running = proxy(folder, &socket, &[&["--metrics", "127.0.0.1:0"], args].concat());
    let (at, metrics) = (running.address(), metrics_address(&mut running));
    let (url, requests) = (format!("https://{at}/"), REQUESTS.to_string());
    let load = [
        "load",
        &url,
        "--insecure",
        "-n",
        &requests,
        "-c",
        "4",
        "-k",
        "off",
        "--resume",
        "50%",
        "--source-addresses",
        "3",
        "--headless",
        "--journal",
        "off",
    ];
    let output = run(folder, &load);
    assert!(output.status.success(), "{}", stderr(&output));
    until("the figures have every connection", || {
        samples(metrics)
            .get("tlsdash_connections_closed_total")
            .is_some_and(|closed| *closed >= REQUESTS as f64)
    });
    (running, metrics)
}

#[test]
fn figures_equal_those_of_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let (running, metrics) = loaded(folder.path(), &[]);
    let found = samples(metrics);
    let promtool = outside("promtool", "prometheus")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut promtool = promtool.unwrap();
    promtool.stdin.take().unwrap().write_all(get(metrics, "/metrics").1.as_bytes()).unwrap();
    let checked = promtool.wait_with_output().unwrap();
    assert!(checked.status.success() && checked.stderr.is_empty(), "{}", stderr(&checked));
    assert_eq!(get(metrics, "/healthz"), ("HTTP/1.1 200 OK".into(), "alive\n".into()));
    assert_eq!(get(metrics, "/readyz"), ("HTTP/1.1 200 OK".into(), "ready\n".into()));
    assert_eq!(get(metrics, "/else").0, "HTTP/1.1 404 Not Found");

    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let summary: Value = serde_json::from_str(&printed).unwrap();
    let proxy = &summary["proxy"];
    let number = |value: &Value| value.as_f64().unwrap();
    let sum = |name: &str| {
        found
            .iter()
            .filter(|(sample, _)| sample.starts_with(&format!("{name}{{")))
            .map(|(_, value)| value)
            .sum::<f64>()
    };
    let equal = |name: &str, value: &Value| {
        assert!((found[name] - number(value)).abs() < 1e-9, "{name}: {} for {value}", found[name]);
    };
    equal("tlsdash_connections_accepted_total", &proxy["connections"]["accepted"]);
    equal("tlsdash_handshakes_total{kind=\"full\",version=\"TLS 1.3\"}", &proxy["handshakes"]["full"]);
    equal("tlsdash_handshakes_total{kind=\"resumed\",version=\"TLS 1.3\"}", &proxy["handshakes"]["resumed"]);
    assert!(number(&proxy["handshakes"]["resumed"]) > 50.0, "{proxy}");
    equal("tlsdash_plaintext_in_bytes_total", &proxy["bytes"]["in"]);
    equal("tlsdash_plaintext_out_bytes_total", &proxy["bytes"]["out"]);
    assert!((sum("tlsdash_handshakes_full_total") - number(&proxy["handshakes"]["full"])).abs() < 1e-9);
    for (kind, class) in [("full", "handshake_full"), ("resumed", "handshake_resumed")] {
        let summary = &proxy["latency_us"][class];
        equal(&format!("tlsdash_handshake_seconds_count{{kind=\"{kind}\"}}"), &summary["n"]);
        let mean_us =
            found[&format!("tlsdash_handshake_seconds_sum{{kind=\"{kind}\"}}")] * 1e6 / number(&summary["n"]);
        assert!((mean_us - number(&summary["mean"])).abs() < 0.01 * mean_us, "{mean_us} for {summary}");
    }
}

/// A process of the test, ended with it.
struct KilledOnDrop(Child);

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn prometheus_finds_the_same_quantiles_within_a_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let (running, metrics) = loaded(folder.path(), &[]);
    let prometheus = Prometheus::start(folder.path(), &[metrics], &[], &[]);
    let full = "tlsdash_handshakes_total{kind=\"full\",version=\"TLS 1.3\"}";
    until("Prometheus has scraped it", || prometheus.value(full).is_some());
    let scraped = prometheus.value(full).unwrap();
    let quantile = "histogram_quantile(0.5, tlsdash_handshake_seconds_bucket{kind=\"full\"})";
    let quantile = prometheus.value(quantile).unwrap();
    let (_, printed) = running.end();
    let summary: Value = serde_json::from_str(&printed).unwrap();
    assert!((scraped - summary["proxy"]["handshakes"]["full"].as_f64().unwrap()).abs() < 1e-9);
    let ours_s = summary["proxy"]["latency_us"]["handshake_full"]["p50"].as_f64().unwrap() / 1e6;
    // Bounds are 1, 2.5 and 5 to a decade: two values of one bucket are less than 2.5 times apart.
    assert!(quantile < ours_s * 2.5 && ours_s < quantile * 2.5, "{quantile} s there, {ours_s} s here");
}

#[test]
fn prometheus_counts_in_native_histograms_what_the_summary_counts() {
    if !is_there("prometheus", "--version", "prometheus_counts_in_native_histograms_what_the_summary_counts")
    {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (running, metrics) = loaded(folder.path(), &[]);
    let native = ["--enable-feature=native-histograms"];
    let prometheus = Prometheus::start(folder.path(), &[metrics], &[], &native);
    let histograms = [
        ("tlsdash_handshake_seconds{kind=\"full\"}", "handshake_full"),
        ("tlsdash_handshake_seconds{kind=\"resumed\"}", "handshake_resumed"),
        ("tlsdash_handshake_compute_seconds{kind=\"full\"}", "compute_full"),
        ("tlsdash_exchange_seconds", "exchange"),
        ("tlsdash_connection_seconds", "lifetime"),
    ];
    let is_scraped = || prometheus.value("histogram_count(tlsdash_connection_seconds)").is_some();
    until("Prometheus has scraped native histograms", is_scraped);
    let found = histograms.map(|(metric, _)| {
        let count = prometheus.value(&format!("histogram_count({metric})")).unwrap();
        let quantile = |q: f64| prometheus.value(&format!("histogram_quantile({q}, {metric})")).unwrap();
        (count, [0.5, 0.99].map(quantile))
    });
    let (_, printed) = running.end();
    let summary: Value = serde_json::from_str(&printed).unwrap();
    for ((count, quantiles), (metric, class)) in found.into_iter().zip(histograms) {
        let ours = &summary["proxy"]["latency_us"][class];
        assert!(
            count > 50.0 && (count - ours["n"].as_f64().unwrap()).abs() < 1e-9,
            "{metric}: {count} for {ours}"
        );
        // Two values of one bucket are less than 4.5 % apart; a recorded latency is up to 0.1 % higher than its sample.
        for (theirs_s, name) in quantiles.into_iter().zip(["p50", "p99"]) {
            let ratio = theirs_s * 1e6 / ours[name].as_f64().unwrap();
            assert!((1.0 / 1.046..1.046).contains(&ratio), "{metric}: {theirs_s} s for {name} of {ours}");
        }
    }
}

/// The names of the metrics in delimited messages: each begins with its name, field 1.
fn names_of_messages(mut rest: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    while !rest.is_empty() {
        let bytes = rest.iter().position(|byte| *byte < 0x80).unwrap() + 1;
        let length =
            rest[..bytes].iter().rev().fold(0, |length, byte| length << 7 | usize::from(byte & 0x7f));
        let (message, after) = rest[bytes..].split_at(length);
        assert!(message[0] == 0x0a && message[1] < 0x80);
        names.push(String::from_utf8(message[2..][..usize::from(message[1])].to_vec()).unwrap());
        rest = after;
    }
    names
}

#[test]
fn a_scraper_that_accepts_protobuf_gets_every_metric_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let (_running, metrics) = loaded(folder.path(), &[]);
    let messages =
        "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited";
    let body = folder.path().join("body");
    let asked = outside("curl", "curl")
        .args(["-s", "-w", "%{content_type}", "-H", &format!("Accept: {messages}, text/plain;q=0.5"), "-o"])
        .arg(&body)
        .arg(format!("http://{metrics}/metrics"))
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&asked.stdout), messages);
    let text = get(metrics, "/metrics").1;
    let names: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
    assert_eq!(names_of_messages(&fs::read(&body).unwrap()), names);
}

#[test]
fn hostile_scrapers_change_no_figure_and_keep_nobody_out_for_long() {
    let folder = tempfile::tempdir().unwrap();
    let (mut running, metrics) = loaded(folder.path(), &[]);
    let before = samples(metrics);
    let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(metrics).unwrap()).collect();
    // Silent clients make room; while their threads end, others may be refused.
    let is_answered = |path| ask(metrics, path).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 OK"));
    until("a health check is answered beside silent clients", || is_answered("/healthz"));
    // Each asks for figures, and reads nothing.
    let greedy: Vec<TcpStream> = (0..20)
        .map(|_| {
            let mut stream = TcpStream::connect(metrics).unwrap();
            rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 1024).unwrap();
            let _ = write!(stream, "GET /metrics HTTP/1.1\r\n\r\n");
            stream
        })
        .collect();
    until("a health check is answered beside greedy clients", || is_answered("/healthz"));
    for (nonsense, reason) in [
        (&b"\x16\x03\x01\x02\x00"[..], "this address serves HTTP without TLS: use http://"),
        (&[b'a'; 10_000], "expected GET or HEAD"),
        (b"POST /metrics HTTP/1.1\r\n\r\n", "expected GET or HEAD"),
        (b"GET\r\n\r\n", "expected GET or HEAD"),
    ] {
        let mut stream = TcpStream::connect(metrics).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        // It may be closed at once.
        let _ = stream.write_all(nonsense);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8_lossy(&answer);
        let is_expected = answer.starts_with("HTTP/1.1 400") && answer.contains(reason);
        assert!(answer.is_empty() || is_expected, "{answer}");
    }
    until("an honest scraper is answered", || is_answered("/metrics"));
    drop((silent, greedy));
    let after = samples(metrics);
    for name in ["tlsdash_connections_accepted_total", "tlsdash_handshakes_failed_total{cause=\"not TLS\"}"] {
        assert!((before[name] - after[name]).abs() < 1e-9, "{name}");
    }
    assert_eq!(running.address().ip(), metrics.ip(), "the proxy still runs");
}

#[test]
fn a_draining_service_is_alive_and_not_ready() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), b"hello");
    let mut running = proxy(folder.path(), &socket, &["--metrics", "127.0.0.1:0", "--drain-timeout", "20s"]);
    let (at, metrics) = (running.address(), metrics_address(&mut running));
    until("it is ready", || get(metrics, "/readyz").0 == "HTTP/1.1 200 OK");
    let mut client = outside("openssl", "openssl");
    client
        .args(["s_client", "-quiet", "-connect", &at.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut client = KilledOnDrop(client.spawn().unwrap());
    client.0.stdin.as_mut().unwrap().write_all(b"GET / HT").unwrap();
    until("the connection is open", || {
        samples(metrics).get("tlsdash_connections_open").is_some_and(|open| *open >= 1.0)
    });
    running.signal(Signal::TERM);
    until("it is not ready", || get(metrics, "/readyz").0 == "HTTP/1.1 503 Service Unavailable");
    assert_eq!(get(metrics, "/healthz").1, "alive\n");
    drop(client);
    assert_eq!(running.wait().0, 0);
}

#[test]
fn an_unusable_metrics_address_is_refused_before_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (args, code, reason) in [
        (
            &["--metrics", &address][..],
            1,
            format!("cannot listen on --metrics {address}: Address already in use"),
        ),
        (
            &["--metrics", "9443"],
            2,
            "--metrics 9443: expected an address and a port, such as 127.0.0.1:9443".into(),
        ),
        (
            &["--metrics", "127.0.0.1:0", "--journal", "off"],
            2,
            "--metrics shows what the journal holds".into(),
        ),
    ] {
        let demo = ["demo", "--headless", "--duration", "1s"];
        let output = run(folder.path(), &[&demo, args].concat());
        assert!(stderr(&output).contains(&reason), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(code), "{args:?}");
    }
}

/// The names of metrics in a text.
fn names_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    words.filter(|word| word.starts_with("tlsdash_")).collect()
}

#[test]
fn alert_rules_and_dashboard_name_metrics_that_there_are() {
    let document = include_str!("../../../../docs/metrics.md");
    let known = names_in(document);
    let rules = include_str!("../../../../docs/tlsdash-alerts.yml");
    let dashboard = include_str!("../../../../docs/tlsdash-grafana.json");
    assert!(serde_json::from_str::<Value>(dashboard).is_ok(), "the dashboard is JSON");
    for name in names_in(rules).union(&names_in(dashboard)) {
        let metric =
            ["_bucket", "_sum", "_count"].iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name);
        assert!(known.contains(metric), "there is no metric {name}");
    }
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tlsdash-alerts.yml");
    let checked = outside("promtool", "prometheus").args(["check", "rules", folder]).output().unwrap();
    assert!(checked.status.success(), "{}", stderr(&checked));
}

/// A metric as a row of the document.
#[derive(Default)]
struct MetricRow {
    name: String,
    help: String,
    kind: String,
    labels: BTreeSet<String>,
}

/// The metrics of an exposition, in its order.
fn rows(text: &str) -> Vec<MetricRow> {
    let mut rows: Vec<MetricRow> = Vec::new();
    for line in text.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            rows.push(MetricRow {
                name: name.to_owned(),
                help: help.trim_end_matches('.').to_owned(),
                ..MetricRow::default()
            });
            continue;
        }
        let row = rows.last_mut().unwrap();
        if let Some(kind) = line.strip_prefix("# TYPE ") {
            kind.split(' ').nth(1).unwrap().clone_into(&mut row.kind);
        } else if let Some((_, labels)) = line.split_once('{') {
            let names = labels.split("\",").filter_map(|label| label.split_once("=\"")).map(|(name, _)| name);
            row.labels.extend(names.filter(|name| *name != "le").map(str::to_owned));
        }
    }
    rows
}

fn table(rows: &[MetricRow], title: &str, prefixes: &[&str]) -> String {
    let of_table = rows.iter().filter(|row| prefixes.iter().any(|prefix| row.name.starts_with(prefix)));
    let lines = of_table.map(|MetricRow { name, help, kind, labels }| {
        let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(", "))
    });
    format!(
        "## {title}\n\n| metric | kind | labels | what it is |\n|---|---|---|---|\n{}",
        lines.collect::<String>()
    )
}

#[test]
fn as_many_clients_as_asked_for_have_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let (running, metrics) = loaded(folder.path(), &["--metrics-clients", "2"]);
    let found = samples(metrics);
    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let summary: Value = serde_json::from_str(&printed).unwrap();
    let clients = summary["clients"].as_array().unwrap();
    assert!(clients.len() > 2, "{summary}");
    for (metric, figure) in [
        ("tlsdash_client_connections_total", "connections"),
        ("tlsdash_client_plaintext_out_bytes_total", "bytes_out"),
    ] {
        let most = clients[..2].iter().map(|client| {
            let name = client["client"].as_str().unwrap();
            (format!("{metric}{{client=\"{name}\"}}"), client[figure].as_f64().unwrap())
        });
        let samples = found.iter().filter(|(name, _)| name.starts_with(metric));
        assert_eq!(
            samples.map(|(name, value)| (name.clone(), *value)).collect::<BTreeMap<_, _>>(),
            most.collect()
        );
    }
}

#[test]
fn clients_have_metrics_only_where_metrics_are_served() {
    let folder = tempfile::tempdir().unwrap();
    let upstream = ["--headless", "--upstream", "unix:/nowhere"];
    for (args, reason) in [
        (vec!["--metrics-clients", "2"], "--metrics-clients goes with --metrics ADDR"),
        (
            vec!["--metrics", "127.0.0.1:0", "--metrics-clients", "1001"],
            "--metrics-clients 1001: at most 1000 clients have metrics of their own",
        ),
    ] {
        let refused = run(folder.path(), &[&upstream[..], &args].concat());
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains(reason), "{}", stderr(&refused));
    }
}

/// `UPDATE_DOCS=1` writes the tables anew.
#[test]
fn the_document_lists_every_metric() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = crate::common::tlsdash(folder.path());
    let place = format!("file:{}", crate::common::journal(folder.path()).display());
    command.args(["demo", "--headless", "--mode", "http", "--metrics", "127.0.0.1:0", "--journal", &place]);
    command.args(["--metrics-clients", "1"]);
    let mut running = TlsdashProcess::start(command);
    let metrics = metrics_address(&mut running);
    let last = "tlsdash_route_request_seconds_bucket";
    until("routes have served requests", || get(metrics, "/metrics").1.contains(last));
    let rows = rows(&get(metrics, "/metrics").1);
    running.end();
    let beside = ["tlsdash_http", "tlsdash_route", "tlsdash_client", "tlsdash_load"];
    let process = [
        "tlsdash_cpu",
        "tlsdash_memory",
        "tlsdash_descriptors",
        "tlsdash_threads",
        "tlsdash_listen",
        "tlsdash_records",
        "tlsdash_intervals",
        "tlsdash_messages",
    ];
    let names: Vec<&str> = rows.iter().map(|row| &*row.name).collect();
    let is_other = |name: &&&str| !beside.iter().chain(&process).any(|prefix| name.starts_with(prefix));
    let others: Vec<&str> = names.iter().filter(is_other).copied().collect();
    let tables = [
        table(&rows, "Connections and handshakes", &others),
        table(&rows, "HTTP mode", &beside[..2]),
        table(&rows, "Clients, with --metrics-clients", &beside[2..3]),
        table(&rows, "The load", &beside[3..]),
        table(&rows, "The process and its journal", &process),
    ];
    let tables = tables.join("\n");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/metrics.md");
    let document = fs::read_to_string(&path).unwrap();
    let start = document.find("## Connections and handshakes").expect("the document has tables");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{}{tables}", &document[..start])).unwrap();
    } else {
        assert_eq!(&document[start..], tables, "`just schema` writes the tables anew");
    }
}
