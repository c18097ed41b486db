//! The handshakes of passed clients with their upstream, as its bytes show them.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use records::delta::{NamedDelta as _, ProxyDelta, UpstreamDelta};
use records::metrics::{ProxyCounter, UpstreamCounter, UpstreamLatency};
use rustls::{ClientConfig, ClientConnection, StreamOwned, SupportedProtocolVersion};

use crate::passing::{PASSED, client_hello, passing, read_until_closed, terminating};
use crate::support::{
    TLS12, TLS13, TestProxy, TestStream, TestUpstream, echo, end, eventually, read_all, serve_echo,
};

/// An alert of TLS: fatal, `handshake_failure`.
const ALERT: [u8; 7] = [21, 3, 3, 0, 2, 2, 40];

/// Handshakes that were full, resumed, failed and not judged.
fn handshakes(upstream: &UpstreamDelta) -> [u64; 4] {
    use UpstreamCounter as C;
    [C::TlsFull, C::TlsResumed, C::TlsFailed, C::TlsUnjudged].map(|counter| upstream.counters[counter])
}

/// The same of the upstream that gets passed TLS, whose connections have one each.
fn of_passed(total: &ProxyDelta) -> [u64; 4] {
    let [_, passed] = total.upstreams.all() else { panic!("two upstreams") };
    let handshakes = handshakes(passed);
    assert_eq!(passed.counters[UpstreamCounter::Connections], handshakes.iter().sum::<u64>());
    handshakes
}

/// A socket that takes a few bytes at a time.
struct Trickle(TcpStream);

impl Read for Trickle {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.0.read(bytes)
    }
}

