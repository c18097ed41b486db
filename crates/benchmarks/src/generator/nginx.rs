//! A server for every generator: nginx from its Debian package, with one worker on one core.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::on_core;
use crate::Result;

/// The time limit until it listens.
const TIMEOUT: Duration = Duration::from_secs(10);

/// nginx with `/small` (13 bytes) and `/100k`, with HTTP on one port and HTTPS with HTTP/2 on another.
#[derive(Debug)]
pub struct Nginx {
    child: Child,
    plain: u16,
    tls: u16,
    folder: tempfile::TempDir,
}

impl Nginx {
    /// Starts nginx on the core `core`.
    ///
    /// # Errors
    /// If nginx or openssl is missing, or it does not listen.
    pub fn start(core: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let at = folder.path();
        make_certificate(at)?;
        fs::create_dir(at.join("www"))?;
        fs::write(at.join("www/small"), "hello, world\n")?;
        fs::write(at.join("www/100k"), vec![b'x'; 100_000])?;
        let (plain, tls) = (free_port()?, free_port()?);
        fs::write(at.join("nginx.conf"), configuration(at, plain, tls))?;
        let mut command = on_core(core);
        command.args(["nginx", "-p"]).arg(at).arg("-c").arg(at.join("nginx.conf"));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().map_err(|error| format!("cannot start nginx: {error}"))?;
        let mut server = Self { child, plain, tls, folder };
        server.wait_until_it_listens()?;
        Ok(server)
    }

    /// `http://127.0.0.1:PORT/PATH`.
    pub fn http(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.plain)
    }

    /// `https://127.0.0.1:PORT/PATH`.
    pub fn https(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}/{path}", self.tls)
    }

    /// Returns the TLS port.
    pub fn tls_port(&self) -> u16 {
        self.tls
    }

    /// Returns the path of its self-signed certificate.
    pub fn certificate(&self) -> String {
        self.folder.path().join("cert.pem").display().to_string()
    }

    /// Returns a folder for the measurement's files, which is removed with the server.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn wait_until_it_listens(&mut self) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while TcpStream::connect(("127.0.0.1", self.tls)).is_err() {
            if let Some(status) = self.child.try_wait()? {
                return Err(format!("nginx did not start: {status}; is it installed?").into());
            }
            if Instant::now() > deadline {
                return Err("nginx does not listen".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // The master stops its worker on SIGTERM; after SIGKILL the worker would remain.
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw) {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}

fn make_certificate(at: &Path) -> Result<()> {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]);
    command.args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]);
    command.args(["-days", "2", "-keyout"]).arg(at.join("key.pem")).arg("-out").arg(at.join("cert.pem"));
    let made = command.output().map_err(|error| format!("cannot start openssl: {error}"))?;
    if made.status.success() {
        return Ok(());
    }
    Err(format!("openssl made no certificate: {}", String::from_utf8_lossy(&made.stderr)).into())
}

/// Returns a port that was free a moment ago.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}

fn configuration(at: &Path, plain: u16, tls: u16) -> String {
    let at = at.display();
    format!(
        "daemon off; worker_processes 1; pid {at}/pid; error_log {at}/error.log;
events {{ worker_connections 8192; }}
http {{
    access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000; http2_max_concurrent_streams 1000;
    client_body_temp_path {at}/t1; proxy_temp_path {at}/t2; fastcgi_temp_path {at}/t3; uwsgi_temp_path {at}/t4;
    scgi_temp_path {at}/t5; open_file_cache max=10;
    server {{
        listen 127.0.0.1:{plain} backlog=4096; listen 127.0.0.1:{tls} ssl http2 backlog=4096;
        ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem; ssl_protocols TLSv1.3;
        ssl_ecdh_curve X25519; root {at}/www;
    }}
}}
"
    )
}
