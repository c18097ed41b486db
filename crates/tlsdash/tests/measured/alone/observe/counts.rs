//! Counts are equal to the generator's.

use std::io::Write;

use rustix::process::Signal;
use serde_json::Value;

use super::test_bed::{ObserveTestBed, ObservedHaproxy, observe_file};
use crate::common::{outside, until};

/// The rate of a busy site, with few enough handshakes that a debug build reaches it.
const BUSY: [&str; 6] = ["-n", "5000", "-r", "5000", "-k", "20"];

/// The sums over several loads.
fn sum(loads: &[Value], pointer: &str) -> u64 {
    loads.iter().map(|load| load.pointer(pointer).and_then(Value::as_u64).expect(pointer)).sum()
}

/// What a terminator logs besides the connections that the generator counts.
#[derive(Clone, Copy)]
struct UncountedEvents {
    /// Full handshakes without a request: the generator looks before each load whether the server answers.
    handshakes: u64,
    /// Failed handshakes.
    failed: u64,
    /// By how many bytes its account of a request's or a response's header may differ from what was sent.
    header_bytes_off: u64,
}

/// Compares what was observed with what the generator counted.
fn assert_equal(observed: &Value, loads: &[Value], others: UncountedEvents) {
    let of = |pointer: &str| observed.pointer(pointer).and_then(Value::as_u64).expect(pointer);
    for (counted, sent) in [
        ("/proxy/handshakes/resumed", "/handshakes/resumed"),
        ("/proxy/bytes/in", "/bytes/in"),
        ("/proxy/bytes/out", "/bytes/out"),
    ] {
        let off =
            if counted.contains("bytes") { others.header_bytes_off * sum(loads, "/requests/ok") } else { 0 };
        assert!(of(counted).abs_diff(sum(loads, sent)) <= off, "{counted} {sent}: {observed:#}");
    }
    assert!(sum(loads, "/handshakes/resumed") > 0, "the load resumed");
    let UncountedEvents { handshakes, failed, .. } = others;
    assert_eq!(of("/proxy/handshakes/full"), sum(loads, "/handshakes/full") + handshakes, "{observed:#}");
    assert_eq!(of("/proxy/handshakes/failed"), failed, "{observed:#}");
    assert_eq!(of("/proxy/connections/accepted"), sum(loads, "/connections") + handshakes + failed);
    assert_clients_add_up(observed);
}

/// What the clients' rows sum to is what was counted of all.
fn assert_clients_add_up(observed: &Value) {
    let clients = observed["clients"].as_array().unwrap();
    let of_clients = |name: &str| clients.iter().map(|client| client[name].as_u64().unwrap()).sum::<u64>();
    for (of_client, of_all) in [
        ("connections", "/proxy/connections/accepted"),
        ("handshakes_full", "/proxy/handshakes/full"),
        ("handshakes_resumed", "/proxy/handshakes/resumed"),
        ("errors", "/proxy/handshakes/failed"),
        ("bytes_in", "/proxy/bytes/in"),
        ("bytes_out", "/proxy/bytes/out"),
    ] {
        assert_eq!(
            Some(of_clients(of_client)),
            observed.pointer(of_all).and_then(Value::as_u64),
            "{of_client}"
        );
    }
    let mut sources: Vec<_> = clients.iter().filter_map(|client| client["client"].as_str()).collect();
    sources.sort_unstable();
    sources.retain(|source| *source != "127.0.0.1");
    assert_eq!(sources, ["127.0.0.2", "127.0.0.3", "127.0.0.4"], "each source is a client");
}

/// Compares what was observed of requests over HTTP/2 with what the generator counted. Headers are compressed, so that
/// bytes differ.
fn assert_http2_equal(observed: &Value, loads: &[Value], others: UncountedEvents) {
    let of = |pointer: &str| observed.pointer(pointer).and_then(Value::as_u64).expect(pointer);
    let requests = sum(loads, "/requests/ok");
    assert!(requests > 0);
    for counted in ["/proxy/http/requests/total", "/proxy/http/requests/http2", "/proxy/http/statuses/200"] {
        assert_eq!(of(counted), requests, "{counted}");
    }
    assert_eq!(of("/proxy/handshakes/resumed"), sum(loads, "/handshakes/resumed"));
    assert_eq!(of("/proxy/handshakes/full"), sum(loads, "/handshakes/full") + others.handshakes);
    assert_eq!(of("/proxy/handshakes/failed"), others.failed);
    assert_eq!(
        of("/proxy/connections/accepted"),
        sum(loads, "/connections") + others.handshakes + others.failed
    );
    assert_clients_add_up(observed);
}

/// What both modes of a load differ in.
const VERSIONS: [&str; 2] = ["1.2", "1.3"];