impl Write for Trickle {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(&bytes[..bytes.len().min(7)])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn connection(config: &Arc<ClientConfig>) -> ClientConnection {
    ClientConnection::new(Arc::clone(config), PASSED.try_into().unwrap()).unwrap()
}

#[test]
fn full_and_resumed_handshakes_are_counted_as_their_server_counts_them() {
    let served = TestUpstream::unix(serve_echo);
    let (inner, upstream) = terminating(&served);
    let mut outer = passing(&upstream, &served, |_| {});
    let versions: [&'static SupportedProtocolVersion; 2] = [&TLS13, &TLS12];
    let mut done = 0;
    for version in versions {
        let config = inner.client(version);
        for _ in 0..4 {
            let mut tls = StreamOwned::new(connection(&config), outer.tcp());
            tls.conn.complete_io(&mut tls.sock).unwrap();
            done += 1;
            eventually("it is counted while the connection is open", || {
                outer.collect();
                let [_, passed] = outer.total.upstreams.all() else { return false };
                handshakes(passed).iter().sum::<u64>() == done
            });
            echo(&mut tls, b"hello");
            end(&mut tls);
            read_all(&mut tls);
        }
    }
    let mut tls = StreamOwned::new(connection(&inner.client(&TLS13)), Trickle(outer.tcp()));
    tls.write_all(b"hello").unwrap();
    tls.read_exact(&mut [0; 5]).unwrap();
    drop(tls);
    outer.expect(ProxyCounter::Closed, 9);
    let (outer, inner) = (outer.finish(), inner.finish());
    assert_eq!(of_passed(&outer), [3, 6, 0, 0]);
    let count = |counter| inner.counters[counter];
    assert_eq!((count(ProxyCounter::HandshakesFull), count(ProxyCounter::HandshakesResumed)), (3, 6));
    let passed = &outer.upstreams.all()[1];
    assert_eq!(passed.counters[UpstreamCounter::Tls12], 4);
    assert_eq!(passed.counters[UpstreamCounter::TlsRefused], 0);
    assert_eq!(passed.latency(UpstreamLatency::TlsFull).count(), 3);
    assert_eq!(passed.latency(UpstreamLatency::TlsResumed).count(), 6);
    assert_eq!(passed.latency(UpstreamLatency::TlsCompute).count(), 0);
    for own in [ProxyCounter::HandshakesFull, ProxyCounter::HandshakesResumed, ProxyCounter::HandshakesFailed]
    {
        assert_eq!(outer.counters[own], 0, "{own:?}");
    }
}

#[test]
fn a_session_that_the_upstream_refuses_is_counted_as_such() {
    let served = TestUpstream::unix(serve_echo);
    let (inner, upstream) = terminating(&served);
    let outer = passing(&upstream, &served, |_| {});
    for version in [&TLS13, &TLS12] {
        let config = inner.client(version);
        for _ in 0..2 {
            let mut tls = StreamOwned::new(connection(&config), outer.tcp());
            echo(&mut tls, b"hello");
            end(&mut tls);
            read_all(&mut tls);
            inner.proxy.forget_sessions().unwrap();
        }
    }
    let total = outer.finish();
    assert_eq!(of_passed(&total), [4, 0, 0, 0]);
    assert_eq!(total.upstreams.all()[1].counters[UpstreamCounter::TlsRefused], 2);
}

type Serve = fn(&mut dyn TestStream, &AtomicU64);

fn after_hello(stream: &mut dyn TestStream, answer: &[u8]) {
    let _ = stream.read(&mut [0; 4 << 10]);
    stream.write_all(answer).unwrap();
    stream.end();
}

/// A `ServerHello` that announces 16,000 bytes, and 8,000 of them.
fn endless_server_hello() -> Vec<u8> {
    [&[22, 3, 3, 0x3f, 0, 2, 0, 0x3e, 0x80][..], &[7; 8_000]].concat()
}

#[test]
fn a_server_that_completes_no_handshake_is_counted_as_failed() {
    let servers: [(Serve, Vec<u8>, [u64; 4]); 5] = [
        (
            |stream, _| after_hello(stream, b"HTTP/1.1 400\r\n\r\n"),
            b"HTTP/1.1 400\r\n\r\n".into(),
            [0, 0, 1, 0],
        ),
        (|stream, _| after_hello(stream, &ALERT), ALERT.into(), [0, 0, 1, 0]),
        (|stream, _| after_hello(stream, &[22, 3, 3, 0, 60, 2]), [22, 3, 3, 0, 60, 2].into(), [0, 0, 1, 0]),
        (|stream, _| after_hello(stream, b""), Vec::new(), [0, 0, 1, 0]),
        (|stream, _| after_hello(stream, &endless_server_hello()), endless_server_hello(), [0, 0, 0, 1]),
    ];
    for (serve, answer, expected) in servers {
        let (served, raw) = (TestUpstream::unix(serve_echo), TestUpstream::tcp(serve));
        let mut outer = passing(&raw.upstream, &served, |_| {});
        let mut socket = outer.tcp();
        socket.write_all(&client_hello(&outer)).unwrap();
        assert!(read_until_closed(&mut socket) == answer, "the client gets it all");
        drop(socket);
        outer.expect(ProxyCounter::Closed, 1);
        assert_eq!(of_passed(&outer.finish()), expected, "{answer:?}");
    }
}

#[test]
fn a_client_that_leaves_within_the_handshake_is_counted_as_failed() {
    let served = TestUpstream::unix(serve_echo);
    let (inner, upstream) = terminating(&served);
    let mut outer: TestProxy = passing(&upstream, &served, |_| {});
    // After its ClientHello, after the server's flight, and with what is no answer to that.
    for last in [&b""[..], b"", b"GET / HTTP/1.1\r\n\r\n"] {
        let mut socket = outer.tcp();
        socket.write_all(&client_hello(&outer)).unwrap();
        socket.read_exact(&mut [0; 5]).unwrap();
        socket.write_all(last).unwrap();
        socket.shutdown(Shutdown::Both).unwrap();
    }
    let mut socket = outer.tcp();
    socket.write_all(&client_hello(&outer)).unwrap();
    drop(socket);
    outer.expect(ProxyCounter::Closed, 4);
    let total = outer.finish();
    let [_, passed] = total.upstreams.all() else { panic!("two upstreams") };
    // The last one may have left before the upstream was connected.
    let connections = passed.counters[UpstreamCounter::Connections];
    assert!((3..=4).contains(&connections));
    assert_eq!(of_passed(&total), [0, 0, connections, 0]);
    assert_eq!(inner.finish().counters[ProxyCounter::HandshakesFailed], connections);
}
