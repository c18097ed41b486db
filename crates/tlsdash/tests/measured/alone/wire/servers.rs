//! Servers whose packets are counted. All of them choose from X25519 alone, so that a client that begins with another group
//! is asked again.

use std::path::PathBuf;
use std::process::Command;

use rustix::process::Signal;

use crate::alone::observe::test_bed::{ObserveTestBed, RunningTerminator};
use crate::common::{outside, stderr, tlsdash};

/// A server that is no part of tlsdash.
#[derive(Clone, Copy)]
pub(super) struct Server {
    pub(super) name: &'static str,
    command: fn(&ObserveTestBed) -> Command,
    /// Requests that it answers on one connection, if that is not for the client to say.
    pub(super) requests_per_connection: Option<u32>,
}

pub(super) const NGINX: Server = Server::new("nginx", nginx);
pub(super) const HAPROXY: Server = Server::new("HAProxy", haproxy);
pub(super) const HITCH: Server = Server::new("hitch", hitch);
pub(super) const STUNNEL: Server = Server::new("stunnel", stunnel);
pub(super) const CADDY: Server = Server::new("Caddy", caddy);
pub(super) const GO: Server = Server::new("Go", go);
pub(super) const OPENSSL: Server =
    Server { requests_per_connection: Some(1), ..Server::new("openssl s_server", openssl) };

impl Server {
    const fn new(name: &'static str, command: fn(&ObserveTestBed) -> Command) -> Self {
        Self { name, command, requests_per_connection: None }
    }

    pub(super) fn start(self, site: &ObserveTestBed) -> RunningTerminator {
        site.start((self.command)(site), self.name)
    }
}

/// Writes a file of this site, and gives its path.
fn write(site: &ObserveTestBed, name: &str, text: &str) -> PathBuf {
    let path = site.path(name);
    std::fs::write(&path, text).unwrap();
    path
}

fn nginx(site: &ObserveTestBed) -> Command {
    let (listen, folder) = (site.listen, site.folder.path().display());
    let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|name| format!("{name}_temp_path {folder}/{name};\n"));
    let text = format!(
        "user root;\nworker_processes 2;\ndaemon off;\npid {folder}/pid;\nevents {{ }}\nhttp {{\naccess_log off;\n{}\
         server {{\n    listen {listen} ssl;\n    ssl_certificate {folder}/cert.pem;\n    \
         ssl_certificate_key {folder}/key.pem;\n    ssl_protocols TLSv1.2 TLSv1.3;\n    ssl_ecdh_curve X25519;\n    \
         return 200 hello;\n}}\n}}\n",
        temporary.concat()
    );
    let mut command = outside("nginx", "nginx");
    command.args(["-e", "stderr", "-c"]).arg(write(site, "nginx.conf", &text));
    command
}

fn haproxy(site: &ObserveTestBed) -> Command {
    let (listen, pem) = (site.listen, site.path("both.pem"));
    let text = format!(
        "defaults\n    mode http\n    timeout connect 10s\n    timeout client 60s\n    timeout server 60s\n\
         frontend clients\n    bind {listen} ssl crt {} ssl-min-ver TLSv1.2 curves X25519\n    \
         http-request return status 200 content-type text/plain string hello\n",
        pem.display()
    );
    let mut command = outside("haproxy", "haproxy");
    command.args(["-db", "-f"]).arg(write(site, "haproxy.cfg", &text));
    command
}

fn hitch(site: &ObserveTestBed) -> Command {
    let (upstream, pem) = (site.upstream(), site.path("both.pem"));
    // It refuses to run workers as root.
    let user = if rustix::process::geteuid().is_root() { "user = \"nobody\"\n" } else { "" };
    let text = format!(
        "frontend = \"[127.0.0.1]:{}\"\nbackend = \"[127.0.0.1]:{}\"\npem-file = \"{}\"\nworkers = 2\ndaemon = off\n\
         log-level = 0\ntls-protos = TLSv1.2 TLSv1.3\necdh-curve = \"X25519\"\n{user}",
        site.listen.port(),
        upstream.port(),
        pem.display()
    );
    let mut command = outside("hitch", "hitch");
    command.arg(format!("--config={}", write(site, "hitch.conf", &text).display()));
    command
}

fn stunnel(site: &ObserveTestBed) -> Command {
    let (listen, upstream, pem) = (site.listen, site.upstream(), site.path("both.pem"));
    let text = format!(
        "foreground = yes\npid =\ndebug = 3\n[web]\naccept = {listen}\nconnect = {upstream}\ncert = {}\n\
         sslVersionMin = TLSv1.2\ncurves = X25519\n",
        pem.display()
    );
    let mut command = outside("stunnel", "stunnel4");
    command.arg(write(site, "stunnel.conf", &text));
    command
}

fn caddy(site: &ObserveTestBed) -> Command {
    let (port, folder) = (site.listen.port(), site.folder.path().display());
    let text = format!(
        "{{\n    admin off\n    auto_https off\n    servers {{\n        protocols h1\n    }}\n}}\n\
         https://localhost:{port} {{\n    bind 127.0.0.1\n    tls {folder}/cert.pem {folder}/key.pem {{\n        \
         curves x25519\n    }}\n    respond hello\n}}\n"
    );
    let mut command = outside("caddy", "caddy");
    command.args(["run", "--adapter", "caddyfile", "--config"]).arg(write(site, "Caddyfile", &text));
    command.env("XDG_DATA_HOME", site.folder.path()).env("XDG_CONFIG_HOME", site.folder.path());
    command
}

fn go(site: &ObserveTestBed) -> Command {
    let kept = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("go");
    let program = kept.join("server");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/measured/alone/wire/server.go");
    let mut go = outside("go", "golang-go");
    go.env("GOCACHE", kept.join("cache")).env("GO111MODULE", "off").env("GOTOOLCHAIN", "local");
    let built = go.args(["build", "-o"]).arg(&program).arg(source).output().unwrap();
    assert!(built.status.success(), "{}", stderr(&built));
    let mut command = Command::new(program);
    command.arg(site.listen.to_string()).arg(site.path("cert.pem")).arg(site.path("key.pem"));
    command
}

fn openssl(site: &ObserveTestBed) -> Command {
    let mut command = outside("openssl", "openssl");
    command.args(["s_server", "-quiet", "-www", "-groups", "X25519", "-accept"]).arg(site.listen.to_string());
    command.arg("-cert").arg(site.path("cert.pem")).arg("-key").arg(site.path("key.pem"));
    command
}

/// tlsdash itself, which counts in a journal too.
pub(super) fn tlsdash_proxy(site: &ObserveTestBed, handshake_timeout: &str) -> Command {
    let mut command = tlsdash(site.folder.path());
    command.args(["--headless", "--format", "json", "--groups", "x25519", "--listen"]);
    command.arg(site.listen.to_string()).arg("--upstream").arg(site.upstream().to_string());
    command.args(["--handshake-timeout", handshake_timeout, "--journal", "file:proxy.journal", "--cert"]);
    command.arg(site.path("cert.pem")).arg("--key").arg(site.path("key.pem"));
    command.current_dir(site.folder.path());
    command
}

/// Ends a server whose counts are of no use.
pub(super) fn end(server: RunningTerminator) {
    server.finish(Signal::TERM);
}
