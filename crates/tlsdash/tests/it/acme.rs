//! Certificates by ACME, from an authority for tests.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::common::not_run::say_not_run;
use crate::common::pebble::Pebble;
use crate::common::{
    TlsdashProcess, journal, journalctl, make_certificate, on_small_disk, outside, proxy, run, stderr,
    tlsdash, until, upstream,
};

/// What a client sees of the certificate for `a.test`.
pub(crate) fn served(port: u16) -> String {
    let output = outside("openssl", "openssl")
        .args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-servername", "a.test"])
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn options(pebble: &Pebble) -> Vec<String> {
    let ca = pebble.ca().to_str().unwrap().to_owned();
    let listen = format!("127.0.0.1:{}", pebble.tls_port);
    let words = ["--listen", &listen, "--acme-domain", "a.test", "--acme-contact", "admin@example.test"];
    let words = words.into_iter().chain(["--acme-directory", &pebble.directory, "--acme-ca", &ca]);
    words.map(str::to_owned).collect()
}

#[test]
fn a_certificate_is_ordered_under_load_and_kept_for_the_next_start() {
    let test = "a_certificate_is_ordered_under_load_and_kept_for_the_next_start";
    let Some(pebble) = Pebble::start(test, 0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), b"hello");
    let options = options(&pebble);
    let args: Vec<&str> = options.iter().map(String::as_str).collect();
    let load = ["--load", "rate=200,connections=16,keep-alive=1,resume=0%"];
    let mut first = proxy(folder.path(), &socket, &[&args[..], &load].concat());
    first.line_with("made in memory, and do not trust it");
    first.line_with("ACME: got a certificate, which is renewed after ");
    first.line_with("proxy.certificate: ECDSA P-256 for a.test until ");
    assert!(served(pebble.tls_port).contains("Pebble Intermediate CA"), "{}", served(pebble.tls_port));
    let (code, summary) = first.end();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(code, 0);
    assert!(summary["proxy"]["handshakes"]["full"].as_u64().unwrap() > 100, "{summary}");
    for part in ["proxy", "load"] {
        assert_eq!(summary[part]["handshakes"]["failed"], 0, "{summary}");
    }
    let notices = journalctl(&journal(folder.path()), &["TLSDASH_KIND=notice"]);
    let says = |text: &str| notices.iter().any(|notice| notice.to_string().contains(text));
    assert!(says("ACME: got a certificate"), "{notices:?}");
    fs::remove_file(journal(folder.path())).unwrap();
    let mut second = proxy(folder.path(), &socket, &args);
    second.line_with("ACME: the next order is after ");
    assert!(served(pebble.tls_port).contains("Pebble Intermediate CA"));
    assert_eq!(second.end().0, 0);
    fs::remove_file(journal(folder.path())).unwrap();
    // With another name and authority, until its own certificate comes.
    let mut third = proxy(folder.path(), &socket, &[&DOWN[..], &["--acme-domain", "b.test"]].concat());
    third.line_with("clients get one of another order, for a.test");
    third.line_with("ACME: cannot get a certificate");
    assert!(served(third.address().port()).contains("Pebble Intermediate CA"));
    assert_eq!(third.end().0, 0);
}

#[test]
fn a_certificate_is_ordered_by_the_listener_for_redirects() {
    let test = "a_certificate_is_ordered_by_the_listener_for_redirects";
    let Some(pebble) = Pebble::start(test, 0) else { return };
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), b"hello");
    let options = options(&pebble);
    let from = format!("127.0.0.1:{}", pebble.http_port);
    let more = ["--acme-challenge", "http-01", "--redirect-http", &from, "--acme-profile", "shortlived"];
    let args: Vec<&str> = options.iter().map(String::as_str).chain(more).collect();
    let mut running = proxy(folder.path(), &socket, &args);
    running.line_with("ACME: got a certificate, which is renewed after ");
    running.line_with("proxy.certificate: ECDSA P-256 for a.test until ");
    assert_eq!(running.end().0, 0);
}

#[test]
fn an_authority_that_is_down_leaves_the_proxy_serving() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), b"hello");
    let control = folder.path().join("control.sock");
    let more = ["--control", control.to_str().unwrap()];
    let mut running = proxy(folder.path(), &socket, &[&DOWN[..], &more].concat());
    let port = running.address().port();
    let line = running.line_with("ACME: cannot get a certificate (attempt 1): ");
    assert!(
        line.contains("https://127.0.0.1:9/dir: Connection refused") && line.contains("tried again after"),
        "{line}"
    );
    assert!(served(port).contains("Verify return code: 18"), "self-signed");
    let control = control.to_str().unwrap();
    until("ctl says why", || {
        let said = run(folder.path(), &["ctl", "--control", control, "certificates"]);
        let said = String::from_utf8_lossy(&said.stdout).into_owned();
        said.contains("ordered by ACME after ") && said.contains("Connection refused")
    });
    assert_eq!(running.end().0, 0);
}

