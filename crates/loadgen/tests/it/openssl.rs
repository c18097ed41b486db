//! A server that is not rustls: `openssl s_server`.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use loadgen::{LoadConfig, Trust};
use telemetry::LoadCounter as C;

use crate::support::{plan, run};

/// `openssl s_server -www` on a port of its own choice, until it is dropped.
struct OpenSsl {
    process: Child,
    address: String,
}

impl OpenSsl {
    fn start(options: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        let made = Command::new("openssl")
            .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"])
            .args(["-subj", "/CN=localhost", "-days", "1", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&cert)
            .output()
            .expect("this test needs openssl, from the Debian package openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let mut process = Command::new("openssl")
            .args(["s_server", "-accept", "127.0.0.1:0", "-www"])
            .args(options)
            .arg("-cert")
            .arg(&cert)
            .arg("-key")
            .arg(&key)
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

impl Drop for OpenSsl {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

#[test]
fn sessions_of_openssl_are_resumed_too() {
    for version in ["-tls1_2", "-tls1_3"] {
        let server = OpenSsl::start(&[version]);
        let target = format!("https://{}/", server.address).parse().unwrap();
        let plan = plan("connections=1,keepalive=off,requests=50,resume=80%");
        let (all, _) = run(LoadConfig::new(target, plan, Trust::Insecure));
        assert_eq!(all.counters[C::Ok], 50, "{version}: {:?}", all.counters);
        assert_eq!(all.counters[C::ResumptionsOffered], 40, "{version}");
        assert_eq!(all.counters[C::HandshakesResumed], 40, "{version}");
    }
}
