//! Certificates, keys and versions, as an operator sets and replaces them.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::common::{TlsdashProcess, journal, journalctl, outside, proxy, run, stderr, tlsdash, upstream};
use rustix::process::Signal;

const BODY: &[u8] = b"hello";

/// Makes `NAME.pem` and `NAME.key` for localhost, written beside and renamed over.
fn certificate(folder: &Path, name: &str, key_kind: &[&str]) -> (String, String) {
    let path = |end: &str| folder.join(format!("{name}.{end}")).to_str().unwrap().to_owned();
    let made = outside("openssl", "openssl")
        .args(["req", "-x509", "-nodes", "-days", "30", "-subj", "/CN=localhost", "-newkey"])
        .args(key_kind)
        .args(["-addext", "subjectAltName=DNS:localhost,DNS:www.localhost"])
        .args(["-keyout", &path("new-key"), "-out", &path("new-pem")])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    for end in ["pem", "key"] {
        fs::rename(path(&format!("new-{end}")), path(end)).unwrap();
    }
    (path("pem"), path("key"))
}

const P256: &[&str] = &["ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
const RSA: &[&str] = &["rsa:2048"];

/// What curl gets, with that certificate trusted and no other.
fn curl(address: SocketAddr, trusted: &str, args: &[&str]) -> Result<Vec<u8>, String> {
    let port = address.port();
    let output = outside("curl", "curl")
        .args(["-sS", "--max-time", "20", "--cacert", trusted, "--resolve"])
        .arg(format!("localhost:{port}:127.0.0.1"))
        .args(args)
        .arg(format!("https://localhost:{port}/"))
        .output()
        .unwrap();
    if output.status.success() { Ok(output.stdout) } else { Err(stderr(&output)) }
}

/// A request over `openssl s_client`; what it prints.
fn s_client(address: SocketAddr, args: &[&str]) -> String {
    let request =
        "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 openssl s_client -ign_eof -servername localhost";
    let output = outside("sh", "dash")
        .arg("-c")
        .arg(format!("{request} -connect {address} \"$@\""))
        .arg("sh")
        .args(args)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output)
}

fn serving(folder: &Path, args: &[&str]) -> (TlsdashProcess, SocketAddr) {
    let socket = upstream(folder, BODY);
    let mut running = proxy(folder, &socket, args);
    let address = running.address();
    (running, address)
}

#[test]
fn a_hang_up_reads_certificates_again_and_records_the_change() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (cert, key) = certificate(at, "one", P256);
    let (mut running, address) = serving(at, &["--cert", &cert, "--key", &key]);
    assert_eq!(curl(address, &cert, &[]).unwrap(), BODY);
    running.signal(Signal::HUP);
    running.line_with("are the same");
    certificate(at, "one", RSA);
    running.signal(Signal::HUP);
    let line = running.line_with("proxy.certificate: RSA-2048 for localhost and 1 more until ");
    assert!(line.contains("; before: ECDSA P-256 for localhost and 1 more until "), "{line}");
    assert_eq!(curl(address, &cert, &[]).unwrap(), BODY);
    assert_eq!(running.end().0, 0);
    let records = journalctl(&journal(at), &["TLSDASH_KIND=setting"]);
    assert_eq!(records.len(), 1);
    assert_eq!(records[0]["TLSDASH_SETTING"], "proxy.certificate");
    let text = |field: &str| records[0][field].as_str().unwrap().to_owned();
    assert!(text("TLSDASH_SETTING_BEFORE").starts_with("ECDSA P-256 for localhost"));
    assert!(text("TLSDASH_SETTING_AFTER").contains("RSA-2048 for localhost"));
    assert!(text("TLSDASH_SETTING_AFTER").contains("sha256:"));
}

