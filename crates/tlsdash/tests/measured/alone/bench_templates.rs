//! Every template of `tlsdash bench` as a real server, asked by curl and openssl.

use std::net::Ipv4Addr;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::not_run::say_not_run;
use crate::common::pebble::free_ports;
use crate::common::{make_certificate, outside, until};
use bench::scenario::{
    BenchTlsConfig, CommandServer, Endpoint, Launch, PlaceholderValues, Scenario, Server, UpstreamKind,
};
use bench::template::ServerTemplate;
use loadgen::{DemoUpstream, UpstreamAddr};
use rustix::process::{Pid, Signal, geteuid, kill_process_group};

/// More than the requests after which nginx closes a connection unless it is told otherwise.
const REQUESTS: usize = 1_100;
const SIZES: [usize; 2] = [13, 100_000];

/// What all targets share.
struct TemplateFixture {
    folder: tempfile::TempDir,
    unix: DemoUpstream,
    tcp: DemoUpstream,
}

/// A running template. Its processes end with it.
struct RunningTemplate {
    child: Child,
    listen: Endpoint,
    log: PathBuf,
    ca: PathBuf,
}

impl TemplateFixture {
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("bench").tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["build", "www", "www/bytes"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        for size in SIZES {
            std::fs::write(path(&format!("www/bytes/{size}")), body(size)).unwrap();
        }
        make_certificate(&path("cert.pem"), &path("key.pem"), "localhost", 2, &[]);
        let both = ["cert.pem", "key.pem"].map(|name| std::fs::read_to_string(path(name)).unwrap());
        std::fs::write(path("both.pem"), both.concat()).unwrap();
        let unix = DemoUpstream::start(UpstreamAddr::Unix(path("upstream.sock"))).unwrap();
        let tcp = DemoUpstream::start(UpstreamAddr::Tcp((Ipv4Addr::LOCALHOST, 0).into())).unwrap();
        if geteuid().is_root() {
            // Workers that are not root must reach the socket.
            for name in ["", "upstream.sock"] {
                open_to_all(&path(name));
            }
        }
        Self { folder, unix, tcp }
    }

    fn launch(&self, server: &CommandServer, name: &str, listen: &Endpoint) -> Launch {
        let path = |name: &str| self.folder.path().join(name);
        std::fs::create_dir_all(path(name)).unwrap();
        let upstream = match (server.upstream, self.unix.address(), self.tcp.address()) {
            (UpstreamKind::Unix, UpstreamAddr::Unix(path), _) => Some(Endpoint::Unix(path.clone())),
            (UpstreamKind::Tcp, _, UpstreamAddr::Tcp(addr)) => Some(Endpoint::Tcp(*addr)),
            _ => None,
        };
        let slots = PlaceholderValues {
            listen,
            upstream: upstream.as_ref(),
            cert: &path("cert.pem"),
            key: &path("key.pem"),
            pem: &path("both.pem"),
            tls: &BenchTlsConfig::default(),
            workers: 2,
            dir: &path(name),
            build: &path("build"),
            www: &path("www"),
            user: "nobody",
            tlsdash: Path::new(env!("CARGO_BIN_EXE_tlsdash")),
        };
        server.launch(&slots).unwrap()
    }

    /// Starts a server; `None` if its program is missing.
    fn start(&self, server: &CommandServer, name: &str, listen: Endpoint) -> Option<RunningTemplate> {
        let launch = self.launch(server, name, &listen);
        for (path, text) in &launch.files {
            std::fs::write(path, text).unwrap();
        }
        if let [program, arguments @ ..] = &launch.prepare[..] {
            let mut prepare = Command::new(program);
            let made = prepare.args(arguments).envs(&launch.environment).output().ok()?;
            assert!(made.status.success(), "{name}: {}", crate::common::stderr(&made));
        }
        let log = self.folder.path().join(name).join("output");
        let output = std::fs::File::create(&log).unwrap();
        let mut command = Command::new(&launch.argv[0]);
        command.args(&launch.argv[1..]).envs(&launch.environment).process_group(0).stdin(Stdio::null());
        let child = command.stdout(output.try_clone().unwrap()).stderr(output).spawn().ok()?;
        let mut running = RunningTemplate { child, listen, log, ca: self.folder.path().join("cert.pem") };
        until(&format!("{name} listens"), || running.is_listening());
        Some(running)
    }
}

