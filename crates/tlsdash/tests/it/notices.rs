//! What the proxy has to say stands in the journal too.

use std::fs;
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;

use crate::common::{TlsdashProcess, journal, journalctl, make_certificate, outside, proxy, stderr, until};
use rustix::process::Signal;
use serde_json::Value;

fn certificate(folder: &Path) -> [String; 2] {
    let [cert, key] = ["one.pem", "one.key"].map(|name| folder.join(name).to_str().unwrap().to_owned());
    make_certificate(Path::new(&cert), Path::new(&key), "localhost", 30, &[]);
    [cert, key]
}

fn notices(folder: &Path) -> Vec<Value> {
    journalctl(&journal(folder), &["TLSDASH_KIND=notice"])
}

fn has(notices: &[Value], topic: &str, priority: &str, part: &str) -> bool {
    notices.iter().any(|notice| {
        let text = notice["TLSDASH_NOTICE"].as_str().unwrap();
        notice["MESSAGE"] == text
            && notice["TLSDASH_NOTICE_TOPIC"] == topic
            && notice["PRIORITY"] == priority
            && text.contains(part)
    })
}

/// Shakes hands and leaves.
fn visit(running: &mut TlsdashProcess) {
    let address = running.address();
    let output =
        outside("openssl", "openssl").args(["s_client", "-connect", &address.to_string()]).output().unwrap();
    assert!(!stderr(&output).contains("refused"), "{}", stderr(&output));
}

#[test]
fn messages_on_standard_error_are_recorded_with_their_priority() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let [cert, key] = certificate(at);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let socket = at.join("app.sock");
    let args = ["--cert", &cert, "--key", &key, "--connections-max", "2"];
    let mut running = proxy(at, &socket, &args);
    running.line_with("listening on");
    visit(&mut running);
    running.line_with("cannot be reached: ");
    let upstream = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || upstream.incoming().for_each(drop));
    visit(&mut running);
    running.line_with("can be reached again");
    let mut crowd: Vec<_> = (0..3).map(|_| TcpStream::connect(running.address()).unwrap()).collect();
    running.line_with("as many connections are open as may be, 2");
    for client in &mut crowd {
        client.write_all(b"no TLS").unwrap();
    }
    running.signal(Signal::HUP);
    running.line_with("are the same");
    fs::write(&cert, "nonsense").unwrap();
    running.line_with("stays in use");
    let expected = [
        ("certificate", "4", "is readable by others (mode 0644)"),
        ("upstream", "4", "clients will be turned away until it is there"),
        ("upstream", "4", "cannot be reached: "),
        ("upstream", "5", "can be reached again"),
        ("bound", "4", "as many connections are open as may be, 2"),
        ("reload", "5", "reload: "),
        ("certificate", "4", "stays in use"),
    ];
    until("all is recorded", || {
        let notices = notices(at);
        expected.iter().all(|(topic, priority, part)| has(&notices, topic, priority, part))
    });
    assert_eq!(running.end().0, 0);
    // One file holds what one run had to say, and nobody else's.
    let runs: std::collections::HashSet<_> =
        notices(at).iter().map(|notice| notice["TLSDASH_RUN"].as_str().unwrap().to_owned()).collect();
    assert_eq!(runs.len(), 1);
}

#[test]
fn clients_cannot_fill_the_journal_with_notices() {
    const MOST: usize = 20;
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let socket = at.join("app.sock");
    let mut running = proxy(at, &socket, &["--connections-max", "1", "--interval", "100ms"]);
    // The upstream comes and goes, and connections meet the bound, as fast as clients can make them.
    for _ in 0..40 {
        visit(&mut running);
        let upstream = UnixListener::bind(&socket).unwrap();
        let crowd: Vec<_> = (0..2).map(|_| TcpStream::connect(running.address()).unwrap()).collect();
        drop(crowd);
        visit(&mut running);
        drop(upstream);
        fs::remove_file(&socket).unwrap();
    }
    let (code, _, said) = running.end_and_tell();
    assert_eq!(code, 0);
    let recorded = notices(at);
    assert!(has(&recorded, "upstream", "5", "can be reached again"), "{said}");
    assert!(recorded.len() <= MOST && said.lines().count() <= MOST + 10, "{}: {said}", recorded.len());
}

#[test]
fn a_worker_that_fails_is_said_and_ends_the_program_with_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let mut command = outside("strace", "strace");
    command
        // What workers wait by fails from the third time on, and would do so for ever.
        .args(["-f", "-qqq", "-o", "/dev/null", "-e", "inject=?epoll_wait,epoll_pwait:error=EBADF:when=3+"])
        .arg(env!("CARGO_BIN_EXE_tlsdash"))
        .args(["--headless", "--listen", "127.0.0.1:0", "--workers", "2", "--upstream"])
        .arg(format!("unix:{}", at.join("app.sock").display()))
        .arg(format!("--journal=file:{}", journal(at).display()));
    let (code, _) = TlsdashProcess::start(command).wait();
    assert_eq!(code, 1);
    let notices = notices(at);
    assert!(has(&notices, "worker", "4", "Bad file descriptor"), "{notices:?}");
}
