//! What is found about two hosts that serve one name, and about neither alone.

use std::net::SocketAddr;
use std::path::Path;

use crate::common::{TlsdashProcess, make_certificate, outside, run, stderr, upstream};
use crate::explain::write_old_certificate;
use crate::hosts::tlsdash_on;
use serde_json::Value;

const HOSTS: [&str; 2] = ["edge-1", "edge-2"];
/// Clients with an address each: fewer may be a balancer's.
const CLIENTS: usize = 12;
/// Visits of each client, two at a host, then two at the other one.
const VISITS: usize = 10;

/// A proxy on a host of this name, which records into `remote`, and its address.
fn edge(folder: &Path, name: &str, cert: &Path, keys: &[&str]) -> (TlsdashProcess, SocketAddr) {
    let mut command = tlsdash_on(name);
    let journal = folder.join("remote").join(format!("{name}.journal"));
    let own = folder.join(name);
    std::fs::create_dir(&own).unwrap();
    let socket = upstream(&own, b"hello");
    command.args([
        "--headless",
        "--listen",
        "127.0.0.1:0",
        "--upstream",
        &format!("unix:{}", socket.display()),
    ]);
    command.args([Path::new("--cert"), cert, Path::new("--key"), &cert.with_extension("key")]);
    command.args(["--journal", &format!("file:{}", journal.display())]).args(keys);
    let mut running = TlsdashProcess::start(command);
    let address = running.address();
    (running, address)
}

/// One request of a client that keeps its session in a file.
fn visit(folder: &Path, client: usize, address: SocketAddr) {
    let session = folder.join(format!("session-{client}"));
    let offer = if session.exists() { "-sess_in \"$1\"" } else { "" };
    let script = format!(
        "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | timeout 20 openssl s_client -ign_eof -servername www.example.org \
         -bind 127.0.1.{}:0 -sess_out \"$1\" {offer} -connect {address}",
        client + 1
    );
    let output = outside("sh", "dash").args(["-c", &script, "sh"]).arg(session).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("hello"), "{}", stderr(&output));
}

/// Two hosts between which clients move after every second visit, as `explain` tells them.
fn explained(folder: &Path, certs: [&Path; 2], keys: &[&str]) -> Value {
    std::fs::create_dir(folder.join("remote")).unwrap();
    let edges = [0, 1].map(|at| edge(folder, HOSTS[at], certs[at], keys));
    for visits in 0..VISITS {
        (0..CLIENTS).for_each(|client| visit(folder, client, edges[visits / 2 % 2].1));
    }
    for (edge, _) in edges {
        assert_eq!(edge.end().0, 0);
    }
    let remote = folder.join("remote");
    let output = run(folder, &["explain", remote.to_str().unwrap(), "--format", "json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn finding<'a>(explained: &'a Value, id: &str) -> Option<&'a Value> {
    explained["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id)
}

#[test]
fn hosts_with_one_certificate_and_their_own_ticket_keys_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let cert = folder.path().join("www.pem");
    make_certificate(&cert, &cert.with_extension("key"), "www.example.org", 90, &[]);
    let explained = explained(folder.path(), [&cert, &cert], &[]);
    let found = finding(&explained, "ticket-keys-not-shared").unwrap_or_else(|| panic!("{explained:#}"));
    assert!(found["run"].is_null() && found["severity"] == "warning", "{found:#}");
    let whom: Vec<&str> = found["whom"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for (host, line) in HOSTS.iter().zip(whom) {
        assert!(line.starts_with(&format!("www.example.org: {host} refused 2")), "{line}");
    }
    let [certificate] = &**explained["certificates"].as_array().unwrap() else { panic!("{explained:#}") };
    assert_eq!((&certificate["hosts"], &certificate["days_left"]), (&HOSTS.as_slice().into(), &90.into()));
    let remote = folder.path().join("remote");
    let check = ["check", remote.to_str().unwrap(), "--assert", "certificates.days_left == 90"];
    let output = run(folder.path(), &check);
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn hosts_that_share_keys_are_not_but_one_with_an_outdated_certificate_is() {
    let folder = tempfile::tempdir().unwrap();
    let [old, new, keys] = ["old.pem", "new.pem", "ticket.keys"].map(|name| folder.path().join(name));
    write_old_certificate(&old, &old.with_extension("key"));
    make_certificate(&new, &new.with_extension("key"), "www.example.org", 90, &[]);
    let made = outside("openssl", "openssl").args(["rand", "-out"]).arg(&keys).arg("80").output().unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
    let explained = explained(folder.path(), [&new, &old], &["--ticket-keys", keys.to_str().unwrap()]);
    assert!(finding(&explained, "ticket-keys-not-shared").is_none(), "{explained:#}");
    let found = finding(&explained, "certificate-outdated").unwrap_or_else(|| panic!("{explained:#}"));
    let line = found["whom"][0].as_str().unwrap();
    assert!(line.starts_with("www.example.org: until ") && line.ends_with(" at edge-1"), "{line}");
    let hosts = explained["certificates"].as_array().unwrap().iter().map(|one| &one["hosts"][0]);
    assert_eq!(hosts.collect::<Vec<_>>(), ["edge-2", "edge-1"], "the one that ends first is the first");
}