impl RunningTemplate {
    fn is_listening(&mut self) -> bool {
        if let Some(status) = self.child.try_wait().unwrap() {
            panic!("it ended with {status}: {}", std::fs::read_to_string(&self.log).unwrap());
        }
        self.listen.is_listened_on()
    }

    fn port(&self) -> u16 {
        self.listen.port().unwrap()
    }

    fn curl(&self, scheme: &str, path: &str) -> Command {
        let mut curl = outside("curl", "curl");
        curl.args(["--silent", "--show-error", "--fail", "--max-time", "30", "--cacert"]).arg(&self.ca);
        match &self.listen {
            Endpoint::Tcp(addr) => curl.arg(format!("{scheme}://localhost:{}{path}", addr.port())),
            Endpoint::Unix(socket) => {
                curl.arg("--unix-socket").arg(socket).arg(format!("http://localhost{path}"))
            }
        };
        curl
    }

    /// What `openssl s_client` says of a connection with one request.
    fn s_client(&self, arguments: &[&str]) -> String {
        let mut client = outside("openssl", "openssl");
        client.args(["s_client", "-servername", "localhost", "-ign_eof", "-connect"]);
        client.arg(format!("127.0.0.1:{}", self.port())).args(arguments);
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = client.spawn().unwrap();
        let request = b"GET /bytes/13 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
        // A server that refuses the handshake leaves nobody to read it.
        let _ = std::io::Write::write_all(child.stdin.as_mut().unwrap(), request);
        let output = child.wait_with_output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

impl Drop for RunningTemplate {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.child);
        // It may already have ended, and its workers may outlive it.
        let _ = kill_process_group(group, Signal::TERM);
        until("it ends", || self.child.try_wait().unwrap().is_some());
        let _ = kill_process_group(group, Signal::KILL);
    }
}

fn open_to_all(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o777)).unwrap();
}

fn body(bytes: usize) -> Vec<u8> {
    let pattern: Vec<u8> = (b'a'..=b'z').cycle().take(64 * 1024).collect();
    pattern.into_iter().cycle().take(bytes).collect()
}

fn free_port() -> Endpoint {
    let [port] = free_ports();
    Endpoint::Tcp((Ipv4Addr::LOCALHOST, port).into())
}

fn output(mut command: Command) -> Vec<u8> {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", crate::common::stderr(&output));
    output.stdout
}

fn check_answers(running: &RunningTemplate, name: &str, scheme: &str, echoes: bool) {
    for size in SIZES {
        let answer = output(running.curl(scheme, &format!("/bytes/{size}")));
        assert!(answer == body(size), "{name}: {} bytes of {size}", answer.len());
    }
    if echoes {
        let sent = body(10_000);
        let file = running.log.with_file_name("sent");
        std::fs::write(&file, &sent).unwrap();
        let mut post = running.curl(scheme, "/echo");
        post.arg("--data-binary").arg(format!("@{}", file.display()));
        assert!(output(post) == sent, "{name}: another echo");
    }
    let mut curl = running.curl(scheme, "/bytes/13");
    let url = curl.get_args().last().unwrap().to_owned();
    curl.args(["--write-out", "%{num_connects} %{http_code}\n", "--output", "/dev/null"]);
    for _ in 1..REQUESTS {
        curl.arg(&url).args(["--output", "/dev/null"]);
    }
    let lines = String::from_utf8(output(curl)).unwrap();
    assert_eq!(
        (lines.lines().count(), lines.matches("1 200").count()),
        (REQUESTS, 1),
        "{name} closed a connection"
    );
}

