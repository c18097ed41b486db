//! Pebble with a name server of its own, for which every name is this host.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{self, Child, Command, Stdio};
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};
use std::{fs, iter};

use rcgen::{CertificateParams, KeyPair};
use tempfile::TempDir;

use super::not_run::say_not_run;

/// A running authority. It ends when this is dropped.
pub(crate) struct Pebble {
    pub(crate) folder: TempDir,
    pub(crate) directory: String,
    /// Where it looks for answers to HTTP-01 and TLS-ALPN-01.
    pub(crate) http_port: u16,
    pub(crate) tls_port: u16,
    /// The interface of the name server.
    pub(crate) dns_management: u16,
    processes: Vec<Child>,
}

impl Pebble {
    /// Starts one, which refuses this share of nonces; `None`, with a message, if it is not installed (`.ci/go-programs`).
    pub(crate) fn start(test: &str, bad_nonces_percent: u32) -> Option<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(
            || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")),
            PathBuf::from,
        );
        let program = |name: &str| target.join("go").join(name);
        if !program("pebble").exists() {
            say_not_run(test, "Pebble is not installed: .ci/go-programs installs it with Go");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let [port, management, http_port, tls_port, dns, dns_management] = free_ports();
        let (cert, key) = own_certificate(folder.path());
        let config = format!(
            r#"{{"pebble": {{"listenAddress": "127.0.0.1:{port}", "managementListenAddress": "127.0.0.1:{management}",
               "certificate": "{cert}", "privateKey": "{key}", "httpPort": {http_port}, "tlsPort": {tls_port},
               "retryAfter": {{"authz": 1, "order": 1}}, "profiles": {{
               "default": {{"description": "90 days", "validityPeriod": 7776000}},
               "shortlived": {{"description": "6 days", "validityPeriod": 518400}}}}}}}}"#
        );
        let config_file = folder.path().join("pebble.json");
        fs::write(&config_file, config).unwrap();
        let names = Command::new(program("pebble-challtestsrv"))
            .args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", "", "-defaultIPv6", ""])
            .args([
                "-dns01",
                &format!("127.0.0.1:{dns}"),
                "-management",
                &format!("127.0.0.1:{dns_management}"),
            ])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let authority = Command::new(program("pebble"))
            .args(["-config", config_file.to_str().unwrap(), "-dnsserver", &format!("127.0.0.1:{dns}")])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", bad_nonces_percent.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let directory = format!("https://127.0.0.1:{port}/dir");
        let pebble = Self {
            folder,
            directory,
            http_port,
            tls_port,
            dns_management,
            processes: vec![names, authority],
        };
        [port, dns_management].into_iter().for_each(await_port);
        Some(pebble)
    }

    /// The file with the certificate of the directory itself.
    pub(crate) fn ca(&self) -> PathBuf {
        self.folder.path().join("pebble.pem")
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for process in &mut self.processes {
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

fn own_certificate(folder: &Path) -> (String, String) {
    let pair = KeyPair::generate().unwrap();
    let made = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().self_signed(&pair).unwrap();
    let (cert, key) = (folder.join("pebble.pem"), folder.join("pebble.key"));
    fs::write(&cert, made.pem()).unwrap();
    fs::write(&key, pair.serialize_pem()).unwrap();
    (cert.to_str().unwrap().to_owned(), key.to_str().unwrap().to_owned())
}

/// Ports that were free a moment ago, all different, and below those that the kernel gives to connections of others.
pub(crate) fn free_ports<const N: usize>() -> [u16; N] {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let next = || 10_000 + (NEXT.fetch_add(1, Relaxed) + 97 * process::id()) % 20_000;
    let is_free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    [(); N].map(|()| iter::repeat_with(|| next() as u16).find(is_free).unwrap())
}

fn await_port(port: u16) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(Instant::now() < deadline, "nothing listens on port {port}");
        std::thread::sleep(Duration::from_millis(20));
    }
}
