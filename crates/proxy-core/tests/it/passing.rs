//! TLS that is passed to an upstream unread.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::Duration;

use proxy_core::proxy_protocol::ProxyProtocol;
use proxy_core::{Certificate, NameRoute, ProxyConfig, Upstream};
use proxy_header::{ParseConfig, ProxyHeader, Tlv};
use records::kinds::ConnectionOutcome;
use records::metrics::{Dimension, ProxyCounter, UsageCounter};
use rustls::ClientConnection;
use rustls::pki_types::ServerName;

use crate::support::{
    PATIENCE, TLS12, TLS13, TestProxy, TestUpstream, Tls, echo, end, pattern, read_all, reset, serve_echo,
    tcp_to,
};

pub(crate) const PASSED: &str = "passed.test";

/// A proxy that passes one name to this upstream, and terminates all others in front of an echo.
pub(crate) fn passing(
    upstream: &Upstream,
    served: &TestUpstream,
    change: impl FnOnce(&mut ProxyConfig),
) -> TestProxy {
    let route = NameRoute::new(PASSED, vec![upstream.clone()]).unwrap().passed();
    TestProxy::start_with(&served.upstream, |config| {
        config.routes = vec![route];
        change(config);
    })
}

/// A proxy as the upstream that terminates the passed name.
pub(crate) fn terminating(served: &TestUpstream) -> (TestProxy, Upstream) {
    let certificate = Certificate::generate(&[PASSED.to_owned()]).unwrap();
    let leaf = certificate.leaf_der().to_vec();
    let proxy = TestProxy::start_with(&served.upstream, |config| config.tls = certificate.into());
    let upstream = proxy.addr().to_string().parse().unwrap();
    (TestProxy { certificate: leaf, ..proxy }, upstream)
}

fn client(proxy: &TestProxy) -> ClientConnection {
    ClientConnection::new(proxy.client(&TLS13), ServerName::try_from(PASSED).unwrap()).unwrap()
}

/// The first bytes of a client that asks for the passed name.
pub(crate) fn client_hello(proxy: &TestProxy) -> Vec<u8> {
    let mut hello = Vec::new();
    client(proxy).write_tls(&mut hello).unwrap();
    hello
}

/// The same message in records of `n` bytes each.
fn in_records_of(n: usize, hello: &[u8]) -> Vec<u8> {
    let record = |part: &[u8]| [&[22, 3, 1, 0, part.len() as u8], part].concat();
    hello[5..].chunks(n).flat_map(record).collect()
}

pub(crate) fn read_until_closed(socket: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    match socket.read_to_end(&mut bytes) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset),
    }
    bytes
}

#[test]
fn a_passed_client_shakes_hands_with_the_upstream_and_others_with_the_proxy() {
    let served = TestUpstream::unix(serve_echo);
    let (inner, upstream) = terminating(&served);
    let mut proxy = passing(&upstream, &served, |_| {});
    let bytes = pattern(1 << 20);
    for version in [&TLS13, &TLS12] {
        let name = ServerName::try_from(PASSED).unwrap();
        let connection = ClientConnection::new(inner.client(version), name).unwrap();
        let mut tls = Tls::new(connection, proxy.tcp());
        bytes.chunks(16 << 10).for_each(|chunk| echo(&mut tls, chunk));
        end(&mut tls);
        assert_eq!(read_all(&mut tls), (Vec::new(), true), "the end of each direction passes");
    }
    let mut terminated = proxy.connect(&proxy.client(&TLS13));
    echo(&mut terminated, b"hello");
    end(&mut terminated);
    read_all(&mut terminated);
    assert_eq!(inner.finish().counters[ProxyCounter::HandshakesFull], 2);
    proxy.expect(ProxyCounter::Closed, 3);
    let total = proxy.finish();
    let count = |counter| total.counters[counter];
    assert_eq!((count(ProxyCounter::Passed), count(ProxyCounter::HandshakesFull)), (2, 1));
    assert_eq!(count(ProxyCounter::Exchanges), 1, "those of passed TLS do not show");
    // Each worker has its own row.
    let rows = total.tls.usage.iter().filter(|row| row.dimension == Dimension::Name && &*row.value == PASSED);
    let sum = |counter| rows.clone().map(|row| row.counters[counter]).sum::<u64>();
    assert_eq!(sum(UsageCounter::Passed), 2);
    assert!(sum(UsageCounter::BytesOut) > 2 << 20);
    let record = total.connections.iter().find(|record| record.sni == PASSED).unwrap();
    assert_eq!((record.outcome, &*record.tls_version), (ConnectionOutcome::Ended, ""));
}

#[test]
fn a_client_hello_in_any_pieces_is_passed_byte_for_byte() {
    let raw = TestUpstream::tcp(serve_echo);
    let proxy = passing(&raw.upstream, &raw, |_| {});
    let hello = client_hello(&proxy);
    for (sent, piece) in [(hello.clone(), 1 << 20), (hello.clone(), 7), (in_records_of(1, &hello), 500)] {
        let mut socket = proxy.tcp();
        for part in sent.chunks(piece) {
            socket.write_all(part).unwrap();
        }
        let mut answer = vec![0; sent.len()];
        socket.read_exact(&mut answer).unwrap();
        assert!(answer == sent, "pieces of {piece}");
        socket.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_until_closed(&mut socket), b"");
    }
    assert_eq!(proxy.finish().counters[ProxyCounter::Passed], 3);
}