fn check_tls(running: &RunningTemplate, name: &str) {
    let offer = ["-groups", "x25519:secp256r1"];
    let tls13 = running.s_client(&[&offer[..], &["-tls1_3"]].concat());
    for part in ["New, TLSv1.3, Cipher is TLS_AES_128_GCM_SHA256", "Server Temp Key: X25519", "HTTP/1.1 200"]
    {
        assert!(tls13.contains(part), "{name}: no {part} in {tls13}");
    }
    let tls12 = running.s_client(&[&offer[..], &["-tls1_2"]].concat());
    for part in ["Cipher is ECDHE-ECDSA-AES128-GCM-SHA256", "Server Temp Key: X25519"] {
        assert!(tls12.contains(part), "{name}: no {part} in {tls12}");
    }
    let other_group = running.s_client(&["-groups", "secp256r1", "-tls1_3"]);
    assert!(other_group.contains("Cipher is (NONE)"), "{name} accepts another group: {other_group}");
    // Go lets nobody choose suites of TLS 1.3; the load offers the one. Caddy is written in Go.
    if !name.starts_with("go-") && name != "Caddy" {
        let other_cipher = running.s_client(&["-ciphersuites", "TLS_AES_256_GCM_SHA384", "-tls1_3"]);
        assert!(other_cipher.contains("Cipher is (NONE)"), "{name} accepts another cipher: {other_cipher}");
    }
    for version in ["-tls1_3", "-tls1_2"] {
        let session = running.log.with_file_name("session");
        let session = session.to_str().unwrap();
        running.s_client(&[version, "-sess_out", session]);
        // Whichever worker gets it.
        for attempt in 0..4 {
            let resumed = running.s_client(&[version, "-sess_in", session]);
            assert!(
                resumed.contains("Reused, "),
                "{name} {version}: attempt {attempt} is not resumed: {resumed}"
            );
        }
    }
}

/// Every template, and the servers of `docs/scenarios` that are no templates.
fn servers() -> Vec<(String, CommandServer)> {
    let pasted = |template: &ServerTemplate| format!("{}\n[[case]]\nname = \"any\"", template.text);
    let examples = [
        include_str!("../../../../../docs/scenarios/caddy.toml").to_owned(),
        include_str!("../../../../../docs/scenarios/lighttpd.toml").to_owned(),
    ];
    let mut servers = Vec::new();
    for text in ServerTemplate::all().iter().map(pasted).chain(examples) {
        let mut scenario = Scenario::parse("pasted", &text, &|_| Ok(())).unwrap();
        let target = scenario.targets.pop().unwrap();
        let Server::Commands(mut commands) = target.server else { panic!("{} is no command", target.name) };
        servers.push((target.name, commands.remove(0)));
    }
    servers
}

#[test]
fn each_template_answers_as_the_upstream_with_the_same_tls() {
    let surroundings = TemplateFixture::new();
    for (name, server) in servers() {
        if let Some(variable) = server.missing_variable() {
            let name = format!("{name}: {variable} names no file");
            say_not_run("each_template_answers_as_the_upstream_with_the_same_tls", &name);
            continue;
        }
        let Some(running) = surroundings.start(&server, &name, free_port()) else {
            say_not_run(
                "each_template_answers_as_the_upstream_with_the_same_tls",
                &format!("{name} is not installed"),
            );
            continue;
        };
        check_answers(&running, &name, if server.tls { "https" } else { "http" }, server.echo);
        if server.tls {
            check_tls(&running, &name);
            let mut http = running.curl("https", "/bytes/13");
            http.args(["--http2", "--output", "/dev/null", "--write-out", "%{http_version}"]);
            let version = if server.http2 { "2" } else { "1.1" };
            assert_eq!(String::from_utf8(output(http)).unwrap(), version, "{name}");
            continue;
        }
        drop(running);
        let path = surroundings.folder.path().join(format!("{name}.sock"));
        let behind = surroundings.start(&server, &name, Endpoint::Unix(path.clone())).unwrap();
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o002, 0o002, "{name}: a proxy that runs as another user cannot connect");
        check_answers(&behind, &name, "http", server.echo);
    }
}
