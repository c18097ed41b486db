//! Failures that the test causes are counted by their cause.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use rustix::process::Signal;
use serde_json::{Value, json};

use super::test_bed::{ObserveTestBed, ObservedHaproxy, observe_file};
use crate::common::{PATIENCE, outside, until};

/// What an upstream does with a request.
#[derive(Clone, Copy)]
enum UpstreamFault {
    /// Closes without an answer.
    Closes,
    /// Never answers.
    Silent,
    /// Ends within the response.
    Cuts,
}

/// Starts an upstream. It says when a request has come.
fn faulty_upstream(fault: UpstreamFault) -> (SocketAddr, Receiver<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (told, requests) = channel();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let _ = told.send(());
            match fault {
                UpstreamFault::Closes => {}
                UpstreamFault::Silent => kept.push(stream),
                UpstreamFault::Cuts => {
                    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort");
                }
            }
        }
    });
    (address, requests)
}

/// An upstream that refuses connections: no test listens at a port that needs root.
const REFUSING: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

/// A client of TLS, which sends what is written and ends with this.
struct TlsClient {
    child: Child,
    input: ChildStdin,
}

impl TlsClient {
    fn start(site: &ObserveTestBed, arguments: &[&str]) -> Self {
        let mut openssl = outside("openssl", "openssl");
        openssl
            .args(["s_client", "-quiet", "-servername", "localhost", "-connect"])
            .arg(site.listen.to_string());
        openssl.args(arguments).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = openssl.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        Self { child, input }
    }

    fn send(&mut self, text: &str) {
        self.input.write_all(text.as_bytes()).unwrap();
    }

