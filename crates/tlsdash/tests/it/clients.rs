//! Real clients through the proxy, and what the journal says of them.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Output, Stdio};

use crate::common::{
    journal, journalctl, last_of_each_client, number, outside, proxy, response, run, stderr, until, upstream,
};

use ::journal::{Start, Tail};

const BODY: &[u8] = b"hello from behind the proxy\n";
const REQUEST: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// One request by `openssl s_client`.
fn s_client(address: SocketAddr, args: &[&str]) -> Output {
    let mut child = outside("openssl", "openssl")
        .args(["s_client", "-connect", &address.to_string(), "-ign_eof"])
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(REQUEST).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn openssl_resumes_in_both_versions_and_every_byte_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), BODY);
    let mut running = proxy(folder.path(), &socket, &[]);
    let address = running.address();
    for version in ["-tls1_2", "-tls1_3"] {
        let session = folder.path().join(format!("session{version}"));
        let session = session.to_str().unwrap();
        let first = s_client(address, &[version, "-sess_out", session]);
        let said = String::from_utf8_lossy(&first.stdout).into_owned();
        assert!(said.contains("hello from behind the proxy") && said.contains("New, "), "{said}");
        let second = s_client(address, &[version, "-sess_in", session]);
        let said = String::from_utf8_lossy(&second.stdout).into_owned();
        assert!(said.contains("hello from behind the proxy") && said.contains("Reused, "), "{said}");
        assert!(!stderr(&second).contains("unexpected eof"), "{}", stderr(&second));
    }
    let (code, summary) = running.end();
    assert_eq!(code, 0);
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    assert_eq!(summary["proxy"]["handshakes"]["full"], 2);
    assert_eq!(summary["proxy"]["handshakes"]["resumed"], 2);
    let last = last_of_each_client(&journal(folder.path()));
    assert_eq!(last.len(), 1);
    assert_eq!(last[0]["TLSDASH_CLIENT"], "127.0.0.1");
    assert_eq!(number(&last[0], "TLSDASH_CLIENT_CONNECTIONS_TOTAL"), 4);
    assert_eq!(number(&last[0], "TLSDASH_CLIENT_BYTES_IN_TOTAL"), 4 * REQUEST.len() as u64);
    assert_eq!(number(&last[0], "TLSDASH_CLIENT_BYTES_OUT_TOTAL"), 4 * response(BODY).len() as u64);
    let proxy = journalctl(&journal(folder.path()), &["TLSDASH_KIND=run", "TLSDASH_PHASE=stop"]);
    for field in [
        "TLSDASH_TLS12_FULL_TOTAL",
        "TLSDASH_TLS12_RESUMED_TOTAL",
        "TLSDASH_TLS13_FULL_TOTAL",
        "TLSDASH_TLS13_RESUMED_TOTAL",
    ] {
        assert_eq!(number(&proxy[0], field), 1, "{field}");
    }
}

/// Descriptors of a proxy, by the next record that it writes: `/proc` shows them to root only.
fn descriptors(file: &Path) -> u64 {
    let records = || journalctl(file, &["TLSDASH_KIND=host"]);
    let before = records().len();
    let mut after = Vec::new();
    until("it tells what it uses", || {
        after = records();
        after.len() > before
    });
    number(after.last().unwrap(), "TLSDASH_DESCRIPTORS")
}

#[test]
fn curl_is_served_from_each_address_and_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), BODY);
    let mut running = proxy(folder.path(), &socket, &[]);
    let url = format!("https://{}/", running.address());
    for (source, times) in [("127.0.0.2", 3), ("127.0.0.3", 1)] {
        for _ in 0..times {
            let output = outside("curl", "curl").args(["-sk", "--interface", source, &url]).output().unwrap();
            assert_eq!(output.stdout, BODY, "{}", stderr(&output));
        }
    }
    assert_eq!(running.end().0, 0);
    let mut connections: Vec<_> = last_of_each_client(&journal(folder.path()))
        .iter()
        .map(|e| {
            (e["TLSDASH_CLIENT"].as_str().unwrap().to_owned(), number(e, "TLSDASH_CLIENT_CONNECTIONS_TOTAL"))
        })
        .collect();
    connections.sort();
    assert_eq!(connections, [("127.0.0.2".to_owned(), 3), ("127.0.0.3".to_owned(), 1)]);
}

