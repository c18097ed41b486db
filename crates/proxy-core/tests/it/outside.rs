//! TLS clients that share no code with the proxy, run with a line to send.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::process::{Command, Stdio};

pub(crate) const SENT: &[u8] = b"hello from outside\n";

/// Runs `openssl s_client`, and returns what it prints. `localhost` is asked for unless other names are given.
pub(crate) fn s_client(addr: SocketAddr, arguments: &[&str]) -> String {
    let mut all = vec!["openssl", "s_client", "-connect"];
    let addr = addr.to_string();
    all.push(&addr);
    if !arguments.iter().any(|argument| ["-servername", "-noservername"].contains(argument)) {
        all.extend(["-servername", "localhost"]);
    }
    all.extend(arguments);
    sent(&all, "openssl")
}

/// Runs `gnutls-cli` without verifying anything, and returns what it prints.
pub(crate) fn gnutls(addr: SocketAddr, priority: &str) -> String {
    let port = addr.port().to_string();
    let ip = addr.ip().to_string();
    sent(&["gnutls-cli", "--insecure", "--priority", priority, "-p", &port, &ip], "gnutls-bin")
}

/// Runs a client, sends a line, and waits for the line to come back or the client to end.
fn sent(command: &[&str], package: &str) -> String {
    let mut child = Command::new("timeout")
        .arg("20")
        .args(command)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|_| panic!("this test needs the Debian packages {package} and coreutils"));
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    // A client whose handshake has failed may be gone already.
    let _ = stdin.write_all(SENT);
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
    let ended = child.wait_with_output().unwrap();
    assert_ne!(ended.status.code(), Some(127), "this test needs the Debian package {package}");
    String::from_utf8_lossy(&output).into_owned() + &String::from_utf8_lossy(&ended.stderr)
}

/// Whether the line came back.
pub(crate) fn has_echo(output: &str) -> bool {
    output.contains("hello from outside")
}