    fn wait(mut self) {
        until("the client ends", || self.child.try_wait().unwrap().is_some());
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Sends a request, and waits for the server to close.
fn request(site: &ObserveTestBed, text: &str) {
    let mut client = TlsClient::start(site, &["-ign_eof"]);
    client.send(text);
    client.wait();
}

/// Fails a handshake in each way: HTTP without TLS, a record of no version, a version that is too old, no common suite, a
/// client that distrusts the certificate, one that leaves.
fn fail_handshakes(site: &ObserveTestBed) {
    site.fail_handshake();
    let mut other = TcpStream::connect(site.listen).unwrap();
    other.write_all(b"\x16\x99\x99 is the version of no TLS").unwrap();
    let _ = other.read_to_end(&mut Vec::new());
    TlsClient::start(site, &["-tls1_1", "-cipher", "DEFAULT:@SECLEVEL=0"]).wait();
    // The server has a certificate with ECDSA.
    TlsClient::start(site, &["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"]).wait();
    TlsClient::start(site, &["-verify_return_error", "-verify", "1"]).wait();
    drop(TcpStream::connect(site.listen).unwrap());
}

/// Fails requests: each fault of an upstream has a path. `silent` says when its upstream has a request.
fn fail_requests(site: &ObserveTestBed, paths: &[&str], silent: &Receiver<()>) {
    for path in paths {
        request(site, &format!("GET /{path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    }
    silent.recv_timeout(PATIENCE).unwrap();
    request(site, "no request\r\n\r\n");
    // A connection that has served a request is not counted again.
    request(site, &format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\nno request\r\n\r\n", paths[0]));
    request(site, "GET /half HTTP/1.1\r\n");
    let mut gone = TlsClient::start(site, &[]);
    gone.send("GET /silent HTTP/1.1\r\nHost: localhost\r\n\r\n");
    silent.recv_timeout(PATIENCE).unwrap();
    gone.kill();
}

/// The number of requests, connections and full handshakes that [`fail_requests`] makes of so many paths.
fn made_of(paths: u64) -> [u64; 3] {
    [paths + 5, paths + 4, paths + 4]
}

fn counted(observed: &Value) -> [u64; 3] {
    ["/http/requests/total", "/connections/accepted", "/handshakes/full"]
        .map(|pointer| observed["proxy"].pointer(pointer).and_then(Value::as_u64).unwrap())
}

/// The causes of failed requests that were counted.
fn request_failures(observed: &Value) -> Value {
    let failures = observed.pointer("/proxy/http/failures").and_then(Value::as_object).unwrap();
    failures
        .iter()
        .filter(|(_, count)| count.as_u64() > Some(0))
        .map(|(cause, count)| (cause.clone(), count.clone()))
        .collect()
}

#[test]
fn failures_in_haproxys_log_are_counted_by_what_caused_them() {
    let site = ObserveTestBed::new();
    let (closes, _) = faulty_upstream(UpstreamFault::Closes);
    let (silent, at_silent) = faulty_upstream(UpstreamFault::Silent);
    let (cuts, _) = faulty_upstream(UpstreamFault::Cuts);
    let upstreams = [("refused", REFUSING), ("closes", closes), ("silent", silent), ("cuts", cuts)];
    let uses = upstreams.map(|(name, _)| format!("use_backend {name} if {{ path /{name} }}\n    "));
    let backends = upstreams.map(|(name, address)| {
        format!("backend {name}\n    retries 0\n    option abortonclose\n    timeout server 500ms\n    server one {address}\n")
    });
    let rules = format!("timeout http-request 500ms\n    {}\n{}", uses.concat(), backends.concat());
    let haproxy = ObservedHaproxy::start(&site, "http", "", &rules);
    fail_handshakes(&site);
    fail_requests(&site, &["refused", "closes", "silent", "cuts"], &at_silent);
    let (observed, _) = haproxy.finish(&site);
    assert_eq!(observed["causes"], json!({"not TLS": 2, "incompatible": 2, "alert": 1, "client left": 2}));
    assert_eq!(
        request_failures(&observed),
        json!({
            "connect": 2, "upstream-closed": 1, "upstream-timeout": 1, "upstream-cut": 1, "malformed": 2,
            "head-timeout": 1, "client-gone": 1
        })
    );
    let [requests, connections, handshakes] = made_of(4);
    assert_eq!(counted(&observed), [requests, connections + 7, handshakes]);
}

#[test]
fn every_failed_handshake_in_nginxs_stream_log_is_one() {
    let site = ObserveTestBed::new();
    let log = site.path("access.log");
    let lines = site.nginx_lines("nginx-stream", &log);
    let nginx = site.start_nginx("stream", &lines, &format!("proxy_pass {};", site.upstream()));
    fail_handshakes(&site);
    TlsClient::start(&site, &["-tls1_2", "-verify_return_error", "-verify", "1"]).wait();
    nginx.finish(Signal::QUIT);
    let observed = observe_file(&site, "nginx-stream", &log);
    // With the connection that looks whether it listens. The log does not say why they failed.
    assert_eq!(observed["causes"], json!({"other": 8}));
    assert_eq!(observed["proxy"]["handshakes"]["full"], 0);
}

#[test]
fn failures_in_nginxs_log_are_counted_by_what_caused_them() {
    let site = ObserveTestBed::new();
    let (closes, _) = faulty_upstream(UpstreamFault::Closes);
    let (silent, at_silent) = faulty_upstream(UpstreamFault::Silent);
    let upstreams = [("refused", REFUSING), ("closes", closes), ("silent", silent)];
    let locations = upstreams.map(|(name, address)| {
        format!("location /{name} {{ proxy_read_timeout 500ms; proxy_pass http://{address}; }}\n")
    });
    let log = site.path("access.log");
    let lines = site.nginx_lines("nginx", &log);
    let nginx =
        site.start_nginx("http", &lines, &format!("client_header_timeout 1s;\n{}", locations.concat()));
    fail_handshakes(&site);
    fail_requests(&site, &["refused", "closes", "silent"], &at_silent);
    nginx.finish(Signal::QUIT);
    let observed = observe_file(&site, "nginx", &log);
    assert_eq!(observed["causes"], json!({"not TLS": 1, "incompatible": 2, "alert": 1, "client left": 2}));
    assert_eq!(
        request_failures(&observed),
        json!({
            "connect": 2, "upstream-closed": 1, "upstream-timeout": 1, "malformed": 2, "head-timeout": 1,
            "client-gone": 1
        })
    );
    // nginx answers HTTP without TLS: that is a request with status 400, on a connection without a handshake.
    let [requests, connections, handshakes] = made_of(3);
    assert_eq!(counted(&observed), [requests + 1, connections + 7, handshakes]);
}
