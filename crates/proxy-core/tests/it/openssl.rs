//! The same with OpenSSL's client, which shares no code with the proxy.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use telemetry::ProxyCounter;

use crate::support::{Counted, Served, serve_echo};

const SENT: &[u8] = b"hello from openssl\n";

/// Runs `openssl s_client` with a line to send, and returns what it prints.
fn s_client(proxy: &Counted, arguments: &[&str]) -> String {
    let mut child = Command::new("timeout")
        .args([
            "20",
            "openssl",
            "s_client",
            "-connect",
            &proxy.addr().to_string(),
            "-servername",
            "localhost",
        ])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("this test needs the Debian packages openssl and coreutils");
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    stdin.write_all(SENT).unwrap();
    // The client ends with its input, without waiting for an answer, so the input stays open until that is there.
    let mut output = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match stdout.read(&mut buffer).unwrap() {
            0 => break,
            n => output.extend_from_slice(&buffer[..n]),
        }
        if output.windows(SENT.len()).any(|window| window == SENT) {
            break;
        }
    }
    drop(stdin);
    stdout.read_to_end(&mut output).unwrap();
    let status = child.wait_with_output().unwrap();
    assert_ne!(status.status.code(), Some(127), "this test needs the Debian package openssl");
    String::from_utf8_lossy(&output).into_owned() + &String::from_utf8_lossy(&status.stderr)
}

#[test]
fn openssl_echoes_and_resumes_in_both_versions() {
    let served = Served::unix(serve_echo);
    let proxy = Counted::start(&served.upstream);
    let dir = tempfile::tempdir().unwrap();
    for version in ["-tls1_2", "-tls1_3"] {
        let session = dir.path().join(version);
        let session = session.to_str().unwrap();
        let first = s_client(&proxy, &[version, "-sess_out", session]);
        assert!(first.contains("hello from openssl"), "{first}");
        assert!(first.contains("New, TLS"), "{first}");
        assert!(Path::new(session).exists(), "no ticket came: {first}");
        let second = s_client(&proxy, &[version, "-sess_in", session]);
        assert!(second.contains("hello from openssl"), "{second}");
        assert!(second.contains("Reused, TLS"), "{second}");
    }
    let total = proxy.finish();
    let count = |counter| total.counters[counter];
    assert_eq!((count(ProxyCounter::Tls12Full), count(ProxyCounter::Tls12Resumed)), (1, 1));
    assert_eq!((count(ProxyCounter::Tls13Full), count(ProxyCounter::Tls13Resumed)), (1, 1));
    assert_eq!(count(ProxyCounter::BytesIn), 4 * 19);
    assert_eq!(count(ProxyCounter::BytesOut), 4 * 19);
}

#[test]
fn versions_that_are_obsolete_are_refused() {
    let served = Served::unix(serve_echo);
    let proxy = Counted::start(&served.upstream);
    for version in ["-tls1", "-tls1_1"] {
        let output = s_client(&proxy, &[version, "-cipher", "ALL:@SECLEVEL=0"]);
        assert!(!output.contains("hello from openssl"), "{output}");
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::FailedIncompatible], 2);
}
