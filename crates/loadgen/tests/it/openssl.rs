//! A server that is not rustls: `openssl s_server`.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use loadgen::{Identity, Load, LoadConfig, TlsOptions, Trust};
use records::metrics::LoadCounter as C;

use crate::support::{LONG, plan, run};

/// `openssl s_server -www` on a port of its own choice, until it is dropped.
struct OpenSsl {
    process: Child,
    address: String,
}

impl OpenSsl {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        make_certificate(folder.path());
        Self::start_with(&folder.path().join("cert.pem"), &folder.path().join("key.pem"), options)
    }

    fn start_with(cert: &Path, key: &Path, options: &[&str]) -> Self {
        let mut process = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-www"])
            .args(options)
            .arg("-cert")
            .arg(cert)
            .arg("-key")
            .arg(key)
            .stdout(Stdio::piped())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = loop {
            let line = lines.next().expect("openssl says where it listens").unwrap();
            if let Some(address) = line.strip_prefix("ACCEPT ") {
                break address.to_owned();
            }
        };
        // It would stop when nobody reads what it says.
        std::thread::spawn(move || lines.for_each(drop));
        Self { process, address }
    }
}

/// Writes `cert.pem` and `key.pem` into a folder.
fn make_certificate(folder: &Path) {
    let new_key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout key.pem";
    openssl(folder, &format!("req -x509 {new_key} -subj /CN=localhost -days 1 -out cert.pem"));
}

fn openssl(folder: &Path, arguments: &str) {
    let made = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output();
    let made = made.expect("this test needs openssl, from the Debian package openssl");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

impl Drop for OpenSsl {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn certificates_of_version_1_and_unusable_keys_are_named() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_certificate(folder.path());
    make_certificate(other.path());
    openssl(folder.path(), "req -new -key key.pem -subj /CN=localhost -out request");
    openssl(folder.path(), "x509 -req -in request -signkey key.pem -out v1.pem");
    openssl(folder.path(), "ec -in key.pem -aes256 -passout pass:x -out traditional.key");
    openssl(folder.path(), "pkcs8 -topk8 -in key.pem -passout pass:x -out pkcs8.key");
    let path = |name: &str| folder.path().join(name);
    for (certificates, key, named, reason) in [
        ("v1.pem", path("key.pem"), "v1.pem", "is X.509 version 1 or 2, and must be version 3"),
        ("cert.pem", other.path().join("key.pem"), "cert.pem", "does not belong to it"),
        ("cert.pem", path("traditional.key"), "traditional.key", "is encrypted; decrypt it first"),
        ("cert.pem", path("pkcs8.key"), "pkcs8.key", "is encrypted; decrypt it first"),
        ("cert.pem", path("missing"), "missing", "No such file"),
    ] {
        let identity = Some(Identity { certificates: path(certificates), key });
        let target = "https://localhost:1/".parse().unwrap();
        let load = LoadConfig {
            tls: TlsOptions { identity, ..TlsOptions::default() },
            ..LoadConfig::new(target, plan("connections=1,requests=1"), Trust::Insecure)
        };
        let error = Load::start(load).unwrap_err().to_string();
        assert!(error.contains(&format!("{named} as the client")) && error.contains(reason), "{error}");
    }
    // The same for a server, which is trusted for exactly this certificate.
    let server = OpenSsl::start_with(&path("v1.pem"), &path("key.pem"), &[]);
    let port = server.address.rsplit(':').next().unwrap();
    let target = format!("https://localhost:{port}/").parse().unwrap();
    let load = LoadConfig::new(target, plan("connections=1,requests=1"), Trust::CaFile(path("v1.pem")));
    let checked = loadgen::probe(&load, LONG).unwrap_err().to_string();
    assert!(checked.contains("X.509 version 1") && !checked.contains("--ca"), "{checked}");
}

#[test]
fn sessions_of_openssl_are_resumed_too() {
    for version in ["-tls1_2", "-tls1_3"] {
        let server = OpenSsl::start(&[version]);
        let target = format!("https://{}/", server.address).parse().unwrap();
        let plan = plan("connections=1,keep-alive=off,requests=50,resume=80%");
        let (all, _) = run(LoadConfig::new(target, plan, Trust::Insecure));
        assert_eq!(all.counters[C::Ok], 50, "{version}: {:?}", all.counters);
        assert_eq!(all.counters[C::ResumptionsOffered], 40, "{version}");
        assert_eq!(all.counters[C::HandshakesResumed], 40, "{version}");
    }
}