fn loads(site: &ObserveTestBed, arguments: &[&str]) -> Vec<Value> {
    let common = ["-c", "4", "--resume", "50%", "--source-addresses", "3"];
    let of = |version: &&str| {
        let load = site.load(&[&common, arguments, &["--tls-version", version]].concat());
        let rate = &load["rate_per_s"];
        if rate["is_achieved"] == false {
            say(&format!("this machine reached {} of {} requests/s", rate["achieved"], rate["wanted"]));
        }
        load
    };
    VERSIONS.iter().map(of).collect()
}

/// Says it past the harness, which shows what failing tests print only.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// Runs HAProxy under a load. Gives what was observed, with the number of lost lines.
fn observe_haproxy(mode: &str, arguments: &[&str]) -> (Value, Vec<Value>) {
    let site = ObserveTestBed::new();
    let alpn = if mode == "http" { "alpn h2,http/1.1" } else { "" };
    let backend =
        format!("default_backend upstream\nbackend upstream\n    server upstream {}", site.upstream());
    let haproxy = ObservedHaproxy::start(&site, mode, alpn, &backend);
    let loads = loads(&site, arguments);
    site.fail_handshake();
    let (mut summary, said) = haproxy.finish(&site);
    summary["lost"] = lost(&said).into();
    (summary, loads)
}

/// How many lines were lost, by the last notice about it.
fn lost(said: &str) -> u64 {
    let notice = said.lines().rfind(|line| line.contains(" lines of the log were lost"));
    let number = notice.and_then(|line| line.split(" lines of the log").next()?.rsplit(' ').next());
    number.map_or(0, |number| number.parse().unwrap())
}

/// Failed: the connection that looks whether it listens, and the one that speaks no TLS.
const OF_HAPROXY: UncountedEvents = UncountedEvents { handshakes: 2, failed: 2, header_bytes_off: 0 };
/// In HTTP mode it counts headers in a form of its own.
const OF_HAPROXY_HTTP: UncountedEvents = UncountedEvents { header_bytes_off: 8, ..OF_HAPROXY };
/// Failed: the connection that looks whether it listens.
const OF_NGINX_STREAM: UncountedEvents = UncountedEvents { handshakes: 2, failed: 1, header_bytes_off: 0 };
/// The access log has no connection without a request, and the error log the one that looks whether it listens.
const OF_NGINX: UncountedEvents = UncountedEvents { handshakes: 0, failed: 1, header_bytes_off: 0 };

/// The rate of a quiet site.
const QUIET: [&str; 6] = ["-n", "40", "-r", "10", "-k", "5"];

/// True if no line was lost, so that all counts must be equal. Otherwise what is missing of `counted` was counted as lost,
/// together with at most the lines that the generator does not count.
fn is_whole(observed: &Value, loads: &[Value], counted: &str, sent: &str, others: UncountedEvents) -> bool {
    let lost = observed["lost"].as_u64().unwrap();
    if lost == 0 {
        return true;
    }
    say(&format!("{lost} lines were lost: the machine is busy, or net.core.rmem_max is small"));
    let counted = observed.pointer(counted).and_then(Value::as_u64).unwrap();
    let lines_sent = sum(loads, sent) + others.handshakes + others.failed;
    assert!((sum(loads, sent)..=lines_sent).contains(&(counted + lost)), "{lost} lost: {observed:#}");
    false
}

#[test]
fn counts_of_haproxys_http_log_equal_the_generators() {
    let (counted, sent) = ("/proxy/http/requests/total", "/requests/ok");
    for arguments in [QUIET, BUSY] {
        let (observed, loads) = observe_haproxy("http", &arguments);
        if is_whole(&observed, &loads, counted, sent, OF_HAPROXY_HTTP) {
            assert_equal(&observed, &loads, OF_HAPROXY_HTTP);
            let requests = observed.pointer(counted).and_then(Value::as_u64);
            assert_eq!(requests, Some(sum(&loads, sent)));
            assert_eq!(observed.pointer("/proxy/http/statuses/200").and_then(Value::as_u64), requests);
        }
    }
}

#[test]
fn counts_of_haproxys_tcp_log_equal_the_generators() {
    for arguments in [QUIET, BUSY] {
        let (observed, loads) = observe_haproxy("tcp", &arguments);
        if is_whole(&observed, &loads, "/proxy/connections/accepted", "/connections", OF_HAPROXY) {
            assert_equal(&observed, &loads, OF_HAPROXY);
            assert_eq!(observed["causes"], serde_json::json!({"client left": 1, "not TLS": 1}));
        }
    }
}

