//! Lines of other terminators' logs, and the instructions that reading and counting each takes.

use std::fs::{self, File};

use observe::{LineReader, LogCounter, LogKind};

use crate::Result;
use crate::callgrind::{self, Thread};

/// The lines of the shorter and of the longer log: their difference leaves out what the program needs once.
const LINES: [u64; 2] = [2_000, 22_000];
/// The clients that the lines are of.
const CLIENTS: u64 = 50;

/// A format with the name of its budget, the terminator's name, and what makes a line of it: by number and client.
pub type LogCase = (&'static str, &'static str, fn(u64, u64) -> String);

/// Each format that is counted.
pub const CASES: [LogCase; 5] = [
    ("line of HAProxy's log, HTTP mode", "haproxy", haproxy_http),
    ("line of HAProxy's log, TCP mode", "haproxy", haproxy_tcp),
    ("line of nginx's log, http", "nginx", nginx),
    ("line of nginx's log, stream", "nginx-stream", nginx_stream),
    ("connection in stunnel's log", "stunnel", stunnel),
];

fn haproxy_http(n: u64, client: u64) -> String {
    format!(
        r#"{{"kind":"http","time":"1795440001.091","log":"web","line":"{n}","client":"10.0.0.{client}","version":"TLSv1.3","cipher":"TLS_AES_128_GCM_SHA256","resumed":"{}","name":"www.example.org","alpn":"h2","handshake":"2","number":"{}","method":"GET","path":"/images/{client}.png","protocol":"HTTP/2.0","upstream":"up/a","status":"200","state":"--","in":"92","out":"1850","idle":"30","took":"1","response":"1"}}"#,
        n % 2,
        1 + n % 5
    )
}

fn haproxy_tcp(n: u64, client: u64) -> String {
    format!(
        r#"{{"kind":"tcp","time":"1795440001.091","log":"web","line":"{n}","client":"10.0.0.{client}","version":"TLSv1.3","cipher":"TLS_AES_128_GCM_SHA256","resumed":"{}","name":"www.example.org","alpn":"","handshake":"2","upstream":"up/a","state":"--","in":"92","out":"1850","took":"12","connect":"1"}}"#,
        n % 2
    )
}

fn nginx(n: u64, client: u64) -> String {
    format!(
        r#"{{"time":"1795440001.091","client":"10.0.0.{client}","connection":"{n}","number":"{}","version":"TLSv1.3","cipher":"TLS_AES_128_GCM_SHA256","group":"X25519","reused":"{}","name":"www.example.org","alpn":"h2","method":"GET","path":"/images/{client}.png","protocol":"HTTP/2.0","status":"200","in":"92","out":"1850","body":"1700","took":"0.001","upstream":"10.0.0.1:80","connect":"0.000","header":"0.001"}}"#,
        1 + n % 5,
        if n.is_multiple_of(2) { "." } else { "r" }
    )
}

fn nginx_stream(n: u64, client: u64) -> String {
    format!(
        r#"{{"time":"1795440001.091","client":"10.0.0.{client}","version":"TLSv1.3","cipher":"TLS_AES_128_GCM_SHA256","group":"X25519","reused":"{}","name":"www.example.org","alpn":"","status":"200","in":"92","out":"1850","took":"0.012","connect":"0.001"}}"#,
        if n.is_multiple_of(2) { "." } else { "r" }
    )
}

/// The lines of a connection at level `info`.
fn stunnel(n: u64, client: u64) -> String {
    let session = if n.is_multiple_of(2) { "new session negotiated" } else { "previous session reused" };
    let line = |level: u8, text: &str| format!("2026.11.23 22:02:43 LOG{level}[{n}]: {text}");
    [
        line(5, &format!("Service [web] accepted connection from 10.0.0.{client}:46722")),
        line(6, "Peer certificate not required"),
        line(6, &format!("TLS accepted: {session}")),
        line(6, "TLSv1.3 ciphersuite: TLS_AES_256_GCM_SHA384 (256-bit encryption)"),
        line(6, "Peer temporary key: X25519, 253 bits"),
        line(6, "s_connect: connecting 127.0.0.1:18181"),
        line(5, "s_connect: connected 127.0.0.1:18181"),
        line(5, "Service [web] connected remote server from 127.0.0.1:46764"),
        line(5, "Connection closed: 43 byte(s) sent to TLS, 35 byte(s) sent to socket"),
    ]
    .join("\n")
}

/// Reads and counts the lines of a log, and does nothing else.
///
/// # Errors
/// If the log, or a line of it, cannot be read.
pub fn count(terminator: &str, log: &str) -> Result<()> {
    let mut parser = terminator.parse::<LogKind>()?.parser();
    let (mut lines, mut counter, mut bad) = (LineReader::default(), LogCounter::default(), 0_u64);
    let mut count = |line: &[u8]| {
        let read = parser.parse(line, |event| event.iter().for_each(|event| counter.count(event)));
        bad += u64::from(read.is_err());
    };
    let mut log = File::open(log)?;
    while lines.read(&mut log, &mut count)? > 0 {}
    lines.finish(&mut count);
    counter.counted.seal();
    if bad > 0 { Err(format!("{bad} lines cannot be read").into()) } else { Ok(()) }
}

/// Counts the instructions for one line, or one connection of several lines. The program runs itself with
/// `--part lines TERMINATOR LOG`, which must call [`count`].
///
/// # Errors
/// If the program or valgrind cannot be run, or the log is refused.
pub fn instructions((_, terminator, line): LogCase) -> Result<f64> {
    let mut totals = [0; 2];
    for (total, lines) in totals.iter_mut().zip(LINES) {
        let log = tempfile::NamedTempFile::new()?;
        let text: String = (0..lines).map(|n| line(n, n % CLIENTS) + "\n").collect();
        fs::write(&log, text)?;
        let threads = callgrind::run_part("lines", &[terminator, &log.path().to_string_lossy()])?;
        *total = threads.iter().map(Thread::total).sum();
    }
    Ok(totals[1].saturating_sub(totals[0]) as f64 / (LINES[1] - LINES[0]) as f64)
}
