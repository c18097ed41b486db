//! The demo upstream.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use loadgen::{DemoUpstream, Load, LoadConfig, Target, Template, Trust, UpstreamAddr};
use records::metrics::LoadCounter as C;

use crate::support::{finish, plan};

fn start() -> (DemoUpstream, Target) {
    let upstream = DemoUpstream::start(UpstreamAddr::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
    let target = format!("http://{}/", upstream.address()).parse().unwrap();
    (upstream, target)
}

/// Sends a request that asks to close, and gives the head and the body of the answer.
fn ask(stream: &mut (impl Read + Write), request: &[u8]) -> (String, Vec<u8>) {
    stream.write_all(request).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let at = answer.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    (String::from_utf8(answer[..at].to_vec()).unwrap(), answer[at..].to_vec())
}

#[test]
fn bytes_and_echo_are_what_was_asked_for() {
    let (_upstream, target) = start();
    let connect = || std::net::TcpStream::connect((target.host(), target.port())).unwrap();
    let (head, body) =
        ask(&mut connect(), b"GET /bytes/100000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("content-length: 100000\r\n"), "{head}");
    assert_eq!(body.len(), 100_000);
    let mut request =
        b"POST /echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 5\r\n\r\n".to_vec();
    request.extend(b"hello");
    assert_eq!(ask(&mut connect(), &request).1, b"hello");
    let (head, body) = ask(&mut connect(), b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(!body.is_empty());
    let (_, body) =
        ask(&mut connect(), b"GET /files/bytes/7 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    assert_eq!(body.len(), 7);
}

#[test]
fn a_half_closed_client_still_gets_its_answer() {
    let (_upstream, target) = start();
    let mut stream = std::net::TcpStream::connect((target.host(), target.port())).unwrap();
    stream.write_all(b"GET /bytes/50000 HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let (_, body) = ask(&mut stream, b"");
    assert_eq!(body.len(), 50_000);
}

#[test]
fn an_unknown_path_is_refused() {
    let (_upstream, target) = start();
    for (line, status) in [
        ("GET /nothing", "404"),
        ("GET /bytes/x", "400"),
        ("GET /bytes/99999999999", "400"),
        ("GET /echo", "405"),
    ] {
        let mut stream = std::net::TcpStream::connect((target.host(), target.port())).unwrap();
        let request = format!("{line} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let (head, _) = ask(&mut stream, request.as_bytes());
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{line}: {head}");
    }
}

#[test]
fn the_generator_and_the_upstream_understand_each_other() {
    let (_upstream, target) = start();
    let requests = vec![
        Template::get("/"),
        Template::get("/bytes/0"),
        Template::get("/bytes/200000"),
        Template::post("/echo", 0),
        Template::post("/echo", 300_000),
    ];
    let plan = plan("connections=4,requests=500,keep-alive=9");
    let mut load =
        Load::start(LoadConfig { requests, ..LoadConfig::new(target, plan, Trust::Roots) }).unwrap();
    assert_eq!(finish(&mut load).counters[C::Ok], 500);
}

#[test]
fn a_unix_socket_is_made_replaced_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.sock");
    // Left by a run that was killed.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let upstream = DemoUpstream::start(UpstreamAddr::Unix(path.clone())).unwrap();
    let mut stream = UnixStream::connect(&path).unwrap();
    assert_eq!(ask(&mut stream, b"GET /bytes/3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").1.len(), 3);
    drop(upstream);
    assert!(!path.exists());
}

#[test]
fn an_address_in_use_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "precious").unwrap();
    let error = DemoUpstream::start(UpstreamAddr::Unix(file.clone())).unwrap_err().to_string();
    assert!(error.contains("file") && error.contains("demo upstream"), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");

    let (first, target) = start();
    let taken = UpstreamAddr::Tcp(format!("127.0.0.1:{}", target.port()).parse().unwrap());
    assert!(DemoUpstream::start(taken).is_err());
    drop(first);
}
