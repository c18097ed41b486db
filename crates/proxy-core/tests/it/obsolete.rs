//! What is obsolete is refused, by OpenSSL's client, which gets each of these from OpenSSL's own server: so a client
//! that cannot ask for it, or a check that cannot fail, shows.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

use crate::pki::{P256, Pki};
use crate::support::{TestProxy, TestUpstream, eventually, serve_echo};
use rcgen::PKCS_RSA_SHA256 as RSA;

/// A server that speaks everything that the library can.
struct PermissiveServer {
    child: Child,
    addr: SocketAddr,
}

impl PermissiveServer {
    fn start(pki: &Pki) -> Self {
        // A port that was free may be another test's by the time the server wants it.
        (0..5).find_map(|_| Self::try_start(pki)).expect("OpenSSL's server listens")
    }

    fn try_start(pki: &Pki) -> Option<Self> {
        let addr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let (port, file) = (addr.port().to_string(), |name: &str| pki.text(name));
        let mut child = Command::new("openssl")
            .args(["s_server", "-accept", &port, "-quiet", "-cipher", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"])
            .args(["-cert", &file("rsa.pem"), "-key", &file("rsa.key")])
            .args(["-dcert", &file("ecdsa.pem"), "-dkey", &file("ecdsa.key")])
            .args(["-sigalgs", "RSA+SHA1:ECDSA+SHA1:RSA+SHA256:ECDSA+SHA256:RSA-PSS+SHA256"])
            .args(["-curves", "P-256:P-521:X448", "-dhparam", &file("dh.pem")])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("this test needs the Debian package openssl");
        let mut has_ended = false;
        eventually("OpenSSL's server listens or ends", || {
            has_ended = child.try_wait().unwrap().is_some();
            has_ended || TcpStream::connect(addr).is_ok()
        });
        (!has_ended).then_some(Self { child, addr })
    }
}

impl Drop for PermissiveServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether the handshake is done, and what is said of it.
fn shakes_hands(addr: SocketAddr, arguments: &[&str]) -> (bool, String) {
    let output = Command::new("timeout")
        .args(["20", "openssl", "s_client", "-servername", "localhost", "-connect", &addr.to_string()])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (said.contains("Cipher is ") && !said.contains("Cipher is (NONE)"), said)
}

#[test]
fn openssls_client_gets_nothing_obsolete_though_it_asks_for_it() {
    let (pki, served) = (Pki::new(), TestUpstream::unix(serve_echo));
    pki.issue("rsa", &RSA, &["localhost"]);
    pki.issue("ecdsa", &P256, &["localhost"]);
    let group = Command::new("openssl")
        .args(["genpkey", "-genparam", "-algorithm", "DH", "-pkeyopt", "group:ffdhe2048", "-out"])
        .arg(pki.path("dh.pem"))
        .output()
        .unwrap();
    assert!(group.status.success());
    let lax = PermissiveServer::start(&pki);
    let proxy = TestProxy::start_with(&served.upstream, |config| {
        config.tls.certificates = vec![pki.load("ecdsa"), pki.load("rsa")];
    });
    let tls12 =
        |suite: &str| vec!["-tls1_2".to_owned(), "-cipher".to_owned(), format!("{suite}:@SECLEVEL=0")];
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let obsolete = [
        words(&["-tls1", "-cipher", "ALL:@SECLEVEL=0"]),
        words(&["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]),
        // Static RSA, then CBC, finite Diffie-Hellman, anonymous, nothing, and ciphers that nobody needs.
        tls12("AES128-GCM-SHA256"),
        tls12("AES256-SHA"),
        tls12("ECDHE-RSA-AES128-SHA"),
        tls12("ECDHE-ECDSA-AES256-SHA384"),
        tls12("DHE-RSA-AES128-GCM-SHA256"),
        tls12("AECDH-AES128-SHA"),
        tls12("NULL-SHA256"),
        tls12("ECDHE-RSA-NULL-SHA"),
        tls12("ECDHE-RSA-CAMELLIA128-SHA256"),
        tls12("ECDHE-ARIA128-GCM-SHA256"),
        // A signature with SHA-1.
        [tls12("ECDHE-RSA-AES128-GCM-SHA256"), words(&["-sigalgs", "RSA+SHA1"])].concat(),
        words(&["-tls1_3", "-groups", "P-521"]),
        words(&["-tls1_3", "-groups", "X448"]),
    ];
    for arguments in &obsolete {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (is_spoken, said) = shakes_hands(lax.addr, &arguments);
        assert!(is_spoken, "OpenSSL's own server refuses {arguments:?}, so this tests nothing: {said}");
        let (is_spoken, said) = shakes_hands(proxy.addr(), &arguments);
        assert!(!is_spoken, "{arguments:?}: {said}");
        let is_old = ["-tls1", "-tls1_1"].contains(&arguments[0]);
        let names_version = said.contains("alert protocol version");
        assert_eq!(names_version, is_old, "{arguments:?}: {said}");
    }
    for arguments in [&["-tls1_2"][..], &["-tls1_3"]] {
        let (is_spoken, said) = shakes_hands(proxy.addr(), arguments);
        assert!(is_spoken, "{said}");
    }
    let failed = proxy.finish().counters[records::metrics::ProxyCounter::HandshakesFailed];
    assert_eq!(failed, obsolete.len() as u64);
}
