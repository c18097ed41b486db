//! `tlsdash observe` over real terminators: what it counts of their logs is what the generator counted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use common::{TlsdashProcess, outside, run, send, stderr, tlsdash, until};
use loadgen::{DemoUpstream, UpstreamAddr};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

struct ObserveTestBed {
    folder: tempfile::TempDir,
    upstream: DemoUpstream,
    listen: SocketAddr,
}

/// A terminator and its workers. They end with it.
struct RunningTerminator(Child);

impl ObserveTestBed {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("observe").tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-days", "2"];
        let name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"];
        let mut openssl = outside("openssl", "openssl");
        openssl.args(["req", "-x509", "-nodes"]).args(curve).args(name);
        let made =
            openssl.arg("-keyout").arg(path("key.pem")).arg("-out").arg(path("cert.pem")).output().unwrap();
        assert!(made.status.success(), "{}", stderr(&made));
        let both = ["cert.pem", "key.pem"].map(|name| std::fs::read_to_string(path(name)).unwrap());
        std::fs::write(path("both.pem"), both.concat()).unwrap();
        let upstream = DemoUpstream::start(UpstreamAddr::Tcp((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
        // Free for as long as nobody else takes it.
        let listen = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
        Self { folder, upstream, listen }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn upstream(&self) -> SocketAddr {
        match self.upstream.address() {
            UpstreamAddr::Tcp(address) => *address,
            UpstreamAddr::Unix(path) => panic!("{}", path.display()),
        }
    }

    fn setup(&self, arguments: &[&str]) -> String {
        let printed = run(self.folder.path(), &[&["observe", "setup"], arguments].concat());
        assert!(printed.status.success(), "{}", stderr(&printed));
        String::from_utf8(printed.stdout).unwrap()
    }

    fn start(&self, mut command: Command, what: &str) -> RunningTerminator {
        let output = std::fs::File::create(self.path("output")).unwrap();
        command.process_group(0).stdout(output.try_clone().unwrap()).stderr(output);
        let mut terminator = RunningTerminator(command.spawn().unwrap());
        until(&format!("{what} listens"), || {
            if let Some(status) = terminator.0.try_wait().unwrap() {
                panic!("it ended with {status}: {}", std::fs::read_to_string(self.path("output")).unwrap());
            }
            TcpStream::connect(self.listen).is_ok()
        });
        terminator
    }

    /// Loads the terminator. Gives what the generator counted.
    fn load(&self, arguments: &[&str]) -> Value {
        let url = format!("https://localhost:{}/bytes/100", self.listen.port());
        let ca = self.path("cert.pem");
        let mut load = tlsdash(self.folder.path());
        load.args(["load", &url, "--journal", "off", "--headless", "--format", "json", "--ca"]).arg(ca);
        let ended = load.args(arguments).output().unwrap();
        assert!(ended.status.success(), "{}", stderr(&ended));
        serde_json::from_slice::<Value>(&ended.stdout).unwrap()["load"].take()
    }

    /// Speaks no TLS to the terminator, which refuses.
    fn fail_handshake(&self) {
        let mut stream = TcpStream::connect(self.listen).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        // Whatever it answers; it closes then.
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

impl RunningTerminator {
    /// Lets it finish what it serves, and waits for its end: all lines are written then.
    fn finish(mut self, signal: Signal) {
        send(signal, self.0.id());
        until("the terminator ends", || self.0.try_wait().unwrap().is_some());
    }
}

impl Drop for RunningTerminator {
    fn drop(&mut self) {
        let group = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw);
        let _ = group.map(|group| kill_process_group(group, Signal::KILL));
        let _ = self.0.wait();
    }
}

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
    let common = ["-c", "4", "-k", "5", "--resume", "50%", "--source-addresses", "3"];
    let of = |version: &&str| site.load(&[&common, arguments, &["--tls-version", version]].concat());
    VERSIONS.iter().map(of).collect()
}

/// The lines of `setup haproxy` for one mode.
fn haproxy_lines(printed: &str, is_http: bool) -> String {
    let (http, tcp) = printed.split_once("# In each frontend with mode tcp:").unwrap();
    if is_http { http.to_owned() } else { tcp.to_owned() }
}

/// Runs HAProxy under a load. Few enough lines that the smallest buffer of a socket holds all of them.
fn observe_haproxy(mode: &str, arguments: &[&str]) -> (Value, Vec<Value>) {
    let site = ObserveTestBed::new();
    let args =
        ["observe", "haproxy", "--syslog", "udp:127.0.0.1:0", "--headless", "--journal", "file:run.journal"];
    let mut command = tlsdash(site.folder.path());
    command.args(args).args(["--format", "json"]).current_dir(site.folder.path());
    let mut observing = TlsdashProcess::start(command);
    let line = observing.line_with("observing haproxy");
    let address = line.split("log ").nth(1).unwrap().split(',').next().unwrap();
    let printed = site.setup(&["haproxy", "--syslog", address]);
    let (pem, listen, upstream) = (site.path("both.pem"), site.listen, site.upstream());
    let lines = haproxy_lines(&printed, mode == "http");
    let alpn = if mode == "http" { " alpn h2,http/1.1" } else { "" };
    let configuration = format!(
        "defaults\n    mode {mode}\n    timeout connect 10s\n    timeout client 60s\n    timeout server 60s\n\
         frontend clients\n    bind {listen} ssl crt {} ssl-min-ver TLSv1.2{alpn}\n{lines}\n    default_backend upstream\n\
         backend upstream\n    server upstream {upstream}\n",
        pem.display()
    );
    std::fs::write(site.path("haproxy.cfg"), configuration).unwrap();
    let mut haproxy = outside("haproxy", "haproxy");
    haproxy.args(["-db", "-f"]).arg(site.path("haproxy.cfg"));
    let haproxy = site.start(haproxy, "haproxy");
    let loads = loads(&site, arguments);
    site.fail_handshake();
    haproxy.finish(Signal::USR1);
    let (code, printed, said) = observing.end_and_tell();
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("lost") && !said.contains("cannot be read"), "{said}");
    let summary = with_causes(&site, serde_json::from_str(&printed).unwrap(), &site.path("run.journal"));
    (summary, loads)
}

/// Failed: the connection that looks whether it listens, and the one that speaks no TLS.
const OF_HAPROXY: UncountedEvents = UncountedEvents { handshakes: 2, failed: 2, header_bytes_off: 0 };
/// In HTTP mode it counts headers in a form of its own.
const OF_HAPROXY_HTTP: UncountedEvents = UncountedEvents { header_bytes_off: 8, ..OF_HAPROXY };
/// The stream module logs no connection that breaks within the first flight.
const OF_NGINX_STREAM: UncountedEvents = UncountedEvents { handshakes: 2, failed: 0, header_bytes_off: 0 };
/// The access log has no connection without a request, and the error log the one that looks whether it listens.
const OF_NGINX: UncountedEvents = UncountedEvents { handshakes: 0, failed: 1, header_bytes_off: 0 };

#[test]
fn counts_of_haproxys_http_log_equal_the_generators() {
    let (observed, loads) = observe_haproxy("http", &["-n", "40"]);
    assert_equal(&observed, &loads, OF_HAPROXY_HTTP);
    let requests = observed.pointer("/proxy/http/requests/total").and_then(Value::as_u64);
    assert_eq!(requests, Some(sum(&loads, "/requests/ok")));
    assert_eq!(observed.pointer("/proxy/http/statuses/200").and_then(Value::as_u64), requests);
}

#[test]
fn counts_of_haproxys_tcp_log_equal_the_generators() {
    let (observed, loads) = observe_haproxy("tcp", &["-n", "30", "-r", "10"]);
    assert_equal(&observed, &loads, OF_HAPROXY);
    assert_eq!(observed["causes"], serde_json::json!({"client left": 1, "not TLS": 1}));
}

/// Runs nginx under a load, with its log in a file, and counts that.
fn observe_nginx(context: &str, arguments: &[&str]) -> (Value, Vec<Value>) {
    let site = ObserveTestBed::new();
    let kind = if context == "http" { "nginx" } else { "nginx-stream" };
    let log = site.path("access.log");
    let to_socket = "syslog:server=127.0.0.1:5514,nohostname";
    let printed = site.setup(&[kind, "--syslog", "udp:127.0.0.1:5514"]);
    let lines = printed.replace(to_socket, &log.display().to_string());
    let (listen, upstream, folder) = (site.listen, site.upstream(), site.folder.path().display());
    let server = match context {
        "http" => format!("location / {{ proxy_pass http://{upstream}; }}"),
        _ => format!("proxy_pass {upstream};"),
    };
    let http2 = if context == "http" { " http2" } else { "" };
    let temporary: Vec<_> = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .filter(|_| context == "http")
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .collect();
    let configuration = format!(
        "include /etc/nginx/modules-enabled/*stream.conf;\nuser root;\nworker_processes 2;\ndaemon off;\n\
         pid {folder}/pid;\nevents {{ }}\n{context} {{\n{lines}\n{}server {{\n    listen {listen} ssl{http2};\n\
         ssl_certificate {folder}/cert.pem;\n    ssl_certificate_key {folder}/key.pem;\n\
         ssl_protocols TLSv1.2 TLSv1.3;\n    ssl_session_tickets on;\n{server}\n}}\n}}\n",
        temporary.concat()
    );
    std::fs::write(site.path("nginx.conf"), configuration).unwrap();
    let mut nginx = outside("nginx", "nginx");
    nginx.args(["-e", "stderr", "-c"]).arg(site.path("nginx.conf"));
    let nginx = site.start(nginx, "nginx");
    let loads = loads(&site, arguments);
    nginx.finish(Signal::QUIT);
    let counted = observe_file(&site, kind, &log);
    (counted, loads)
}

fn observe_file(site: &ObserveTestBed, kind: &str, log: &Path) -> Value {
    let record = site.path("run.journal");
    let mut observe = tlsdash(site.folder.path());
    observe.args(["observe", kind, "--headless", "--format", "json", "--file"]).arg(log);
    let ended = observe.arg("--record").arg(&record).output().unwrap();
    assert!(ended.status.success(), "{}", stderr(&ended));
    assert!(stderr(&ended).contains(" 0 not readable, 0 lost"), "{}", stderr(&ended));
    with_causes(site, serde_json::from_slice(&ended.stdout).unwrap(), &record)
}

/// Adds the failed handshakes by cause, which the report has.
fn with_causes(site: &ObserveTestBed, mut summary: Value, record: &Path) -> Value {
    let mut report = tlsdash(site.folder.path());
    let made = report.arg("report").arg(record).args(["--json", "-"]).output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let report: Value = serde_json::from_slice(&made.stdout).unwrap();
    let failed = report["handshakes"].as_array().unwrap().iter().filter(|row| row["by"] == "failed");
    summary["causes"] =
        failed.map(|row| (row["name"].as_str().unwrap().to_owned(), row["count"].clone())).collect();
    summary
}

#[test]
fn counts_of_nginxs_stream_log_equal_the_generators() {
    let (observed, loads) = observe_nginx("stream", &["-n", "5000", "-r", "5000"]);
    assert_equal(&observed, &loads, OF_NGINX_STREAM);
}

#[test]
fn counts_of_nginxs_http_log_equal_the_generators() {
    let (observed, loads) = observe_nginx("http", &["-n", "5000", "-r", "5000"]);
    let requests = observed.pointer("/proxy/http/requests/total").and_then(Value::as_u64).unwrap();
    assert_eq!(requests, sum(&loads, "/requests/ok"));
    assert_equal(&observed, &loads, OF_NGINX);
}

#[test]
fn requests_over_http2_are_counted_by_streams_and_connections() {
    let arguments = ["-n", "60", "--http2", "-m", "3"];
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
    stunnel.finish(Signal::TERM);
    (observe_file(&site, "stunnel", &log), loads)
}

#[test]
fn counts_of_stunnels_log_equal_the_generators() {
    let (observed, loads) = observe_stunnel(&["-n", "2000", "-r", "5000"]);
    assert_equal(&observed, &loads, OF_HAPROXY);
    // The connection that looks whether it listens, and the one that speaks no TLS.
    assert_eq!(observed["causes"], serde_json::json!({"client left": 1, "not TLS": 1}));
}

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
fn times_of_a_log_are_bounds_in_a_report_and_what_it_lacks_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let line = r#"{"kind":"tcp","time":"1795440001.000","log":"t","line":"1","client":"10.0.0.1","version":"TLSv1.3","cipher":"TLS_AES_128_GCM_SHA256","resumed":"0","name":"a.example","alpn":"","handshake":"0","state":"--","in":"5","out":"7","took":"20","connect":"3"}"#;
    std::fs::write(folder.path().join("log"), format!("{line}\n")).unwrap();
    let args = ["observe", "haproxy", "--headless", "--file", "log", "--record", "run.journal"];
    let mut observe = tlsdash(folder.path());
    assert!(observe.args(args).current_dir(folder.path()).status().unwrap().success());
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
}

/// A line of HAProxy in TCP mode: a handshake, or a failed one with OpenSSL's words.
fn logged(n: u64, client: &str, handshake: Result<(&str, u8), &str>) -> String {
    let head = format!(r#""time":"17954400{:02}.000","log":"t","line":"{n}","client":"{client}""#, n / 20);
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
    assert_eq!(of("old-versions")["whom"], serde_json::json!(["10.0.0.1: 150 handshakes"]));
    assert_eq!(of("old-versions")["title"], "TLS 1.3 only would refuse 60 % of handshakes of 1 client");
    let refused = of("handshakes-refused")["whom"].to_string();
    assert!(refused.contains("unsupported protocol"), "{refused}");
}

#[test]
fn the_certificate_of_a_terminator_is_recorded_and_its_end_is_found() {
    let site = ObserveTestBed::new();
    let (listen, upstream, pem) = (site.listen, site.upstream(), site.path("both.pem"));
    let configuration = format!(
        "defaults\n    mode tcp\n    timeout connect 10s\n    timeout client 60s\n    timeout server 60s\n\
         frontend clients\n    bind {listen} ssl crt {}\n    default_backend upstream\n\
         backend upstream\n    server upstream {upstream}\n",
        pem.display()
    );
    std::fs::write(site.path("haproxy.cfg"), configuration).unwrap();
    let mut haproxy = outside("haproxy", "haproxy");
    haproxy.args(["-db", "-f"]).arg(site.path("haproxy.cfg"));
    let haproxy = site.start(haproxy, "haproxy");
    let mut command = tlsdash(site.folder.path());
    let pid = haproxy.0.id().to_string();
    let certificate = format!("localhost@{listen}");
    command.args(["observe", "haproxy", "--syslog", "udp:127.0.0.1:0", "--headless", "--format", "json"]);
    command.args(["--pid", &pid, "--certificate-of", &certificate, "--journal", "file:run.journal"]);
    command.current_dir(site.folder.path());
    let mut observing = TlsdashProcess::start(command);
    let line = observing.line_with("certificate of");
    assert!(line.contains("ECDSA P-256 for localhost until") && line.contains("(no chain)"), "{line}");
    let address = observing.line_with("observing haproxy");
    let address = address.split("udp:").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.send_to(logged(1, "10.0.0.1", Ok(("TLSv1.3", 0))).as_bytes(), &address).unwrap();
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
    haproxy.finish(Signal::TERM);
}