#[test]
fn texts_of_clients_are_cleaned_before_the_journal() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), BODY);
    let mut running = proxy(folder.path(), &socket, &[]);
    let address = running.address();
    // Names that are not host names are refused by the library; those that are come through.
    s_client(address, &["-servername", "evil-\u{1b}[2J.example"]);
    s_client(address, &["-servername", "good.example", "-alpn", "x\u{1b}]0;t\u{7}"]);
    let mut garbage = std::net::TcpStream::connect(address).unwrap();
    garbage.write_all(b"GET / HTTP/1.1\r\nHost: \x1b[31m\r\nTLSDASH_KIND=run\n\r\n").unwrap();
    let _ = garbage.read_to_end(&mut Vec::new());
    let (code, summary) = running.end();
    assert_eq!(code, 0);
    assert!(!summary.contains('\u{1b}'));
    let entries = journalctl(&journal(folder.path()), &["TLSDASH_KIND=connection"]);
    assert!(entries.iter().any(|entry| entry["TLSDASH_OUTCOME"] == "not-tls"), "{entries:?}");
    let mut fields = 0;
    let mut tail = Tail::open(&journal(folder.path()), Start::Oldest).unwrap();
    tail.poll(|entry| {
        for (name, value) in entry.iter() {
            fields += 1;
            assert!(!value.iter().any(u8::is_ascii_control), "{name}: {:?}", String::from_utf8_lossy(value));
        }
    })
    .unwrap();
    assert!(fields > 100);
    let runs = journalctl(&journal(folder.path()), &["TLSDASH_KIND=run"]);
    assert_eq!(runs.len(), 2, "one start, one stop, none forged");
}

#[test]
fn ten_thousand_short_connections_are_counted_and_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let socket = upstream(folder.path(), BODY);
    let mut running = proxy(folder.path(), &socket, &[]);
    let url = format!("https://{}/", running.address());
    let load = |n: &str| {
        let args = [
            "load",
            &url,
            "--insecure",
            "-n",
            n,
            "-c",
            "32",
            "--keep-alive",
            "off",
            "--resume",
            "50%",
            "--headless",
            "--journal",
            "off",
            "--format",
            "json",
        ];
        let output = run(folder.path(), &args);
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<serde_json::Value>(&output.stdout).unwrap()
    };
    // What is allocated once is there after the first round: tables, and histograms as far as latencies reach.
    load("10000");
    let file = journal(folder.path());
    let (open, memory) = (descriptors(&file), running.memory_bytes());
    let summary = load("10000");
    assert_eq!(summary["load"]["requests"]["ok"], 10_000, "{summary}");
    assert!(summary["cpu_s"]["load"].as_f64().unwrap() > 0.1, "{summary}");
    until("the descriptors are back", || descriptors(&file) <= open);
    let grown = running.memory_bytes().saturating_sub(memory);
    assert!(grown < 4 << 20, "memory grew by {grown} bytes");
    let (code, printed) = running.end();
    assert_eq!(code, 0);
    let proxy: serde_json::Value = serde_json::from_str(&printed).unwrap();
    let proxy = &proxy["proxy"];
    // Each load has tried the server out once before it began.
    assert_eq!(proxy["connections"]["accepted"], 20_002);
    assert_eq!(proxy["connections"]["open"], 0);
    let handshakes = &proxy["handshakes"];
    assert_eq!(handshakes["full"].as_u64().unwrap() + handshakes["resumed"].as_u64().unwrap(), 20_002);
    assert_eq!(proxy["bytes"]["out"], 20_000 * response(BODY).len() as u64);
}