#[test]
fn replaced_files_are_taken_up_unasked_and_bad_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (cert, key) = certificate(at, "one", P256);
    let (mut running, address) = serving(at, &["--cert", &cert, "--key", &key]);
    let old = at.join("old.pem");
    fs::copy(&cert, &old).unwrap();
    fs::write(&cert, "-----BEGIN CERTIFICATE-----\nnonsense").unwrap();
    let line = running.line_with("one.pem");
    assert!(line.contains("stays in use"), "{line}");
    assert_eq!(curl(address, old.to_str().unwrap(), &[]).unwrap(), BODY);
    certificate(at, "one", P256);
    running.line_with("proxy.certificate: ECDSA P-256");
    assert_eq!(curl(address, &cert, &[]).unwrap(), BODY);
    assert_eq!(running.end().0, 0);
}

#[test]
fn the_built_in_load_survives_a_change_of_the_certificate() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (cert, key) = certificate(at, "one", P256);
    let load = "rate=100,connections=4,keep-alive=off,resume=0%";
    let (mut running, _) = serving(at, &["--cert", &cert, "--key", &key, "--load", load]);
    for kind in [RSA, P256] {
        certificate(at, "one", kind);
        running.signal(Signal::HUP);
        running.line_with(if kind == RSA { "certificate: RSA" } else { "certificate: ECDSA" });
    }
    let (code, summary) = running.end();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(code, 0);
    assert_eq!(summary["load"]["handshakes"]["failed"], 0, "{summary}");
    assert_eq!(summary["load"]["requests"]["failed"], 0, "{summary}");
    assert_eq!(summary["proxy"]["handshakes"]["failed"], 0, "{summary}");
}

#[test]
fn a_restart_and_another_process_resume_with_shared_ticket_keys() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let at = folders[0].path();
    let (cert, key) = certificate(at, "one", P256);
    let keys = at.join("ticket.keys");
    let keys = keys.to_str().unwrap();
    let made = outside("openssl", "openssl").args(["rand", "-out", keys, "80"]).status().unwrap();
    assert!(made.success());
    fs::set_permissions(keys, fs::Permissions::from_mode(0o600)).unwrap();
    let args = ["--cert", &cert, "--key", &key, "--ticket-keys", keys];
    let session = |version: &str| at.join(version).to_str().unwrap().to_owned();
    let versions = ["-tls1_2", "-tls1_3"];
    let (first, address) = serving(folders[0].path(), &args);
    let (second, other) = serving(folders[1].path(), &args);
    for version in versions {
        let output = s_client(address, &[version, "-sess_out", &session(version)]);
        assert!(output.contains("New, TLS") && output.contains("hello"), "{output}");
        let output = s_client(other, &[version, "-sess_in", &session(version)]);
        assert!(output.contains("Reused, TLS") && output.contains("hello"), "{output}");
    }
    assert_eq!(first.end().0, 0);
    assert_eq!(second.end().0, 0);
    let (third, address) = serving(folders[2].path(), &args);
    for version in versions {
        let output = s_client(address, &[version, "-sess_in", &session(version)]);
        assert!(output.contains("Reused, TLS") && output.contains("hello"), "{output}");
    }
    assert_eq!(third.end().0, 0);
}

/// The ways in which bytes could show: as they are, as numbers, in either kind of hexadecimal, and in base64 at any offset.
fn disguises(secret: &[u8]) -> Vec<Vec<u8>> {
    let hex = |upper: bool| {
        let digits = secret.iter().map(|b| if upper { format!("{b:02X}") } else { format!("{b:02x}") });
        digits.collect::<Vec<_>>()
    };
    let numbers: Vec<String> = secret.iter().map(ToString::to_string).collect();
    let texts = [
        hex(false).concat(),
        hex(true).concat(),
        hex(false).join(":"),
        hex(true).join(":"),
        hex(false).join(" "),
        numbers.join(", "),
        numbers.join(","),
    ];
    let base64 = (0..3).map(|offset| {
        let text = base64(&secret[offset..]);
        // Its last characters depend on what follows.
        text.as_bytes()[..text.len() - 4].to_vec()
    });
    texts.into_iter().map(String::into_bytes).chain(base64).chain([secret.to_vec()]).collect()
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let quads = bytes.chunks_exact(3).flat_map(|three| {
        let bits = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        [18, 12, 6, 0].map(|shift| char::from(DIGITS[(bits >> shift) as usize & 63]))
    });
    quads.collect()
}

