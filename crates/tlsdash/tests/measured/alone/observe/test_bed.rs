//! Terminators that run for a test.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use loadgen::{DemoUpstream, UpstreamAddr};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;

use crate::common::pebble::free_ports;
use crate::common::{TlsdashProcess, make_certificate, outside, run, send, stderr, tlsdash, until};

pub(crate) struct ObserveTestBed {
    pub(crate) folder: tempfile::TempDir,
    upstream: DemoUpstream,
    pub(crate) listen: SocketAddr,
}

/// A terminator and its workers. They end with it.
pub(crate) struct RunningTerminator(pub(crate) Child);

impl ObserveTestBed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("observe").tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        make_certificate(&path("cert.pem"), &path("key.pem"), "localhost", 2, &[]);
        let both = ["cert.pem", "key.pem"].map(|name| std::fs::read_to_string(path(name)).unwrap());
        std::fs::write(path("both.pem"), both.concat()).unwrap();
        let upstream = DemoUpstream::start(UpstreamAddr::Tcp((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
        let [port] = free_ports();
        Self { folder, upstream, listen: (Ipv4Addr::LOCALHOST, port).into() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn upstream(&self) -> SocketAddr {
        match self.upstream.address() {
            UpstreamAddr::Tcp(address) => *address,
            UpstreamAddr::Unix(path) => panic!("{}", path.display()),
        }
    }

    pub(crate) fn setup(&self, arguments: &[&str]) -> String {
        let printed = run(self.folder.path(), &[&["observe", "setup"], arguments].concat());
        assert!(printed.status.success(), "{}", stderr(&printed));
        String::from_utf8(printed.stdout).unwrap()
    }

    pub(crate) fn start(&self, mut command: Command, what: &str) -> RunningTerminator {
        let output = std::fs::File::create(self.output()).unwrap();
        command.process_group(0).stdout(output.try_clone().unwrap()).stderr(output);
        let mut terminator = RunningTerminator(command.spawn().unwrap());
        until(&format!("{what} listens"), || {
            if let Some(status) = terminator.0.try_wait().unwrap() {
                panic!("it ended with {status}: {}", std::fs::read_to_string(self.output()).unwrap());
            }
            TcpStream::connect(self.listen).is_ok()
        });
        terminator
    }

    /// Loads the terminator. Gives what the generator counted.
    pub(crate) fn load(&self, arguments: &[&str]) -> Value {
        let url = format!("https://localhost:{}/bytes/100", self.listen.port());
        let ca = self.path("cert.pem");
        let mut load = tlsdash(self.folder.path());
        load.args(["load", &url, "--journal", "off", "--headless", "--format", "json", "--ca"]).arg(ca);
        let ended = load.args(arguments).output().unwrap();
        assert!(ended.status.success(), "{}", stderr(&ended));
        serde_json::from_slice::<Value>(&ended.stdout).unwrap()["load"].take()
    }

    /// Speaks no TLS to the terminator, which refuses.
    pub(crate) fn fail_handshake(&self) {
        let mut stream = TcpStream::connect(self.listen).unwrap();
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
        // Whatever it answers; it closes then.
        let _ = stream.read_to_end(&mut Vec::new());
    }
}

impl RunningTerminator {
    /// Lets it finish what it serves, and waits for its end: all lines are written then.
    pub(crate) fn finish(mut self, signal: Signal) {
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

/// A terminator whose log is observed while it runs.
pub(crate) struct ObservedHaproxy {
    pub(crate) observing: TlsdashProcess,
    /// The socket that the log goes to.
    pub(crate) log: String,
    haproxy: RunningTerminator,
}

impl ObservedHaproxy {
    /// Starts both. `backend` is what `default_backend` leads to, and further sections.
    pub(crate) fn start(site: &ObserveTestBed, mode: &str, bind: &str, backend: &str) -> Self {
        let args = [
            "observe",
            "haproxy",
            "--syslog",
            "udp:127.0.0.1:0",
            "--headless",
            "--journal",
            "file:run.journal",
        ];
        let mut command = tlsdash(site.folder.path());
        command.args(args).args(["--format", "json"]).current_dir(site.folder.path());
        let mut observing = TlsdashProcess::start(command);
        let line = observing.line_with("observing haproxy");
        let address = line.split("log ").nth(1).unwrap().split(',').next().unwrap().to_owned();
        let printed = site.setup(&["haproxy", "--syslog", &address]);
        let haproxy = site.start_haproxy(mode, &haproxy_lines(&printed, mode), bind, backend);
        Self { observing, log: address, haproxy }
    }

    /// Ends both. Gives the summary with the causes of failed handshakes, and what was said.
    pub(crate) fn finish(self, site: &ObserveTestBed) -> (Value, String) {
        self.haproxy.finish(Signal::USR1);
        let (code, printed, said) = self.observing.end_and_tell();
        assert_eq!(code, 0, "{said}");
        assert!(!said.contains("cannot be read"), "{said}");
        (with_causes(site, serde_json::from_str(&printed).unwrap(), &site.path("run.journal")), said)
    }
}

/// The lines of `setup haproxy` for one mode.
fn haproxy_lines(printed: &str, mode: &str) -> String {
    let (http, tcp) = printed.split_once("# In each frontend with mode tcp:").unwrap();
    if mode == "http" { http.to_owned() } else { tcp.to_owned() }
}

impl ObserveTestBed {
    /// Starts HAProxy with these lines in its frontend. `backend` is what `default_backend` leads to, and further sections.
    fn start_haproxy(&self, mode: &str, lines: &str, bind: &str, backend: &str) -> RunningTerminator {
        let (listen, pem) = (self.listen, self.path("both.pem"));
        let configuration = format!(
            "defaults\n    mode {mode}\n    timeout connect 10s\n    timeout client 60s\n    timeout server 60s\n\
             frontend clients\n    bind {listen} ssl crt {} ssl-min-ver TLSv1.2 {bind}\n{lines}\n    {backend}\n",
            pem.display()
        );
        std::fs::write(self.path("haproxy.cfg"), configuration).unwrap();
        self.setup(&["haproxy", "--check", self.path("haproxy.cfg").to_str().unwrap()]);
        let mut haproxy = outside("haproxy", "haproxy");
        haproxy.args(["-db", "-f"]).arg(self.path("haproxy.cfg"));
        self.start(haproxy, "haproxy")
    }

    /// Starts HAProxy in HTTP mode with its log in [`Self::output`].
    pub(crate) fn start_logging_haproxy(&self, backend: &str) -> RunningTerminator {
        let printed = self.setup(&["haproxy", "--syslog", "udp:127.0.0.1:5514"]);
        let lines = haproxy_lines(&printed, "http").replace("127.0.0.1:5514", "stdout");
        self.start_haproxy("http", &lines, "", backend)
    }

    /// What the terminator that started last prints.
    pub(crate) fn output(&self) -> PathBuf {
        self.path("output")
    }

    /// Starts nginx with these lines in a context, `http` or `stream`, and this in its server.
    pub(crate) fn start_nginx(&self, context: &str, lines: &str, server: &str) -> RunningTerminator {
        let (listen, folder) = (self.listen, self.folder.path().display());
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
        std::fs::write(self.path("nginx.conf"), configuration).unwrap();
        let kind = if context == "http" { "nginx" } else { "nginx-stream" };
        self.setup(&[kind, "--check", self.path("nginx.conf").to_str().unwrap()]);
        let mut nginx = outside("nginx", "nginx");
        nginx.args(["-e", "stderr", "-c"]).arg(self.path("nginx.conf"));
        self.start(nginx, "nginx")
    }

    /// The lines of `setup` for nginx, with the log in a file.
    pub(crate) fn nginx_lines(&self, kind: &str, log: &Path) -> String {
        let printed = self.setup(&[kind, "--syslog", "udp:127.0.0.1:5514"]);
        printed.replace("syslog:server=127.0.0.1:5514,nohostname", &log.display().to_string())
    }
}

/// Counts a log, with the failed handshakes by cause.
pub(crate) fn observe_file(site: &ObserveTestBed, kind: &str, log: &Path) -> Value {
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
