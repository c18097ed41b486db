//! The PROXY protocol: the header that goes to the upstream, and the one that trusted peers must send.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use proxy_core::Upstream;
use proxy_core::proxy_protocol::{self, Endpoints, NegotiatedInfo, ParsedHeader, ProxyProtocol};
use proxy_header::{ParseConfig, ProxyHeader};
use records::ids::ClientId;
use records::kinds::ConnectionOutcome;
use records::metrics::ProxyCounter;
use records::setting::Value;

use crate::support::{TLS12, TLS13, TestProxy, TestUpstream, echo, end, read_all, serve_echo, tls_over};

/// An upstream that is looked at by hand.
pub(crate) fn watched() -> (tempfile::TempDir, UnixListener, Upstream) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    (dir, listener, Upstream::unix(path))
}

/// Accepts a connection, and reads up to the client's `hello`.
pub(crate) fn received(listener: &UnixListener) -> (UnixStream, Vec<u8>) {
    let (mut app, _) = listener.accept().unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"hello") {
        let mut byte = [0];
        app.read_exact(&mut byte).unwrap();
        bytes.extend(byte);
    }
    (app, bytes)
}

pub(crate) fn header_of(client: &str) -> Vec<u8> {
    let endpoints = Endpoints::new(client.parse().unwrap(), "198.51.100.9:443".parse().unwrap());
    proxy_protocol::encode(ProxyProtocol::V2, endpoints, &NegotiatedInfo::default())
}

fn ip(text: &str) -> ClientId {
    ClientId::from(text.parse::<IpAddr>().unwrap())
}

#[test]
fn the_upstream_is_told_the_client_in_front_of_the_first_byte() {
    for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
        let (_dir, listener, upstream) = watched();
        let proxy = TestProxy::start_with(&upstream, |config| {
            config.proxy_protocol = Some(version);
            config.tls.settings.alpn = vec!["http/1.1".to_owned()];
        });
        for tls in [&TLS12, &TLS13] {
            let mut config = (*proxy.client(tls)).clone();
            config.alpn_protocols = vec![b"http/1.1".to_vec()];
            let mut tls = proxy.connect(&config.into());
            tls.write_all(b"hello").unwrap();
            let (mut app, bytes) = received(&listener);
            let endpoints = Endpoints { source: tls.sock.local_addr().unwrap(), destination: proxy.addr() };
            assert_eq!(
                proxy_protocol::parse(&bytes),
                Ok(ParsedHeader::Header(Some(endpoints), bytes.len() - 5))
            );
            if version == ProxyProtocol::V2 {
                let (header, _) = ProxyHeader::parse(&bytes, ParseConfig::default()).unwrap();
                assert_eq!(
                    (header.alpn(), header.authority()),
                    (Some(b"http/1.1" as &[u8]), Some("localhost"))
                );
                let ssl = header.ssl().unwrap();
                let negotiated = tls.conn.protocol_version().unwrap().as_str().unwrap().replace('_', ".");
                assert_eq!((ssl.version(), ssl.verify()), (Some(negotiated.as_str()), 1));
            }
            app.write_all(b"once").unwrap();
            let mut answer = [0; 4];
            tls.read_exact(&mut answer).unwrap();
            tls.write_all(b"again").unwrap();
            let mut next = [0; 5];
            app.read_exact(&mut next).unwrap();
            assert_eq!(&next, b"again", "the header comes once");
            drop(app);
            read_all(&mut tls);
            end(&mut tls);
        }
        assert_eq!(proxy.finish().counters[ProxyCounter::BytesIn], 20, "the header is nobody's payload");
    }
}

#[test]
fn an_upstream_that_speaks_first_gets_the_header_at_once() {
    let (_dir, listener, upstream) = watched();
    let proxy = TestProxy::start_with(&upstream, |config| config.proxy_protocol = Some(ProxyProtocol::V1));
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.conn.complete_io(&mut tls.sock).unwrap();
    let (mut app, _) = listener.accept().unwrap();
    let mut first = [0; 6];
    app.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"PROXY ");
    app.write_all(b"220 ready").unwrap();
    drop(app);
    // It is closed with a part of the header unread, which resets the connection.
    let _ = tls.read(&mut [0; 100]);
}

fn trusting(served: &TestUpstream) -> TestProxy {
    TestProxy::start_with(&served.upstream, |config| config.accept_proxy = "127.0.0.0/8".parse().unwrap())
}

#[test]
fn the_client_in_a_trusted_header_is_counted() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = trusting(&served);
    let config = proxy.client(&TLS13);
    for client in ["192.0.2.7:1000", "[2001:db8::7]:1000"] {
        let mut socket = proxy.tcp();
        socket.write_all(&header_of(client)).unwrap();
        let mut tls = tls_over(socket, &config);
        echo(&mut tls, b"hello");
        end(&mut tls);
        assert_eq!(read_all(&mut tls), (Vec::new(), true));
    }
    let total = proxy.finish();
    let mut clients: Vec<_> = total.clients.iter().map(|client| client.client).collect();
    clients.sort_unstable();
    clients.dedup();
    assert_eq!(clients, [ip("192.0.2.7"), ip("2001:db8::7")]);
    assert!(total.connections.iter().all(|record| clients.contains(&record.client)));
}