/// Whether any 16 bytes of `secret` in a row show in `text`.
fn shows(secret: &[u8], text: &[u8]) -> bool {
    let windows = secret.windows(16).step_by(8);
    windows.flat_map(disguises).any(|part| text.windows(part.len()).any(|window| window == part))
}

/// The private half of a key on P-256, which DER has as an octet string of 32 bytes.
fn private_half(key: &str) -> Vec<u8> {
    let made = outside("openssl", "openssl").args(["ec", "-in", key, "-outform", "DER"]).output().unwrap();
    let at = made.stdout.windows(4).position(|window| window == [2, 1, 1, 4]).unwrap() + 5;
    made.stdout[at..at + 32].to_vec()
}

#[test]
fn secrets_are_neither_said_nor_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (cert, key) = certificate(at, "one", P256);
    let keys = at.join("ticket.keys");
    let secret: Vec<u8> = (0..80_u8).map(|i| i.wrapping_mul(37) | 0x80).collect();
    fs::write(&keys, &secret).unwrap();
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).unwrap();
    let args = ["--cert", &cert, "--key", &key, "--ticket-keys", keys.to_str().unwrap()];
    let (mut running, address) = serving(at, &args);
    assert!(running.line_with("ticket.keys").contains("readable by others"));
    assert_eq!(curl(address, &cert, &[]).unwrap(), BODY);
    running.signal(Signal::HUP);
    running.line_with("are the same");
    // What is refused is told of too: a certificate where the key should be, and half a ticket key.
    let private = private_half(&key);
    fs::copy(&key, &cert).unwrap();
    fs::write(&keys, &secret[..79]).unwrap();
    running.signal(Signal::HUP);
    running.line_with("no certificate in");
    running.line_with("80 random bytes");
    let (code, printed, said) = running.end_and_tell();
    assert_eq!(code, 0);
    let kept = fs::read(journal(at)).unwrap();
    let all = [kept.as_slice(), printed.as_bytes(), said.as_bytes()].concat();
    let has = |part: &[u8]| all.windows(part.len()).any(|window| window == part);
    assert!(has(b"proxy.ticket-keys") && has(b"no certificate in"), "what is looked through is there");
    for shown in disguises(&private).into_iter().chain(disguises(&secret[16..])) {
        let found = [&b"before "[..], &shown, b" after"].concat();
        assert!(shows(&private, &found) || shows(&secret[16..], &found), "this could not be found");
    }
    assert!(!shows(&secret[16..], &all), "a ticket key");
    assert!(!shows(&private, &all), "the private key");
    let pem = fs::read_to_string(&key).unwrap();
    let mut lines = pem.lines().filter(|line| line.len() > 20 && !line.starts_with('-'));
    assert!(!lines.any(|line| has(line.as_bytes())), "the private key's file");
}

#[test]
fn no_key_log_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (log, socket) = (at.join("keys.log"), upstream(at, BODY));
    let mut command = tlsdash(at);
    command.args(["--headless", "--listen", "127.0.0.1:0", "--journal", "off", "--upstream"]);
    command.arg(format!("unix:{}", socket.display())).env("SSLKEYLOGFILE", &log);
    let mut running = TlsdashProcess::start(command);
    let output = s_client(running.address(), &[]);
    assert!(output.contains("hello"), "{output}");
    assert_eq!(running.end().0, 0);
    assert!(!log.exists());
}

#[test]
fn curl_negotiates_only_what_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (cert, key) = certificate(at, "one", P256);
    let args =
        ["--cert", &cert, "--key", &key, "--tls-min", "1.3", "--alpn", "http/1.1", "--groups", "secp384r1"];
    let (running, address) = serving(at, &args);
    assert_eq!(curl(address, &cert, &["--tlsv1.3"]).unwrap(), BODY);
    for refused in [&["--tls-max", "1.2"][..], &["--curves", "X25519"]] {
        let error = curl(address, &cert, refused).unwrap_err();
        assert!(error.contains("alert"), "{error}");
    }
    assert_eq!(running.end().0, 0);
}

