//! `tlsdash observe` over real terminators: what it counts of their logs is what the generator counted.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use common::{Running, outside, run, send, stderr, tlsdash, until};
use loadgen::{DemoUpstream, UpstreamAddr};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

struct Site {
    folder: tempfile::TempDir,
    upstream: DemoUpstream,
    listen: SocketAddr,
}

/// A terminator and its workers. They end with it.
struct Terminator(Child);

impl Site {
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

    fn start(&self, mut command: Command, what: &str) -> Terminator {
        let output = std::fs::File::create(self.path("output")).unwrap();
        command.process_group(0).stdout(output.try_clone().unwrap()).stderr(output);
        let mut terminator = Terminator(command.spawn().unwrap());
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

impl Terminator {
    /// Lets it finish what it serves, and waits for its end: all lines are written then.
    fn finish(mut self, signal: Signal) {
        send(signal, self.0.id());
        until("the terminator ends", || self.0.try_wait().unwrap().is_some());
    }
}

impl Drop for Terminator {
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
struct Others {
    /// Full handshakes without a request: the generator looks before each load whether the server answers.
    handshakes: u64,
    /// Failed handshakes.
    failed: u64,
    /// By how many bytes its account of a request's or a response's header may differ from what was sent.
    header_bytes_off: u64,
}

/// Compares what was observed with what the generator counted.
fn assert_equal(observed: &Value, loads: &[Value], others: Others) {
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
    let Others { handshakes, failed, .. } = others;
    assert_eq!(of("/proxy/handshakes/full"), sum(loads, "/handshakes/full") + handshakes, "{observed:#}");
    assert_eq!(of("/proxy/handshakes/failed"), failed, "{observed:#}");
    assert_eq!(of("/proxy/connections/accepted"), sum(loads, "/connections") + handshakes + failed);
    let clients = observed["clients"].as_array().unwrap();
    let of_clients = |name: &str| clients.iter().map(|client| client[name].as_u64().unwrap()).sum::<u64>();
    assert_eq!(of_clients("bytes_out"), of("/proxy/bytes/out"));
    assert_eq!(of_clients("handshakes_resumed"), of("/proxy/handshakes/resumed"));
}

/// What both modes of a load differ in.
const VERSIONS: [&str; 2] = ["1.2", "1.3"];

fn loads(site: &Site, requests: &str) -> Vec<Value> {
    let of = |version: &&str| {
        site.load(&[
            "-n",
            requests,
            "-c",
            "4",
            "-k",
            "5",
            "--resume",
            "50%",
            "--source-addresses",
            "3",
            "--tls-version",
            version,
        ])
    };
    VERSIONS.iter().map(of).collect()
}

/// The lines of `setup haproxy` for one mode.
fn haproxy_lines(printed: &str, is_http: bool) -> String {
    let (http, tcp) = printed.split_once("# In each frontend with mode tcp:").unwrap();
    if is_http { http.to_owned() } else { tcp.to_owned() }
}

/// Runs HAProxy under a load. Few enough lines that the smallest buffer of a socket holds all of them.
fn observe_haproxy(mode: &str) -> (Value, Vec<Value>) {
    let site = Site::new();
    let args =
        ["observe", "haproxy", "--syslog", "udp:127.0.0.1:0", "--headless", "--journal", "file:run.journal"];
    let mut command = tlsdash(site.folder.path());
    command.args(args).args(["--format", "json"]).current_dir(site.folder.path());
    let mut observing = Running::start(command);
    let line = observing.line_with("observing haproxy");
    let address = line.split("log ").nth(1).unwrap().split(',').next().unwrap();
    let printed = site.setup(&["haproxy", "--syslog", address]);
    let (pem, listen, upstream) = (site.path("both.pem"), site.listen, site.upstream());
    let lines = haproxy_lines(&printed, mode == "http");
    let configuration = format!(
        "defaults\n    mode {mode}\n    timeout connect 10s\n    timeout client 60s\n    timeout server 60s\n\
         frontend clients\n    bind {listen} ssl crt {} ssl-min-ver TLSv1.2\n{lines}\n    default_backend upstream\n\
         backend upstream\n    server upstream {upstream}\n",
        pem.display()
    );
    std::fs::write(site.path("haproxy.cfg"), configuration).unwrap();
    let mut haproxy = outside("haproxy", "haproxy");
    haproxy.args(["-db", "-f"]).arg(site.path("haproxy.cfg"));
    let haproxy = site.start(haproxy, "haproxy");
    let loads = loads(&site, "40");
    site.fail_handshake();
    haproxy.finish(Signal::USR1);
    let (code, printed, said) = observing.end_and_tell();
    assert_eq!(code, 0, "{said}");
    assert!(!said.contains("lost") && !said.contains("cannot be read"), "{said}");
    (serde_json::from_str(&printed).unwrap(), loads)
}

/// Failed: the connection that looks whether it listens, and the one that speaks no TLS.
const OF_HAPROXY: Others = Others { handshakes: 2, failed: 2, header_bytes_off: 0 };
/// In HTTP mode it counts headers in a form of its own.
const OF_HAPROXY_HTTP: Others = Others { header_bytes_off: 8, ..OF_HAPROXY };
/// The stream module logs no connection that breaks within the first flight.
const OF_NGINX_STREAM: Others = Others { handshakes: 2, failed: 0, header_bytes_off: 0 };
/// The access log has no connection without a request, and the error log the one that looks whether it listens.
const OF_NGINX: Others = Others { handshakes: 0, failed: 1, header_bytes_off: 0 };

#[test]
fn counts_of_haproxys_http_log_equal_the_generators() {
    let (observed, loads) = observe_haproxy("http");
    assert_equal(&observed, &loads, OF_HAPROXY_HTTP);
    let requests = observed.pointer("/proxy/http/requests/total").and_then(Value::as_u64);
    assert_eq!(requests, Some(sum(&loads, "/requests/ok")));
    assert_eq!(observed.pointer("/proxy/http/statuses/200").and_then(Value::as_u64), requests);
}

#[test]
fn counts_of_haproxys_tcp_log_equal_the_generators() {
    let (observed, loads) = observe_haproxy("tcp");
    assert_equal(&observed, &loads, OF_HAPROXY);
}

/// Runs nginx under a load, with its log in a file, and counts that.
fn observe_nginx(context: &str) -> (Value, Vec<Value>) {
    let site = Site::new();
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
    let temporary: Vec<_> = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .filter(|_| context == "http")
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"))
        .collect();
    let configuration = format!(
        "include /etc/nginx/modules-enabled/*stream.conf;\nuser root;\nworker_processes 2;\ndaemon off;\n\
         pid {folder}/pid;\nevents {{ }}\n{context} {{\n{lines}\n{}server {{\n    listen {listen} ssl;\n\
         ssl_certificate {folder}/cert.pem;\n    ssl_certificate_key {folder}/key.pem;\n\
         ssl_protocols TLSv1.2 TLSv1.3;\n    ssl_session_tickets on;\n{server}\n}}\n}}\n",
        temporary.concat()
    );
    std::fs::write(site.path("nginx.conf"), configuration).unwrap();
    let mut nginx = outside("nginx", "nginx");
    nginx.args(["-e", "stderr", "-c"]).arg(site.path("nginx.conf"));
    let nginx = site.start(nginx, "nginx");
    let loads = loads(&site, "1000");
    nginx.finish(Signal::QUIT);
    let counted = observe_file(&site, kind, &log);
    (counted, loads)
}

fn observe_file(site: &Site, kind: &str, log: &Path) -> Value {
    let record = site.path("run.journal");
    let mut observe = tlsdash(site.folder.path());
    observe.args(["observe", kind, "--headless", "--format", "json", "--file"]).arg(log);
    let ended = observe.arg("--record").arg(&record).output().unwrap();
    assert!(ended.status.success(), "{}", stderr(&ended));
    assert!(stderr(&ended).contains(" 0 not readable, 0 lost"), "{}", stderr(&ended));
    assert!(record.exists());
    serde_json::from_slice(&ended.stdout).unwrap()
}

#[test]
fn counts_of_nginxs_stream_log_equal_the_generators() {
    let (observed, loads) = observe_nginx("stream");
    assert_equal(&observed, &loads, OF_NGINX_STREAM);
}

#[test]
fn counts_of_nginxs_http_log_equal_the_generators() {
    let (observed, loads) = observe_nginx("http");
    let requests = observed.pointer("/proxy/http/requests/total").and_then(Value::as_u64).unwrap();
    assert_eq!(requests, sum(&loads, "/requests/ok"));
    assert_equal(&observed, &loads, OF_NGINX);
}
