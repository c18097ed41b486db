//! Configures each terminator alike: TLS 1.2 and 1.3, AES-128-GCM, resumption by tickets, no log, and no time
//! limit within a measurement.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::process::geteuid;

use super::{CertificateKey, Certificates, InstalledPeer, PeerKind};
use crate::Result;

const SUITE_TLS13: &str = "TLS_AES_128_GCM_SHA256";
const SUITES_TLS12: &str = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256";
/// The stream module of Debian's nginx; elsewhere it is built in.
const NGINX_STREAM: &str = "/usr/lib/nginx/modules/ngx_stream_module.so";
/// More connections than any case has.
const CONNECTIONS_MAX: u32 = 9_500;
const BACKLOG: u32 = 4_096;

/// The configuration of a terminator.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Its address.
    pub listen: SocketAddr,
    /// The upstream on a unix socket.
    pub upstream: &'a Path,
    /// The same upstream on TCP, for terminators that support nothing else.
    pub upstream_tcp: SocketAddr,
    /// The certificates.
    pub certificates: &'a Certificates,
    /// The kind of certificate.
    pub key: CertificateKey,
    /// The number of workers.
    pub workers: usize,
    /// Its folder.
    pub folder: &'a Path,
}

impl Setup<'_> {
    /// Writes the files of `peer`, and returns the arguments that run it in the foreground.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn arguments(&self, peer: &InstalledPeer) -> Result<Vec<String>> {
        let Self { listen, workers, .. } = self;
        let [cert, key] = [self.cert(), self.key()].map(|path| path.display().to_string());
        let upstream = self.upstream.display();
        let arguments = match peer.kind {
            PeerKind::Tlsdash => {
                let journal = self.folder.join("run.journal");
                let text = format!(
                    "--headless --listen {listen} --upstream unix:{upstream} --cert {cert} --key {key} \
                     --workers {workers} --journal file:{}",
                    journal.display()
                );
                return Ok(text.split(' ').map(str::to_owned).collect());
            }
            PeerKind::NginxStream => format!("-p {} -c {}", self.folder.display(), self.file(&self.nginx())?),
            PeerKind::Haproxy => format!("-db -f {}", self.file(&self.haproxy())?),
            PeerKind::Hitch => format!("--config={}", self.file(&self.hitch())?),
            PeerKind::Stunnel => self.file(&self.stunnel())?,
            PeerKind::Sozu => format!("start -c {}", self.file(&self.sozu())?),
            PeerKind::Go => format!("{listen} {cert} {key} {upstream}"),
            PeerKind::Nghttpx => format!(
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

    /// Returns the command that runs `peer`, on the core `core` if one is given.
    pub(super) fn command(&self, peer: &InstalledPeer, core: Option<usize>) -> Result<Command> {
        let mut command = match core {
            Some(core) => {
                let mut command = Command::new("taskset");
                command.args(["-c", &core.to_string()]).arg(&peer.program);
                command
            }
            None => Command::new(&peer.program),
        };
        command.args(self.arguments(peer)?);
        if peer.kind == PeerKind::Go {
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