#[test]
fn what_overflows_the_socket_is_counted_as_lost() {
    let site = ObserveTestBed::new();
    let backend =
        format!("default_backend upstream\nbackend upstream\n    server upstream {}", site.upstream());
    let haproxy = ObservedHaproxy::start(&site, "http", "", &backend);
    haproxy.observing.signal(Signal::STOP);
    // More lines than the largest buffer holds that is asked for: 4 MiB, which the kernel doubles.
    let load = site.load(&["-n", "12000", "-r", "5000", "-c", "4", "-k", "50"]);
    haproxy.observing.signal(Signal::CONT);
    until("what the socket holds is read", || is_read(&haproxy.log));
    // The next line has the number that shows the hole.
    site.fail_handshake();
    let (observed, said) = haproxy.finish(&site);
    let counted = observed.pointer("/proxy/http/requests/total").and_then(Value::as_u64).unwrap();
    let lost = lost(&said);
    assert!(lost > 0 && counted > 0, "{said}");
    assert_eq!(observed["log"]["lines"]["lost"], lost);
    assert_eq!(counted + lost, sum(&[load], "/requests/ok"), "{said}");
}

/// Whether nothing waits in the UDP socket at this address of IPv4.
fn is_read(log: &str) -> bool {
    let port: u16 = log.rsplit(':').next().unwrap().parse().unwrap();
    let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
    let socket = sockets
        .lines()
        .find(|line| line.split_whitespace().nth(1).is_some_and(|at| at.ends_with(&format!(":{port:04X}"))));
    socket.expect("the log's socket").split_whitespace().nth(4).unwrap().ends_with(":00000000")
}

/// Runs nginx under a load, with its log in a file, and counts that.
fn observe_nginx(context: &str, arguments: &[&str]) -> (Value, Vec<Value>) {
    let site = ObserveTestBed::new();
    let kind = if context == "http" { "nginx" } else { "nginx-stream" };
    let log = site.path("access.log");
    let lines = site.nginx_lines(kind, &log);
    let server = match context {
        "http" => format!("location / {{ proxy_pass http://{}; }}", site.upstream()),
        _ => format!("proxy_pass {};", site.upstream()),
    };
    let nginx = site.start_nginx(context, &lines, &server);
    let loads = loads(&site, arguments);
    nginx.finish(Signal::QUIT);
    let counted = observe_file(&site, kind, &log);
    (counted, loads)
}

#[test]
fn counts_of_nginxs_stream_log_equal_the_generators() {
    let (observed, loads) = observe_nginx("stream", &BUSY);
    assert_equal(&observed, &loads, OF_NGINX_STREAM);
}

#[test]
fn counts_of_nginxs_http_log_equal_the_generators() {
    let (observed, loads) = observe_nginx("http", &BUSY);
    let requests = observed.pointer("/proxy/http/requests/total").and_then(Value::as_u64).unwrap();
    assert_eq!(requests, sum(&loads, "/requests/ok"));
    assert_equal(&observed, &loads, OF_NGINX);
}

#[test]
fn requests_over_http2_are_counted_by_streams_and_connections() {
    let arguments = ["-n", "60", "--http2", "-m", "3", "-k", "5"];
    let (observed, loads) = observe_haproxy("http", &arguments);
    assert_http2_equal(&observed, &loads, OF_HAPROXY);
    let (observed, loads) = observe_nginx("http", &arguments);
    assert_http2_equal(&observed, &loads, OF_NGINX);
}

/// Runs stunnel under a load, and counts its log.
fn observe_stunnel(arguments: &[&str]) -> (Value, Vec<Value>) {
    let site = ObserveTestBed::new();
    let log = site.path("stunnel.log");
    let printed = site.setup(&["stunnel"]);
    let lines = printed.replace("/var/log/stunnel4/stunnel.log", log.to_str().unwrap());
    let (listen, upstream, pem) = (site.listen, site.upstream(), site.path("both.pem"));
    let configuration = format!(
        "foreground = yes\npid =\n{lines}\n[web]\naccept = {listen}\nconnect = {upstream}\ncert = {}\n",
        pem.display()
    );
    std::fs::write(site.path("stunnel.conf"), configuration).unwrap();
    let mut stunnel = outside("stunnel", "stunnel4");
    stunnel.arg(site.path("stunnel.conf"));
    let stunnel = site.start(stunnel, "stunnel");
    let loads = loads(&site, arguments);
    site.fail_handshake();
    // At SIGTERM it writes no more lines of connections that are open.
    until("stunnel's connections are over", || {
        let text = std::fs::read_to_string(&log).unwrap();
        let count = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        count(" accepted connection from ") == count(" byte(s) sent to socket")
    });
    stunnel.finish(Signal::TERM);
    (observe_file(&site, "stunnel", &log), loads)
}

#[test]
fn counts_of_stunnels_log_equal_the_generators() {
    let (observed, loads) = observe_stunnel(&["-n", "2000", "-r", "5000", "-k", "5"]);
    assert_equal(&observed, &loads, OF_HAPROXY);
    // The connection that looks whether it listens, and the one that speaks no TLS.
    assert_eq!(observed["causes"], serde_json::json!({"client left": 1, "not TLS": 1}));
}