fn refused(folder: &Path, args: &[&str]) -> String {
    let output = run(folder, &[&["--headless", "--upstream", "unix:/nonexistent"], args].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn options_that_cannot_be_are_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let domain = ["--acme-domain", "a.test"];
    let contact = ["--acme-contact", "admin@example.test"];
    for (args, part) in [
        (&contact[..], "--acme-contact needs --acme-domain"),
        (&["--acme-ca", "x"], "--acme-ca needs --acme-domain"),
        (&domain, "--acme-contact is missing"),
        (&[&domain[..], &contact, &["--acme-challenge", "http-01"]].concat(), "needs --redirect-http"),
        (&[&domain[..], &contact, &["--acme-challenge", "dns-01"]].concat(), "needs --acme-dns-hook"),
        (&[&domain[..], &contact, &["--acme-dns-hook", "/none"]].concat(), "/none: there is no such program"),
        (&[&domain[..], &contact, &["--acme-ca", "/none"]].concat(), "--acme-ca: "),
        (
            &[&domain[..], &contact, &["--acme-challenge", "tls-alpn-01", "--acme-dns-hook", "x"]].concat(),
            "goes with --acme-challenge dns-01 only",
        ),
        (&[&["--acme-domain", "*.a.test"][..], &contact].concat(), "a wildcard needs the challenge dns-01"),
        (&[&domain[..], &domain, &contact].concat(), "a.test is given twice"),
        (&[&domain[..], &contact, &["--acme-directory", "http://a"]].concat(), "begins with https://"),
    ] {
        let said = refused(folder.path(), args);
        assert!(said.contains(part) && said.trim_end().lines().count() == 1, "{said}");
    }
}

/// Words for an order from an authority that is down.
const DOWN: [&str; 6] = [
    "--acme-domain",
    "a.test",
    "--acme-contact",
    "admin@example.test",
    "--acme-directory",
    "https://127.0.0.1:9/dir",
];

#[test]
fn a_full_disk_is_told_before_the_authority_is_asked() {
    let folder = tempfile::tempdir().unwrap();
    let disk = folder.path().join("disk");
    let mut command = on_small_disk(&disk, 256, 224);
    let socket = upstream(folder.path(), b"hello");
    command.env("STATE_DIRECTORY", &disk).args(["--headless", "--journal", "off", "--listen", "127.0.0.1:0"]);
    command.arg("--upstream").arg(format!("unix:{}", socket.display())).args(DOWN);
    let mut running = TlsdashProcess::start(command);
    let line = running.line_with("ACME: cannot get a certificate (attempt 1): ");
    assert!(line.contains("No space left on device") && !line.contains("127.0.0.1:9"), "{line}");
    let answer = outside("curl", "curl").args(["-sk", &format!("https://{}/", running.address())]).output();
    assert_eq!(answer.unwrap().stdout, b"hello");
    assert_eq!(running.end().0, 0);
}

#[test]
fn the_user_of_the_service_reads_no_key_that_only_root_may_read() {
    let test = "the_user_of_the_service_reads_no_key_that_only_root_may_read";
    if !rustix::process::geteuid().is_root() {
        return say_not_run(test, "only root can become another user");
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let (state, socket) = (folder.path().join("state"), upstream(folder.path(), b"hello"));
    let start = || {
        let mut command = tlsdash(&state);
        command.args(["--headless", "--user", "nobody", "--journal", "off", "--listen", "127.0.0.1:0"]);
        command.arg("--upstream").arg(format!("unix:{}", socket.display())).args(DOWN);
        TlsdashProcess::start(command)
    };
    let mut first = start();
    first.line_with("ACME: cannot get a certificate");
    assert_eq!(first.end().0, 0);
    let mut orders = fs::read_dir(state.join("acme")).unwrap().map(|entry| entry.unwrap().path());
    let order = orders.find(|path| path.is_dir()).unwrap();
    assert_eq!(fs::metadata(&order).unwrap().uid(), 65534, "made by the user, not for the user");
    // As whoever has taken over the service can do.
    let secret = folder.path().join("secret.pem");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    make_certificate(&cert, &key, "a.test", 2, &[]);
    fs::write(&secret, [fs::read(&key).unwrap(), fs::read(&cert).unwrap()].concat()).unwrap();
    fs::set_permissions(&secret, fs::Permissions::from_mode(0o600)).unwrap();
    std::os::unix::fs::symlink(&secret, order.join("certificate.pem")).unwrap();
    let mut second = start();
    let warning = second.line_with("another one is ordered");
    assert!(warning.contains("permission denied"), "{warning}");
    let (code, _, said) = second.wait_and_tell();
    assert!(code == 1 && said.contains("it is a symbolic link"), "{code}: {said}");
}