#[test]
fn clients_show_their_certificates_and_their_names_are_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (cert, key) = certificate(at, "one", P256);
    let (ca, ca_key) = certificate(at, "ca", P256);
    let signed =
        [P256, &["-CA", &ca, "-CAkey", &ca_key, "-addext", "basicConstraints=critical,CA:FALSE"]].concat();
    let (own, own_key) = certificate(at, "client", &signed);
    let args = ["--cert", &cert, "--key", &key, "--client-ca", &ca];
    let (running, address) = serving(at, &args);
    assert_eq!(curl(address, &cert, &["--cert", &own, "--key", &own_key]).unwrap(), BODY);
    assert!(curl(address, &cert, &[]).is_err());
    assert_eq!(running.end().0, 0);
    let named = journalctl(&journal(at), &["TLSDASH_CLIENT_NAME=localhost"]);
    assert_eq!(named.len(), 1);
    assert_eq!(named[0]["TLSDASH_OUTCOME"], "ended");
}

#[test]
fn unknown_values_are_refused_with_the_known_ones() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (cert, key) = certificate(at, "one", P256);
    let keys = at.join("short.keys");
    fs::write(&keys, [0xfe; 48]).unwrap();
    for (args, parts) in [
        (&["--tls-min", "1.0"][..], &["--tls-min 1.0", "known: 1.2, 1.3"][..]),
        (&["--tls-min", "1.3", "--tls-max", "1.2"], &["tls-min is later than tls-max"]),
        (&["--ciphers", "RC4-SHA"], &["--ciphers RC4-SHA", "TLS_AES_128_GCM_SHA256"]),
        (&["--ciphers", "TLS_AES_128_GCM_SHA256"], &["TLS 1.2", "tls-min"]),
        (&["--groups", "ffdhe2048"], &["--groups ffdhe2048", "x25519mlkem768"]),
        (&["--alpn", "h2,"], &["--alpn", "1 to 255 bytes"]),
        (&["--resumption", "yes"], &["--resumption yes", "tickets, cache, off"]),
        (&["--tickets", "9"], &["--tickets 9", "from 0 to 8"]),
        (&["--ticket-lifetime", "8d"], &["--ticket-lifetime", "60s to 7d"]),
        (&["--ticket-rotation", "5m"], &["ticket-rotation", "thirtieth"]),
        (&["--ticket-keys", keys.to_str().unwrap()], &["short.keys", "80 random bytes"]),
        (&["--ticket-keys", "/no/such", "--resumption", "off"], &["--ticket-keys", "--resumption tickets"]),
        (&["--client-auth", "optional"], &["--client-auth needs --client-ca"]),
        (&["--client-crl", &cert], &["--client-crl needs --client-ca"]),
        (&["--client-crl-expired", "accept"], &["--client-crl-expired needs --client-crl"]),
        (&["--client-ca", &cert, "--client-crl", &cert], &["one.pem", "there is no revocation list"]),
        (&["--client-ca", "/no/such.pem"], &["/no/such.pem"]),
        (&["--client-ca", &cert, "--load", "rate=1"], &["--load", "--client-auth optional"]),
        (&["--cert", &cert, "--cert", &cert, "--key", &key], &["in pairs", "2 and 1"]),
    ] {
        let output = run(at, &[&["--upstream", "unix:/x", "--headless"], args].concat());
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}");
        let line = said.lines().last().unwrap_or_default();
        assert!(parts.iter().all(|part| line.contains(part)), "{args:?}: {said}");
    }
}

#[test]
fn the_demo_tries_a_certificate_and_settings_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let (cert, key) = certificate(folder.path(), "own", RSA);
    let demo = |more: &[&str]| {
        let always = ["demo", "--headless", "--duration", "1s", "--load", "rate=50,keep-alive=1"];
        run(folder.path(), &[&always, more].concat())
    };
    let output = demo(&["--cert", &cert, "--key", &key, "--tls-max", "1.2"]);
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(told.contains("TLSv1.2 TLS_ECDHE_RSA_") && !told.contains("TLSv1.3"), "{told}");
    let refused = demo(&["--cert", &cert]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(stderr(&refused).trim(), "tlsdash: --cert needs --key: the file with its private key");
}
