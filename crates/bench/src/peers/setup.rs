//! How each terminator is set up, so that all do the same: TLS 1.2 and 1.3, AES-128-GCM, sessions resumed by tickets, no
//! log, no time limit that a measurement could reach.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;

use super::{Certificates, Key, Kind, Peer};
use crate::Result;

const SUITE_TLS13: &str = "TLS_AES_128_GCM_SHA256";
const SUITES_TLS12: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256";
/// Where Debian's nginx has what it must be told to load; elsewhere it is built in.
const NGINX_STREAM: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";
/// More connections than any case has.
const CONNECTIONS_MAX: u32 = 9_500;
const BACKLOG: u32 = 4_096;

/// What a terminator is told.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Where it listens.
    pub listen: SocketAddr,
    /// The upstream, on a unix socket.
    pub upstream: &'a Path,
    /// The same, for those that speak TCP only.
    pub upstream_tcp: SocketAddr,
    /// What it presents.
    pub certificates: &'a Certificates,
    /// Which of them.
    pub key: Key,
    /// Its workers.
    pub workers: usize,
    /// Its own folder.
    pub folder: &'a Path,
}

impl Setup<'_> {
    /// The command that runs `peer` in the foreground, whose files have been written.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn arguments(&self, peer: &Peer) -> Result<Vec<String>> {
        let Self { listen, workers, .. } = self;
        let [cert, key] = [self.cert(), self.key()].map(|path| path.display().to_string());
        let upstream = self.upstream.display();
        let arguments = match peer.kind {
            Kind::Tlsdash => {
                let journal = self.folder.join("run.journal");
                let text = format!(
                    "--headless --listen {listen} --upstream unix:{upstream} --cert {cert} --key {key} \
                     --workers {workers} --journal file:{}",
                    journal.display()
                );
                return Ok(text.split(' ').map(str::to_owned).collect());
            }
            Kind::NginxStream => format!("-p {} -c {}", self.folder.display(), self.file(&self.nginx())?),
            Kind::Haproxy => format!("-db -f {}", self.file(&self.haproxy())?),
            Kind::Hitch => format!("--config={}", self.file(&self.hitch())?),
            Kind::Stunnel => self.file(&self.stunnel())?,
            Kind::Sozu => format!("start -c {}", self.file(&self.sozu())?),
            Kind::Go => format!("{listen} {cert} {key} {upstream}"),
            Kind::Nghttpx => format!(
                "--conf=/dev/null -f{},{} -bunix:{upstream} -n{workers} -LERROR --accesslog-file=/dev/null \
                 --errorlog-file={}/errors --backlog={BACKLOG} --tls13-ciphers={SUITE_TLS13} --ciphers={SUITES_TLS12} \
                 --tls-min-proto-version=TLSv1.2 --no-ocsp --frontend-keep-alive-timeout=600s \
                 --frontend-read-timeout=600s {key} {cert}",
                listen.ip(),
                listen.port(),
                self.folder.display()
            ),
        };
        Ok(arguments.split(' ').map(str::to_owned).collect())
    }

    /// Runs `peer` with it, on the core `core` alone if one is given.
    pub(super) fn command(&self, peer: &Peer, core: Option<usize>) -> Result<Command> {
        let mut command = match core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string()]).arg(&peer.program);
                command
            }
            None => Command::new(&peer.program),
        };
        command.args(self.arguments(peer)?);
        if peer.kind == Kind::Go {
            command.env("GOMAXPROCS", self.workers.to_string());
        }
        Ok(command)
    }

    fn cert(&self) -> PathBuf {
        self.certificates.chain(self.key)
    }

    fn key(&self) -> PathBuf {
        self.certificates.key(self.key)
    }

    fn file(&self, text: &str) -> Result<String> {
        let path = self.folder.join("configuration");
        fs::write(&path, text)?;
        Ok(path.display().to_string())
    }

    fn nginx(&self) -> String {
        let Self { listen, workers, .. } = self;
        let folder = self.folder.display();
        let load = if Path::new(NGINX_STREAM).exists() {
            format!("load_module {NGINX_STREAM};\n")
        } else {
            String::new()
        };
        let user = if geteuid().is_root() { "user root;\n" } else { "" };
        format!(
            "{load}{user}worker_processes {workers}; daemon off; pid {folder}/pid; error_log {folder}/errors error;
events {{ worker_connections {}; }}
stream {{
 tcp_nodelay on; proxy_timeout 600s;
 server {{
  listen {listen} ssl backlog={BACKLOG};
  ssl_certificate {}; ssl_certificate_key {};
  ssl_protocols TLSv1.2 TLSv1.3; ssl_ciphers {SUITES_TLS12}; ssl_conf_command Ciphersuites {SUITE_TLS13};
  ssl_session_cache shared:sessions:20m; ssl_session_timeout 1h; ssl_session_tickets on;
  proxy_pass unix:{};
 }}
}}
",
            2 * CONNECTIONS_MAX,
            self.cert().display(),
            self.key().display(),
            self.upstream.display()
        )
    }

    fn haproxy(&self) -> String {
        format!(
            "global
  nbthread {}
  maxconn {CONNECTIONS_MAX}
  tune.ssl.cachesize 100000
  ssl-default-bind-options ssl-min-ver TLSv1.2
  ssl-default-bind-ciphers {SUITES_TLS12}
  ssl-default-bind-ciphersuites {SUITE_TLS13}
defaults
  mode tcp
  timeout connect 10s
  timeout client 600s
  timeout server 600s
frontend f
  bind {} ssl crt {} backlog {BACKLOG}
  default_backend b
backend b
  server s unix@{}
",
            self.workers,
            self.listen,
            self.certificates.both(self.key).display(),
            self.upstream.display()
        )
    }

    fn hitch(&self) -> String {
        let user = if geteuid().is_root() { "user = \"nobody\"\n" } else { "" };
        format!(
            "frontend = \"[{}]:{}\"
backend = \"{}\"
pem-file = \"{}\"
workers = {}
backlog = {BACKLOG}
daemon = off
log-level = 1
{user}tls-protos = TLSv1.2 TLSv1.3
ciphers = \"{SUITES_TLS12}\"
ciphersuites = \"{SUITE_TLS13}\"
",
            self.listen.ip(),
            self.listen.port(),
            self.upstream.display(),
            self.certificates.both(self.key).display(),
            self.workers
        )
    }

    fn stunnel(&self) -> String {
        format!(
            "foreground = yes
pid =
debug = 3
output = {}/errors
socket = l:TCP_NODELAY=1
[s]
accept = {}
connect = {}
cert = {}
key = {}
sslVersionMin = TLSv1.2
ciphers = {SUITES_TLS12}
ciphersuites = {SUITE_TLS13}
sessionCacheSize = 20000
",
            self.folder.display(),
            self.listen,
            self.upstream.display(),
            self.cert().display(),
            self.key().display()
        )
    }

    fn sozu(&self) -> String {
        let (cert, key, listen) = (self.cert(), self.key(), self.listen);
        let (cert, key) = (cert.display(), key.display());
        format!(
            "command_socket = \"{}/command.sock\"
log_level = \"error\"
log_target = \"stdout\"
worker_count = {}
max_connections = {CONNECTIONS_MAX}
max_buffers = {}
front_timeout = 600
back_timeout = 600
[[listeners]]
protocol = \"https\"
address = \"{listen}\"
tls_versions = [\"TLS_V12\", \"TLS_V13\"]
certificate = \"{cert}\"
key = \"{key}\"
certificate_chain = \"{cert}\"
[clusters.app]
protocol = \"http\"
load_balancing = \"ROUND_ROBIN\"
frontends = [ {{ address = \"{listen}\", hostname = \"localhost\", certificate = \"{cert}\", key = \"{key}\", \
             certificate_chain = \"{cert}\" }} ]
backends = [ {{ address = \"{}\" }} ]
",
            self.folder.display(),
            self.workers,
            2 * CONNECTIONS_MAX,
            self.upstream_tcp
        )
    }
}