#[test]
fn a_header_may_come_in_pieces_or_together_with_the_hello() {
    let served = TestUpstream::unix(serve_echo);
    let proxy = trusting(&served);
    let config = proxy.client(&TLS13);
    let mut socket = proxy.tcp();
    for byte in b"PROXY TCP4 192.0.2.8 198.51.100.9 1000 443\r\n" {
        socket.write_all(&[*byte]).unwrap();
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut pieces = tls_over(socket, &config);
    echo(&mut pieces, b"hello");

    let mut together = tls_over(proxy.tcp(), &config);
    let mut first = header_of("192.0.2.9:1000");
    together.conn.write_tls(&mut first).unwrap();
    together.sock.write_all(&first).unwrap();
    echo(&mut together, b"hello");
    drop((pieces, together));
    let total = proxy.finish();
    let clients: Vec<_> = total.clients.iter().map(|client| client.client).collect();
    assert!(clients.contains(&ip("192.0.2.8")) && clients.contains(&ip("192.0.2.9")), "{clients:?}");
}

#[test]
fn a_received_header_is_passed_on() {
    let (_dir, listener, upstream) = watched();
    let proxy = TestProxy::start_with(&upstream, |config| {
        config.accept_proxy = "127.0.0.1".parse().unwrap();
        config.proxy_protocol = Some(ProxyProtocol::V1);
    });
    for (header, source) in [
        (header_of("192.0.2.7:1000"), Some("PROXY TCP4 192.0.2.7 198.51.100.9 1000 443\r\nhello".to_owned())),
        (b"PROXY UNKNOWN\r\n".to_vec(), None),
    ] {
        let mut socket = proxy.tcp();
        socket.write_all(&header).unwrap();
        let mut tls = tls_over(socket, &proxy.client(&TLS13));
        tls.write_all(b"hello").unwrap();
        let own: SocketAddr = tls.sock.local_addr().unwrap();
        let expected = source.unwrap_or_else(|| {
            format!("PROXY TCP4 127.0.0.1 127.0.0.1 {} {}\r\nhello", own.port(), proxy.addr().port())
        });
        let mut bytes = vec![0; expected.len()];
        listener.accept().unwrap().0.read_exact(&mut bytes).unwrap();
        assert_eq!(String::from_utf8(bytes).unwrap(), expected);
    }
}

#[test]
fn a_trusted_peer_without_a_header_is_turned_away() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = trusting(&served);
    let mut tls = proxy.connect(&proxy.client(&TLS13));
    tls.write_all(b"hello").and_then(|()| tls.flush()).unwrap_err();
    let mut endless = proxy.tcp();
    let mut header = header_of("192.0.2.7:1000");
    header[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
    header.resize(3000, 1);
    endless.write_all(&header).unwrap();
    assert_eq!(endless.read(&mut [0; 100]).unwrap_or(0), 0);
    proxy.expect(ProxyCounter::FailedOther, 2);
    proxy.proxy.set("proxy.handshake-timeout", &Value::Number(0.5)).unwrap();
    let silent = proxy.tcp();
    let mut halting = proxy.tcp();
    halting.write_all(b"PROXY TCP4 ").unwrap();
    proxy.expect(ProxyCounter::FailedTimeout, 2);
    drop((silent, halting));
    let total = proxy.finish();
    assert!(total.connections.iter().all(|record| record.client == ip("127.0.0.1")));
    assert!(total.connections[0].detail.contains("PROXY header"), "{:?}", total.connections[0]);
}

#[test]
fn a_header_that_does_not_match_its_checksum_is_turned_away() {
    let served = TestUpstream::unix(serve_echo);
    let mut proxy = trusting(&served);
    let mut header = header_of("192.0.2.7:1000");
    // A checksum of zero is right for one header in four thousand million.
    header.extend([3, 0, 4, 0, 0, 0, 0]);
    let len = (header.len() - 16) as u16;
    header[14..16].copy_from_slice(&len.to_be_bytes());
    let mut socket = proxy.tcp();
    socket.write_all(&header).unwrap();
    assert_eq!(socket.read(&mut [0; 100]).unwrap_or(0), 0);
    proxy.expect(ProxyCounter::FailedOther, 1);
    let total = proxy.finish();
    assert!(total.connections[0].detail.contains("checksum"), "{:?}", total.connections[0]);
}

#[test]
fn a_header_of_a_peer_that_is_not_trusted_is_payload() {
    let served = TestUpstream::unix(serve_echo);
    for trusted in ["", "192.0.2.0/24"] {
        let mut proxy = TestProxy::start_with(&served.upstream, |config| {
            if !trusted.is_empty() {
                config.accept_proxy = trusted.parse().unwrap();
            }
        });
        let mut socket = proxy.tcp();
        socket.write_all(b"PROXY TCP4 192.0.2.7 198.51.100.9 1000 443\r\n").unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
        proxy.expect(ProxyCounter::FailedNotTls, 1);
        drop(socket);
        let record = &proxy.finish().connections[0];
        assert_eq!((record.outcome, record.client), (ConnectionOutcome::NotTls, ip("127.0.0.1")));
    }
}

#[test]
fn curl_speaks_the_protocol_to_us() {
    fn serve_http(stream: &mut dyn crate::support::TestStream, _: &AtomicU64) {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        stream.end();
    }
    let served = TestUpstream::unix(serve_http);
    let proxy = trusting(&served);
    let url = format!("https://{}/", proxy.addr());
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--insecure", "--max-time", "10", "--haproxy-protocol", &url])
        .output()
        .expect("curl is missing: apt-get install curl");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "ok", "{output:?}");
    assert_eq!(proxy.finish().counters[ProxyCounter::HandshakesFull], 1);
}