#[test]
fn a_proxy_header_names_client_and_server_name_and_no_tls() {
    let raw = TestUpstream::tcp(serve_echo);
    for version in [ProxyProtocol::V1, ProxyProtocol::V2] {
        let proxy = passing(&raw.upstream, &raw, |config| {
            config.proxy_protocol = Some(version);
            config.accept_proxy = "127.0.0.0/8".parse().unwrap();
        });
        let hello = client_hello(&proxy);
        let mut socket = proxy.tcp();
        let header = b"PROXY TCP4 203.0.113.7 192.0.2.1 4711 443\r\n";
        socket.write_all(&[&header[..], &hello[..10]].concat()).unwrap();
        socket.write_all(&hello[10..]).unwrap();
        socket.shutdown(Shutdown::Write).unwrap();
        let bytes = read_until_closed(&mut socket);
        let (header, len) = ProxyHeader::parse(&bytes, ParseConfig::default()).unwrap();
        assert_eq!(header.proxied_address().unwrap().source, "203.0.113.7:4711".parse().unwrap());
        assert!(bytes[len..] == hello, "{version}");
        let fields: Vec<_> = header.tlvs().map(Result::unwrap).collect();
        match version {
            ProxyProtocol::V1 => assert!(fields.is_empty()),
            ProxyProtocol::V2 => assert_eq!(fields, [Tlv::Authority(PASSED.into())]),
        }
    }
}

#[test]
fn what_is_not_certainly_passed_goes_the_normal_way() {
    let [raw, served] = [TestUpstream::tcp(serve_echo), TestUpstream::unix(serve_echo)];
    let proxy = passing(&raw.upstream, &served, |_| {});
    let hello = client_hello(&proxy);
    // A message of almost 16 KiB that comes byte by byte, in records that take six times as much.
    let endless = in_records_of(1, &[&[0; 5][..], &[1, 0, 0x3f, 0xff], &[7; 0x3ff0]].concat());
    let mut long = hello.clone();
    long[6..9].copy_from_slice(&[0, 0xff, 0xff]);
    for bytes in
        [b"GET / HTTP/1.1\r\n\r\n".to_vec(), [&hello[..5], &[2], &hello[6..]].concat(), endless, long]
    {
        let mut socket = proxy.tcp();
        // The proxy may have refused before it has all.
        let _ = socket.write_all(&bytes);
        let _ = socket.shutdown(Shutdown::Write);
        read_until_closed(&mut socket);
    }
    let total = proxy.finish();
    assert_eq!(total.counters[ProxyCounter::HandshakesFailed], 4);
    assert_eq!(total.counters[ProxyCounter::FailedNotTls], 1);
    assert_eq!(
        (total.counters[ProxyCounter::Passed], total.counters[ProxyCounter::UpstreamConnects]),
        (0, 0)
    );
}

#[test]
fn a_client_hello_that_never_ends_meets_the_deadline_of_the_handshake() {
    let raw = TestUpstream::tcp(serve_echo);
    let mut proxy = passing(&raw.upstream, &raw, |config| {
        config.limits.handshake_timeout = Duration::from_millis(300);
    });
    let hello = client_hello(&proxy);
    let mut held: Vec<_> = (0..8).map(|_| proxy.tcp()).collect();
    for socket in &mut held {
        socket.write_all(&hello[..hello.len() - 1]).unwrap();
    }
    for socket in &mut held {
        assert_eq!(read_until_closed(socket), b"");
    }
    proxy.expect(ProxyCounter::FailedTimeout, 8);
    assert_eq!(proxy.finish().counters[ProxyCounter::Passed], 0);
}

#[test]
fn an_absent_upstream_ends_a_passed_client() {
    let served = TestUpstream::unix(serve_echo);
    let gone = Upstream::unix("/nonexistent/app.sock");
    let mut proxy = passing(&gone, &served, |_| {});
    let mut socket = tcp_to(proxy.addr());
    socket.write_all(&client_hello(&proxy)).unwrap();
    assert_eq!(read_until_closed(&mut socket), b"", "the plaintext upstream does not get it instead");
    proxy.expect(ProxyCounter::UpstreamConnectsFailed, 1);
    assert_eq!(proxy.count(ProxyCounter::UpstreamConnects), 0);
}

#[test]
fn a_passed_client_that_resets_resets_its_upstream() {
    let served = TestUpstream::unix(serve_echo);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = listener.local_addr().unwrap().to_string().parse().unwrap();
    let proxy = passing(&upstream, &served, |_| {});
    let mut socket = proxy.tcp();
    let hello = client_hello(&proxy);
    socket.write_all(&hello).unwrap();
    let (mut app, _) = listener.accept().unwrap();
    app.set_read_timeout(Some(PATIENCE)).unwrap();
    app.read_exact(&mut vec![0; hello.len()]).unwrap();
    reset(&socket);
    drop(socket);
    assert_eq!(app.read(&mut [0; 1]).unwrap_err().kind(), ErrorKind::ConnectionReset);
}
